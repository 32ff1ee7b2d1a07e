// Package queue configures the work queues of all controllers: a queue waits on the
// given clock, which in a lab is virtual, and bounds the retries of failing work in real
// time. It also converts the result of a reconcile
// for controllers that only a watch triggers. The package does not know which
// objects the controllers reconcile.
package queue

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Config holds the parameters of Options.
type Config struct {
	Clock   clock.WithTicker // waits
	Client  ClientClock      // retries wait on it, too; nil means the real clock
	Workers int              // objects reconciled at a time
	Monitor *Monitor         // knows the queue; nil means nobody does
	Retries *Retries         // failures that the controller does not return as errors; may be nil
}

// Options returns the options of a controller.
func Options(c Config) controller.Options {
	if c.Client == nil {
		c.Client = clock.RealClock{}
	}
	return controller.Options{
		MaxConcurrentReconciles: c.Workers,
		SkipNameValidation:      ptr.To(true), // a process may hold several labs, or a controller that was replaced
		NewQueue: func(name string, limit workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			q := workqueue.NewTypedRateLimitingQueueWithConfig(limit, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: c.Clock})
			return c.Monitor.monitor(&retryQueue{
				TypedRateLimitingInterface: q, clock: c.Clock, client: c.Client, limit: limit, retries: c.Retries, held: map[reconcile.Request]clock.Timer{},
			})
		},
	}
}

// Reconcile runs one reconcile of a controller that does not poll, and calls enter
// before and leave after it, when enter is not nil. It drops two errors that need no
// retry: NotFound, because a deleted object needs no reconcile, and Conflict, because
// the watch reports the change that was faster.
func Reconcile(enter func() (leave func()), reconcileOnce func() error) (reconcile.Result, error) {
	if enter != nil {
		defer enter()()
	}
	err := reconcileOnce()
	if apierrors.IsConflict(err) {
		err = nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}
