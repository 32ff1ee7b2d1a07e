// Package nodes marks the nodes of the lab's own API whose agents have stopped, as the node
// lifecycle of kube-controller-manager does: their condition Ready becomes Unknown when their
// Lease is not renewed any more. A cluster of the user's has that controller already.
//
// It knows Nodes and Leases. Its timers run in the lab's client time, the slower of lab and
// real time, because agents renew leases by that. Upstream's controller uses real time, and
// would mark all nodes of a lab whose time stands still as lost.
package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// grace is the validity of a Lease without a duration.
const grace = time.Minute

// Clock is the clock of the timers and of conditions.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) clock.Timer
}

// Lifecycle marks nodes.
type Lifecycle struct {
	Client kubernetes.Interface
	Timers Clock            // clock of Leases
	Now    func() time.Time // that conditions have
	Enter  func() (leave func())
	Log    *slog.Logger

	mu      sync.Mutex
	leases  map[string]*lease // by node
	expired workqueue.TypedRateLimitingInterface[string]
}

// lease is a Lease as it was seen last.
type lease struct {
	renewed metav1.MicroTime
	valid   time.Duration
	until   time.Time // on the timers' clock
	timer   clock.Timer
}

// Run marks nodes until ctx ends.
func (l *Lifecycle) Run(ctx context.Context) error {
	l.leases = map[string]*lease{}
	l.expired = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	factory := informers.NewSharedInformerFactoryWithOptions(l.Client, 0, informers.WithNamespace(corev1.NamespaceNodeLease))
	informer := factory.Coordination().V1().Leases().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: l.seen, UpdateFunc: func(_, o any) { l.seen(o) }, DeleteFunc: l.forget,
	}); err != nil {
		return fmt.Errorf("nodes: %w", err)
	}
	factory.Start(ctx.Done())
	var group sync.WaitGroup
	group.Go(func() {
		for l.next(ctx) {
		}
	})
	<-ctx.Done()
	l.expired.ShutDown()
	group.Wait()
	factory.Shutdown()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.leases {
		x.timer.Stop()
	}
	return nil
}

// seen begins the time of a Lease when it was renewed. The times in it are not compared with
// this clock: an agent's may differ.
func (l *Lifecycle) seen(o any) {
	object, ok := o.(*coordinationv1.Lease)
	if !ok || object.Spec.RenewTime == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.leases[object.Name]
	if x != nil && x.renewed.Equal(object.Spec.RenewTime) {
		return
	}
	if x != nil {
		x.timer.Stop()
	}
	x = &lease{renewed: *object.Spec.RenewTime, valid: grace}
	if s := object.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		x.valid = time.Duration(*s) * time.Second
	}
	x.until = l.Timers.Now().Add(x.valid)
	x.timer = l.Timers.AfterFunc(x.valid, func() { l.expired.Add(object.Name) })
	l.leases[object.Name] = x
}

// forget drops a Lease that was deleted, with its node.
func (l *Lifecycle) forget(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	object, ok := o.(*coordinationv1.Lease)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if x := l.leases[object.Name]; x != nil {
		x.timer.Stop()
		delete(l.leases, object.Name)
	}
}

// next marks the next node whose Lease has expired.
func (l *Lifecycle) next(ctx context.Context) bool {
	node, stopped := l.expired.Get()
	if stopped {
		return false
	}
	defer l.expired.Done(node)
	leave := l.Enter()
	err := l.mark(ctx, node)
	leave()
	if err != nil && ctx.Err() == nil {
		l.Log.Error("a node is not marked", "node", node, "error", err)
		l.expired.AddRateLimited(node)
		return true
	}
	l.expired.Forget(node)
	return true
}

// mark sets the condition Ready of a node to Unknown, unless it has been renewed meanwhile or
// is not Ready already.
func (l *Lifecycle) mark(ctx context.Context, name string) error {
	l.mu.Lock()
	x := l.leases[name]
	lost := x != nil && !l.Timers.Now().Before(x.until)
	var valid time.Duration
	if lost {
		valid = x.valid
	}
	l.mu.Unlock()
	if !lost {
		return nil
	}
	n, err := l.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return nil
		}
	}
	now := metav1.NewTime(l.Now())
	b, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown",
		Message:           fmt.Sprintf("the node agent has not renewed the Lease for %s", valid),
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}}})
	if err != nil {
		return err
	}
	_, err = l.Client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, b, metav1.PatchOptions{}, "status")
	return err
}
