package maintenance

import (
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/drain"
)

// untouched fails the test when a node is cordoned, held by an owner, or its pod deleted.
func (p plant) untouched(when string, r Request, pod client.Object) {
	p.Helper()
	if pod != nil {
		if err := p.Get(p.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.GetDeletionTimestamp() != nil {
			p.Errorf("%s: the pod is deleted at %v, error %v", when, pod.GetDeletionTimestamp(), err)
		}
	}
	node := "host-" + r.Machine.Name
	if err := p.Get(p.Context(), client.ObjectKey{Namespace: drain.Namespace, Name: "drain-" + node}, &coordinationv1.Lease{}); !apierrors.IsNotFound(err) {
		p.Errorf("%s: the lease of node %s: error %v, want none", when, node, err)
	}
}

// stateOf creates an LCMClusterState, reconciles it, and returns its status.
func (p plant) stateOf(name string, spec lcmv1.LCMClusterStateSpec, owners ...metav1.OwnerReference) lcmv1.LCMClusterStateStatus {
	p.Helper()
	s := &lcmv1.LCMClusterState{ObjectMeta: metav1.ObjectMeta{Namespace: "foreign-states", Name: name, OwnerReferences: owners}, Spec: spec}
	p.create(s)
	for range 2 {
		if _, err := p.states.Reconcile(p.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s)}); err != nil {
			p.Fatal(err)
		}
	}
	if err := p.Get(p.Context(), client.ObjectKeyFromObject(s), s); err != nil {
		p.Fatal(err)
	}
	return s.Status
}

// An LCMClusterState reaches the nodes of its namespace's machines alone, whatever a user writes into it.
func leavesNodesOfOtherNamespaces(p plant) {
	victim := p.machine("default", "w-10")
	pod := p.pod(victim, "app")
	p.reports("foreign-states", "w-10", "c1", "host-w-10") // of a tenant, with the name of the other's machine
	p.reports("foreign-states", "x", "c1", "host-w-10")
	var all lcmv1.LCMMachineList
	if err := p.List(p.Context(), &all, client.InNamespace("foreign-states")); err != nil {
		p.Fatal(err)
	}
	const of = "Node host-w-10 is that of LCMMachine default/w-10"
	const none = "spec.arg: Node host-w-10 is that of no LCMMachine of the cluster"
	owned := func(name string, uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: lcmv1.GroupVersion.String(), Kind: "LCMMachine", Name: name, UID: uid}
	}
	for i, tt := range []struct {
		cluster, arg string
		owners       []metav1.OwnerReference
		want         string
	}{
		{"of-nobody", "host-w-10", nil, none},
		{"default", "host-w-10", nil, none}, // the name of the other's cluster
		{"c1", "host-w-10", nil, of},
		{"c1", "host-w-10", []metav1.OwnerReference{owned("w-10", all.Items[0].UID)}, of},
		{"c1", "../w-10", nil, `spec.arg: "../w-10" is no name of a Node`},
		{"c1", strings.Repeat("x", 300), nil, `is no name of a Node`},
	} {
		got := p.stateOf(fmt.Sprintf("s-%d", i), lcmv1.LCMClusterStateSpec{ClusterName: tt.cluster, Type: lcmv1.StateCordonDrain, Arg: tt.arg, Value: "true"}, tt.owners...)
		if got.Value != "false" || !strings.Contains(got.Message, tt.want) {
			p.Errorf("a state of cluster %s and node %.20s: %+v, want %q", tt.cluster, tt.arg, got, tt.want)
		}
		p.untouched(tt.cluster, victim, pod)
	}
	for _, kind := range []lcmv1.ClusterStateType{lcmv1.StateHelmDeployed, lcmv1.StateSwarmDrain, lcmv1.StateSwarmRemove} {
		if got := p.stateOf(string(kind), lcmv1.LCMClusterStateSpec{ClusterName: "c1", Type: kind, Arg: "host-w-10", Value: "true"}); got != (lcmv1.LCMClusterStateStatus{}) {
			p.Errorf("a %s has the status %+v, want none", kind, got)
		}
		p.untouched(string(kind), victim, pod)
	}
	// That the victim's own machine can be drained: the walls hold nobody in.
	victim.Reason = lcmv1.ReasonUpgrade
	p.entered(victim, StageDrained, "")
	p.step(victim)
	if !p.unschedulable(victim) {
		p.Error("the node is not cordoned for its own machine")
	}
}

