// Package build is the BuildController: it has an image built of each configuration of a pool
// that a MachineOSConfig makes a layered one, follows the build in its MachineOSBuild, and hands
// the image on in the MachineOSConfig's status.
//
// A Job does the work: pods of a cluster, or controller/machineconfig/builder. The package knows
// the Job's status and the ConfigMap with the digest, not how an image is made.
package build

import (
	"context"
	"errors"
	"fmt"
	"time"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/machineconfig/registry"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// Images is the controller's access to registries.
type Images interface {
	Exists(ctx context.Context, ref string, access registry.Access) (bool, error)
	Delete(ctx context.Context, ref string, access registry.Access) error
}

// Remote are the images of real registries.
type Remote struct{}

// Exists implements Images.
func (Remote) Exists(ctx context.Context, ref string, a registry.Access) (bool, error) {
	return a.Exists(ctx, ref)
}

// Delete implements Images.
func (Remote) Delete(ctx context.Context, ref string, a registry.Access) error {
	return a.Delete(ctx, ref)
}

// Config configures a Reconciler.
type Config struct {
	Client client.Client
	Reader client.Reader // reads the API without a cache: Secrets and ConfigMaps, and whether a Job is gone
	Images Images        // nil means Remote
	queue.Work
}

// Reconciler builds the images of pools.
type Reconciler struct {
	Config
	retries queue.Retries
}

// New returns a reconciler, or an error when a required field of c is nil.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Reader == nil || c.Clock == nil {
		return nil, errors.New("build: Config.Client, Config.Reader and Config.Clock are required")
	}
	if c.Images == nil {
		c.Images = Remote{}
	}
	return &Reconciler{Config: c}, nil
}

// Setup adds the reconciler to a manager.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	request := func(name string) []reconcile.Request {
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
	}
	named := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return request(o.GetLabels()[machineconfig.OSConfigLabel])
	})
	pool := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request { return request(o.GetName()) })
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return watch.Requests[*mcv1.MachineOSConfig](ctx, r.Client, &mcv1.MachineOSConfigList{}, nil)
	})
	ofBuilds := builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
		_, ephemeral := o.GetLabels()[machineconfig.EphemeralLabel]
		return o.GetNamespace() == machineconfig.Namespace && !ephemeral
	}))
	return ctrl.NewControllerManagedBy(mgr).
		Named("machineconfig-build").
		For(&mcv1.MachineOSConfig{}).
		Watches(&mcv1.MachineOSBuild{}, named).
		Watches(&batchv1.Job{}, named).
		Watches(&mcv1.MachineConfigPool{}, pool, builder.WithPredicates(predicate.Funcs{UpdateFunc: poolChanged})).
		Watches(&mcv1.ControllerConfig{}, all, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&corev1.Secret{}, all, ofBuilds). // Secrets of users: a push secret that was missing
		WithOptions(r.RetryOptions(&r.retries)).
		Complete(r)
}

// poolChanged reports whether a change of a pool matters: how many of its nodes are updated
// does not.
func poolChanged(e event.UpdateEvent) bool {
	before, oldOK := e.ObjectOld.(*mcv1.MachineConfigPool)
	after, newOK := e.ObjectNew.(*mcv1.MachineConfigPool)
	if !oldOK || !newOK || before.Generation != after.Generation {
		return true
	}
	return blocked(before, machineconfig.Write) != blocked(after, machineconfig.Write) ||
		machineconfig.ConditionIsTrue(before, mcv1.MachineConfigPoolRenderDegraded) != machineconfig.ConditionIsTrue(after, mcv1.MachineConfigPoolRenderDegraded)
}

// Reconcile implements reconcile.Reconciler for a MachineOSConfig.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.retries.ReconcileAfter(req, r.Enter, func() (time.Duration, error) { return r.reconcile(ctx, req.Name) })
}

func (r *Reconciler) reconcile(ctx context.Context, name string) (time.Duration, error) {
	v := pass{Reconciler: r}
	if err := v.observe(ctx, name); err != nil {
		return 0, err
	}
	after, err := v.finish(ctx)
	if err != nil || v.osConfig == nil {
		return after, err
	}
	return after, v.step(ctx)
}

// pass is one reconcile of a MachineOSConfig.
type pass struct {
	*Reconciler
	osConfig   *mcv1.MachineOSConfig // nil when it is deleted
	pool       *mcv1.MachineConfigPool
	controller *mcv1.ControllerConfig
	builds     []*mcv1.MachineOSBuild // all of the name, also those that are being deleted
}

