package nodes

import (
	"context"
	"log/slog"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// timers is a fake clock of timers.
type timers struct{ *clocktesting.FakeClock }

func (t timers) AfterFunc(d time.Duration, f func()) clock.Timer { return t.FakeClock.AfterFunc(d, f) }

// lab is an API in which the lifecycle runs.
type lab struct {
	*testing.T
	api    kubernetes.Interface
	timers timers
	now    time.Time // that conditions have
	life   *Lifecycle
}

func start(t *testing.T) lab {
	t.Helper()
	api, err := kube.Start(t.Context(), kube.Config{Dir: t.TempDir(), FastPaths: kube.FastPathsWanted(), Nodes: true, Families: []string{config.Nodes}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := kubernetes.NewForConfig(api.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	l := lab{t, c, timers{clocktesting.NewFakeClock(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))}, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), nil}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}}
	if _, err := c.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	life := &Lifecycle{Client: c, Timers: l.timers, Now: func() time.Time { return l.now }, Enter: func() func() { return func() {} }, Log: slog.New(slog.DiscardHandler)}
	l.life = life
	go func() { ended <- life.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l
}

func (l lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// until waits for an effect of the lifecycle, which reads the API by a watch.
func (l lab) until(what string, ok func() bool) {
	l.Helper()
	patience.Await(l, what, ok)
}

// ready returns the condition Ready of a node.
func (l lab) ready(name string) corev1.NodeCondition {
	l.Helper()
	n, err := l.api.CoreV1().Nodes().Get(l.Context(), name, metav1.GetOptions{})
	l.must(err)
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// node creates a Node with a Lease of a minute that is renewed at a time of another clock.
func (l lab) node(name string, ready corev1.ConditionStatus) *coordinationv1.Lease {
	l.Helper()
	n, err := l.api.CoreV1().Nodes().Create(l.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	l.must(err)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Test"}, {Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}}
	_, err = l.api.CoreV1().Nodes().UpdateStatus(l.Context(), n, metav1.UpdateOptions{})
	l.must(err)
	x, err := l.api.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(l.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(name), LeaseDurationSeconds: ptr.To[int32](60), RenewTime: ptr.To(metav1.NewMicroTime(time.Unix(0, 0)))},
	}, metav1.CreateOptions{})
	l.must(err)
	return x
}

func (l lab) renew(x *coordinationv1.Lease) *coordinationv1.Lease {
	l.Helper()
	x.Spec.RenewTime = ptr.To(metav1.NewMicroTime(x.Spec.RenewTime.Add(time.Second)))
	x, err := l.api.CoordinationV1().Leases(corev1.NamespaceNodeLease).Update(l.Context(), x, metav1.UpdateOptions{})
	l.must(err)
	return x
}

// A node becomes Unknown a minute after the last renewal of its Lease, by the clock of the
// lifecycle, whatever times the Lease has. One that its agent has marked itself stays so.
func TestNodeWithoutRenewalsBecomesUnknown(t *testing.T) {
	l := start(t)
	renewed := l.node("renewed", corev1.ConditionTrue)
	l.node("lost", corev1.ConditionTrue)
	l.node("off", corev1.ConditionFalse)
	gone := l.node("gone", corev1.ConditionTrue)
	l.until("the leases are known", func() bool { return l.timers.Waiters() == 4 })
	l.must(l.api.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(t.Context(), gone.Name, metav1.DeleteOptions{}))
	l.until("the deletion of a lease is known", func() bool { return l.timers.Waiters() == 3 })
	l.timers.Step(59 * time.Second)
	renewed = l.renew(renewed)
	l.until("the renewal is known", func() bool {
		l.life.mu.Lock()
		defer l.life.mu.Unlock()
		return l.life.leases["renewed"].renewed.Equal(renewed.Spec.RenewTime)
	})
	if c := l.ready("lost"); c.Status != corev1.ConditionTrue {
		t.Fatalf("Ready = %+v before the lease has expired, want True", c)
	}
	l.timers.Step(time.Second)
	l.until("the node is marked", func() bool { return l.ready("lost").Status == corev1.ConditionUnknown })
	if c := l.ready("lost"); c.Reason != "NodeStatusUnknown" || !c.LastTransitionTime.Time.Equal(l.now) {
		t.Errorf("Ready = %+v, want the reason NodeStatusUnknown at %s", c, l.now)
	}
	n, err := l.api.CoreV1().Nodes().Get(t.Context(), "lost", metav1.GetOptions{})
	if l.must(err); len(n.Status.Conditions) != 2 {
		t.Errorf("conditions = %+v, want the other one, too", n.Status.Conditions)
	}
	if c := l.ready("renewed"); c.Status != corev1.ConditionTrue {
		t.Errorf("Ready of the node that was renewed a second ago = %+v, want True", c)
	}
	// The queue has one worker: the others were looked at before a node that expires later.
	l.timers.Step(time.Minute)
	l.until("the renewed node is marked", func() bool { return l.ready("renewed").Status == corev1.ConditionUnknown })
	if c := l.ready("off"); c.Status != corev1.ConditionFalse || c.Reason != "Test" {
		t.Errorf("Ready of the node that shut down = %+v, want it as its agent has written it", c)
	}
	if c := l.ready("gone"); c.Status != corev1.ConditionTrue {
		t.Errorf("Ready of the node without a Lease = %+v, want it unchanged", c)
	}
}
