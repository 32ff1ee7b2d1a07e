// Package host reconciles BareMetalHosts: it observes what the object, the BMC
// and the agent say, lets phase decide, records the intent in the status and
// only then performs it, through a driver of controller/bmc or a job for the
// agent. Between two passes it remembers nothing but when it asked a system to
// shut down or to change its power, since when a BMC is silent, what it said of a
// host that waits for its agent, and which hosts hold a place; what an operation
// needs to be resumed by another process is derived from the status. It chooses
// nothing itself: rules live in phase.
package host

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/host/phase"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/controller/queue"
	"github.com/metalab-dev/metalab/controller/readafterwrite"
)

// requeueNow is the RequeueAfter of a host that needs another pass at once: the
// shortest delay that the queue accepts.
const requeueNow = time.Nanosecond

// Config is what a Reconciler works with.
type Config struct {
	Client client.Client // writes, and cached reads
	Reader client.Reader // uncached reads, for when the cache is behind
	BMCs   *bmc.Pool
	Inband *inband.Server
	Boot   *netboot.Server
	Clock  clock.WithTicker   // waits and backoffs
	Wall   clock.PassiveClock // Kubernetes timestamps; nil is the real one
	Chance func() float64     // in [0,1[; spreads backoffs
	Parts  []Part             // in the order in which a host is prepared with them

	// Limit is how many hosts that boot their agent by the network are inspected,
	// provisioned and deprovisioned at a time (B-73); 0 is 20, negative is no
	// limit.
	Limit int

	Metrics prometheus.Registerer // nil: nobody reads them
	RootCAs *x509.CertPool        // trusted for BMCs beside the system's; may be nil
	Workers int                   // hosts reconciled at a time; 0 is 4
	// BuildPreprovisioningImage has an image built for the agent of each host
	// before it is booted: see controller/preprovisioning (B-240).
	BuildPreprovisioningImage bool
	// Enter, when set, is called around each pass; see the lab's clock.
	Enter func() (leave func())
}

// Reconciler reconciles BareMetalHosts.
type Reconciler struct {
	Config
	wake    chan event.GenericEvent
	read    *readafterwrite.Reader
	metrics *metrics

	memory memories
}

// New checks the configuration and makes a Reconciler.
func New(c Config) (*Reconciler, error) {
	for name, missing := range map[string]bool{
		"Client": c.Client == nil, "Reader": c.Reader == nil, "BMCs": c.BMCs == nil,
		"Inband": c.Inband == nil, "Boot": c.Boot == nil, "Clock": c.Clock == nil, "Chance": c.Chance == nil,
	} {
		if missing {
			return nil, fmt.Errorf("host: Config.%s is nil", name)
		}
	}
	if c.Wall == nil {
		c.Wall = clock.RealClock{}
	}
	if c.Workers == 0 {
		c.Workers = 4
	}
	if c.Limit == 0 {
		c.Limit = defaultLimit
	}
	m, err := newMetrics(c.Metrics)
	if err != nil {
		return nil, fmt.Errorf("host: Config.Metrics: %w", err)
	}
	return &Reconciler{
		Config: c, metrics: m, read: &readafterwrite.Reader{Cached: c.Client, Live: c.Reader, ReadMissesLive: true}, wake: make(chan event.GenericEvent, 1024),
	}, nil
}

// Options are what a controller of hosts must be made with: its queue waits on
// the Reconciler's clock, not on real time.
func (r *Reconciler) Options() controller.Options {
	return queue.Options(r.Clock, r.Workers)
}