// observe reads the objects that the decision needs. An object that does not exist is nil.
func (v *pass) observe(ctx context.Context, name string) error {
	var list mcv1.MachineOSBuildList
	if err := v.Client.List(ctx, &list, client.MatchingLabels{machineconfig.OSConfigLabel: name}); err != nil {
		return fmt.Errorf("build: MachineOSBuilds of %s: %w", name, err)
	}
	for i := range list.Items {
		v.builds = append(v.builds, &list.Items[i])
	}
	osConfig, pool, controller := new(mcv1.MachineOSConfig), new(mcv1.MachineConfigPool), new(mcv1.ControllerConfig)
	for _, x := range []struct {
		o    client.Object
		name string
		set  func()
	}{
		{osConfig, name, func() { v.osConfig = osConfig }},
		{pool, name, func() { v.pool = pool }}, // one per pool, of its name
		{controller, machineconfig.ControllerConfigName, func() { v.controller = controller }},
	} {
		err := v.Client.Get(ctx, client.ObjectKey{Name: x.name}, x.o)
		if err == nil {
			x.set()
		} else if !apierrors.IsNotFound(err) {
			return fmt.Errorf("build: %T %s: %w", x.o, x.name, err)
		}
	}
	if v.osConfig != nil && v.osConfig.DeletionTimestamp != nil {
		v.osConfig = nil
	}
	return nil
}

// mode returns who writes files on nodes.
func (v *pass) mode() machineconfig.LayeredFileWrites {
	return machineconfig.LayeredFileWritesOf(v.controller)
}

// step does the next thing for a MachineOSConfig that exists.
func (v *pass) step(ctx context.Context) error {
	if v.pool == nil {
		return v.degrade(ctx, "PoolMissing", fmt.Sprintf("there is no MachineConfigPool %s: create it", v.osConfig.Spec.MachineConfigPool.Name))
	}
	if v.controller == nil {
		return v.degrade(ctx, "ControllerConfigMissing", fmt.Sprintf("there is no ControllerConfig %s, which names the base image: create it", machineconfig.ControllerConfigName))
	}
	if v.pool.Spec.Configuration.Name == "" {
		return nil // it waits for its first rendered configuration
	}
	pull, push, problem, err := v.secrets(ctx)
	if err != nil {
		return err
	}
	if problem != "" {
		return v.degrade(ctx, "SecretMissing", problem)
	}
	spec := images{v.controller.Spec.BaseOSContainerImage, v.controller.Spec.BaseOSExtensionsContainerImage}
	name, err := buildName(v.osConfig, v.pool, spec)
	if err != nil {
		return err
	}
	b := v.find(name)
	if b != nil && v.rebuild(b) {
		return v.restart(ctx, b)
	}
	if b != nil && b.DeletionTimestamp != nil {
		return nil // it comes again once that is gone
	}
	if b == nil {
		if conditionType := blocked(v.pool, v.mode()); conditionType != "" {
			return v.degrade(ctx, "PoolDegraded", fmt.Sprintf("MachineConfigPool %s has the condition %s: no build starts before that is repaired", v.pool.Name, conditionType))
		}
		if err := v.stopOthers(ctx, name); err != nil {
			return err
		}
		return v.create(ctx, name, spec)
	}
	if err := v.stopOthers(ctx, name); err != nil {
		return err
	}
	return v.follow(ctx, b, pull, push)
}

// find returns the build of a name; nil without one.
func (v *pass) find(name string) *mcv1.MachineOSBuild {
	for _, b := range v.builds {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// rebuild reports whether a build must be done again: it was not made after the request that the
// annotation is.
func (v *pass) rebuild(b *mcv1.MachineOSBuild) bool {
	_, asked := v.osConfig.Annotations[machineconfig.RebuildAnnotation]
	_, answers := b.Annotations[machineconfig.RebuildAnnotation]
	return asked && !answers && b.DeletionTimestamp == nil
}

// restart deletes a build. The next reconcile creates it again.
func (v *pass) restart(ctx context.Context, b *mcv1.MachineOSBuild) error {
	err := v.Client.Delete(ctx, b, client.Preconditions{UID: &b.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("build: delete MachineOSBuild %s: %w", b.Name, err)
	}
	return nil
}

// stopOthers stops the builds of configurations that are not the pool's any more: only the latest
// rolls out.
func (v *pass) stopOthers(ctx context.Context, name string) error {
	for _, b := range v.builds {
		if b.Name == name || ended(b) || b.DeletionTimestamp != nil {
			continue
		}
		if err := v.restart(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// degrade reports why there is no build, in the MachineOSConfig and its pool.
func (v *pass) degrade(ctx context.Context, reason, message string) error {
	return errors.Join(v.condition(ctx, metav1.ConditionTrue, reason, message), v.report(ctx, corev1.ConditionTrue, reason, message))
}

// degradedCondition is the condition of a MachineOSConfig that has no build.
const degradedCondition = "Degraded"

// report writes the pool's condition ImageBuildDegraded.
func (v *pass) report(ctx context.Context, status corev1.ConditionStatus, reason, message string) error {
	if v.pool == nil {
		return nil
	}
	before := v.pool.DeepCopy()
	if !machineconfig.SetCondition(v.pool, mcv1.MachineConfigPoolImageBuildDegraded, status, reason, message, metav1.NewTime(v.Clock.Now())) {
		return nil
	}
	// The conditions are one list, which other controllers write, too.
	if err := v.Client.Status().Patch(ctx, v.pool, patch.IfUnchanged(before)); err != nil {
		return fmt.Errorf("build: status of MachineConfigPool %s: %w", v.pool.Name, err)
	}
	return nil
}
