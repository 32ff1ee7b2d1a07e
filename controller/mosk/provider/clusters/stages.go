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

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// networkChanged passes IpamHosts whose network becomes ready, or is ready no longer.
var networkChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.(*ipamv1.IpamHost).Status.NetconfigV2State != e.ObjectNew.(*ipamv1.IpamHost).Status.NetconfigV2State
}}

// clusterOfMachine enqueues the Cluster of the Machine that has an object's name.
func (r *Reconciler) clusterOfMachine(ctx context.Context, o client.Object) []reconcile.Request {
	var m clusterv1.Machine
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(o), &m); err != nil {
		return nil // the Machine is gone: its watch has reported that
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: m.Namespace, Name: m.Labels[clusterv1.ClusterNameLabel]}}}
}

// fact is the state of a stage: waits is "" when it is done, else the reason.
type fact struct{ stage, waits string }

// recordStages writes the history of the Cluster's deployment, if it has changed.
func (r *Reconciler) recordStages(ctx context.Context, c *clusterv1.Cluster, machines []clusterv1.Machine, b *lcmv1.HelmBundle) error {
	network, err := r.networkWaits(ctx, c, machines)
	if err != nil {
		return err
	}
	current := new(kaasv1.ClusterDeploymentStatus)
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(c), current)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	created := err == nil
	s := c.Status.ProviderStatus
	waits := func(condition string) string {
		if i := slices.IndexFunc(s.Conditions, func(c baremetalv1.Condition) bool { return c.Type == condition && !c.Ready }); i >= 0 {
			return s.Conditions[i].Message
		}
		return ""
	}
	facts := []fact{{kaasv1.StageNetwork, network}}
	if c.Spec.ProviderSpec.Value.LoadBalancerHost != "" {
		message := waits(ConditionLoadBalancer)
		if !slices.ContainsFunc(s.Conditions, func(c baremetalv1.Condition) bool { return c.Type == ConditionLoadBalancer }) {
			message = "loadBalancerHost was set just now" // the write of the status has returned a newer spec
		}
		facts = append(facts, fact{kaasv1.StageLoadBalancers, message})
	}
	facts = append(facts, fact{kaasv1.StageIAM, waits(ConditionIAM)})
	if slices.ContainsFunc(s.Conditions, func(c baremetalv1.Condition) bool { return c.Type == ConditionKubernetes }) {
		facts = append(facts, fact{kaasv1.StageKubernetes, waits(ConditionKubernetes)})
	}
	helm := ""
	if b == nil {
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
	if x := controllerRelease(b); x != nil || b == nil && hasStage(current, kaasv1.StageHelmController) {
		message := helm
		if x != nil && !deployed(b, x) {
			message = "the release " + x.Name + " is not ready"
		}
		facts = append(facts, fact{kaasv1.StageHelmController, message})
	}
	facts = append(facts, fact{kaasv1.StageHelmBundle, helm}, fact{kaasv1.StageMachines, machinesWait}, fact{kaasv1.StageCluster, ready})
	out := &kaasv1.ClusterDeploymentStatus{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.Namespace, Name: c.Name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, clusterv1.GroupVersion.WithKind("Cluster"))},
	}}
	if created && !metav1.IsControlledBy(current, c) {
		return fmt.Errorf("%q exists, and is not the Cluster's: remove it", current.Name)
	}
	if created {
		out = current.DeepCopy()
	}
	if s.ReleaseRefs.Current != nil {
		out.Release = s.ReleaseRefs.Current.Name
	}
	now := metav1.NewTime(r.Clock.Now().Truncate(1e9)) // as JSON has it
	out.Stages = progress(current.Stages, facts, now)
	switch {
	case !created:
		return client.IgnoreAlreadyExists(r.Client.Create(ctx, out)) // the cache is late: its watch reports the object
	case equality.Semantic.DeepEqual(current, out):
		return nil
	}
	return r.patch(ctx, current, out)
}

func hasStage(s *kaasv1.ClusterDeploymentStatus, name string) bool {
	return slices.ContainsFunc(s.Stages, func(x kaasv1.Stage) bool { return x.Name == name })
}

// progress returns the stages that follow from facts. A stage that was a success stays one; a
// stage that waits is in progress once it has begun, or once all stages before it are done.
func progress(was []kaasv1.Stage, facts []fact, now metav1.Time) (out []kaasv1.Stage) {
	before := true
	for _, f := range facts {
		x := kaasv1.Stage{Name: f.stage, Status: kaasv1.StageNotStarted}
		i := slices.IndexFunc(was, func(s kaasv1.Stage) bool { return s.Name == f.stage })
		if i >= 0 {
			x = was[i]
		}
		switch status := x.Status; {
		case x.Success:
		case f.waits == "":
			x.Status, x.Success, x.Message = kaasv1.StageSuccess, true, ""
		case before || status == kaasv1.StageInProgress:
			x.Status, x.Message = kaasv1.StageInProgress, f.waits
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
func (r *Reconciler) networkWaits(ctx context.Context, c *clusterv1.Cluster, machines []clusterv1.Machine) (string, error) {
	if len(machines) == 0 {
		return "there is no Machine", nil
	}
	var templates ipamv1.L2TemplateList
	var hosts ipamv1.IpamHostList
	for _, list := range []client.ObjectList{&templates, &hosts} {
		if err := r.Client.List(ctx, list, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return "", err
		}
	}
	if !slices.ContainsFunc(templates.Items, func(t ipamv1.L2Template) bool { return t.Cluster() == c.Name }) {
		return "", nil // the images bring it
	}
	ready := map[string]bool{}
	for i := range hosts.Items {
		ready[hosts.Items[i].Name] = hosts.Items[i].Status.NetconfigV2State == ipamv1.ResultOK
	}
	if slices.ContainsFunc(machines, func(m clusterv1.Machine) bool { return !ready[m.Name] }) {
		return "not all Machines have their network", nil
	}
	return "", nil
}

// removeStages deletes the history of a Cluster.
func (r *Reconciler) removeStages(ctx context.Context, c *clusterv1.Cluster) error {
	current := new(kaasv1.ClusterDeploymentStatus)
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(c), current)
	if err == nil && metav1.IsControlledBy(current, c) && current.DeletionTimestamp.IsZero() {
		err = r.Client.Delete(ctx, current)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
