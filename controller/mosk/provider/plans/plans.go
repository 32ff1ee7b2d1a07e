package plans

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/release"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Config configures a reconciler.
type Config struct {
	queue.Work
	Client client.Client
}

// Reconciler reconciles the plans of a Cluster.
type Reconciler struct{ Config }

// New returns a reconciler, or an error when a required field of c is nil.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Clock == nil {
		return nil, errors.New("plans: Config.Client or Config.Clock is nil")
	}
	return &Reconciler{c}, nil
}

// Setup adds the reconciler to a manager. It does not poll.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	labeled := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return of(o, o.GetLabels()[clusterv1.ClusterNameLabel])
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("provider-plans").
		For(&clusterv1.Cluster{}).
		Watches(&kaasv1.ClusterUpdatePlan{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			return of(o, o.(*kaasv1.ClusterUpdatePlan).Spec.Cluster)
		})).
		Watches(&lcmv1.LCMCluster{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&lcmv1.HelmBundle{}, &handler.EnqueueRequestForObject{}).
		Watches(&clusterv1.Machine{}, labeled).
		Watches(&lcmv1.LCMMachine{}, labeled).
		Watches(&kaasv1.UpdateGroup{}, labeled).
		WithOptions(r.Options()).
		Complete(r)
}

func of(o client.Object, name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
}

// Reconcile implements reconcile.Reconciler for a Cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error { return r.reconcile(ctx, req.NamespacedName) })
}

func (r *Reconciler) reconcile(ctx context.Context, key client.ObjectKey) error {
	f, err := r.observe(ctx, key)
	if err != nil {
		return fmt.Errorf("plans: %w", err)
	}
	if f.cluster == nil || !f.cluster.DeletionTimestamp.IsZero() {
		for i := range f.plans {
			if p := &f.plans[i]; p.DeletionTimestamp.IsZero() {
				if err := client.IgnoreNotFound(r.Client.Delete(ctx, p)); err != nil {
					return fmt.Errorf("plans: %w", err)
				}
			}
		}
		return nil
	}
	if f.deployed == "" || f.cluster.Labels[clusterv1.ProviderLabel] != clusterv1.ProviderBareMetal {
		return nil
	}
	if err := r.make(ctx, f); err != nil {
		return fmt.Errorf("plans: %w", err)
	}
	for i := range f.plans {
		if err := r.advance(ctx, f, &f.plans[i]); err != nil {
			return fmt.Errorf("plans: ClusterUpdatePlan %s: %w", f.plans[i].Name, err)
		}
	}
	return nil
}

// make creates the plans to the releases that can follow, brings those that have not begun
// up to date, and deletes those to releases that cannot follow any more.
func (r *Reconciler) make(ctx context.Context, f *facts) error {
	wanted := map[string]string{} // the names of plans, by their targets
	for _, to := range f.available {
		wanted[to.Name] = f.cluster.Name + "-" + to.Version
	}
	var left []kaasv1.ClusterUpdatePlan
	for i := range f.plans {
		p := &f.plans[i]
		_, follows := wanted[p.Spec.Target]
		delete(wanted, p.Spec.Target)
		switch {
		case begun(p) || p.Spec.Target == f.deployed:
		case !follows || p.Spec.Source != f.deployed:
			if err := client.IgnoreNotFound(r.Client.Delete(ctx, p)); err != nil {
				return err
			}
			continue
		default:
			before := p.DeepCopy()
			p.Spec.Steps = steps(f, p.Spec.Target, p.Spec.Steps)
			if err := r.write(ctx, before, p); err != nil {
				return err
			}
		}
		left = append(left, *p)
	}
	for _, to := range f.available {
		name, missing := wanted[to.Name]
		if !missing {
			continue
		}
		p := kaasv1.ClusterUpdatePlan{Spec: kaasv1.ClusterUpdatePlanSpec{Cluster: f.cluster.Name, Source: f.deployed, Target: to.Name, Steps: steps(f, to.Name, nil)}}
		p.Namespace, p.Name = f.cluster.Namespace, name
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(f.cluster, clusterv1.GroupVersion.WithKind("Cluster"))}
		if err := r.Client.Create(ctx, &p); err != nil {
			return err
		}
		left = append(left, p)
	}
	f.plans = left
	return nil
}

