// Package host reconciles BareMetalHosts: it observes the object, the BMC and the
// agent, lets package phase decide, records the intent in the status and only then
// performs it, through a driver of controller/bmc or a job for the agent. Another
// process resumes an operation from the status alone: between two passes the
// reconciler remembers only a hostMemory, without which every decision is the same
// or comes later. It makes no choices itself: the rules are in phase.
package host

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/controller/reconcile/events"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/readafterwrite"
	"github.com/metalab-dev/metalab/controller/tracing"
)

// requeueNow is the RequeueAfter of a host that needs another pass at once: the
// shortest delay that the queue accepts.
const requeueNow = time.Nanosecond

// Config holds the parameters of New.
type Config struct {
	Client client.Client // writes, and cached reads
	Reader client.Reader // uncached reads, for objects that the cache may not have yet
	BMCs   *bmc.Pool
	Inband *inband.Server
	Boot   *netboot.Server
	Clock  clock.WithTicker   // waits and backoffs
	Wall   clock.PassiveClock // Kubernetes timestamps; nil means the real clock
	Chance func() float64     // random number in [0,1) that spreads backoffs
	Parts  []Part             // parts of the preparation, in this order

	// Limit is the number of hosts that boot their agent over the network and are
	// inspected, provisioned or deprovisioned at a time (B-73). 0 means 20, a
	// negative value no limit.
	Limit int

	Metrics prometheus.Registerer // nil registers none
	// Traces, if not nil, gets a trace of each change of a host: see tracing.Object.
	Traces  oteltrace.TracerProvider
	RootCAs *x509.CertPool // roots for BMCs in addition to the system's; may be nil
	Workers int            // hosts reconciled at a time; 0 means 4
	// BuildPreprovisioningImage requests an image for the agent of each host
	// before it is booted: see controller/metal3/preprovisioning (B-240).
	BuildPreprovisioningImage bool
	// Enter, if set, is called before each pass and leave after it: see the lab's
	// clock.
	Enter func() (leave func())
	// ClientClock bounds retries and the writes of events: see queue.Config. Nil means
	// the real clock.
	ClientClock queue.ClientClock
	// Queues, when set, knows the work queue: see queue.Monitor.
	Queues *queue.Monitor
}

// Reconciler reconciles BareMetalHosts.
type Reconciler struct {
	Config
	wake    chan event.GenericEvent
	read    *readafterwrite.Reader
	metrics *metrics
	events  *events.Recorder
	retries queue.Retries

	memory memories
}

// New validates the configuration and returns a Reconciler.
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
	if c.ClientClock == nil {
		c.ClientClock = clock.RealClock{}
	}
	if c.Workers == 0 {
		c.Workers = 4
	}
	if c.Limit == 0 {
		c.Limit = defaultLimit
	}
	if c.Traces == nil {
		c.Traces = noop.NewTracerProvider()
	}
	m, err := newMetrics(c.Metrics)
	if err != nil {
		return nil, fmt.Errorf("host: Config.Metrics: %w", err)
	}
	return &Reconciler{
		Config: c, metrics: m, events: events.New(c.Client, c.ClientClock), read: &readafterwrite.Reader{Cached: c.Client, Live: c.Reader, ReadMissesLive: true}, wake: make(chan event.GenericEvent, 1024),
	}, nil
}

