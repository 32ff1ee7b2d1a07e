package clusters

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	baremetal "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	cluster "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	ipam "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaas "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// networkChanged passes IpamHosts whose network becomes ready, or is ready no longer.
var networkChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.(*ipam.IpamHost).Status.NetconfigV2State != e.ObjectNew.(*ipam.IpamHost).Status.NetconfigV2State
}}

// clusterOfMachine enqueues the Cluster of the Machine that has an object's name.
func (r *Reconciler) clusterOfMachine(ctx context.Context, o client.Object) []reconcile.Request {
	var m cluster.Machine
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(o), &m); err != nil {
		return nil // the Machine is gone: its watch has reported that
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: m.Namespace, Name: m.Labels[cluster.ClusterNameLabel]}}}
}

// fact is the state of a stage: waits is "" when it is done, else the reason.
type fact struct{ stage, waits string }

// recordStages writes the history of the Cluster's deployment, if it has changed.
func (r *Reconciler) recordStages(ctx context.Context, c *cluster.Cluster, machines []cluster.Machine, bundle bool) error {
	network, err := r.networkWaits(ctx, c, machines)
	if err != nil {
		return err
	}
	s := c.Status.ProviderStatus
	waits := func(condition string) string {
		if i := slices.IndexFunc(s.Conditions, func(c baremetal.Condition) bool { return c.Type == condition && !c.Ready }); i >= 0 {
			return s.Conditions[i].Message
		}
		return ""
	}
	facts := []fact{{kaas.StageNetwork, network}}
	if c.Spec.ProviderSpec.Value.LoadBalancerHost != "" {
		message := waits(ConditionLoadBalancer)
		if !slices.ContainsFunc(s.Conditions, func(c baremetal.Condition) bool { return c.Type == ConditionLoadBalancer }) {
			message = "loadBalancerHost was set just now" // the write of the status has returned a newer spec
		}
		facts = append(facts, fact{kaas.StageLoadBalancers, message})
	}
	facts = append(facts, fact{kaas.StageIAM, waits(ConditionIAM)})
	helm := ""
	if !bundle {
		helm = "the release has no HelmBundle yet: " + waits(ConditionRelease)
	}
	ready := ""
	if !s.Ready {
		ready = "a condition of the Cluster is not ready"
	}
	machinesWait := "" // without numbers, so that 1,000 Machines are not 1,000 writes
	if waits(ConditionMachines) != "" {
		machinesWait = "not all Machines are ready"
	}
	facts = append(facts, fact{kaas.StageHelmBundle, helm}, fact{kaas.StageMachines, machinesWait}, fact{kaas.StageCluster, ready})
	out := &kaas.ClusterDeploymentStatus{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.Namespace, Name: c.Name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, cluster.GroupVersion.WithKind("Cluster"))},
	}}
	is := new(kaas.ClusterDeploymentStatus)
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(c), is)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	created := err == nil
	if created && !metav1.IsControlledBy(is, c) {
		return fmt.Errorf("%q exists, and is not the Cluster's: remove it", is.Name)
	}
	if created {
		out = is.DeepCopy()
	}
	if s.ReleaseRefs.Current != nil {
		out.Release = s.ReleaseRefs.Current.Name
	}
	now := metav1.NewTime(r.Wall.Now().Truncate(1e9)) // as JSON has it
	out.Stages = progress(is.Stages, facts, now)
	switch {
	case !created:
		return r.Client.Create(ctx, out)
	case equality.Semantic.DeepEqual(is, out):
		return nil
	}
	return r.patch(ctx, is, out)
}

// progress returns the stages that follow from facts. A stage that was a success stays one; a
// stage that waits is in progress once it has begun, or once all stages before it are done.
func progress(was []kaas.Stage, facts []fact, now metav1.Time) (out []kaas.Stage) {
	before := true
	for _, f := range facts {
		x := kaas.Stage{Name: f.stage, Status: kaas.StageNotStarted}
		i := slices.IndexFunc(was, func(s kaas.Stage) bool { return s.Name == f.stage })
		if i >= 0 {
			x = was[i]
		}
		switch status := x.Status; {
		case x.Success:
		case f.waits == "":
			x.Status, x.Success, x.Message = kaas.StageSuccess, true, ""
		case before || status == kaas.StageInProgress:
			x.Status, x.Message = kaas.StageInProgress, f.waits
		}
		if i < 0 || was[i].Status != x.Status {
			x.Timestamp = &now
		}
		before = before && x.Success
		out = append(out, x)
	}
	return out
}

// networkWaits returns why the network of the Cluster's Machines is not prepared.
func (r *Reconciler) networkWaits(ctx context.Context, c *cluster.Cluster, machines []cluster.Machine) (string, error) {
	if len(machines) == 0 {
		return "there is no Machine", nil
	}
	var templates ipam.L2TemplateList
	var hosts ipam.IpamHostList
	for _, list := range []client.ObjectList{&templates, &hosts} {
		if err := r.Client.List(ctx, list, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return "", err
		}
	}
	if !slices.ContainsFunc(templates.Items, func(t ipam.L2Template) bool { return t.Spec.ClusterRef == c.Name }) {
		return "", nil // the images bring it
	}
	ready := map[string]bool{}
	for i := range hosts.Items {
		ready[hosts.Items[i].Name] = hosts.Items[i].Status.NetconfigV2State == ipam.ResultOK
	}
	if slices.ContainsFunc(machines, func(m cluster.Machine) bool { return !ready[m.Name] }) {
		return "not all Machines have their network", nil
	}
	return "", nil
}

// removeStages deletes the history of a Cluster.
func (r *Reconciler) removeStages(ctx context.Context, c *cluster.Cluster) error {
	is := new(kaas.ClusterDeploymentStatus)
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(c), is)
	if err == nil && metav1.IsControlledBy(is, c) && is.DeletionTimestamp.IsZero() {
		err = r.Client.Delete(ctx, is)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
