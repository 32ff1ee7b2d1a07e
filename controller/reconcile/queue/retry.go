package queue

import (
	"math"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ClientClock is the clock of the controllers' clients: real time, even in a lab whose time
// runs faster. A request that advances the lab's time advances it, too.
type ClientClock interface {
	clock.PassiveClock
	AfterFunc(d time.Duration, f func()) clock.Timer
}

// In a lab whose time jumps from one wait to the next, work that fails would be tried
// again without pause. So a retry also waits for client time: after the first failure
// for firstHold, and twice as long after each further one, up to maxHold. The time of the
// retry itself bounds it, too: where the clocks run alike, it changes nothing.
const (
	firstHold = 200 * time.Microsecond
	maxHold   = 10 * time.Second
)

// Slow is a count for Retries.Failed: the retry waits its whole delay by both clocks.
const Slow = math.MaxInt32

// hold returns how much client time the retry after the count-th consecutive failure
// waits, which is d away by the controller's clock.
func hold(count int, d time.Duration) time.Duration {
	switch {
	case count <= 0:
		return 0
	case count >= Slow:
		return d
	}
	h := maxHold
	if doublings := count - 1; doublings < 16 { // 2^16 times firstHold is more than maxHold
		h = min(h, firstHold<<doublings)
	}
	return min(h, d)
}

// Retries counts the reconciles of each object that have failed one after the other, for
// a controller that retries by RequeueAfter instead of an error. The zero Retries is ready
// for use; it is safe for concurrent use.
type Retries struct {
	mu       sync.Mutex
	failures map[reconcile.Request]int
}

// Failed counts a failed reconcile, which is the count-th at least.
func (t *Retries) Failed(r reconcile.Request, count int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failures == nil {
		t.failures = map[reconcile.Request]int{}
	}
	if count < Slow && t.failures[r] >= Slow { // another failure than the last
		t.failures[r] = 0
	}
	t.failures[r] = max(t.failures[r]+1, count)
}

// Succeeded ends the failures of an object.
func (t *Retries) Succeeded(r reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failures, r)
}

// ReconcileAfter is the function ReconcileAfter for a controller that waits for Secrets. It
// counts a reconcile that waits for SecretWait as Slow, so that lab time that jumps does not
// poll without pause, and any other as a success.
func (t *Retries) ReconcileAfter(r reconcile.Request, enter func() (leave func()), reconcileOnce func() (time.Duration, error)) (reconcile.Result, error) {
	result, err := ReconcileAfter(enter, reconcileOnce)
	if result.RequeueAfter == SecretWait {
		t.Failed(r, Slow)
	} else {
		t.Succeeded(r)
	}
	return result, err
}

func (t *Retries) count(r reconcile.Request) int {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failures[r]
}

// retryQueue holds retries by client time. What is added at once, because an object has
// changed, is not held.
type retryQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	clock   clock.PassiveClock
	client  ClientClock
	limit   workqueue.TypedRateLimiter[reconcile.Request]
	retries *Retries

	mu   sync.Mutex
	held map[reconcile.Request]clock.Timer // a retry of an object replaces the one before
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *retryQueue) AddAfter(r reconcile.Request, d time.Duration) {
	q.addAfter(r, d, q.retries.count(r))
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface: the reconcile has
// returned an error.
func (q *retryQueue) AddRateLimited(r reconcile.Request) {
	d := q.limit.When(r)
	q.addAfter(r, d, q.limit.NumRequeues(r))
}

func (q *retryQueue) addAfter(r reconcile.Request, d time.Duration, failures int) {
	wait := hold(failures, d)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.release(r)
	if wait <= 0 || q.ShuttingDown() {
		q.TypedRateLimitingInterface.AddAfter(r, d)
		return
	}
	due := q.clock.Now().Add(d)
	var t clock.Timer
	t = q.client.AfterFunc(wait, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.held[r] == t { // otherwise it was replaced while it fired
			delete(q.held, r)
			q.TypedRateLimitingInterface.AddAfter(r, due.Sub(q.clock.Now()))
		}
	})
	q.held[r] = t
}

// Forget implements workqueue.TypedRateLimitingInterface: the reconcile has returned no
// error, so that an earlier retry is not needed.
func (q *retryQueue) Forget(r reconcile.Request) {
	q.mu.Lock()
	q.release(r)
	q.mu.Unlock()
	q.TypedRateLimitingInterface.Forget(r)
}

// ShutDown implements workqueue.TypedInterface.
func (q *retryQueue) ShutDown() {
	q.TypedRateLimitingInterface.ShutDown()
	q.mu.Lock()
	defer q.mu.Unlock()
	for r := range q.held {
		q.release(r)
	}
}

// release ends the hold of an object's retry. The caller holds q.mu.
func (q *retryQueue) release(r reconcile.Request) {
	if t := q.held[r]; t != nil {
		t.Stop()
		delete(q.held, r)
	}
}
