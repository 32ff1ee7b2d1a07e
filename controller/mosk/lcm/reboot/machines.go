package reboot

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/maintenance"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Drainer drains nodes. The owner has the node until Uncordon.
type Drainer interface {
	// Drain evicts the pods that can be evicted now. waits is the reason why pods stay, "" when
	// the node is drained.
	Drain(ctx context.Context, node, owner string) (waits string, err error)
	// Uncordon makes the node schedulable again, and releases it.
	Uncordon(ctx context.Context, node, owner string) error
}

// owner is the name by which a node is held for a reboot.
const owner = "lcm-graceful-reboot"

const (
	interval = 5 * time.Second // after which a drain that is not done is tried again
	renewal  = 5 * time.Minute // time after which the hold of a node that reboots is renewed
)

// Config configures a reconciler.
type Config struct {
	queue.Work
	Client  client.Client
	Drainer Drainer // drains the nodes of Machines
}

func (c *Config) complete() error {
	if c.Client == nil || c.Clock == nil {
		return errors.New("reboot: Config.Client or Config.Clock is nil")
	}
	return nil
}

// Machines reboots LCMMachines.
type Machines struct {
	Config
	retries queue.Retries // retries of drains that are not done yet; Slow where only the lease is renewed
}

// NewMachines returns a reconciler, or an error when a required field of c is nil.
func NewMachines(c Config) (*Machines, error) {
	if c.Drainer == nil {
		return nil, errors.New("reboot: Config.Drainer is nil")
	}
	return &Machines{Config: c}, c.complete()
}

// Setup adds the reconciler to a manager.
func (r *Machines) Setup(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("lcm-reboots").
		For(&lcmv1.LCMMachine{}).
		WithOptions(r.RetryOptions(&r.retries)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler for an LCMMachine.
func (r *Machines) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.ReconcileAfter(r.Enter, func() (time.Duration, error) {
		after, err := r.reconcile(ctx, req.NamespacedName)
		switch after {
		case interval:
			r.retries.Failed(req, 1)
		case renewal:
			r.retries.Failed(req, queue.Slow)
		default:
			r.retries.Succeeded(req)
		}
		return after, err
	})
}

// step is the next action for a machine.
type step string

// The steps of a graceful reboot, in their order.
const (
	stepNone     step = ""
	stepMark     step = "mark"     // the machine, before its node is touched
	stepDrain    step = "drain"    // and then demand the reboot
	stepHold     step = "hold"     // the node, while the agent reboots the server
	stepUncordon step = "uncordon" // and then remove the demand and the annotations
)

// next returns the next step of a machine. A reboot whose annotation is removed is withdrawn,
// unless the agent has begun it. The node of a machine that is deleted is released: it leaves
// the cluster, and the controller of the deletion waits for it.
func next(m *lcmv1.LCMMachine) step {
	held := m.Annotations[item.HeldForRebootAnnotation] != ""
	awaited := m.Spec.RebootRequired && (m.Status.Reboot == nil || !m.Status.Reboot.Completed)
	switch {
	case !m.DeletionTimestamp.IsZero() && held:
		return stepUncordon
	case !m.DeletionTimestamp.IsZero():
		return stepNone
	case m.Annotations[item.GracefulRebootAnnotation] != "true":
		switch {
		case !held:
			return stepNone
		case awaited && m.Status.Reboot != nil:
			return stepHold
		}
		return stepUncordon
	case item.GracefulRebootRequired(m) && !held:
		return stepMark
	case item.GracefulRebootRequired(m):
		return stepDrain
	case awaited:
		return stepHold
	}
	return stepUncordon // also of an annotation that comes before the agent has removed the status of an earlier reboot
}

func (r *Machines) reconcile(ctx context.Context, key client.ObjectKey) (time.Duration, error) {
	var m lcmv1.LCMMachine
	if err := r.Client.Get(ctx, key, &m); err != nil {
		return 0, queue.Deleted(err)
	}
	switch do := next(&m); do {
	case stepMark: // the event of the write comes
		return 0, r.patch(ctx, &m, func() { metav1.SetMetaDataAnnotation(&m.ObjectMeta, item.HeldForRebootAnnotation, "true") })
	case stepDrain, stepHold:
		waits, err := r.Drainer.Drain(ctx, item.Node(&m), owner)
		if err != nil {
			return 0, fmt.Errorf("reboot: LCMMachine %s: %w", key, err)
		}
		if err := (maintenance.Service{Client: r.Client}).ReportDrain(ctx, &m, waits); err != nil {
			return 0, fmt.Errorf("reboot: %w", err)
		}
		switch {
		case do == stepHold:
			return renewal, nil
		case waits != "":
			return interval, nil
		}
		return renewal, r.patch(ctx, &m, func() { m.Spec.RebootRequired = true })
	case stepUncordon:
		if err := r.Drainer.Uncordon(ctx, item.Node(&m), owner); err != nil {
			return 0, fmt.Errorf("reboot: LCMMachine %s: %w", key, err)
		}
		return 0, r.patch(ctx, &m, func() {
			m.Spec.RebootRequired = false
			delete(m.Annotations, item.GracefulRebootAnnotation)
			delete(m.Annotations, item.RebootRequestAnnotation)
			delete(m.Annotations, item.HeldForRebootAnnotation)
		})
	}
	return 0, nil
}

// patch writes a change with the resourceVersion that was read.
func (r *Machines) patch(ctx context.Context, m *lcmv1.LCMMachine, change func()) error {
	before := m.DeepCopy()
	change()
	err := r.Client.Patch(ctx, m, patch.IfUnchanged(before))
	if err != nil {
		return fmt.Errorf("reboot: LCMMachine %s/%s: %w", m.Namespace, m.Name, err)
	}
	return nil
}
