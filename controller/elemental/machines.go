package elemental

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/controller/elemental/object"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/readafterwrite"
)

// machines reconciles ElementalMachines.
type machines struct {
	Config
	retries queue.Retries // retries of machines that wait for something without an event
	hosts   association
	written *readafterwrite.Reader // reads machines
}

func (r *machines) setup(mgr manager.Manager) error {
	r.init()
	ofCluster := enqueue(func(ctx context.Context, c *capi.Cluster) []client.ObjectKey {
		return r.list(ctx, c.Namespace, func(m *elementalv1.ElementalMachine) bool { return m.Labels[capi.ClusterNameLabel] == c.Name })
	})
	ofHost := enqueue(func(_ context.Context, h *elementalv1.ElementalHost) []client.ObjectKey {
		if h.Spec.MachineRef == nil {
			return nil
		}
		return []client.ObjectKey{{Namespace: h.Namespace, Name: h.Spec.MachineRef.Name}}
	})
	waiting := enqueue(func(ctx context.Context, h *elementalv1.ElementalHost) []client.ObjectKey {
		return r.list(ctx, h.Namespace, func(m *elementalv1.ElementalMachine) bool { return m.Spec.HostRef == nil })
	})
	becameFree := predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return free(e.Object.(*elementalv1.ElementalHost)) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return free(e.ObjectNew.(*elementalv1.ElementalHost)) && !free(e.ObjectOld.(*elementalv1.ElementalHost))
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("elemental-machine").
		For(&elementalv1.ElementalMachine{}).
		Watches(&elementalv1.ElementalHost{}, ofHost).
		Watches(&elementalv1.ElementalHost{}, waiting, builder.WithPredicates(becameFree)).
		Watches(&capi.Machine{}, enqueue(func(_ context.Context, m *capi.Machine) []client.ObjectKey {
			if m.Spec.InfrastructureRef.Kind != machineKind {
				return nil
			}
			return []client.ObjectKey{{Namespace: m.Namespace, Name: m.Spec.InfrastructureRef.Name}}
		})).
		Watches(&capi.Cluster{}, ofCluster).
		WithOptions(r.RetryOptions(&r.retries)).
		Complete(r)
}

// init sets up the readers.
func (r *machines) init() {
	r.written = &readafterwrite.Reader{Cached: r.Client, Live: r.Reader}
	r.hosts = association{Config: r.Config, written: &readafterwrite.Reader{Cached: r.Client, Live: r.Reader, ReadMissesLive: true}}
}

// list returns the machines of a namespace that are selected.
func (r *machines) list(ctx context.Context, namespace string, selected func(*elementalv1.ElementalMachine) bool) (out []client.ObjectKey) {
	var list elementalv1.ElementalMachineList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "machines are not listed")
	}
	for i := range list.Items {
		if m := &list.Items[i]; selected(m) {
			out = append(out, client.ObjectKeyFromObject(m))
		}
	}
	return out
}

// Reconcile implements reconcile.Reconciler for an ElementalMachine.
func (r *machines) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.ReconcileAfter(r.Enter, func() (time.Duration, error) {
		var m elementalv1.ElementalMachine
		if err := r.written.Get(ctx, req.NamespacedName, &m); err != nil {
			return 0, wrap("machine", queue.Deleted(err))
		}
		wait, err := r.reconcile(ctx, &m)
		if err == nil && wait {
			r.retries.Failed(req, 1)
			return retryAfter, nil
		}
		r.retries.Succeeded(req)
		return 0, wrap("machine", err)
	})
}

// reconcile makes one pass over a machine. It reports whether the machine waits for something
// without an event.
func (r *machines) reconcile(ctx context.Context, m *elementalv1.ElementalMachine) (wait bool, err error) {
	if !m.DeletionTimestamp.IsZero() {
		return false, r.remove(ctx, m)
	}
	p := pass{machines: r, m: m, before: m.DeepCopy(), now: r.Wall.Now()}
	err = p.run(ctx)
	if gone := new(invalidated); errors.As(err, &gone) {
		return false, gone.error // m is stale: nothing of it is written
	}
	if patchErr := r.write(ctx, p.before, m); patchErr != nil {
		return false, errors.Join(err, patchErr)
	}
	return p.wait, err
}

func (r *machines) write(ctx context.Context, before, after *elementalv1.ElementalMachine) error {
	if err := object.Patch(ctx, r.Client, before, after); err != nil {
		return err
	}
	if after.ResourceVersion != before.ResourceVersion {
		r.written.Wrote(after)
	}
	return nil
}

// invalidated is the error of a write of the machine within a pass.
type invalidated struct{ error }

func (e *invalidated) Unwrap() error { return e.error }

// pass is one pass over a machine that is not deleted.
type pass struct {
	*machines
	m      *elementalv1.ElementalMachine
	before *elementalv1.ElementalMachine // as the API has it
	now    time.Time
	wait   bool
}

// fail sets a condition that does not hold.
func (p *pass) fail(t capi.ConditionType, reason string, severity capi.ConditionSeverity, format string, args ...any) {
	condition.Set(p.m, condition.False(t, reason, severity, fmt.Sprintf(format, args...)), p.now)
}

func (p *pass) hold(t capi.ConditionType) { condition.Set(p.m, condition.True(t), p.now) }

