// Package queue configures the work queues of all controllers: a queue waits on the
// given clock, which in a lab is virtual, and bounds the retries of failing work in real
// time. It also converts the result of a reconcile
// for controllers that only a watch triggers. The package does not know which
// objects the controllers reconcile.
package queue

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
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

// Work configures how a controller reconciles: the Configs of controllers embed it.
type Work struct {
	Clock   clock.WithTicker // waits
	Workers int              // objects of a kind reconciled at a time; 0 means 1
	// Enter, when set, is called before each reconcile, and its result after it. A lab's
	// virtual clock counts the work in progress this way.
	Enter       func() (leave func())
	ClientClock ClientClock // bounds retries: see Config.Client; nil means the real clock
	Queues      *Monitor    // knows the work queues; nil means nobody does
}

// Options returns the options of a controller with this work.
func (w Work) Options() controller.Options { return w.RetryOptions(nil) }

// RetryOptions returns the same for a controller that reports failures to retries.
func (w Work) RetryOptions(retries *Retries) controller.Options {
	return Options(Config{Clock: w.Clock, Client: w.ClientClock, Workers: w.Workers, Monitor: w.Queues, Retries: retries})
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

// ConflictWait is the time after which an object is reconciled again whose write met a
// conflict. The event of the other write does not replace this wait: a predicate may drop it,
// such as an event of the status alone.
const ConflictWait = time.Second

// SecretWait is the time after which an object is reconciled again that waits until a user
// has corrected or removed a Secret: Secrets of users are not watched.
const SecretWait = 10 * time.Second

// deletedError is the NotFound of the object that is reconciled.
type deletedError struct{ error }

// Unwrap returns the NotFound.
func (e *deletedError) Unwrap() error { return e.error }

// Deleted marks err, which a read of the object that is reconciled has returned: when it is
// NotFound, the object is deleted and needs no reconcile.
func Deleted(err error) error {
	if apierrors.IsNotFound(err) {
		return &deletedError{err}
	}
	return err
}

// Reconcile runs one reconcile of a controller that does not poll, and calls enter
// before and leave after it, when enter is not nil. Two errors are no failures: after one
// that Deleted has marked nothing follows; after Conflict the object is reconciled again.
// NotFound of another object, such as a namespace that an object is created in, is a failure
// that is retried: no watch may report its end.
func Reconcile(enter func() (leave func()), reconcileOnce func() error) (reconcile.Result, error) {
	return ReconcileAfter(enter, func() (time.Duration, error) { return 0, reconcileOnce() })
}

// ReconcileAfter is Reconcile for a controller that waits for a time, too: the object is
// reconciled again after the duration that reconcileOnce returns, and not if that is zero.
func ReconcileAfter(enter func() (leave func()), reconcileOnce func() (time.Duration, error)) (reconcile.Result, error) {
	if enter != nil {
		defer enter()()
	}
	after, err := reconcileOnce()
	switch deleted := new(deletedError); {
	case errors.As(err, &deleted):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: ConflictWait}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: after}, nil
}
