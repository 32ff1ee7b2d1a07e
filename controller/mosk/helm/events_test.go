package helm

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/events"
)

// Each failure of a release has its attempt and the first line of its message; what does not
// change is no Event.
func TestEventsOfReleases(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := lcmv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	p := &pass{r: &Reconciler{events: events.New(c, clocktesting.NewFakeClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)))}, b: &lcmv1.HelmBundle{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "c1"}}}
	var was lcmv1.HelmReleaseStatus
	for _, step := range []struct {
		name string
		is   lcmv1.HelmReleaseStatus
		want []string
	}{
		{"it waits", lcmv1.HelmReleaseStatus{Hash: "1", Message: "waits for the release store"}, []string{"Normal ReleaseWaits: release app: waits for the release store"}},
		{"it fails", lcmv1.HelmReleaseStatus{Hash: "1", Attempt: 1, Message: "no chart\nmore"}, []string{"Warning ReleaseFailed: release app, attempt 1: no chart"}},
		{"nothing changes", lcmv1.HelmReleaseStatus{Hash: "1", Attempt: 1, Message: "no chart\nmore"}, nil},
		{"it fails again", lcmv1.HelmReleaseStatus{Hash: "1", Attempt: 2, Message: "no chart\nmore"}, []string{"Warning ReleaseFailed: release app, attempt 2: no chart"}},
		{"other values fail", lcmv1.HelmReleaseStatus{Hash: "2", Attempt: 2, Message: "bad value"}, []string{"Warning ReleaseFailed: release app, attempt 2: bad value"}},
		{"it is deployed", lcmv1.HelmReleaseStatus{Hash: "2", Attempt: 3, Success: true, Revision: 1, Chart: "app", Version: "1.0.0", Message: "not ready: a pod"},
			[]string{"Normal ReleaseDeployed: release app is deployed: revision 1, chart app 1.0.0"}},
		{"it is ready", lcmv1.HelmReleaseStatus{Hash: "2", Attempt: 3, Success: true, Revision: 1, Ready: true}, []string{"Normal ReleaseReady: release app is ready: its objects exist and its workloads run"}},
		{"it is lost", lcmv1.HelmReleaseStatus{Hash: "2", Attempt: 3, Success: true, Revision: 1, Message: "not ready: a pod"}, []string{"Warning ReleaseNotReady: release app is not ready any more: not ready: a pod"}},
	} {
		before := listEvents(t, c)
		p.changed(t.Context(), "app", was, step.is)
		was = step.is
		got := slices.DeleteFunc(listEvents(t, c), func(e string) bool { return slices.Contains(before, e) })
		if !slices.Equal(got, step.want) {
			t.Errorf("%s: events %q, want %q", step.name, got, step.want)
		}
	}
}

// listEvents returns the Events as TYPE REASON: MESSAGE, sorted.
func listEvents(t *testing.T, c client.Client) (out []string) {
	t.Helper()
	var list corev1.EventList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		out = append(out, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
	}
	slices.Sort(out)
	return out
}
