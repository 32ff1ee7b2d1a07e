package clusterapi

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/controller/elemental/object"
)

func (k *Core) setupClusters() error {
	named := func(o client.Object) []client.ObjectKey {
		if name := o.GetLabels()[capi.ClusterNameLabel]; name != "" {
			return []client.ObjectKey{{Namespace: o.GetNamespace(), Name: name}}
		}
		return nil
	}
	return ctrl.NewControllerManagedBy(k.manager).
		Named("clusterapi-cluster").
		For(&capi.Cluster{}).
		Watches(&elementalv1.ElementalCluster{}, enqueue(func(ctx context.Context, c *elementalv1.ElementalCluster) []client.ObjectKey {
			return k.clustersOf(ctx, c)
		})).
		Watches(&elementalv1.ElementalMachine{}, enqueue(func(_ context.Context, m *elementalv1.ElementalMachine) []client.ObjectKey { return named(m) })).
		Watches(&capi.Machine{}, enqueue(func(_ context.Context, m *capi.Machine) []client.ObjectKey {
			return []client.ObjectKey{{Namespace: m.Namespace, Name: m.Spec.ClusterName}}
		})).
		WithOptions(k.Options()).
		Complete(reconciler(k.Enter, k.client, k.cluster))
}

// clustersOf returns the Clusters that name an infrastructure: it may be made after them.
func (k *Core) clustersOf(ctx context.Context, c *elementalv1.ElementalCluster) (out []client.ObjectKey) {
	var list capi.ClusterList
	if err := k.client.List(ctx, &list, client.InNamespace(c.Namespace)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "clusters are not listed")
	}
	for i := range list.Items {
		if ref := list.Items[i].Spec.InfrastructureRef; ref != nil && ref.Name == c.Name {
			out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return out
}

// cluster reconciles a Cluster.
func (k *Core) cluster(ctx context.Context, c *capi.Cluster) error {
	if c.Spec.Paused {
		return nil
	}
	var machines capi.MachineList
	if err := k.client.List(ctx, &machines, client.InNamespace(c.Namespace)); err != nil {
		return err
	}
	machines.Items = slices.DeleteFunc(machines.Items, func(m capi.Machine) bool { return m.Spec.ClusterName != c.Name })
	infra, err := k.infrastructure(ctx, c)
	if err != nil {
		return err
	}
	before := c.DeepCopy()
	if !c.DeletionTimestamp.IsZero() {
		return k.removeCluster(ctx, before, c, machines.Items, infra)
	}
	controllerutil.AddFinalizer(c, capi.ClusterFinalizer)
	ready := false
	if infra != nil {
		if err := k.adopt(ctx, infra, c, c.Name, "Cluster"); err != nil {
			return err
		}
		if ready = infra.Status.Ready; ready {
			c.Spec.ControlPlaneEndpoint = infra.Spec.ControlPlaneEndpoint
		}
	}
	c.Status.InfrastructureReady = c.Status.InfrastructureReady || ready // it does not become unready
	now := k.Wall.Now()
	condition.Set(c, holds(capi.InfrastructureReadyCondition, c.Status.InfrastructureReady, capi.WaitingForInfrastructureFallbackReason), now)
	initialized := condition.IsTrue(c, capi.ControlPlaneInitializedCondition)
	if !initialized {
		if initialized, err = k.bootstrapped(ctx, machines.Items); err != nil {
			return err
		}
	}
	condition.Set(c, holds(capi.ControlPlaneInitializedCondition, initialized, capi.MissingNodeRefReason), now)
	c.Status.ControlPlaneReady = initialized
	c.Status.SetTypedPhase(phaseOf(c))
	return object.Patch(ctx, k.live, before, c)
}

func phaseOf(c *capi.Cluster) capi.ClusterPhase {
	switch {
	case c.Spec.InfrastructureRef == nil:
		return capi.ClusterPhasePending
	case c.Status.InfrastructureReady && c.Spec.ControlPlaneEndpoint.IsValid():
		return capi.ClusterPhaseProvisioned
	}
	return capi.ClusterPhaseProvisioning
}

// holds returns a condition that is true or waits.
func holds(t capi.ConditionType, ok bool, reason string) capi.Condition {
	if ok {
		return condition.True(t)
	}
	return condition.False(t, reason, capi.ConditionSeverityInfo, "")
}

// infrastructure returns the infrastructure of a Cluster, nil when there is none.
func (k *Core) infrastructure(ctx context.Context, c *capi.Cluster) (*elementalv1.ElementalCluster, error) {
	if c.Spec.InfrastructureRef == nil {
		return nil, nil
	}
	out := new(elementalv1.ElementalCluster)
	err := k.client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Spec.InfrastructureRef.Name}, out)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return out, nil
}

// adopt makes an object of infrastructure that of its owner.
func (k *Core) adopt(ctx context.Context, o, by client.Object, cluster, kind string) error {
	before := o.DeepCopyObject().(client.Object)
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[capi.ClusterNameLabel] = cluster
	o.SetLabels(labels)
	ref := *metav1.NewControllerRef(by, capi.GroupVersion.WithKind(kind))
	refs := slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(r metav1.OwnerReference) bool { return r.UID == ref.UID })
	o.SetOwnerReferences(append(refs, ref))
	return object.Patch(ctx, k.live, before, o)
}

// bootstrapped reports whether a server of the control plane has bootstrapped; of any, where no
// Machine is of the control plane.
func (k *Core) bootstrapped(ctx context.Context, machines []capi.Machine) (bool, error) {
	control := slices.ContainsFunc(machines, func(m capi.Machine) bool { return ofControlPlane(&m) })
	for i := range machines {
		if control && !ofControlPlane(&machines[i]) {
			continue
		}
		infra, err := k.machineInfrastructure(ctx, &machines[i])
		if err != nil {
			return false, err
		}
		if infra != nil && condition.IsTrue(infra, elementalv1.HostReady) {
			return true, nil
		}
	}
	return false, nil
}

func ofControlPlane(m *capi.Machine) bool {
	_, ok := m.Labels[capi.MachineControlPlaneLabel]
	return ok
}

// removeCluster deletes the Machines of a Cluster, then its infrastructure, then lets it go.
func (k *Core) removeCluster(ctx context.Context, before, c *capi.Cluster, machines []capi.Machine, infra *elementalv1.ElementalCluster) error {
	if len(machines) > 0 {
		for i := range machines {
			if err := k.remove(ctx, &machines[i]); err != nil {
				return err
			}
		}
		c.Status.SetTypedPhase(capi.ClusterPhaseDeleting)
		return object.Patch(ctx, k.live, before, c)
	}
	if infra != nil {
		return k.remove(ctx, infra) // its event follows
	}
	controllerutil.RemoveFinalizer(c, capi.ClusterFinalizer)
	return object.Patch(ctx, k.live, before, c)
}

// remove deletes an object that is not deleted yet.
func (k *Core) remove(ctx context.Context, o client.Object) error {
	if !o.GetDeletionTimestamp().IsZero() {
		return nil
	}
	if err := k.live.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("%s: %w", o.GetName(), err)
	}
	return nil
}
