package update

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/maintenance"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/readafterwrite"
)

// Config configures a reconciler.
type Config struct {
	queue.Work
	Client      client.Client
	Maintenance maintenance.Maintainer
}

// Clusters updates the machines of LCMClusters.
type Clusters struct {
	Config
	written readafterwrite.Reader // knows which LCMMachines the cache has late
}

// New returns a reconciler, or an error when a required field of c is nil.
func New(c Config) (*Clusters, error) {
	if c.Client == nil || c.Maintenance == nil || c.Clock == nil {
		return nil, errors.New("update: Config.Client, Config.Maintenance or Config.Clock is nil")
	}
	return &Clusters{Config: c}, nil
}

// Setup adds the reconciler to a manager.
func (r *Clusters) Setup(mgr manager.Manager) error {
	labelled := func(_ context.Context, o client.Object) []reconcile.Request {
		name := o.GetLabels()[clusterv1.ClusterNameLabel]
		if m, ok := o.(*lcmv1.LCMMachine); ok && m.Spec.ClusterName != "" {
			name = m.Spec.ClusterName
		}
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("lcm-updates").
		For(&lcmv1.LCMCluster{}).
		Watches(&lcmv1.LCMMachine{}, handler.EnqueueRequestsFromMapFunc(labelled)).
		Watches(&kaasv1.UpdateGroup{}, handler.EnqueueRequestsFromMapFunc(labelled)).
		WithOptions(r.Options()).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler for an LCMCluster.
func (r *Clusters) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.ReconcileAfter(r.Enter, func() (time.Duration, error) { return r.reconcile(ctx, req.NamespacedName) })
}

func (r *Clusters) reconcile(ctx context.Context, key client.ObjectKey) (time.Duration, error) {
	f, err := r.observe(ctx, key)
	if errors.Is(err, errLate) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var after time.Duration
	var errs []error
	for _, s := range decide(f) {
		wait, err := r.perform(ctx, s)
		if errors.Is(err, errLate) {
			wait, err = time.Second, nil
		}
		errs = append(errs, err)
		if wait > 0 && (after == 0 || wait < after) {
			after = wait
		}
	}
	return after, errors.Join(errs...)
}

// observe reads the machines of a cluster and their groups.
func (r *Clusters) observe(ctx context.Context, key client.ObjectKey) (facts, error) {
	var f facts
	if err := r.Client.Get(ctx, key, &f.cluster); err != nil {
		return f, queue.Deleted(err)
	}
	in := client.InNamespace(key.Namespace)
	labelled := client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}
	var all lcmv1.LCMMachineList
	var machines clusterv1.MachineList
	var groups kaasv1.UpdateGroupList
	if err := errors.Join(r.Client.List(ctx, &all, in), r.Client.List(ctx, &machines, in, labelled), r.Client.List(ctx, &groups, in, labelled)); err != nil {
		return f, fmt.Errorf("update: LCMCluster %s: %w", key, err)
	}
	f.groups = groups.Items
	byName := map[string]*clusterv1.Machine{}
	for i := range machines.Items {
		byName[machines.Items[i].Name] = &machines.Items[i]
	}
	for i := range all.Items {
		m := &all.Items[i]
		if m.Spec.ClusterName != key.Name || !m.DeletionTimestamp.IsZero() {
			continue
		}
		// As the cache has it, the machine may be marked still: its node would be taken out of
		// service again, and nothing would give it back. The event of our write comes.
		if r.written.Stale(m) {
			return facts{}, errLate
		}
		f.machines = append(f.machines, target{LCMMachine: m, machine: byName[m.Name]})
	}
	return f, nil
}

// perform does a step. It returns the time until the next look; 0 when a watch reports the
// next change.
func (r *Clusters) perform(ctx context.Context, s step) (time.Duration, error) {
	req := maintenance.Request{Machine: client.ObjectKeyFromObject(s.machine), Reason: lcmv1.ReasonUpgrade}
	switch s.do {
	case stepBegin:
		// The annotation is written before Enter, because it counts the machine among those that
		// are out of service. The patch carries the resourceVersion, so that a late cache cannot
		// take a second machine out of service.
		err := r.patch(ctx, s.machine, patch.IfUnchanged(s.machine), func(m *lcmv1.LCMMachine) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, item.UpdatingAnnotation, "true")
			if s.place != "" {
				metav1.SetMetaDataAnnotation(&m.ObjectMeta, item.PreparingAnnotation, s.place)
			}
		})
		if err != nil {
			return 0, err
		}
		fallthrough
	case stepEnter:
		p, err := r.Maintenance.Enter(ctx, req)
		return p.After, err
	case stepPlace:
		return 0, r.patch(ctx, s.machine, patch.IfUnchanged(s.machine), func(m *lcmv1.LCMMachine) {
			if s.place == "" {
				delete(m.Annotations, item.PreparingAnnotation)
				return
			}
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, item.PreparingAnnotation, s.place)
		})
	case stepReboot:
		return 0, r.patch(ctx, s.machine, client.MergeFrom(s.machine), func(m *lcmv1.LCMMachine) { m.Spec.RebootRequired = true })
	case stepRebooted:
		return 0, r.patch(ctx, s.machine, client.MergeFrom(s.machine), func(m *lcmv1.LCMMachine) {
			m.Spec.RebootRequired = false
			if s.release != "" {
				metav1.SetMetaDataAnnotation(&m.ObjectMeta, item.RebootedAnnotation, s.release)
			}
		})
	case stepLeave:
		p, err := r.Maintenance.Leave(ctx, req)
		if err == nil && p.Done && s.last { // before the annotation is removed, so that a restart finds the rest of the work
			p, err = r.Maintenance.LeaveCluster(ctx, client.ObjectKey{Namespace: s.machine.Namespace, Name: s.machine.Spec.ClusterName}, s.machine.Name)
		}
		if err != nil || !p.Done {
			return p.After, err
		}
		return 0, r.patch(ctx, s.machine, client.MergeFrom(s.machine), func(m *lcmv1.LCMMachine) { delete(m.Annotations, item.UpdatingAnnotation) })
	}
	return 0, nil
}

// patch writes a change of an LCMMachine.
func (r *Clusters) patch(ctx context.Context, m *lcmv1.LCMMachine, from client.Patch, change func(*lcmv1.LCMMachine)) error {
	to := m.DeepCopy()
	change(to)
	err := r.Client.Patch(ctx, to, from)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return errLate // the next reconcile sees the change
	case err != nil:
		return fmt.Errorf("update: LCMMachine %s/%s: %w", m.Namespace, m.Name, err)
	}
	r.written.Wrote(to)
	return nil
}

// errLate ends the steps for a machine that has changed since it was read.
var errLate = errors.New("update: the cache is late")
