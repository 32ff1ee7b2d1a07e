// Package firmware looks after what a host's firmware is set to and which
// version it is: HostFirmwareSettings with the FirmwareSchema that governs them,
// and HostFirmwareComponents. It reads both from BMCs, says in their status what
// would change and whether it can, and, as two parts of preparing or servicing a
// host, brings the change about. When that happens is decided elsewhere: it
// knows nothing of a host's states but which of them leave its BMC alone.
package firmware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/readafterwrite"
)

// How often a BMC is asked (B-201).
const (
	refresh        = 5 * time.Minute
	refreshChanged = time.Minute // while what is wanted is not so
	retry          = 30 * time.Second
)

// Config is what a Reconciler works with.
type Config struct {
	Client client.Client // writes, and cached reads
	Reader client.Reader // uncached reads, for when the cache is behind
	// BMC connects to a host's BMC.
	BMC   func(context.Context, *metal3.BareMetalHost) (bmc.Client, error)
	Clock clock.WithTicker   // waits
	Wall  clock.PassiveClock // Kubernetes timestamps; nil is the real one
	// Changed, when set, is told the UID of a host that has something new to be
	// prepared with.
	Changed func(uid string)
	// HTTP fetches images for BMCs that do not fetch them; nil is the default.
	HTTP    *http.Client
	Workers int // hosts looked at at a time; 0 is 4
	// Enter, when set, is called around each pass; see the lab's clock.
	Enter func() (leave func())
}

// Reconciler keeps the firmware objects of hosts.
type Reconciler struct {
	Config
	read    *readafterwrite.Reader
	schemas *schemas
	wake    chan event.GenericEvent
	joiners joiners

	mu   sync.Mutex
	next map[types.NamespacedName]time.Time // when a host is to be looked at again
}

// New checks the configuration and makes a Reconciler.
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
		Config: c, read: &readafterwrite.Reader{Cached: c.Client, Live: c.Reader}, schemas: newSchemas(),
		wake: make(chan event.GenericEvent, 1024), next: map[types.NamespacedName]time.Time{},
		joiners: joiners{of: map[types.NamespacedName][]metav1.OwnerReference{}, wake: make(chan event.GenericEvent, 64)},
	}, nil
}

// Reconcile makes one pass over a host.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.Enter != nil {
		defer r.Enter()()
	}
	after, err := r.pass(ctx, req.NamespacedName)
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return ctrl.Result{RequeueAfter: time.Nanosecond}, nil // somebody was faster: look anew
	case err != nil && ctx.Err() == nil:
		// A BMC that does not answer is the host's reconciler's to tell.
		ctrl.LoggerFrom(ctx).V(1).Info("firmware not read", "error", err.Error())
		after = retry
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if after > 0 {
		r.next[req.NamespacedName] = r.Clock.Now().Add(after)
	} else {
		delete(r.next, req.NamespacedName)
	}
	return ctrl.Result{}, nil
}

// pass looks at the firmware of a host, and says when to do that again; 0 when
// nothing is to be looked at.
func (r *Reconciler) pass(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	var h metal3.BareMetalHost
	if err := r.read.Get(ctx, key, &h); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if !registered(&h) {
		return 0, nil
	}
	if err := r.adoptPolicy(ctx, &h); err != nil {
		return 0, err
	}
	hfs, err := r.ensureSettings(ctx, &h)
	if err != nil {
		return 0, err
	}
	hfc, err := r.components(ctx, &h)
	if err != nil {
		return 0, err
	}
	due := r.due(key)
	if !due && observed(hfs.Status.Conditions, hfs.Generation) && (hfc == nil || observed(hfc.Status.Conditions, hfc.Generation)) {
		return r.left(key), nil
	}
	c, err := r.BMC(ctx, &h)
	if err != nil {
		return 0, err
	}
	if err := r.refreshSettings(ctx, &h, hfs, c); err != nil {
		return 0, err
	}
	if hfc, err = r.refreshComponents(ctx, &h, hfc, c); err != nil {
		return 0, err
	}
	if isTrue(hfs.Status.Conditions, changeDetected) || hfc != nil && isTrue(hfc.Status.Conditions, changeDetected) {
		return refreshChanged, nil
	}
	return refresh, nil
}

// due says whether it is time to read a host's firmware.
func (r *Reconciler) due(key types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.next[key]
	return !known || !r.Clock.Now().Before(at)
}

// left is how long it is until then.
func (r *Reconciler) left(key types.NamespacedName) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.next[key].Sub(r.Clock.Now()), time.Nanosecond)
}

// registered says whether the BMC of a host is known to work and ours to ask
// (B-90, B-94, B-201).
func registered(h *metal3.BareMetalHost) bool {
	switch h.Status.Provisioning.State {
	case metal3.StateNone, metal3.StateUnmanaged, metal3.StateRegistering, metal3.StateDeleting, metal3.StatePoweringOffBeforeDelete:
		return false
	}
	_, paused := h.Annotations[metal3.PausedAnnotation]
	_, detached := h.Annotations[metal3.DetachedAnnotation]
	return !paused && !detached && h.DeletionTimestamp.IsZero() && h.Status.OperationalStatus != metal3.OperationalStatusDetached
}

// adoptPolicy makes a HostUpdatePolicy go with its host (B-04, B-43).
func (r *Reconciler) adoptPolicy(ctx context.Context, h *metal3.BareMetalHost) error {
	var p metal3.HostUpdatePolicy
	if err := r.read.Get(ctx, client.ObjectKeyFromObject(h), &p); err != nil {
		return client.IgnoreNotFound(err)
	}
	return r.adopt(ctx, h, &p)
}

// adopt makes a host an owner of an object of its name.
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

// update writes an object, and notes that it did.
func (r *Reconciler) update(ctx context.Context, o client.Object) error {
	if err := r.Client.Update(ctx, o); err != nil {
		return err
	}
	r.read.Wrote(o)
	return nil
}

// updateStatus writes an object's status, and notes that it did.
func (r *Reconciler) updateStatus(ctx context.Context, o client.Object) error {
	if err := r.Client.Status().Update(ctx, o); err != nil {
		return err
	}
	r.read.Wrote(o)
	return nil
}

// now is the wall time as Kubernetes stores it.
func (r *Reconciler) now() metav1.Time { return metav1.NewTime(r.Wall.Now().Truncate(time.Second)) }

// setup is a client as one of settings.
func setup(c bmc.Client) (bmc.Setup, error) {
	if s, ok := c.(bmc.Setup); ok {
		return s, nil
	}
	return nil, &bmc.UnsupportedError{Verb: "BIOS", Why: "its driver knows no BIOS settings"}
}

// updater is a client as one of updates.
func updater(c bmc.Client) (bmc.Updater, error) {
	if u, ok := c.(bmc.Updater); ok {
		return u, nil
	}
	return nil, &bmc.UnsupportedError{Verb: "Components", Why: "its driver updates no firmware"}
}

func unsupported(err error) bool { return errors.Is(err, bmc.ErrUnsupported) }
