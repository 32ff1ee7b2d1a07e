package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/repo"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// lab is a Kubernetes API, a repository and the reconciler.
type lab struct {
	t *testing.T
	client.Client
	kube  *kube.API
	repo  *repository
	clock *clocktesting.FakeClock
	r     *Reconciler
}

func start(t *testing.T) *lab {
	t.Helper()
	k, err := kube.Start(t.Context(), kube.Config{Dir: t.TempDir(), FastPaths: true, Families: []string{config.HOC}, Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Stop() })
	scheme := runtime.NewScheme()
	if err := errors.Join(lcmv1.AddToScheme(scheme), corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(k.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, Client: c, kube: k, repo: serveCharts(t), clock: clocktesting.NewFakeClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))}
	l.restart()
	return l
}

// restart makes a new reconciler.
func (l *lab) restart() {
	l.t.Helper()
	var err error
	if l.r, err = New(Config{Client: l.Client, Reader: l.Client, Target: l.target, Work: queue.Work{Clock: l.clock}}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) target(context.Context, string, string) (API, error) {
	return API{Config: l.kube.RESTConfig(), Shared: true}, nil
}

// allow gives an account of the namespace default all rights, in a namespace or in all.
func (l *lab) allow(account, namespace string) {
	l.t.Helper()
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: key.Namespace, Name: account}}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	if namespace == "" {
		l.must(l.Create(l.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: account}, RoleRef: role, Subjects: subjects}))
		return
	}
	l.must(l.Create(l.t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "all-of-" + account}, RoleRef: role, Subjects: subjects}))
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

var key = client.ObjectKey{Namespace: "default", Name: "c1"}

// pass reconciles the bundle, and returns it; nil when it does not exist.
func (l *lab) pass() *lcmv1.HelmBundle {
	l.t.Helper()
	_, err := l.r.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: key})
	l.must(err)
	b := new(lcmv1.HelmBundle)
	err = l.Get(l.t.Context(), key, b)
	if apierrors.IsNotFound(err) {
		return nil
	}
	l.must(err)
	return b
}

// change changes the spec of the bundle, and reconciles it.
func (l *lab) change(do func(*lcmv1.HelmBundleSpec)) *lcmv1.HelmBundle {
	l.t.Helper()
	b := new(lcmv1.HelmBundle)
	l.must(l.Get(l.t.Context(), key, b))
	do(&b.Spec)
	l.must(l.Update(l.t.Context(), b))
	return l.pass()
}

// text returns the text of a ConfigMap of a chart, "" when there is none.
func (l *lab) text(namespace, name string) string {
	l.t.Helper()
	var m corev1.ConfigMap
	err := l.Get(l.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &m)
	l.must(client.IgnoreNotFound(err))
	return m.Data["text"]
}

