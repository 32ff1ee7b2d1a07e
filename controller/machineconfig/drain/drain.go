// Package drain drains and uncordons the nodes whose daemons ask for it, around an update. The
// daemon writes the annotation desiredDrain; when the node is as it demands, this controller
// copies it to lastAppliedDrain; the patch that makes a node schedulable does so.
//
// How a node is drained is controller/drain's, whose lease keeps other families from the node
// meanwhile. Why a node is drained is the daemon's.
package drain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/metalab-dev/metalab/controller/drain"
	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/reconcile/events"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/readafterwrite"
)

// Owner is the owner of a node's lease during its update.
const Owner = "machineconfig"

// How often a drain is attempted, by the time that it has taken. In the first span pods end in
// their grace periods; after it the attempt has failed.
var pace = []struct{ until, every time.Duration }{
	{90 * time.Second, drain.Interval},
	{10 * time.Minute, time.Minute},
	{1<<63 - 1, 5 * time.Minute},
}

// patience is how long a drain may take until it is reported. It goes on then.
const patience = time.Hour

// Config configures a Reconciler.
type Config struct {
	Client  client.Client
	Drains  *drain.Service
	Metrics prometheus.Registerer // nil means none
	queue.Work
}

// Reconciler drains and uncordons nodes.
type Reconciler struct {
	Config
	events *events.Recorder
	failed *prometheus.GaugeVec
	read   readafterwrite.Reader // reads Nodes
}

// New returns a reconciler, or an error when a required field of c is nil.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Drains == nil || c.Clock == nil {
		return nil, errors.New("drain: Config.Client, Config.Drains and Config.Clock are required")
	}
	r := &Reconciler{Config: c, events: events.New(c.Client, c.Clock), failed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "mcc_drain_err", Help: "1 for a node whose drain takes more than an hour.",
	}, []string{"exported_node"})}
	if c.Metrics != nil {
		if err := c.Metrics.Register(r.failed); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
			return nil, fmt.Errorf("drain: %w", err)
		}
	}
	return r, nil
}

// Setup adds the reconciler to a manager.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	pending := func(o client.Object) bool {
		a := o.GetAnnotations()
		return a[machineconfig.DesiredDrain] != a[machineconfig.LastAppliedDrain]
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("machineconfig-drain").
		For(&corev1.Node{}, builder.WithPredicates(predicate.Funcs{
			// A controller that was killed may have left the lease of a node that it uncordoned.
			CreateFunc: func(e event.CreateEvent) bool { return pending(e.Object) || uncordons(e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool {
				before, oldOK := e.ObjectOld.(*corev1.Node)
				after, newOK := e.ObjectNew.(*corev1.Node)
				return oldOK && newOK && pending(after) && (before.Spec.Unschedulable != after.Spec.Unschedulable ||
					before.Annotations[machineconfig.DesiredDrain] != after.Annotations[machineconfig.DesiredDrain])
			},
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		WithOptions(r.Options()).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler for a Node.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.ReconcileAfter(r.Enter, func() (time.Duration, error) { return r.reconcile(ctx, req.Name) })
}

func (r *Reconciler) reconcile(ctx context.Context, name string) (time.Duration, error) {
	var n corev1.Node
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &n); err != nil {
		return 0, queue.Deleted(err)
	}
	if r.read.Stale(&n) { // it is drained: a request that came after that has an event of its own
		return 0, nil
	}
	desired := n.Annotations[machineconfig.DesiredDrain]
	if desired == n.Annotations[machineconfig.LastAppliedDrain] {
		if uncordons(&n) {
			return 0, r.Drains.Release(ctx, name, Owner)
		}
		return 0, nil
	}
	if desired == "" {
		return 0, nil
	}
	applied := map[string]string{machineconfig.LastAppliedDrain: desired}
	verb, _, _ := strings.Cut(desired, "-")
	switch verb {
	case machineconfig.DrainVerb:
		if after, err := r.drain(ctx, &n); after > 0 || err != nil {
			return after, err
		}
	case machineconfig.UncordonVerb:
		written, err := r.Drains.UncordonAnnotated(ctx, name, Owner, applied)
		if written != nil {
			r.read.Wrote(written)
		}
		return 0, client.IgnoreNotFound(err) // the Node is gone
	default:
		r.publish(ctx, &n, "InvalidDrain", fmt.Sprintf("%s %q begins with neither %s- nor %s-: it has no effect", machineconfig.DesiredDrain, desired, machineconfig.DrainVerb, machineconfig.UncordonVerb))
		return 0, nil
	}
	before := n.DeepCopy()
	maps.Copy(n.Annotations, applied)
	if err := r.Client.Patch(ctx, &n, client.MergeFrom(before)); err != nil {
		return 0, fmt.Errorf("drain: node %s: %w", name, err)
	}
	r.read.Wrote(&n)
	return 0, nil
}

// uncordons reports whether the daemon of a node demands that it is uncordoned.
func uncordons(o client.Object) bool {
	return strings.HasPrefix(o.GetAnnotations()[machineconfig.DesiredDrain], machineconfig.UncordonVerb+"-")
}

// drain makes the next attempt to drain a node, and returns when to make another; 0 when it is
// drained.
func (r *Reconciler) drain(ctx context.Context, n *corev1.Node) (time.Duration, error) {
	p, err := r.Drains.Drain(ctx, n.Name, Owner)
	if held := new(drain.HeldError); errors.As(err, &held) {
		return time.Minute, nil // the other family's drain has its own report
	}
	if err != nil {
		return 0, err
	}
	if p.Done {
		r.failed.DeleteLabelValues(n.Name)
		return 0, r.stillCordoned(ctx, n.Name)
	}
	since, err := r.Drains.Since(ctx, n.Name, Owner)
	if err != nil {
		return 0, err
	}
	elapsed := r.Clock.Since(since)
	if elapsed >= patience {
		r.failed.WithLabelValues(n.Name).Set(1)
		r.publish(ctx, n, "DrainFailed", fmt.Sprintf("node %s is not drained after %s: %s", n.Name, patience, p))
	}
	for _, s := range pace {
		if elapsed < s.until {
			return s.every, nil
		}
	}
	return pace[len(pace)-1].every, nil
}

// errUncordoned means that somebody made a node schedulable during its drain: new pods may be
// on it.
var errUncordoned = errors.New("drain: the node was uncordoned during its drain: it is drained again")

// stillCordoned returns an error when the node is schedulable after its drain.
func (r *Reconciler) stillCordoned(ctx context.Context, name string) error {
	var n corev1.Node
	if err := r.Drains.Client.Get(ctx, client.ObjectKey{Name: name}, &n); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !n.Spec.Unschedulable {
		return errUncordoned
	}
	return nil
}

// publish publishes an event of a node.
func (r *Reconciler) publish(ctx context.Context, n *corev1.Node, reason, message string) {
	r.events.About(ctx, "machineconfig-drain", n, corev1.EventTypeWarning, reason, message)
}
