// Package queue configures the work queues of all controllers: a queue waits on the
// given clock, which in a lab is virtual. It also converts the result of a reconcile
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

// Options returns the options of a controller that reconciles up to workers objects
// at a time and whose queue waits on c. m knows the queue; nil means nobody does.
func Options(c clock.WithTicker, workers int, m *Monitor) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      ptr.To(true), // a process may hold several labs, or a controller that was replaced
		NewQueue: func(name string, limit workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return m.monitor(workqueue.NewTypedRateLimitingQueueWithConfig(limit, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
				Name: name, Clock: c,
			}))
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