// Releases of a bundle are installed in order, upgraded, and uninstalled; what fails stops
// nothing else, and nothing is installed again without a change.
func TestBundle(t *testing.T) {
	l := start(t)
	l.repo.add(t, "settings", "1.0.0", "")
	l.repo.add(t, "app", "1.0.0", "")
	l.repo.add(t, "broken", "1.0.0", "")
	l.allow(Account, "") // for namespaces that Helm creates
	values := func(text string) *runtime.RawExtension {
		return &runtime.RawExtension{Raw: []byte(`{"text":"` + text + `"}`)}
	}
	l.must(l.Create(t.Context(), &lcmv1.HelmBundle{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: lcmv1.HelmBundleSpec{
		Release:      "mosk-1",
		Repositories: []lcmv1.HelmRepository{{Name: "lab", URL: l.repo.URL}},
		Releases: []lcmv1.HelmRelease{
			{Name: "after-broken", Chart: "settings", Requires: []string{"broken"}},
			{Name: "broken", Chart: "lab/broken"},
			{Name: "missing", Chart: "lab/none"},
			{Name: "old", Chart: "lab/settings", Version: "0.9.0"},
			{Name: "second", Chart: "lab/settings", Namespace: "charts", Requires: []string{"first"}},
			{Name: "first", Chart: "lab/settings", Version: "1.0.0", Values: values("one")},
			{Name: "app", Chart: "lab/app"},
		},
	}}))
	b := l.pass()
	s := b.Status.ReleaseStatuses
	if got := s["first"]; !got.Success || !got.Ready || got.Revision != 1 || got.Attempt != 1 || got.Version != "1.0.0" || got.Chart != "settings" || got.Notes != "text is one\n" || got.Status != "deployed" {
		t.Errorf("first: %+v", got)
	}
	if l.text("default", "first") != "one" || l.text("charts", "second") != "default" {
		t.Errorf("texts %q, %q", l.text("default", "first"), l.text("charts", "second"))
	}
	if got := s["app"]; !got.Success || got.Ready {
		t.Errorf("a Deployment that nobody runs: %+v, want success, and not ready", got)
	}
	if got := s["broken"]; got.Success || got.Attempt != 1 || !strings.Contains(got.Message, "Not_A_Name") {
		t.Errorf("broken: %+v", got)
	}
	if got := s["missing"]; got.Success || !strings.Contains(got.Message, "repository lab ("+l.repo.URL+"): chart none: no chart name found: correct the name, or add the chart") {
		t.Errorf("missing: %+v", got)
	}
	if got, want := s["old"], "repository lab ("+l.repo.URL+"): chart settings 0.9.0: no chart version found for settings-0.9.0: there are 1.0.0"; got.Success || got.Message != want {
		t.Errorf("old: %+v, want the message %q", got, want)
	}
	if got := s["after-broken"]; got.Success || got.Message != "waits for the release broken" || l.text("default", "after-broken") != "" {
		t.Errorf("after-broken: %+v", got)
	}
	if b.Status.Release != "" || b.Status.ObservedGeneration != b.Generation {
		t.Errorf("status of a bundle that is not installed: %+v", b.Status)
	}

	// A failed release waits, and an installed one stays, also after a crash before its status
	// was written.
	fetched := l.repo.fetched
	if b = l.pass(); b.Status.ReleaseStatuses["broken"].Attempt != 1 || l.repo.fetched != fetched {
		t.Errorf("a second pass: %+v, %d charts fetched", b.Status.ReleaseStatuses["broken"], l.repo.fetched-fetched)
	}
	before := b.DeepCopy()
	delete(b.Status.ReleaseStatuses, "first")
	l.must(l.Status().Patch(t.Context(), b, client.MergeFrom(before)))
	l.restart()
	if b = l.pass(); b.Status.ReleaseStatuses["first"].Revision != 1 || !b.Status.ReleaseStatuses["first"].Success || l.repo.fetched != fetched {
		t.Errorf("first after a crash: %+v, %d charts fetched", b.Status.ReleaseStatuses["first"], l.repo.fetched-fetched)
	}
	l.clock.Step(minBackoff)
	if b = l.pass(); b.Status.ReleaseStatuses["broken"].Attempt != 2 {
		t.Errorf("broken after its backoff: %+v", b.Status.ReleaseStatuses["broken"])
	}
	l.clock.Step(minBackoff)
	if b = l.pass(); b.Status.ReleaseStatuses["broken"].Attempt != 2 {
		t.Errorf("broken before its second backoff: %+v", b.Status.ReleaseStatuses["broken"])
	}

	// Changes: values of one, and those that fail are removed.
	b = l.change(func(s *lcmv1.HelmBundleSpec) {
		s.Releases = s.Releases[4:]
		s.Releases[1].Values = values("two")
	})
	s = b.Status.ReleaseStatuses
	if len(s) != 3 || s["first"].Revision != 2 || s["second"].Revision != 1 || l.text("default", "first") != "two" || b.Status.Release != "mosk-1" {
		t.Errorf("after a change: %+v, text %q", b.Status, l.text("default", "first"))
	}
	i, err := newInstaller(l.kube.RESTConfig(), "default", owner{"default", "c1"}, t.Logf)
	l.must(err)
	got, err := action.NewGet(&i.Configuration).Run("first")
	if err != nil || got.Version != 2 || got.Info.Status != release.StatusDeployed || got.Config["text"] != "two" {
		t.Errorf("the release that Helm reads: %+v, %v", got, err)
	}

	// An operation that was killed is no obstacle.
	got.SetStatus(release.StatusPendingUpgrade, "killed")
	l.must(i.Releases.Update(got))
	if b = l.change(func(s *lcmv1.HelmBundleSpec) { s.Releases[1].Values = values("three") }); l.text("default", "first") != "three" {
		t.Errorf("after an interrupted upgrade: %+v", b.Status.ReleaseStatuses["first"])
	}

	// Another namespace is another release; one that is gone is uninstalled.
	l.change(func(s *lcmv1.HelmBundleSpec) { s.Releases = s.Releases[:2]; s.Releases[0].Namespace = "east" })
	if b = l.pass(); l.text("charts", "second") != "" || l.text("east", "second") != "default" || len(b.Status.ReleaseStatuses) != 2 {
		t.Errorf("texts %q and %q in the former and in the new namespace, status %+v", l.text("charts", "second"), l.text("east", "second"), b.Status)
	}
	l.must(l.Delete(t.Context(), b))
	if b = l.pass(); b != nil || l.text("default", "first") != "" || l.text("east", "second") != "" {
		t.Errorf("after its deletion: %+v, texts %q, %q", b, l.text("default", "first"), l.text("east", "second"))
	}
	if last, err := i.last("first"); last != nil || err != nil {
		t.Errorf("Helm still has %+v, %v", last, err)
	}
}