// A Node that does not exist in an API that clusters share is nobody's: no request names it, no pod that
// is bound to it is evicted, and nobody holds it.
func leavesANodeThatNobodyHas(p plant) {
	r := p.reports("absent-node", "w-11", "absent-node", "host-w-11")
	pod := p.pod(r, "app")
	p.entered(r, StageDrained, "")
	p.step(r)
	p.entered(r, "", "") // there is nothing to drain
	p.missing(&lcmv1.NodeMaintenanceRequest{ObjectMeta: metav1.ObjectMeta{Name: "host-w-11"}})
	p.untouched("it does not exist", r, pod)
	p.create(nodeOf("default", "w-11")) // another machine's
	if got := p.step(r).RequeueAfter; got != drain.Lease/3 {
		p.Errorf("the state is looked at after %s, want %s", got, drain.Lease/3)
	}
	p.untouched("it is another machine's", r, pod)
	if p.unschedulable(r) {
		p.Error("the other machine's node is cordoned")
	}
	p.left(r, StageUncordoned)
	p.step(r)
	p.left(r, "")
}

// Two clusters of one name, in two namespaces of one API, have a request each.
func doesNotWaitForAClusterOfTheSameName(p plant) {
	first := p.machine("cluster-name", "w-12")
	p.entered(first, StageDrained, "")
	p.create(nodeOf("default", "w-13"))
	second := p.reports("default", "w-13", "cluster-name", "host-w-13")
	for range 2 {
		p.entered(second, StageDrained, "")
	}
	of := func() (out []string) {
		p.Helper()
		var all lcmv1.ClusterMaintenanceRequestList
		if err := p.List(p.Context(), &all); err != nil {
			p.Fatal(err)
		}
		for _, o := range all.Items {
			if strings.HasPrefix(o.Name, "cluster-name") {
				out = append(out, o.Annotations[ofAnnotation])
			}
		}
		return out
	}
	if got := strings.Join(of(), " "); got != "cluster-name/cluster-name default/cluster-name" {
		p.Errorf("requests for %q, want one for each cluster", got)
	}
	for _, r := range []Request{second, first} {
		p.left(r, StageUncordoned)
		p.step(r)
		p.left(r, "")
		got, err := p.LeaveCluster(p.Context(), client.ObjectKey{Namespace: r.Machine.Namespace, Name: "cluster-name"}, r.Machine.Name)
		p.compare("LeaveCluster", got, err, "", "")
	}
	if got := of(); len(got) > 0 {
		p.Errorf("requests for %q, want none", got)
	}
	p.create(&lcmv1.ClusterMaintenanceRequest{ObjectMeta: metav1.ObjectMeta{Name: "cluster-name"}, Spec: lcmv1.ClusterMaintenanceRequestSpec{Scope: lcmv1.ScopeOS}})
	p.entered(first, StageClusterRequested, "the request cluster-name is of somebody else: it waits until that is removed")
}

// A request that names another machine does not hold the node's own machine.
func takesTheRequestsOfWhoHasLostTheNode(p plant) {
	r := p.machine("lost-node", "w-14")
	theirs := &lcmv1.NodeMaintenanceRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "host-w-14", Annotations: map[string]string{ofAnnotation: "other/x"}},
		Spec:       lcmv1.NodeMaintenanceRequestSpec{NodeName: "host-w-14", Scope: lcmv1.ScopeOS},
	}
	p.create(theirs)
	p.entered(r, StageNodeRequested, "")
	p.entered(r, StageDrained, "")
	if err := p.Get(p.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || theirs.Annotations[ofAnnotation] != "lost-node/w-14" {
		p.Errorf("the request is of %q, error %v; want lost-node/w-14", theirs.Annotations[ofAnnotation], err)
	}
}

