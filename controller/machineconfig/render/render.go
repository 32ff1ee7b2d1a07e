// Package render makes one MachineConfig of all that a MachineConfigPool selects, and sets the
// pool's spec.configuration to it. Merge alone decides the result, and reads no API.
//
// It does not know which nodes have a configuration: controller/machineconfig/node rolls it out.
package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
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

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// Config configures a Reconciler.
type Config struct {
	Client client.Client
	queue.Work
}

// Reconciler renders the configurations of pools.
type Reconciler struct{ Config }

// New returns a reconciler, or an error when a required field of c is nil.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Clock == nil {
		return nil, errors.New("render: Config.Client and Config.Clock are required")
	}
	return &Reconciler{c}, nil
}

// Setup adds the reconciler to a manager. It does not poll.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return watch.Requests[*mcv1.MachineConfigPool](ctx, r.Client, &mcv1.MachineConfigPoolList{}, nil)
	})
	changed := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	return ctrl.NewControllerManagedBy(mgr).
		Named("machineconfig-render").
		For(&mcv1.MachineConfigPool{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&mcv1.MachineConfig{}, all, changed).
		Watches(&mcv1.ControllerConfig{}, all, changed).
		WithOptions(r.Options()).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler for a MachineConfigPool.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error { return r.reconcile(ctx, req.Name) })
}

func (r *Reconciler) reconcile(ctx context.Context, name string) error {
	var pool mcv1.MachineConfigPool
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &pool); err != nil {
		return queue.Deleted(err)
	}
	if pool.DeletionTimestamp != nil {
		return nil
	}
	rendered, source, refused, err := r.render(ctx, &pool)
	if err != nil {
		return err
	}
	if refused != nil {
		return r.report(ctx, &pool, corev1.ConditionTrue, "RenderFailed", refused.Error())
	}
	if err := r.store(ctx, rendered); err != nil {
		return err
	}
	before := pool.DeepCopy()
	pool.Spec.Configuration.ObjectReference = corev1.ObjectReference{APIVersion: mcv1.GroupVersion.String(), Kind: "MachineConfig", Name: rendered.Name}
	pool.Spec.Configuration.Source = source
	if !equality.Semantic.DeepEqual(before.Spec.Configuration, pool.Spec.Configuration) {
		if err := r.Client.Patch(ctx, &pool, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("render: configuration of MachineConfigPool %s: %w", name, err)
		}
	}
	if err := r.report(ctx, &pool, corev1.ConditionFalse, "", ""); err != nil {
		return err
	}
	return r.removeUnused(ctx, &pool)
}

// render returns the rendered configuration of a pool and what it was made of, or refused, the
// reason why there is none.
func (r *Reconciler) render(ctx context.Context, pool *mcv1.MachineConfigPool) (out *mcv1.MachineConfig, source []corev1.ObjectReference, refused, err error) {
	selector, err := metav1.LabelSelectorAsSelector(pool.Spec.MachineConfigSelector)
	if err != nil {
		return nil, nil, fmt.Errorf("spec.machineConfigSelector: %w", err), nil
	}
	var c mcv1.ControllerConfig
	if err := r.Client.Get(ctx, client.ObjectKey{Name: machineconfig.ControllerConfigName}, &c); apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("there is no ControllerConfig %s, which names the base image: create it", machineconfig.ControllerConfigName), nil
	} else if err != nil {
		return nil, nil, nil, fmt.Errorf("render: ControllerConfig: %w", err)
	}
	if v, ok := c.Annotations[machineconfig.GeneratedByVersion]; ok && v != machineconfig.ControllerVersion {
		return nil, nil, fmt.Errorf("ControllerConfig %s is of controller version %s, this is %s: it waits until that is generated again", c.Name, v, machineconfig.ControllerVersion), nil
	}
	var list mcv1.MachineConfigList
	if err := r.Client.List(ctx, &list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, nil, nil, fmt.Errorf("render: MachineConfigs: %w", err)
	}
	var configs []*mcv1.MachineConfig
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			configs = append(configs, &list.Items[i])
		}
	}
	if out, refused = Merge(pool, configs, &c); refused != nil {
		return nil, nil, refused, nil
	}
	out.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pool, mcv1.GroupVersion.WithKind("MachineConfigPool"))}
	for _, m := range configs {
		source = append(source, corev1.ObjectReference{APIVersion: mcv1.GroupVersion.String(), Kind: "MachineConfig", Name: m.Name})
	}
	return out, source, nil, nil
}

