// Package subscription reconciles BMCEventSubscriptions. It creates one event
// subscription on the host's BMC for each, once, and deletes it with the object
// (B-245).
//
// The controller of hosts connects to the BMC. Events go to the subscription's
// destination; the package receives none.
package subscription

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Config configures a Reconciler.
type Config struct {
	Client client.Client
	Reader client.Reader // uncached
	// Connect connects to a host's BMC.
	Connect func(ctx context.Context, h *metal3.BareMetalHost) (bmc.Client, error)
	Clock   clock.WithTicker
	// Enter, when set, is called before each reconcile, and its result after it. A lab's
	// virtual clock counts the work in progress this way.
	Enter func() (leave func())
	// ClientClock bounds retries: see queue.Config. Nil means the real clock.
	ClientClock queue.ClientClock
	// Queues, when set, knows the work queue: see queue.Monitor.
	Queues *queue.Monitor
}

// Reconciler reconciles BMCEventSubscriptions, one at a time, so that two objects
// never adopt the same subscription of a BMC.
type Reconciler struct {
	Config
	retries queue.Retries // retries of credentials that a BMC refuses
}

// refusedWait is the time after which credentials are tried again that a BMC has refused.
// Nothing reports that it accepts them again: its password may have been set back. BMCs lock
// an account after a few failures within a minute.
const refusedWait = 2 * time.Minute

// New returns a Reconciler, or an error when a required field of c is nil.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Reader == nil || c.Connect == nil || c.Clock == nil {
		return nil, errors.New("subscription: Config.Client, Reader, Connect or Clock is nil")
	}
	return &Reconciler{Config: c}, nil
}

// blockedError is an error that no retry can cure: the subscription has to wait until
// another object changes, and the watch of that object enqueues it.
type blockedError struct{ text string }

func (e *blockedError) Error() string { return e.text }

// Reconcile implements reconcile.Reconciler for a BMCEventSubscription.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.Enter != nil {
		defer r.Enter()()
	}
	var s metal3.BMCEventSubscription
	if err := r.Client.Get(ctx, req.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	work := r.create
	if !s.DeletionTimestamp.IsZero() {
		work = r.remove
	}
	err := work(ctx, &s)
	refused := errors.Is(err, bmc.ErrUnauthorized)
	if !refused {
		r.retries.Succeeded(req)
	}
	switch {
	case err == nil:
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: queue.ConflictWait}, nil
	case apierrors.IsNotFound(err), ctx.Err() != nil:
		return ctrl.Result{}, err
	}
	if err := r.record(ctx, &s, s.Status.SubscriptionID, err.Error()); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if refused {
		r.retries.Failed(req, queue.Slow)
		return ctrl.Result{RequeueAfter: refusedWait}, nil
	}
	if e := new(blockedError); errors.As(err, &e) || errors.Is(err, bmc.ErrUnsupported) {
		return ctrl.Result{}, nil // a retry would fail in the same way
	}
	return ctrl.Result{}, err
}

// create creates the subscription on the BMC unless the status has its ID already.
func (r *Reconciler) create(ctx context.Context, s *metal3.BMCEventSubscription) error {
	var h metal3.BareMetalHost
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Spec.HostName}, &h)
	if apierrors.IsNotFound(err) {
		return &blockedError{fmt.Sprintf("baremetal host %q does not exist", s.Spec.HostName)}
	} else if err != nil {
		return err
	}
	if controllerutil.AddFinalizer(s, metal3.BMCEventSubscriptionFinalizer) { // B-03
		if err := r.Client.Update(ctx, s); err != nil {
			return err
		}
	}
	if s.Status.SubscriptionID != "" {
		return r.record(ctx, s, s.Status.SubscriptionID, "")
	}
	headers, err := r.headers(ctx, s)
	if err != nil {
		return err
	}
	b, err := r.bmcOf(ctx, &h)
	if err != nil {
		return failed("create", err)
	}
	// A matching subscription that belongs to no object was created by a reconcile that
	// failed to write its ID to the status.
	id, err := r.find(ctx, b, s)
	if err == nil && id == "" {
		id, err = b.Subscribe(ctx, bmc.Subscription{Destination: s.Spec.Destination, Context: s.Spec.Context, Headers: headers})
	}
	if err != nil {
		return failed("create", err)
	}
	return r.record(ctx, s, id, "")
}

