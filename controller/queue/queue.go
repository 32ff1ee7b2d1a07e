// Package queue owns how the controllers wait: on a clock that they are handed,
// which in a lab is not the real one; and what those that nothing but a watch wakes
// make of a pass. It refuses to know what they wait for.
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

// Options are what a controller must be made with whose queue waits on c, and
// which works on so many objects at a time.
func Options(c clock.WithTicker, workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      ptr.To(true), // a process may hold several labs, or a controller that was replaced
		NewQueue: func(name string, limit workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return workqueue.NewTypedRateLimitingQueueWithConfig(limit, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
				Name: name, Clock: c,
			})
		},
	}
}

// Watched makes a pass of a controller that polls nothing, within enter where that
// is set. An object that is gone needs no other pass, and a change that was faster
// than the pass's own comes by the watch.
func Watched(enter func() (leave func()), pass func() error) (reconcile.Result, error) {
	if enter != nil {
		defer enter()()
	}
	err := pass()
	if apierrors.IsConflict(err) {
		err = nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}
