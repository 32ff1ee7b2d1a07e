// Package firmware manages the settings and versions of a host's firmware:
// HostFirmwareSettings with their FirmwareSchema, and HostFirmwareComponents. It
// reads both from BMCs, reports in the status which changes are wanted and whether
// they are valid and, as two parts of preparing or servicing a host, makes the
// changes. Package host decides when: this package knows only the states of a host
// in which it must not use the BMC.
package firmware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/reconcile/events"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/readafterwrite"
)

// The intervals at which a BMC is read (B-201).
const (
	refresh        = 5 * time.Minute
	refreshChanged = time.Minute // while the present state differs from the wanted one
	retry          = 30 * time.Second
)

// Config holds the parameters of New.
type Config struct {
	Client client.Client // writes, and cached reads
	Reader client.Reader // uncached reads, for objects that the cache may not have yet
	// BMC returns a client for a host's BMC.
	BMC   func(context.Context, *metal3.BareMetalHost) (bmc.Client, error)
	Clock clock.WithTicker   // waits
	Wall  clock.PassiveClock // Kubernetes timestamps; nil means the real clock
	// Changed, if set, is called with the UID of a host whose specification or
	// state has changed.
	Changed func(uid string)
	// HTTP fetches images for BMCs that fetch none; nil means the default client.
	HTTP    *http.Client
	Workers int // hosts reconciled at a time; 0 means 4
	// Enter, if set, is called before each pass and leave after it: see the lab's
	// clock.
	Enter func() (leave func())
	// ClientClock bounds retries: see queue.Config. Nil means the real clock.
	ClientClock queue.ClientClock
	// Queues, when set, knows the work queue: see queue.Monitor.
	Queues *queue.Monitor
}

// Reconciler reconciles the firmware objects of hosts.
type Reconciler struct {
	Config
	read    *readafterwrite.Reader
	events  *events.Recorder
	schemas *schemas
	wake    chan event.GenericEvent
	joiners ownerQueue

	mu   sync.Mutex
	next map[types.NamespacedName]time.Time // time of the next pass over each host
}

// New validates the configuration and returns a Reconciler.
func New(c Config) (*Reconciler, error) {
	for name, missing := range map[string]bool{
		"Client": c.Client == nil, "Reader": c.Reader == nil, "BMC": c.BMC == nil, "Clock": c.Clock == nil,
	} {
		if missing {
			return nil, fmt.Errorf("firmware: Config.%s is nil", name)
		}
	}
	if c.Wall == nil {
		c.Wall = clock.RealClock{}
	}
	if c.ClientClock == nil {
		c.ClientClock = clock.RealClock{}
	}
	if c.Changed == nil {
		c.Changed = func(string) {}
	}
	if c.HTTP == nil {
		c.HTTP = http.DefaultClient
	}
	if c.Workers == 0 {
		c.Workers = 4
	}
	return &Reconciler{
		Config: c, read: &readafterwrite.Reader{Cached: c.Client, Live: c.Reader}, events: events.New(c.Client, c.ClientClock), schemas: newSchemas(),
		wake: make(chan event.GenericEvent, 1024), next: map[types.NamespacedName]time.Time{},
		joiners: ownerQueue{owners: map[types.NamespacedName][]metav1.OwnerReference{}, wake: make(chan event.GenericEvent, 64)},
	}, nil
}

// Reconcile makes one pass over a host.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.Enter != nil {
		defer r.Enter()()
	}
	uid, after, err := r.pass(ctx, req.NamespacedName)
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return ctrl.Result{RequeueAfter: time.Nanosecond}, nil // an update conflict
	case err != nil && ctx.Err() == nil:
		// Package host reports a silent BMC.
		ctrl.LoggerFrom(ctx).V(1).Info("firmware not read", "error", err.Error())
		after = retry
	}
	if first := r.schedule(req.NamespacedName, after); first && after > 0 {
		r.Changed(uid) // a host that is being prepared waits for it: see wasRead
	}
	return ctrl.Result{}, nil
}

// schedule sets the time of the next pass over a host; with a delay of 0 there is
// none. It reports whether no pass had been made before.
func (r *Reconciler) schedule(key types.NamespacedName, after time.Duration) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.next[key]
	if after > 0 {
		r.next[key] = r.Clock.Now().Add(after)
	} else {
		delete(r.next, key)
	}
	return !known
}

// wasRead reports whether this controller has read the firmware of a host, or tried
// to. From then on the host has the objects that its BMC has something for.
func (r *Reconciler) wasRead(h *metal3.BareMetalHost) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.next[client.ObjectKeyFromObject(h)]
	return known
}

// pass reads the firmware of a host. It returns the host's UID and the delay until
// the next pass; 0 for none.
func (r *Reconciler) pass(ctx context.Context, key types.NamespacedName) (uid string, after time.Duration, err error) {
	var h metal3.BareMetalHost
	if err := r.read.Get(ctx, key, &h); err != nil {
		return "", 0, client.IgnoreNotFound(err)
	}
	after, err = r.readFirmware(ctx, key, &h)
	return string(h.UID), after, err
}

