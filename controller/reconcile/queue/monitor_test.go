package queue

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

func newMonitored(t *testing.T, m *Monitor) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()
	q := m.monitor(workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()))
	t.Cleanup(q.ShutDown)
	return q
}

// pass calls Pass and returns the channel of its result.
func pass(ctx context.Context, m *Monitor) <-chan error {
	done := make(chan error, 1)
	go func() { done <- m.Pass(ctx) }()
	return done
}

// work reconciles the objects of a queue until the queue is shut down.
func work(q workqueue.TypedRateLimitingInterface[reconcile.Request], reconcile func(reconcile.Request)) {
	for {
		r, shutdown := q.Get()
		if shutdown {
			return
		}
		reconcile(r)
		q.Done(r)
	}
}

// A reconcile that began before the call does not count.
func TestPassWaitsForReconcileThatBeganAfterIt(t *testing.T) {
	m := &Monitor{}
	q := newMonitored(t, m)
	began, end := make(chan struct{}), make(chan struct{})
	go work(q, func(reconcile.Request) { began <- struct{}{}; <-end })
	q.Add(request("a"))
	<-began
	done := pass(t.Context(), m)
	for !begun(q) {
		runtime.Gosched()
	}
	end <- struct{}{}
	<-began
	select {
	case err := <-done:
		t.Fatalf("Pass() = %v before the second reconcile has ended", err)
	default:
	}
	end <- struct{}{}
	if err := <-done; err != nil {
		t.Errorf("Pass() = %v", err)
	}
}

// begun reports whether a pass has begun.
func begun(q workqueue.TypedRateLimitingInterface[reconcile.Request]) bool {
	w := q.(*monitoredQueue)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pass > 0
}

func TestPassReconcilesAllQueues(t *testing.T) {
	m := &Monitor{}
	counts := make([]atomic.Int32, 2)
	for i := range counts {
		q := newMonitored(t, m)
		go work(q, func(reconcile.Request) { counts[i].Add(1) })
		q.Add(request("a"))
		q.Add(request("b"))
	}
	if err := m.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range counts {
		before := counts[i].Load()
		if before < 2 {
			t.Errorf("queue %d: %d reconciles after Pass(), want 2 or more", i, before)
		}
		if err := m.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := counts[i].Load() - before; got != 2 {
			t.Errorf("queue %d: %d reconciles in the next Pass(), want 2", i, got)
		}
	}
}

// An object that its controller would come back to in an hour is reconciled now.
func TestPassReconcilesDelayedObjects(t *testing.T) {
	m := &Monitor{}
	q := newMonitored(t, m)
	var count atomic.Int32
	go work(q, func(r reconcile.Request) { count.Add(1); q.AddAfter(r, time.Hour) })
	q.Add(request("a"))
	for range 2 {
		if err := m.Pass(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := count.Load(); n < 2 || n > 3 {
		t.Errorf("%d reconciles after two passes", n)
	}
}

func TestPassEndsWithItsContextAndWithItsQueue(t *testing.T) {
	m := &Monitor{}
	q := newMonitored(t, m)
	q.Add(request("a"))
	why := errors.New("no time left")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := pass(ctx, m)
	cancel(why)
	if err := <-done; !errors.Is(err, why) {
		t.Errorf("Pass() = %v, want %v", err, why)
	}
	done = pass(t.Context(), m)
	q.ShutDown()
	if err := <-done; err != nil {
		t.Errorf("Pass() = %v for a queue that was shut down", err)
	}
}

func TestPassWithoutControllers(t *testing.T) {
	if err := new(Monitor).Pass(t.Context()); err != nil {
		t.Error(err)
	}
}