// run performs the steps of Cluster API's contract for infrastructure machines, up to the first
// that has to wait.
func (p *pass) run(ctx context.Context) error {
	const failed = capi.ConditionSeverityError
	name := owner(p.m, "Machine")
	if name == "" {
		p.fail(elementalv1.AssociationReady, elementalv1.MissingMachineOwnerReason, failed, "ElementalMachine resource has no Machine owner")
		return nil
	}
	var ownerMachine capi.Machine
	if err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.m.Namespace, Name: name}, &ownerMachine); err != nil {
		p.fail(elementalv1.AssociationReady, elementalv1.MissingMachineOwnerReason, failed, "getting Machine owner: %s", err)
		return client.IgnoreNotFound(err) // its event follows
	}
	clusterName := p.m.Labels[capi.ClusterNameLabel]
	if clusterName == "" {
		p.fail(elementalv1.AssociationReady, elementalv1.MissingAssociatedClusterReason, failed, "ElementalMachine resource is not associated with any Cluster")
		return nil
	}
	var cluster capi.Cluster
	if err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.m.Namespace, Name: clusterName}, &cluster); err != nil {
		p.fail(elementalv1.AssociationReady, elementalv1.MissingAssociatedClusterReason, failed, "fetching Cluster: %s", err)
		return client.IgnoreNotFound(err)
	}
	if paused(&cluster, p.m) {
		return nil
	}
	controllerutil.AddFinalizer(p.m, elementalv1.Finalizer)
	if !cluster.Status.InfrastructureReady {
		p.fail(elementalv1.AssociationReady, elementalv1.MissingClusterInfrastructureReadyReason, failed, "Cluster status.infrastructureReady is false")
		return nil
	}
	if ownerMachine.Spec.Bootstrap.DataSecretName == nil {
		p.fail(elementalv1.AssociationReady, elementalv1.MissingBootstrapSecretReason, failed, "Machine spec.bootstrap.dataSecretName is nil")
		return nil
	}
	p.m.Status.Ready = false // until all that follows holds
	h, err := p.associate(ctx, &ownerMachine)
	if err != nil || h == nil {
		return err
	}
	p.hold(elementalv1.AssociationReady)
	if h.Labels[elementalv1.InstalledLabel] != elementalv1.True { // a user has chosen the host
		p.fail(elementalv1.HostReady, elementalv1.HostWaitingForInstallReason, failed, "ElementalHost '%s' is not installed.", h.Name)
		return nil
	}
	if h.Labels[elementalv1.BootstrappedLabel] != elementalv1.True {
		p.fail(elementalv1.HostReady, elementalv1.HostWaitingForBootstrapReason, capi.ConditionSeverityInfo, "Waiting for ElementalHost '%s' to be bootstrapped", h.Name)
		return nil
	}
	p.hold(elementalv1.HostReady)
	return p.provide(ctx, &cluster, client.ObjectKeyFromObject(&ownerMachine), h)
}

// provide sets the provider ID of the machine's Node and of the machine, once there is a control
// plane that knows Nodes.
func (p *pass) provide(ctx context.Context, cluster *capi.Cluster, machine client.ObjectKey, h *elementalv1.ElementalHost) error {
	if !condition.IsTrue(cluster, capi.ControlPlaneInitializedCondition) {
		p.fail(elementalv1.ProviderIDReady, elementalv1.WaitingForControlPlaneReason, capi.ConditionSeverityInfo, "Waiting for downstream cluster '%s' control plane initialized.", cluster.Name)
		return nil
	}
	id := providerID(h)
	if p.m.Spec.ProviderID == nil || *p.m.Spec.ProviderID != id {
		nodes, shared, err := p.workload(ctx, cluster)
		if err == nil {
			err = provideNode(ctx, nodes, h, machine, shared)
		}
		if errors.Is(err, errNoNode) {
			p.fail(elementalv1.ProviderIDReady, elementalv1.NodeNotFoundReason, capi.ConditionSeverityError, "Downstream cluster node '%s' %v.", h.Name, err)
			p.wait = true
			return nil
		}
		if err != nil {
			return err
		}
		p.m.Spec.ProviderID = &id
	}
	p.hold(elementalv1.ProviderIDReady)
	p.m.Status.Ready = true
	return nil
}

// providerID is the identifier of a host for Nodes and Machines.
func providerID(h *elementalv1.ElementalHost) string {
	return "elemental://" + h.Namespace + "/" + h.Name
}

// remove has the host of a deleted machine reset, and lets the machine go. A host that is gone
// needs no reset.
func (r *machines) remove(ctx context.Context, m *elementalv1.ElementalMachine) error {
	if !controllerutil.ContainsFinalizer(m, elementalv1.Finalizer) {
		return nil
	}
	list, err := r.hosts.linked(ctx, m)
	if err != nil {
		return err
	}
	for _, h := range list {
		before := h.DeepCopy()
		metav1.SetMetaDataLabel(&h.ObjectMeta, elementalv1.NeedsResetLabel, elementalv1.True)
		if err := object.Patch(ctx, r.Client, before, h); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	before := m.DeepCopy()
	controllerutil.RemoveFinalizer(m, elementalv1.Finalizer)
	err = object.Patch(ctx, r.Client, before, m)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
