package drain

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalab-dev/metalab/controller/drain"
	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

const rendered = "rendered-worker-2"

// world is an API with the node n and a pod on it, whose eviction blocked refuses.
type world struct {
	client.Client
	t        *testing.T
	r        *Reconciler
	clock    *clocktesting.FakeClock
	registry *prometheus.Registry
	blocked  bool
	onEvict  func() // after an eviction
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, policyv1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)), registry: prometheus.NewRegistry()}
	w.Client = fake.NewClientBuilder().WithScheme(s).
		WithObjects(
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{machineconfig.DesiredDrain: "drain-" + rendered}}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}, Spec: corev1.PodSpec{NodeName: "n"}},
		).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceCreate: func(ctx context.Context, c client.Client, _ string, o, _ client.Object, _ ...client.SubResourceCreateOption) error {
			if w.blocked {
				return apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 10)
			}
			if w.onEvict != nil {
				w.onEvict()
			}
			return c.Delete(ctx, o)
		}}).Build()
	var err error
	w.r, err = New(Config{Client: w, Drains: &drain.Service{Client: w, Clock: w.clock}, Metrics: w.registry, Work: queue.Work{Clock: w.clock}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// reconcile returns when the controller looks again.
func (w *world) reconcile() time.Duration {
	w.t.Helper()
	out, err := w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "n"}})
	if err != nil {
		w.t.Fatalf("Reconcile: %v", err)
	}
	return out.RequeueAfter
}

func (w *world) node() *corev1.Node {
	w.t.Helper()
	n := new(corev1.Node)
	if err := w.Get(w.t.Context(), client.ObjectKey{Name: "n"}, n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// is checks the cordon of the node and the answer to its daemon.
func (w *world) is(cordoned bool, applied string) {
	w.t.Helper()
	n := w.node()
	if got := n.Annotations[machineconfig.LastAppliedDrain]; n.Spec.Unschedulable != cordoned || got != applied {
		w.t.Errorf("unschedulable = %v, lastAppliedDrain = %q; want %v, %q", n.Spec.Unschedulable, got, cordoned, applied)
	}
}

func (w *world) update(change func(*corev1.Node)) {
	w.t.Helper()
	n := w.node()
	change(n)
	if err := w.Update(w.t.Context(), n); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) events(reason string) (n int) {
	w.t.Helper()
	var list corev1.EventList
	if err := w.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Reason == reason {
			n++
		}
	}
	return n
}

// TestDaemonIsAnswered shows statement M13: the strings of the handshake.
func TestDaemonIsAnswered(t *testing.T) {
	w := newWorld(t)
	if after := w.reconcile(); after != drain.Interval {
		t.Errorf("next look after %s, want %s: the pod has to end", after, drain.Interval)
	}
	w.is(true, "")
	w.reconcile()
	w.is(true, "drain-"+rendered)
	if owner, err := w.r.Drains.Owner(t.Context(), "n"); err != nil || owner != Owner {
		t.Errorf("owner of the node = %q, %v; want %q", owner, err, Owner)
	}
	w.update(func(n *corev1.Node) { n.Annotations[machineconfig.DesiredDrain] = "uncordon-" + rendered })
	w.reconcile()
	w.is(false, "uncordon-"+rendered)
	if owner, err := w.r.Drains.Owner(t.Context(), "n"); err != nil || owner != "" {
		t.Errorf("owner of the node = %q, %v; want none", owner, err)
	}
}

// TestBlockedDrainIsReportedAfterAnHour shows statement M13: how often it is attempted, the
// event, and that it goes on. Each attempt is of a controller that has just started.
func TestBlockedDrainIsReportedAfterAnHour(t *testing.T) {
	w := newWorld(t)
	w.blocked = true
	start := w.clock.Now()
	seen := map[time.Duration]bool{}
	for w.clock.Since(start) < 2*time.Hour {
		r, err := New(w.r.Config)
		if err != nil {
			t.Fatal(err)
		}
		w.r = r
		elapsed := w.clock.Since(start)
		after := w.reconcile()
		want := drain.Interval
		if elapsed >= 90*time.Second {
			want = time.Minute
		}
		if elapsed >= 10*time.Minute {
			want = 5 * time.Minute
		}
		if after != want {
			t.Fatalf("next attempt %s after the first: in %s, want %s", elapsed, after, want)
		}
		seen[after] = true
		if failed := w.events("DrainFailed") > 0; failed != (elapsed >= time.Hour) {
			t.Fatalf("DrainFailed after %s: %v", elapsed, failed)
		}
		w.clock.Step(after)
	}
	if len(seen) != 3 {
		t.Errorf("intervals = %v, want three", seen)
	}
	w.is(true, "")
	w.blocked = false
	w.reconcile()
	w.reconcile()
	w.is(true, "drain-"+rendered)
}

// TestUncordonDuringADrainDoesNotCompleteIt shows statement M13.
func TestUncordonDuringADrainDoesNotCompleteIt(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	w.update(func(n *corev1.Node) { n.Spec.Unschedulable = false })
	w.blocked = true
	if err := w.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "new"}, Spec: corev1.PodSpec{NodeName: "n"}}); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.is(true, "")
	w.blocked = false
	w.reconcile()
	w.reconcile()
	w.is(true, "drain-"+rendered)
}