func (r *Reconciler) readFirmware(ctx context.Context, key types.NamespacedName, h *metal3.BareMetalHost) (time.Duration, error) {
	if !isRegistered(h) {
		return 0, nil
	}
	if err := r.adoptPolicy(ctx, h); err != nil {
		return 0, err
	}
	hfs, err := r.ensureSettings(ctx, h)
	if err != nil {
		return 0, err
	}
	hfc, err := r.components(ctx, h)
	if err != nil {
		return 0, err
	}
	due := r.due(key)
	if !due && isObserved(hfs.Status.Conditions, hfs.Generation) && (hfc == nil || isObserved(hfc.Status.Conditions, hfc.Generation)) {
		return r.untilDue(key), nil
	}
	c, err := r.BMC(ctx, h)
	if err != nil {
		return 0, err
	}
	if err := r.refreshSettings(ctx, h, hfs, c); err != nil {
		return 0, err
	}
	if hfc, err = r.refreshComponents(ctx, h, hfc, c); err != nil {
		return 0, err
	}
	if isTrue(hfs.Status.Conditions, changeDetected) || hfc != nil && isTrue(hfc.Status.Conditions, changeDetected) {
		return refreshChanged, nil
	}
	return refresh, nil
}

// due reports whether it is time to read a host's firmware.
func (r *Reconciler) due(key types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.next[key]
	return !known || !r.Clock.Now().Before(at)
}

// untilDue returns the time until then.
func (r *Reconciler) untilDue(key types.NamespacedName) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.next[key].Sub(r.Clock.Now()), time.Nanosecond)
}

// isRegistered reports whether the BMC of a host works and may be used (B-90,
// B-94, B-201).
func isRegistered(h *metal3.BareMetalHost) bool {
	switch h.Status.Provisioning.State {
	case metal3.StateNone, metal3.StateUnmanaged, metal3.StateRegistering, metal3.StateDeleting, metal3.StatePoweringOffBeforeDelete:
		return false
	}
	_, paused := h.Annotations[metal3.PausedAnnotation]
	_, detached := h.Annotations[metal3.DetachedAnnotation]
	return !paused && !detached && h.DeletionTimestamp.IsZero() && h.Status.OperationalStatus != metal3.OperationalStatusDetached
}

// adoptPolicy makes the host the owner of its HostUpdatePolicy (B-04, B-43).
func (r *Reconciler) adoptPolicy(ctx context.Context, h *metal3.BareMetalHost) error {
	var p metal3.HostUpdatePolicy
	if err := r.read.Get(ctx, client.ObjectKeyFromObject(h), &p); err != nil {
		return client.IgnoreNotFound(err)
	}
	return r.adopt(ctx, h, &p)
}

// adopt makes a host an owner of the object with its name.
func (r *Reconciler) adopt(ctx context.Context, h *metal3.BareMetalHost, o client.Object) error {
	for _, ref := range o.GetOwnerReferences() {
		if ref.UID == h.UID {
			return nil
		}
	}
	if !o.GetDeletionTimestamp().IsZero() {
		return nil
	}
	if err := controllerutil.SetOwnerReference(h, o, r.Client.Scheme()); err != nil {
		return fmt.Errorf("firmware: adopt %s: %w", o.GetName(), err)
	}
	return r.update(ctx, o)
}

// control makes a host the controller of its HostFirmwareSettings, as the
// specification's example has it. An object that another one controls gets the host
// as an owner only.
func (r *Reconciler) control(ctx context.Context, h *metal3.BareMetalHost, o client.Object) error {
	if c := metav1.GetControllerOf(o); c != nil && c.UID != h.UID {
		return r.adopt(ctx, h, o)
	}
	before := slices.Clone(o.GetOwnerReferences())
	if err := controllerutil.SetControllerReference(h, o, r.Client.Scheme()); err != nil {
		return fmt.Errorf("firmware: control %s: %w", o.GetName(), err)
	}
	if !o.GetDeletionTimestamp().IsZero() || equality.Semantic.DeepEqual(before, o.GetOwnerReferences()) {
		return nil
	}
	return r.update(ctx, o)
}

// update updates an object and records the write for later reads.
func (r *Reconciler) update(ctx context.Context, o client.Object) error {
	if err := r.Client.Update(ctx, o); err != nil {
		return err
	}
	r.read.Wrote(o)
	return nil
}

// updateStatus updates an object's status and records the write for later reads.
func (r *Reconciler) updateStatus(ctx context.Context, o client.Object) error {
	if err := r.Client.Status().Update(ctx, o); err != nil {
		return err
	}
	r.read.Wrote(o)
	return nil
}

// now returns the wall time with the precision of Kubernetes.
func (r *Reconciler) now() metav1.Time { return metav1.NewTime(r.Wall.Now().Truncate(time.Second)) }

// setup returns a client as a bmc.Setup.
func setup(c bmc.Client) (bmc.Setup, error) {
	if s, ok := c.(bmc.Setup); ok {
		return s, nil
	}
	return nil, &bmc.UnsupportedError{Verb: "BIOS", Why: "its driver knows no BIOS settings"}
}

// updater returns a client as a bmc.Updater.
func updater(c bmc.Client) (bmc.Updater, error) {
	if u, ok := c.(bmc.Updater); ok {
		return u, nil
	}
	return nil, &bmc.UnsupportedError{Verb: "Components", Why: "its driver updates no firmware"}
}

func unsupported(err error) bool { return errors.Is(err, bmc.ErrUnsupported) }