// Options returns the options of the controller: its queue waits on the
// Reconciler's clock instead of real time.
func (r *Reconciler) Options() controller.Options {
	return queue.Options(queue.Config{Clock: r.Clock, Client: r.ClientClock, Workers: r.Workers, Monitor: r.Queues, Retries: &r.retries})
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
	ctx, span := r.startSpan(tracing.Object(ctx, string(h.UID), h.Generation), "pass", attribute.String("host.namespace", h.Namespace), attribute.String("host.name", h.Name),
		attribute.String("host.state", string(h.Status.Provisioning.State)))
	defer span.End()
	if restored, err := r.restoreStatus(ctx, &h); err != nil {
		return requeueOnConflict(err)
	} else if restored {
		return ctrl.Result{RequeueAfter: requeueNow}, nil
	}
	if done, err := r.updateMetadata(ctx, &h); err != nil {
		return requeueOnConflict(err)
	} else if done {
		return ctrl.Result{}, nil
	}
	o, err := r.observe(ctx, &h)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe: %w", err)
	}
	r.reportRefusals(ctx, &h)
	d := phase.Decide(o.facts)
	if o.cached && !d.Awaits { // the wait has ended, so decide by the present state
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
	span.SetAttributes(attribute.String("decision.rule", d.Rule), attribute.String("decision.do", string(d.Do)), attribute.String("decision.to", string(d.To)))
	from := h.Status.Provisioning.State
	after, err := r.record(ctx, &h, o, d)
	if err != nil {
		return requeueOnConflict(err)
	}
	r.storeReading(&h, o, d)
	r.storeInventoryReading(&h, o, d)
	r.metrics.countDecision(&h, from, d)
	r.countCredentials(&h, o)
	r.updateSlot(&h, d)
	if d.Rule == phase.AwaitsImage {
		r.metrics.imageWaits.WithLabelValues().Inc()
	}
	if d.Rule == phase.AwaitsAttaching {
		r.metrics.deleteDelayed.WithLabelValues().Inc()
	}
	if err := r.performTraced(ctx, &h, o, d.Do); err != nil {
		span.SetStatus(codes.Error, "the action has failed")
		return r.recordPerformError(ctx, &h, o, err)
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// updateMetadata adds the finalizer and removes annotations that have taken
// effect. It returns true if the pass is complete.
func (r *Reconciler) updateMetadata(ctx context.Context, h *metal3.BareMetalHost) (done bool, err error) {
	dirty := false
	if h.DeletionTimestamp.IsZero() {
		dirty = controllerutil.AddFinalizer(h, metal3.BareMetalHostFinalizer)
	} else if !controllerutil.ContainsFinalizer(h, metal3.BareMetalHostFinalizer) {
		return true, nil
	}
	// The requested inspection has begun (B-48).
	if inspectRequested(h) && h.Status.Provisioning.State == metal3.StateInspecting {
		delete(h.Annotations, metal3.InspectAnnotationPrefix)
		dirty = true
	}
	// Record the architecture, by which users choose images (B-252).
	if d := h.Status.HardwareDetails; d != nil && h.Spec.Architecture == "" && d.CPU.Arch != "" && h.DeletionTimestamp.IsZero() {
		h.Spec.Architecture = d.CPU.Arch
		dirty = true
	}
	var events eventList
	adopted, err := r.adoptHardware(ctx, h)
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
	// A reboot requested before is part of the operation that begins (B-48, B-65).
	if _, ok := h.Annotations[metal3.RebootAnnotationPrefix]; ok && rebootConsumed[h.Status.Provisioning.State] && !forcesReboot(h) {
		delete(h.Annotations, metal3.RebootAnnotationPrefix)
		dirty = true
	}
	if !dirty {
		return false, nil
	}
	if adopted.changed { // before the annotation is removed: after a crash between the two the next pass adopts it again
		now := r.now()
		h.Status.LastUpdated = &now
		annotations := h.Annotations
		if err := r.Client.Status().Update(ctx, h); err != nil {
			return false, err
		}
		h.Annotations = annotations
	}
	// This update triggers no watch of the controller, so the pass continues with
	// the updated object.
	if err := r.Client.Update(ctx, h); err != nil {
		return false, err
	}
	r.read.Wrote(h)
	h.Status.HardwareDetails = details
	if e := adopted.event; e != nil {
		events.add(e[0], e[1])
	}
	r.publish(ctx, h, events)
	if len(adopted.unknown) > 0 {
		r.warnUnknown(ctx, h, "UnknownHardwareFields", metal3.HardwareDetailsAnnotation, adopted.unknown)
	}
	return false, nil
}

// rebootConsumed lists the states whose operation boots the server anyway.
var rebootConsumed = map[phase.State]bool{metal3.StateInspecting: true, metal3.StateDeprovisioning: true}

// recordPerformError records that an action failed. A silent BMC is not a failure
// of the host: the pass is repeated (B-14), unless the host is being deleted.
func (r *Reconciler) recordPerformError(ctx context.Context, h *metal3.BareMetalHost, o *observation, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return requeueOnConflict(err)
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
		return requeueOnConflict(err)
	}
	r.metrics.countDecision(h, h.Status.Provisioning.State, d)
	r.updateSlot(h, d)
	return ctrl.Result{RequeueAfter: after}, nil
}

// requeueOnConflict turns an update conflict into another pass.
func requeueOnConflict(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: requeueNow}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