// TestUncordonIsAnsweredInItsPatch kills the controller between the patch and the release of the
// lease: the next one releases it.
func TestUncordonIsAnsweredInItsPatch(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	w.reconcile()
	w.is(true, "drain-"+rendered)
	w.update(func(n *corev1.Node) { n.Annotations[machineconfig.DesiredDrain] = "uncordon-" + rendered })
	patches := 0
	api := w.r.Drains.Client
	w.r.Drains.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			patches++
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return errors.New("killed")
		},
	})
	if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "n"}}); err == nil {
		t.Error("Reconcile returns no error, although the lease is not released")
	}
	w.is(false, "uncordon-"+rendered)
	if patches != 1 {
		t.Errorf("%d patches of the Node, want one", patches)
	}
	w.r.Drains.Client = api
	w.update(func(n *corev1.Node) { n.Spec.Unschedulable = true }) // by an administrator
	w.reconcile()
	w.is(true, "uncordon-"+rendered)
	if owner, err := w.r.Drains.Owner(t.Context(), "n"); err != nil || owner != "" {
		t.Errorf("owner of the node = %q, %v; want none", owner, err)
	}
}

func TestUncordonOfANodeWithoutLeaseIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.update(func(n *corev1.Node) {
		n.Spec.Unschedulable = true // by an administrator
		n.Annotations[machineconfig.DesiredDrain] = "uncordon-" + rendered
	})
	w.reconcile()
	w.is(true, "uncordon-"+rendered)
}

func TestOtherOwnerIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	if err := w.r.Drains.Cordon(t.Context(), "n", "lcm"); err != nil {
		t.Fatal(err)
	}
	if after := w.reconcile(); after != time.Minute {
		t.Errorf("next look after %s, want a minute: the node is another owner's", after)
	}
	w.is(true, "")
}

func TestUnknownVerbHasNoEffect(t *testing.T) {
	w := newWorld(t)
	w.update(func(n *corev1.Node) { n.Annotations[machineconfig.DesiredDrain] = "explode-" + rendered })
	w.reconcile()
	w.is(false, "")
	if w.events("InvalidDrain") != 1 {
		t.Error("no event InvalidDrain")
	}
	if strings.Contains(w.node().Annotations[machineconfig.LastAppliedDrain], "explode") {
		t.Error("the verb is applied")
	}
}

// TestNodeIsAnsweredOnce has a cache that does not have the answer yet when the event of the
// cordon comes.
func TestNodeIsAnsweredOnce(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	old := w.node()
	writes := 0
	r, err := New(Config{Client: interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			old.DeepCopyInto(o.(*corev1.Node))
			return nil
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			writes++
			return c.Patch(ctx, o, p, opts...)
		},
	}), Drains: w.r.Drains, Work: queue.Work{Clock: w.clock}})
	if err != nil {
		t.Fatal(err)
	}
	w.r = r
	w.reconcile()
	w.is(true, "drain-"+rendered)
	w.reconcile()
	if writes != 1 {
		t.Errorf("%d answers to one request, want one", writes)
	}
}
