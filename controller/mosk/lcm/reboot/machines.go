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

// Config configures a reconciler.
type Config struct {
	queue.Work
	Client      client.Client
	Maintenance maintenance.Maintainer // of the nodes of Machines
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
	retries queue.Retries // retries of stages of the maintenance that are not reached yet
}

// NewMachines returns a reconciler, or an error when a required field of c is nil.
func NewMachines(c Config) (*Machines, error) {
	if c.Maintenance == nil {
		return nil, errors.New("reboot: Config.Maintenance is nil")
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
		if after > 0 {
			r.retries.Failed(req, 1)
		} else {
			r.retries.Succeeded(req)
		}
		return after, err
	})
}

// step is the next action for a machine.
type step string

// The steps of a graceful reboot, in their order.
const (
	stepNone   step = ""
	stepMark   step = "mark"   // the machine, before its node is touched
	stepEnter  step = "enter"  // maintenance, and then demand the reboot
	stepWait   step = "wait"   // until the agent has rebooted the server
	stepLeave  step = "leave"  // maintenance, and then remove the demand and the annotations
	stepUnmark step = "unmark" // a machine whose deletion has its node: the reboot begins again if that is withdrawn
)

// next returns the next step of a machine. A reboot whose annotation is removed is withdrawn,
// unless the agent has begun it. The node of a machine that is deleted is given back, unless the
// deletion has taken it out of service, too: it ends that maintenance.
func next(m *lcmv1.LCMMachine) step {
	held := m.Annotations[item.HeldForRebootAnnotation] != ""
	awaited := m.Spec.RebootRequired && (m.Status.Reboot == nil || !m.Status.Reboot.Completed)
	switch {
	case m.Spec.PrepareDeletion && held:
		return stepUnmark
	case m.Spec.PrepareDeletion:
		return stepNone
	case !m.DeletionTimestamp.IsZero() && held:
		return stepLeave
	case !m.DeletionTimestamp.IsZero():
		return stepNone
	case m.Annotations[item.GracefulRebootAnnotation] != "true":
		switch {
		case !held:
			return stepNone
		case awaited && m.Status.Reboot != nil:
			return stepWait
		}
		return stepLeave
	case item.GracefulRebootRequired(m) && !held:
		return stepMark
	case item.GracefulRebootRequired(m):
		return stepEnter
	case awaited:
		return stepWait
	}
	return stepLeave // also of an annotation that comes before the agent has removed the status of an earlier reboot
}

func (r *Machines) reconcile(ctx context.Context, key client.ObjectKey) (time.Duration, error) {
	var m lcmv1.LCMMachine
	if err := r.Client.Get(ctx, key, &m); err != nil {
		return 0, queue.Deleted(err)
	}
	do, request := next(&m), maintenance.Request{Machine: key, Reason: lcmv1.ReasonMaintenance}
	switch do {
	case stepMark: // the event of the write comes
		return 0, r.patch(ctx, &m, func() { metav1.SetMetaDataAnnotation(&m.ObjectMeta, item.HeldForRebootAnnotation, "true") })
	case stepEnter:
		p, err := r.Maintenance.Enter(ctx, request)
		if !p.Done || err != nil {
			return p.After, err
		}
		return 0, r.patch(ctx, &m, func() { m.Spec.RebootRequired = true })
	case stepLeave:
		p, err := r.Maintenance.Leave(ctx, request)
		if !p.Done || err != nil {
			return p.After, err
		}
		// Another machine in maintenance needs the request for the cluster, and removes it.
		if _, err := r.Maintenance.LeaveCluster(ctx, client.ObjectKey{Namespace: key.Namespace, Name: m.Spec.ClusterName}, m.Name); err != nil {
			return 0, err
		}
		return 0, r.patch(ctx, &m, func() {
			m.Spec.RebootRequired = false
			delete(m.Annotations, item.GracefulRebootAnnotation)
			delete(m.Annotations, item.RebootRequestAnnotation)
			delete(m.Annotations, item.HeldForRebootAnnotation)
		})
	case stepUnmark:
		return 0, r.patch(ctx, &m, func() {
			m.Spec.RebootRequired = false
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