// A repository with a password, and one whose index has another digest.
// The status has a release before it is installed, so that a bundle that drops the release
// after a crash uninstalls it.
func TestReleaseOfACrashIsUninstalled(t *testing.T) {
	l := start(t)
	l.repo.add(t, "settings", "1.0.0", "")
	l.must(l.Create(t.Context(), &lcmv1.HelmBundle{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: lcmv1.HelmBundleSpec{
		Repositories: []lcmv1.HelmRepository{{Name: "lab", URL: l.repo.URL}},
		Releases:     []lcmv1.HelmRelease{{Name: "first", Chart: "lab/settings"}},
	}}))
	killed := errors.New("the controller is killed")
	dying, err := client.NewWithWatch(l.kube.RESTConfig(), client.Options{Scheme: l.Scheme()})
	l.must(err)
	l.r.Client = interceptor.NewClient(dying, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if l.text("default", "first") != "" {
				return killed
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	if _, err := l.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); !errors.Is(err, killed) || l.text("default", "first") == "" {
		t.Fatalf("Reconcile() = %v, want the release installed and %v", err, killed)
	}
	l.restart()
	b := l.change(func(s *lcmv1.HelmBundleSpec) { s.Releases = nil })
	if got := l.text("default", "first"); got != "" || len(b.Status.ReleaseStatuses) > 0 {
		t.Errorf("the release that the bundle has dropped has %q, status %+v; want it uninstalled", got, b.Status.ReleaseStatuses)
	}
}

func TestRepositories(t *testing.T) {
	l := start(t)
	l.repo.add(t, "settings", "1.0.0", "")
	l.repo.add(t, "app", "1.0.0", strings.Repeat("5a", 32))
	l.repo.password = "hunter2"
	b := bundle("settings", "app")
	b.Namespace, b.Spec.Repositories = "default", []lcmv1.HelmRepository{{Name: "charts", URL: l.repo.URL}}
	if _, err := l.r.load(t.Context(), b, b.Spec.Releases[0], l.r.secret); err == nil || !strings.Contains(err.Error(), "401 Unauthorized") {
		t.Errorf("without a password: %v", err)
	}
	b.Spec.Repositories[0].AuthSecret = "charts"
	if _, err := l.r.load(t.Context(), b, b.Spec.Releases[0], l.r.secret); err == nil || !strings.Contains(err.Error(), `authSecret: secrets "charts" not found`) {
		t.Errorf("without the Secret: %v", err)
	}
	l.must(l.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "charts"}, StringData: map[string]string{"username": "lab", "password": "hunter2"}}))
	if c, err := l.r.load(t.Context(), b, b.Spec.Releases[0], l.r.secret); err != nil || c.Name() != "settings" {
		t.Errorf("with a password: %v, %v", c, err)
	}
	if _, err := l.r.load(t.Context(), b, b.Spec.Releases[1], l.r.secret); err == nil || !strings.Contains(err.Error(), "and the repository's index says 5a5a") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("with another digest: %v", err)
	}
	other := bundle("settings")
	other.Spec.Repositories = []lcmv1.HelmRepository{{Name: "other", URL: l.repo.URL}}
	if _, err := l.r.load(t.Context(), other, other.Spec.Releases[0], l.r.secret); err == nil || !strings.Contains(err.Error(), `chart "charts/settings": the bundle has no such repository`) {
		t.Errorf("without the repository: %v", err)
	}
}

func TestErrorOfAMissingVersionListsTheNewest(t *testing.T) {
	var all repo.ChartVersions
	for i := range 12 {
		all = append(all, &repo.ChartVersion{Metadata: &chart.Metadata{Version: fmt.Sprintf("%d.0.0", 12-i)}})
	}
	err := missing(all, errors.New("none"))
	if want := "none: there are 12.0.0, 11.0.0, 10.0.0, 9.0.0, 8.0.0, 7.0.0, 6.0.0, 5.0.0, 4.0.0, 3.0.0, and 2 more"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

func TestMessagesShowNoPasswordOfARepository(t *testing.T) {
	for at, want := range map[string]string{"https://user:hunter2@charts.example.org/": " (https://user:xxxxx@charts.example.org/)", "http://%zz": ""} {
		if got := shown(at); got != want {
			t.Errorf("shown(%q) = %q, want %q", at, got, want)
		}
	}
}
