package queue

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Monitor knows the objects that controllers have had in their work queues, and makes
// each of them reconciled. Tests use it to show that nothing happens: without it, an
// object that is unchanged may be one that no controller has looked at yet. The zero
// Monitor is ready for use; it is safe for concurrent use. It never forgets an object.
type Monitor struct {
	mu     sync.Mutex
	queues []*monitoredQueue
}

// Pass returns when each controller has reconciled every object that it knows, in a
// reconcile that began after the call, or with the error of ctx. It reconciles objects
// at once that the controller would have come back to later.
func (m *Monitor) Pass(ctx context.Context) error {
	m.mu.Lock()
	queues := append([]*monitoredQueue(nil), m.queues...)
	m.mu.Unlock()
	targets := make([]int, len(queues))
	for i, q := range queues { // all of them first: they work at the same time
		targets[i] = q.enqueueAll()
	}
	for i, q := range queues {
		if err := q.wait(ctx, targets[i]); err != nil {
			return err
		}
	}
	return nil
}

// monitor returns the queue q of a controller as one that m knows.
func (m *Monitor) monitor(q workqueue.TypedRateLimitingInterface[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	if m == nil {
		return q
	}
	w := &monitoredQueue{TypedRateLimitingInterface: q, objects: map[reconcile.Request]*monitoredObject{}, changed: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues = append(m.queues, w)
	return w
}

// monitoredQueue is the queue of one controller.
type monitoredQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	mu      sync.Mutex
	pass    int // counts the calls of enqueueAll
	objects map[reconcile.Request]*monitoredObject
	changed chan struct{} // closed and replaced when a reconcile ends
}

// monitoredObject counts the reconciles of an object.
type monitoredObject struct {
	began, done int // the pass in which its latest reconcile began; of the latest that has ended
}

// object returns the object of a request. The caller holds q.mu.
func (q *monitoredQueue) object(r reconcile.Request) *monitoredObject {
	o := q.objects[r]
	if o == nil {
		o = &monitoredObject{}
		q.objects[r] = o
	}
	return o
}

// Add implements workqueue.TypedInterface.
func (q *monitoredQueue) Add(r reconcile.Request) {
	q.mu.Lock()
	q.object(r)
	q.mu.Unlock()
	q.TypedRateLimitingInterface.Add(r)
}

// Get implements workqueue.TypedInterface.
func (q *monitoredQueue) Get() (reconcile.Request, bool) {
	r, shutdown := q.TypedRateLimitingInterface.Get()
	if !shutdown {
		q.mu.Lock()
		q.object(r).began = q.pass
		q.mu.Unlock()
	}
	return r, shutdown
}

// Done implements workqueue.TypedInterface.
func (q *monitoredQueue) Done(r reconcile.Request) {
	q.TypedRateLimitingInterface.Done(r)
	q.mu.Lock()
	defer q.mu.Unlock()
	o := q.object(r)
	o.done = o.began
	q.wake()
}

// ShutDown implements workqueue.TypedInterface.
func (q *monitoredQueue) ShutDown() {
	q.TypedRateLimitingInterface.ShutDown()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wake()
}

func (q *monitoredQueue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// enqueueAll begins a pass: it adds every object to the queue, and returns the number of
// the pass.
func (q *monitoredQueue) enqueueAll() int {
	q.mu.Lock()
	q.pass++
	pass, all := q.pass, slices.Collect(maps.Keys(q.objects))
	q.mu.Unlock()
	for _, r := range all {
		q.TypedRateLimitingInterface.Add(r)
	}
	return pass
}

// wait returns when every object was reconciled in the pass, or the queue has been shut
// down.
func (q *monitoredQueue) wait(ctx context.Context, pass int) error {
	for {
		q.mu.Lock()
		waiting, changed := q.waiting(pass), q.changed
		q.mu.Unlock()
		if !waiting || q.ShuttingDown() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// waiting reports whether an object is yet to be reconciled in a pass. The caller holds
// q.mu.
func (q *monitoredQueue) waiting(pass int) bool {
	for _, o := range q.objects {
		if o.done < pass {
			return true
		}
	}
	return false
}
