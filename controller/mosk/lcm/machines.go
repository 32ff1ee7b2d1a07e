package lcm

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/readafterwrite"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// Config configures a reconciler.
type Config struct {
	queue.Work
	Client client.Client
}

func (c *Config) complete() error {
	if c.Client == nil || c.Clock == nil {
		return errors.New("lcm: Config.Client or Config.Clock is nil")
	}
	return nil
}

// Machines reconciles LCMMachines.
type Machines struct {
	Config
	written readafterwrite.Reader
}

// NewMachines returns a reconciler, or an error when a required field of c is nil.
func NewMachines(c Config) (*Machines, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	return &Machines{Config: c}, nil
}

// Setup adds the reconciler to a manager. It does not poll.
func (r *Machines) Setup(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("lcm-machines").
		For(&lcmv1.LCMMachine{}).
		Watches(&lcmv1.LCMCluster{}, handler.EnqueueRequestsFromMapFunc(r.machinesOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(r.Options()).
		Complete(r)
}

// machinesOf returns the requests for the machines of an LCMCluster.
func (r *Machines) machinesOf(ctx context.Context, cluster client.Object) []reconcile.Request {
	return watch.Requests(ctx, r.Client, &lcmv1.LCMMachineList{}, func(m *lcmv1.LCMMachine) bool {
		return assigned(m).ClusterName == cluster.GetName()
	}, client.InNamespace(cluster.GetNamespace()))
}

// Reconcile implements reconcile.Reconciler for an LCMMachine.
func (r *Machines) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error { return r.reconcile(ctx, req.NamespacedName) })
}

func (r *Machines) reconcile(ctx context.Context, key types.NamespacedName) error {
	var m lcmv1.LCMMachine
	if err := r.Client.Get(ctx, key, &m); err != nil {
		return queue.Deleted(err)
	}
	if r.written.Stale(&m) { // the event of the write comes: the same is not written twice
		return nil
	}
	current := false
	if m.DeletionTimestamp.IsZero() && assigned(&m).ClusterName != "" {
		var err error
		if current, err = r.writeItems(ctx, &m); err != nil {
			return err
		}
	}
	return r.writeState(ctx, &m, current)
}

// writeItems makes the machine's items from those of its LCMCluster. Without an LCMCluster
// they stay: an agent must not forget what it has executed. The items of another release wait
// until the machine may have that release (spec.release), and until it may be prepared and
// updated: see package update. Those of the host OS follow at once. It reports whether the items are now
// the LCMCluster's present ones, and no reboot for them is due.
func (r *Machines) writeItems(ctx context.Context, m *lcmv1.LCMMachine) (current bool, err error) {
	before := m.DeepCopy()
	m.Spec = assigned(m)
	key := client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}
	var c lcmv1.LCMCluster
	if err := r.Client.Get(ctx, key, &c); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("lcm: LCMCluster %s: %w", key, err)
	}
	items := c.Spec.MachinesTypes[m.Spec.Type]
	may := item.MayPrepare(&c, m)
	current = item.HasRelease(&c, m) && may && (item.MayUpdate(m) || !item.Behind(&c, m))
	if !current {
		items = item.OtherRelease(items, m.Spec.StateItems)
	}
	if !may && !item.HasReleaseItems(m) { // those of the host OS come after those of the release
		items = nil
	}
	current = current && !item.RebootDue(&c, m)
	m.Spec.StateItems = item.Merge(items, m.Spec.StateItemsOverwrites)
	if current && c.Spec.Components != (lcmv1.Components{}) {
		m.Spec.Components = c.Spec.Components
	}
	if m.Spec.LCMType == "" {
		m.Spec.LCMType = c.Spec.LCMType
	}
	if equality.Semantic.DeepEqual(before.Spec, m.Spec) {
		return current, nil
	}
	if err := r.Client.Patch(ctx, m, client.MergeFrom(before)); err != nil {
		return false, fmt.Errorf("lcm: items of LCMMachine %s/%s: %w", m.Namespace, m.Name, err)
	}
	r.written.Wrote(m)
	return current, nil
}

// assigned returns the spec of a machine with the cluster and the type that its labels
// name. The provider creates an LCMMachine without a spec, and adds the labels when the
// machine may be deployed to.
func assigned(m *lcmv1.LCMMachine) lcmv1.LCMMachineSpec {
	out, name := m.Spec, m.Labels[clusterv1.ClusterNameLabel]
	if name == "" {
		return out
	}
	out.ClusterName = name
	if out.Type == "" || out.Type == lcmv1.MachineUnassigned {
		out.Type = lcmv1.MachineWorker
		if _, control := m.Labels[clusterv1.ControlPlaneLabel]; control {
			out.Type = lcmv1.MachineControl
		}
	}
	return out
}

// writeState computes the state of the machine. One that is Ready with the items of its
// release has that release; one whose node is out of service is in maintenance.
func (r *Machines) writeState(ctx context.Context, m *lcmv1.LCMMachine, current bool) error {
	before := m.DeepCopy()
	m.Status.State = item.ComputeState(m)
	if current && m.Status.State == lcmv1.StateReady {
		m.Status.Release = m.Spec.Release
	}
	m.Status.Maintenance = m.Spec.Maintenance || m.Status.KubernetesCordonDrain != ""
	if m.Status.State == before.Status.State && m.Status.Release == before.Status.Release && m.Status.Maintenance == before.Status.Maintenance {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, m, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("lcm: state of LCMMachine %s/%s: %w", m.Namespace, m.Name, err)
	}
	r.written.Wrote(m)
	return nil
}