// advance takes the next steps of a plan, and writes how far it is.
func (r *Reconciler) advance(ctx context.Context, f *facts, p *kaasv1.ClusterUpdatePlan) error {
	message := ""
	switch {
	case p.Spec.Target == f.deployed && !commenced(p) && !begun(p): // the Cluster was given the release itself
		before := p.DeepCopy()
		for i := range p.Spec.Steps {
			p.Spec.Steps[i].Commence = true
		}
		if err := r.write(ctx, before, p); err != nil {
			return err
		}
	case p.Spec.Source == f.deployed && !begun(p) && len(p.Spec.Steps) > 0 && p.Spec.Steps[0].Commence:
		var err error
		if message, err = r.upgrade(ctx, f, p.Spec.Target); err != nil {
			return err
		}
	}
	before := p.DeepCopy()
	p.Status = next(p, f, message, metav1.NewTime(r.Clock.Now()).Rfc3339Copy())
	if equality.Semantic.DeepEqual(before.Status, p.Status) {
		return nil
	}
	return r.Client.Status().Patch(ctx, p, client.MergeFrom(before))
}

// upgrade gives the Cluster a release, or returns why it cannot have it yet.
func (r *Reconciler) upgrade(ctx context.Context, f *facts, to string) (string, error) {
	if f.cluster.Spec.ProviderSpec.Value.Release != f.deployed {
		return "", nil // it is on its way
	}
	after := f.cluster.DeepCopy()
	after.Spec.ProviderSpec.Value.Release = to
	var mistake *release.Error
	if err := release.Admit(ctx, r.Client, after); errors.As(err, &mistake) {
		return mistake.Error(), nil
	} else if err != nil {
		return "", err
	}
	err := r.write(ctx, f.cluster, after)
	f.cluster = after // another plan sees it
	return "", err
}

// write writes an object, if it has changed since before.
func (r *Reconciler) write(ctx context.Context, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return r.Client.Patch(ctx, after, patch.IfUnchanged(before))
}

// observe reads the Cluster, which is nil when it does not exist, and what its plans need.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (*facts, error) {
	f := &facts{cluster: new(clusterv1.Cluster), machines: map[string]*lcmv1.LCMMachine{}}
	in := client.InNamespace(key.Namespace)
	var plans kaasv1.ClusterUpdatePlanList
	if err := r.Client.List(ctx, &plans, in); err != nil {
		return nil, err
	}
	for _, p := range plans.Items {
		if p.Spec.Cluster == key.Name {
			f.plans = append(f.plans, p)
		}
	}
	if err := r.Client.Get(ctx, key, f.cluster); apierrors.IsNotFound(err) {
		f.cluster = nil
		return f, nil
	} else if err != nil {
		return nil, err
	}
	var l lcmv1.LCMCluster
	if err := client.IgnoreNotFound(r.Client.Get(ctx, key, &l)); err != nil {
		return nil, err
	}
	if f.deployed = l.Spec.Release; f.deployed == "" {
		return f, nil
	}
	labeled := client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}
	var groups kaasv1.UpdateGroupList
	var machines lcmv1.LCMMachineList
	var all clusterv1.MachineList
	if err := errors.Join(r.Client.List(ctx, &groups, in, labeled), r.Client.List(ctx, &machines, in, labeled), r.Client.List(ctx, &all, in, labeled)); err != nil {
		return nil, err
	}
	f.groups, f.all = groups.Items, all.Items
	for i := range machines.Items {
		f.machines[machines.Items[i].Name] = &machines.Items[i]
	}
	f.bundle = new(lcmv1.HelmBundle)
	if err := client.IgnoreNotFound(r.Client.Get(ctx, key, f.bundle)); err != nil {
		return nil, err
	}
	var mistake *release.Error
	w, err := release.Of(ctx, r.Client, f.cluster)
	if errors.As(err, &mistake) { // the Cluster's condition Release reports it
		return f, nil
	} else if err != nil {
		return nil, err
	}
	f.available = release.Upgrades(w, f.deployed)
	return f, nil
}