// A graceful deletion does not skip the drain of a Node that may be the machine's.
func waitsForTheTieOfADeletedNode(p plant) {
	r := p.machine("unknown-node", "w-15")
	r.Reason = lcmv1.ReasonDelete
	p.entered(r, StageDrained, "")
	n := nodeOf("unknown-node", "w-15")
	if err := p.Get(p.Context(), client.ObjectKeyFromObject(n), n); err != nil {
		p.Fatal(err)
	}
	n.Annotations = nil
	if err := p.Update(p.Context(), n); err != nil {
		p.Fatal(err)
	}
	const why = "Node host-w-15 is not known to be that of LCMMachine unknown-node/w-15: the account of the machine's agent has not registered it: set its spec.providerID to metal3://UID, with the UID of the machine's BareMetalHost"
	p.entered(r, StageNodeRequested, why)
	p.step(r)
	var s lcmv1.LCMClusterState
	if err := p.Get(p.Context(), client.ObjectKey{Namespace: "unknown-node", Name: StateName("w-15")}, &s); err != nil || s.Status.Value != "false" || s.Status.Message != why {
		p.Errorf("the state is %+v, error %v; want false, %s", s.Status, err, why)
	}
}

// Clusters that share an API: a lock that names another one does not count.
func ignoresLocksOfOtherClusters(p plant) {
	r := p.machine("other-clusters", "w-7")
	lock := &lcmv1.ClusterWorkloadLock{
		ObjectMeta: metav1.ObjectMeta{Name: "of-another", Annotations: map[string]string{"metalab.dev/of": "elsewhere/other-clusters"}},
		Spec:       lcmv1.ClusterWorkloadLockSpec{ControllerName: "c"},
	}
	p.create(lock)
	p.entered(r, StageDrained, "")
	lock.Annotations["metalab.dev/of"] = "other-clusters/other-clusters"
	if err := p.Update(p.Context(), lock); err != nil {
		p.Fatal(err)
	}
	p.entered(r, StageClusterLocks, "")
	p.answer(lock, &lock.Status, lcmv1.WorkloadLockStatus{State: lcmv1.LockInactive})
	p.entered(r, StageDrained, "")
}

// Two machines of one host name share an API: the Node is that of the first.
func leavesTheNodeOfAnotherMachine(p plant) {
	r := p.machine("foreign-node", "w-8")
	n := &corev1.Node{}
	if err := p.Get(p.Context(), client.ObjectKey{Name: "host-w-8"}, n); err != nil {
		p.Fatal(err)
	}
	n.Annotations = map[string]string{"metalab.dev/node-agent": "system:serviceaccount:other:w-8-lcm-agent"}
	if err := p.Update(p.Context(), n); err != nil {
		p.Fatal(err)
	}
	message := "Node host-w-8 is that of LCMMachine other/w-8: give one of the two another host name," +
		" or its Cluster a Kubernetes API of its own (annotation metalab.dev/kubernetes-api)"
	p.entered(r, StageNodeRequested, message)
	p.status(r, lcmv1.CordonDraining, message)
	p.missing(&lcmv1.NodeMaintenanceRequest{ObjectMeta: metav1.ObjectMeta{Name: "host-w-8"}})
	r.Reason = lcmv1.ReasonDelete // which needs no Node
	p.entered(r, "", "")
	if p.unschedulable(r) {
		p.Error("the other machine's node is cordoned")
	}

	// A state that was written before the other machine had the Node.
	r.Reason = lcmv1.ReasonUpgrade
	n.Annotations = nodeOf("foreign-node", "w-8").Annotations
	if err := p.Update(p.Context(), n); err != nil {
		p.Fatal(err)
	}
	p.entered(r, StageDrained, "")
	n.Annotations = map[string]string{"metalab.dev/node-agent": "system:serviceaccount:other:w-8-lcm-agent"}
	if err := p.Update(p.Context(), n); err != nil {
		p.Fatal(err)
	}
	p.step(r)
	var s lcmv1.LCMClusterState
	if err := p.Get(p.Context(), client.ObjectKey{Namespace: "foreign-node", Name: "cd-w-8"}, &s); err != nil {
		p.Fatal(err)
	}
	if s.Status.Value != "false" || s.Status.Message != message || p.unschedulable(r) {
		p.Errorf("the state is %+v, the node unschedulable: %t", s.Status, p.unschedulable(r))
	}
}