// store creates a rendered configuration, unless it exists. Its name is a hash of its spec; one
// of that name with another owner is not replaced, because nodes may have it.
func (r *Reconciler) store(ctx context.Context, m *mcv1.MachineConfig) error {
	var has mcv1.MachineConfig
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(m), &has)
	if apierrors.IsNotFound(err) {
		err = r.Client.Create(ctx, m)
		if apierrors.IsAlreadyExists(err) { // the cache is late
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("render: MachineConfig %s: %w", m.Name, err)
	}
	return nil
}

// report writes the condition RenderDegraded.
func (r *Reconciler) report(ctx context.Context, pool *mcv1.MachineConfigPool, status corev1.ConditionStatus, reason, message string) error {
	before := pool.DeepCopy()
	if !machineconfig.SetCondition(pool, mcv1.MachineConfigPoolRenderDegraded, status, reason, message, metav1.NewTime(r.Clock.Now())) {
		return nil
	}
	// The conditions are one list, which other controllers write, too.
	if err := r.Client.Status().Patch(ctx, pool, patch.IfUnchanged(before)); err != nil {
		return fmt.Errorf("render: status of MachineConfigPool %s: %w", pool.Name, err)
	}
	return nil
}

// spare is how many rendered configurations stay that nothing refers to: a node may get one in
// the moment in which this controller looks.
const spare = 3

// removeUnused deletes the pool's rendered configurations that neither a pool, a node nor a build
// refers to, but for the newest.
func (r *Reconciler) removeUnused(ctx context.Context, pool *mcv1.MachineConfigPool) error {
	var list mcv1.MachineConfigList
	if err := r.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("render: MachineConfigs: %w", err)
	}
	old := slices.DeleteFunc(list.Items, func(m mcv1.MachineConfig) bool {
		return !metav1.IsControlledBy(&m, pool) || m.Name == pool.Spec.Configuration.Name || m.DeletionTimestamp != nil
	})
	if len(old) <= spare {
		return nil
	}
	used, err := r.used(ctx)
	if err != nil {
		return err
	}
	old = slices.DeleteFunc(old, func(m mcv1.MachineConfig) bool { return used[m.Name] })
	slices.SortFunc(old, func(a, b mcv1.MachineConfig) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := spare; i < len(old); i++ {
		if err := r.Client.Delete(ctx, &old[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("render: delete MachineConfig %s: %w", old[i].Name, err)
		}
	}
	return nil
}

// used returns the names of the rendered configurations that something refers to.
func (r *Reconciler) used(ctx context.Context) (map[string]bool, error) {
	var pools mcv1.MachineConfigPoolList
	var builds mcv1.MachineOSBuildList
	var nodes corev1.NodeList
	if err := errors.Join(
		r.Client.List(ctx, &pools), r.Client.List(ctx, &builds), r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy),
	); err != nil {
		return nil, fmt.Errorf("render: references to MachineConfigs: %w", err)
	}
	out := map[string]bool{}
	for _, p := range pools.Items {
		out[p.Spec.Configuration.Name], out[p.Status.Configuration.Name] = true, true
	}
	for _, b := range builds.Items {
		out[b.Spec.MachineConfig.Name] = true
	}
	for i := range nodes.Items {
		a := nodes.Items[i].Annotations
		out[a[machineconfig.CurrentConfig]], out[a[machineconfig.DesiredConfig]] = true, true
	}
	return out, nil
}
