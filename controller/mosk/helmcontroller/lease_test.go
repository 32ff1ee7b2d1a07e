package helmcontroller

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var cluster = client.ObjectKey{Namespace: "lab", Name: "c1"}

// api is an API with the Lease of a Cluster, and a clock.
type api struct {
	*testing.T
	client.WithWatch
	clock *clocktesting.FakeClock
}

func start(t *testing.T, objects ...client.Object) api {
	t.Helper()
	scheme := kuberuntime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return api{t, fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), clocktesting.NewFakeClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))}
}

func lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "c1-helm-controller"}}
}

// process returns the Leases of a process.
func (a api) process(name string) *Leases {
	return &Leases{Client: a, Reader: a, Holder: name, Clock: a.clock}
}

// hold takes the Lease, which must be free.
func (a api) hold(l *Leases) (context.Context, func()) {
	a.Helper()
	ctx, release, wait, err := l.Hold(a.Context(), cluster)
	if err != nil || release == nil {
		a.Fatalf("%s: Hold = wait %s, %v; want the Lease", l.Holder, wait, err)
	}
	return ctx, release
}

// waits returns how long a process has to wait for the Lease.
func (a api) waits(l *Leases) time.Duration {
	a.Helper()
	_, release, wait, err := l.Hold(a.Context(), cluster)
	if err != nil || release != nil {
		a.Fatalf("%s: Hold = %v; want it to wait", l.Holder, err)
	}
	return wait
}

func (a api) holder() string {
	a.Helper()
	l := lease()
	if err := a.Get(a.Context(), client.ObjectKeyFromObject(l), l); err != nil {
		a.Fatal(err)
	}
	return ptr.Deref(l.Spec.HolderIdentity, "")
}

// Two processes never have the Lease at once; the second has it when the first gives it back.
func TestOneProcessHoldsTheLease(t *testing.T) {
	a := start(t, lease())
	first, second := a.process("first"), a.process("second")
	_, release := a.hold(first)
	if got := a.holder(); got != "first" {
		t.Errorf("the holder is %q, want first", got)
	}
	if got := a.waits(second); got != leaseDuration {
		t.Errorf("the second waits %s, want %s", got, leaseDuration)
	}
	release()
	if got := a.holder(); got != "" {
		t.Errorf("the holder is %q after the pass, want nobody", got)
	}
	_, release = a.hold(second)
	a.waits(first)
	release()
}

// A holder that has died keeps the Lease for its duration since another process has seen it, whatever
// the clocks of both say; one that renews keeps it.
func TestLeaseOfADeadProcessEnds(t *testing.T) {
	l := lease()
	l.Spec = coordinationv1.LeaseSpec{HolderIdentity: ptr.To("pod"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: ptr.To(metav1.NewMicroTime(time.Unix(0, 0)))}
	a := start(t, l)
	p := a.process("management")
	if got := a.waits(p); got != 15*time.Second {
		t.Errorf("it waits %s, want 15s", got)
	}
	a.clock.Step(10 * time.Second)
	if got := a.waits(p); got != 5*time.Second {
		t.Errorf("it waits %s after 10s, want 5s", got)
	}
	if err := a.Get(t.Context(), client.ObjectKeyFromObject(l), l); err != nil {
		t.Fatal(err)
	}
	l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Unix(10, 0)))
	if err := a.Update(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if got := a.waits(p); got != 15*time.Second {
		t.Errorf("it waits %s for a holder that has renewed, want 15s", got)
	}
	a.clock.Step(15 * time.Second)
	_, release := a.hold(p)
	release()
}

// A Cluster whose provider makes no Lease has no other controller.
func TestClusterWithoutALease(t *testing.T) {
	a := start(t)
	_, release := a.hold(a.process("management"))
	release()
}

// A pass that lasts renews its Lease, and ends when another process has taken it.
func TestPassEndsWhenItsLeaseIsLost(t *testing.T) {
	a := start(t, lease())
	renewed := make(chan error, 1)
	p := a.process("management")
	p.Client = interceptor.NewClient(a.WithWatch, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		err := c.Update(ctx, o, opts...)
		select {
		case renewed <- err:
		default:
		}
		return err
	}})
	ctx, release := a.hold(p)
	<-renewed                   // taken
	for !a.clock.HasWaiters() { // until it waits for the time of its renewal
		runtime.Gosched()
	}
	a.clock.Step(renewPeriod)
	if err := <-renewed; err != nil || ctx.Err() != nil {
		t.Fatalf("the renewal: %v; the pass: %v", err, ctx.Err())
	}
	l := lease()
	if err := a.Get(t.Context(), client.ObjectKeyFromObject(l), l); err != nil {
		t.Fatal(err)
	}
	l.Spec.HolderIdentity = ptr.To("thief")
	if err := a.Update(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	a.clock.Step(renewPeriod)
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, ErrLost) {
		t.Errorf("the pass ends with %v, want %v", err, ErrLost)
	}
	release()
	if got := a.holder(); got != "thief" {
		t.Errorf("the holder is %q: a pass that has lost its Lease has written it", got)
	}
}