// Reconcile makes one pass over a host.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.Enter != nil {
		defer r.Enter()()
	}
	r.metrics.passes.WithLabelValues(req.Namespace, req.Name).Inc()
	res, err := r.reconcile(ctx, req)
	if err != nil {
		r.metrics.failedPasses.WithLabelValues(req.Namespace, req.Name).Inc()
	}
	return res, err
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var h metal3.BareMetalHost
	if err := r.read.Get(ctx, req.NamespacedName, &h); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if _, paused := h.Annotations[metal3.PausedAnnotation]; paused { // B-90
		return ctrl.Result{}, nil
	}
	if restored, err := r.restoreStatus(ctx, &h); err != nil {
		return again(err)
	} else if restored {
		return ctrl.Result{RequeueAfter: requeueNow}, nil
	}
	if done, err := r.mark(ctx, &h); err != nil {
		return again(err)
	} else if done {
		return ctrl.Result{}, nil
	}
	o, err := r.observe(ctx, &h)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe: %w", err)
	}
	d := phase.Decide(o.facts)
	if o.cached && !d.Awaits { // the wait is over: from here on it counts what is now
		r.dropReading(h.UID)
		if o, err = r.observe(ctx, &h); err != nil {
			return ctrl.Result{}, fmt.Errorf("observe: %w", err)
		}
		d = phase.Decide(o.facts)
	}
	if phase.NeedsSlot(o.facts, d) {
		if o.facts.NoSlot, err = r.slotsFull(ctx, &h); err != nil {
			return ctrl.Result{}, fmt.Errorf("observe: %w", err)
		}
		d = phase.Decide(o.facts)
	}
	ctrl.LoggerFrom(ctx).V(1).Info("decided", "state", h.Status.Provisioning.State, "rule", d.Rule, "do", d.Do, "to", d.To)
	from := h.Status.Provisioning.State
	after, err := r.record(ctx, &h, o, d)
	if err != nil {
		return again(err)
	}
	r.storeReading(&h, o, d)
	r.metrics.decided(&h, from, d)
	r.countCredentials(&h, o)
	r.updateSlot(&h, d)
	if d.Rule == phase.AwaitsImage {
		r.metrics.imageWaits.WithLabelValues().Inc()
	}
	if d.Rule == phase.AwaitsAttaching {
		r.metrics.undeleted.WithLabelValues().Inc()
	}
	if err := r.perform(ctx, &h, o, d.Do); err != nil {
		return r.failed(ctx, &h, o, err)
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// mark sees to the finalizer and to annotations that are spent. It is done when
// nothing is left to reconcile in this pass.
func (r *Reconciler) mark(ctx context.Context, h *metal3.BareMetalHost) (done bool, err error) {
	dirty := false
	if h.DeletionTimestamp.IsZero() {
		dirty = controllerutil.AddFinalizer(h, metal3.BareMetalHostFinalizer)
	} else if !controllerutil.ContainsFinalizer(h, metal3.BareMetalHostFinalizer) {
		return true, nil
	}
	// The inspection that was asked for has begun (B-48).
	if inspectRequested(h) && h.Status.Provisioning.State == metal3.StateInspecting {
		delete(h.Annotations, metal3.InspectAnnotationPrefix)
		dirty = true
	}
	// What images are chosen by is told to whoever writes the next one (B-252).
	if d := h.Status.HardwareDetails; d != nil && h.Spec.Architecture == "" && d.CPU.Arch != "" && h.DeletionTimestamp.IsZero() {
		h.Spec.Architecture = d.CPU.Arch
		dirty = true
	}
	var told eventList
	adopted, event, err := r.adoptHardware(ctx, h)
	if err != nil {
		return false, err
	}
	details := h.Status.HardwareDetails
	for _, key := range []string{metal3.HardwareDetailsAnnotation, metal3.StatusAnnotation} {
		if _, ok := h.Annotations[key]; ok {
			delete(h.Annotations, key)
			dirty = true
		}
	}
	// A reboot that was asked for before is part of what begins (B-48, B-65).
	if _, ok := h.Annotations[metal3.RebootAnnotationPrefix]; ok && rebootEnds[h.Status.Provisioning.State] && !forces(h) {
		delete(h.Annotations, metal3.RebootAnnotationPrefix)
		dirty = true
	}
	if !dirty {
		return false, nil
	}
	if adopted { // before the annotation goes: a crash between the two adopts it again
		now := r.now()
		h.Status.LastUpdated = &now
		annotations := h.Annotations
		if err := r.Client.Status().Update(ctx, h); err != nil {
			return false, err
		}
		h.Annotations = annotations
	}
	// The update wakes no watcher of ours, so the pass goes on with what it
	// returns.
	if err := r.Client.Update(ctx, h); err != nil {
		return false, err
	}
	r.read.Wrote(h)
	h.Status.HardwareDetails = details
	if event != nil {
		told.add(event[0], event[1])
	}
	r.publish(ctx, h, told)
	return false, nil
}

// rebootEnds are states whose work boots the server anyway.
var rebootEnds = map[phase.State]bool{metal3.StateInspecting: true, metal3.StateDeprovisioning: true}

// forces says whether the plain reboot annotation interrupts what is under way.
func forces(h *metal3.BareMetalHost) bool {
	var o observation
	observeReboot(h, &o)
	return o.facts.RebootForce
}

// failed records that an action could not be carried out. A BMC that does not
// answer is no failure of the host: the pass is repeated (B-14), unless the host
// is on its way out.
func (r *Reconciler) failed(ctx context.Context, h *metal3.BareMetalHost, o *observation, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return again(err)
	}
	var data *configDataError
	if errors.Is(err, bmc.ErrUnreachable) && h.DeletionTimestamp.IsZero() || errors.As(err, &data) || ctx.Err() != nil {
		return ctrl.Result{}, fmt.Errorf("perform: %w", err)
	}
	d := phase.Decision{Fail: phase.FailsAs(h.Status.Provisioning.State), Message: err.Error()}
	if o.facts.Servicing {
		d.Fail = metal3.ServicingError
	}
	after, err := r.record(ctx, h, o, d)
	if err != nil {
		return again(err)
	}
	r.metrics.decided(h, h.Status.Provisioning.State, d)
	r.updateSlot(h, d)
	return ctrl.Result{RequeueAfter: after}, nil
}

// again turns a lost race for the object into another pass.
func again(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: requeueNow}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