// remove deletes the subscription from the BMC and removes the finalizer of s.
func (r *Reconciler) remove(ctx context.Context, s *metal3.BMCEventSubscription) error {
	if !controllerutil.ContainsFinalizer(s, metal3.BMCEventSubscriptionFinalizer) {
		return nil
	}
	var h metal3.BareMetalHost
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Spec.HostName}, &h)
	if err == nil {
		err = r.unsubscribe(ctx, s, &h)
	}
	if client.IgnoreNotFound(err) != nil { // without the host object the BMC cannot be reached
		return failed("delete", err)
	}
	controllerutil.RemoveFinalizer(s, metal3.BMCEventSubscriptionFinalizer)
	return client.IgnoreNotFound(r.Client.Update(ctx, s))
}

// unsubscribe deletes the subscription from the BMC. One whose ID never reached the
// status is found by its contents.
func (r *Reconciler) unsubscribe(ctx context.Context, s *metal3.BMCEventSubscription, h *metal3.BareMetalHost) error {
	b, err := r.bmcOf(ctx, h)
	if err != nil {
		return err
	}
	id := s.Status.SubscriptionID
	if id == "" {
		if id, err = r.find(ctx, b, s); errors.Is(err, bmc.ErrUnsupported) {
			return nil
		}
	}
	if err != nil || id == "" {
		return err
	}
	return b.Unsubscribe(ctx, id)
}

func failed(what string, err error) error {
	return fmt.Errorf("failed to %s a subscription: %w", what, err)
}

// bmcOf connects to the BMC of a host that is registered and not detached.
func (r *Reconciler) bmcOf(ctx context.Context, h *metal3.BareMetalHost) (bmc.Subscriber, error) {
	if why := unready(h); why != "" {
		return nil, &blockedError{fmt.Sprintf("baremetal host %q is %s", h.Name, why)}
	}
	c, err := r.Connect(ctx, h)
	if err != nil {
		return nil, err
	}
	s, ok := c.(bmc.Subscriber)
	if !ok {
		return nil, &bmc.UnsupportedError{Verb: "Subscribe", Why: "its driver does not support event subscriptions"}
	}
	return s, nil
}

// unready returns why the BMC of a host may not be used, "" when it may. hostChanged
// enqueues the host's subscriptions when the result changes.
func unready(h *metal3.BareMetalHost) string {
	_, detached := h.Annotations[metal3.DetachedAnnotation]
	switch {
	case detached:
		return "detached"
	case h.Status.GoodCredentials.Reference == nil:
		return "not registered"
	}
	return ""
}

// find returns the ID of the BMC's subscription that has the destination and context
// of s and belongs to no other object, "" when there is none.
func (r *Reconciler) find(ctx context.Context, b bmc.Subscriber, s *metal3.BMCEventSubscription) (string, error) {
	there, err := b.Subscriptions(ctx)
	if err != nil {
		return "", err
	}
	var others metal3.BMCEventSubscriptionList
	if err := r.Reader.List(ctx, &others, client.InNamespace(s.Namespace)); err != nil {
		return "", err
	}
	for _, one := range there {
		taken := slices.ContainsFunc(others.Items, func(o metal3.BMCEventSubscription) bool {
			return o.UID != s.UID && o.Spec.HostName == s.Spec.HostName && o.Status.SubscriptionID == one.ID
		})
		if !taken && one.Destination == s.Spec.Destination && one.Context == s.Spec.Context {
			return one.ID, nil
		}
	}
	return "", nil
}

// headers reads the HTTP headers from their Secret, whose keys are the header names.
func (r *Reconciler) headers(ctx context.Context, s *metal3.BMCEventSubscription) ([]bmc.Header, error) {
	ref := s.Spec.HTTPHeadersRef
	if ref == nil {
		return nil, nil
	}
	if ref.Namespace != s.Namespace {
		return nil, &blockedError{"httpHeadersRef secret must be in the same namespace as the BMCEventSubscription"}
	}
	var secret corev1.Secret
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &secret); apierrors.IsNotFound(err) {
		return nil, &blockedError{"failed to retrieve HTTP headers secret"}
	} else if err != nil {
		return nil, err
	}
	var out []bmc.Header
	for _, name := range slices.Sorted(maps.Keys(secret.Data)) {
		out = append(out, bmc.Header{Name: name, Value: string(secret.Data[name])})
	}
	return out, nil
}

// record writes the status if it has changed.
func (r *Reconciler) record(ctx context.Context, s *metal3.BMCEventSubscription, id, text string) error {
	status := metal3.BMCEventSubscriptionStatus{SubscriptionID: id, Error: text}
	if s.Status == status {
		return nil
	}
	s.Status = status
	return r.Client.Status().Update(ctx, s)
}
