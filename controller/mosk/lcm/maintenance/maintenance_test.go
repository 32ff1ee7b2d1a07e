package maintenance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/drain"
	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// plant is a real API, the service, and the reconciler of states, which the test steps.
type plant struct {
	*testing.T
	client.Client
	Service
	states *States
	clock  *clocktesting.FakeClock
	api    *workload.API // the API of all clusters
}

// TestMaintenance takes machines of a cluster out of service, and gives them back. Workload
// locks block that (statement H38).
func TestMaintenance(t *testing.T) {
	api, err := kube.Start(t.Context(), kube.Config{Dir: t.TempDir(), FastPaths: kube.FastPathsWanted(), Nodes: true, Families: []string{config.HOC}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := api.Stop(); err != nil {
			t.Error(err)
		}
	}()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lcmv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	cl, err := client.New(api.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		test func(plant)
	}{
		{"all-stages", walksAllStages},
		{"locks", locksBlock},
		{"budget", budgetBlocks},
		{"delete", announcesADeletion},
		{"others", waitsForRequestsOfOthers},
		{"left-early", leavesBeforeItIsDrained},
		{"other-types", leavesOtherTypesAlone},
		{"other-clusters", ignoresLocksOfOtherClusters},
		{"foreign-node", leavesTheNodeOfAnotherMachine},
		{"missing-node", waitsForAMissingNode},
		{"foreign-states", leavesNodesOfOtherNamespaces},
		{"absent-node", leavesANodeThatNobodyHas},
		{"cluster-name", doesNotWaitForAClusterOfTheSameName},
		{"lost-node", takesTheRequestsOfWhoHasLostTheNode},
		{"unknown-node", waitsForTheTieOfADeletedNode},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			api := &workload.API{Client: cl}
			of := func(context.Context, string, string) (workload.API, error) { return *api, nil }
			states, err := NewStates(Config{Client: cl, Workload: of, Work: queue.Work{Clock: clock}})
			if err != nil {
				t.Fatal(err)
			}
			p := plant{t, cl, Service{cl, of}, states, clock, api}
			p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tt.name}})
			tt.test(p)
		})
	}
}

func (p plant) create(objs ...client.Object) {
	p.Helper()
	for _, o := range objs {
		if err := p.Create(p.Context(), o); err != nil {
			p.Fatal(err)
		}
	}
}

// machine creates an LCMMachine of the namespace's cluster and its node, whose name is the
// host name that the machine reports, and which its agent has registered.
func (p plant) machine(ns, name string) Request {
	p.Helper()
	p.create(nodeOf(ns, name))
	return p.reports(ns, name, ns, "host-"+name)
}

// nodeOf returns the Node that a machine's agent registers.
func nodeOf(ns, machine string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "host-" + machine, Annotations: map[string]string{"metalab.dev/node-agent": "system:serviceaccount:" + ns + ":" + machine + "-lcm-agent"}}}
}

// reports creates an LCMMachine of a cluster that reports a host name.
func (p plant) reports(ns, name, cluster, host string) Request {
	p.Helper()
	m := &lcmv1.LCMMachine{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: lcmv1.LCMMachineSpec{ClusterName: cluster, Type: lcmv1.MachineWorker}}
	p.create(m)
	m.Status.Addresses = []lcmv1.NodeAddress{{Type: lcmv1.AddressInternalIP, Address: "192.0.2.1"}, {Type: lcmv1.AddressHostname, Address: host}}
	if err := p.Client.Status().Update(p.Context(), m); err != nil {
		p.Fatal(err)
	}
	return Request{Machine: client.ObjectKeyFromObject(m), Reason: lcmv1.ReasonUpgrade}
}

// pod creates a pod that runs on a machine's node.
func (p plant) pod(r Request, name string) *corev1.Pod {
	p.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Machine.Namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: "host-" + r.Machine.Name, Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}}},
	}
	p.create(pod)
	pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := p.Client.Status().Update(p.Context(), pod); err != nil {
		p.Fatal(err)
	}
	return pod
}

// entered asserts what Enter returns.
func (p plant) entered(r Request, stage, message string) {
	p.Helper()
	got, err := p.Enter(p.Context(), r)
	p.compare("Enter", got, err, stage, message)
}

func (p plant) left(r Request, stage string) {
	p.Helper()
	got, err := p.Leave(p.Context(), r)
	p.compare("Leave", got, err, stage, "")
}

// compare compares a progress with the stage that it must wait for, "" for none.
func (p plant) compare(call string, got Progress, err error, stage, message string) {
	p.Helper()
	want := Progress{Done: true}
	if stage != "" {
		want = Progress{Stage: stage, Message: message, After: drain.Interval}
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		p.Fatalf("%s() error %v, progress (-want +got):\n%s", call, err, diff)
	}
}

// step reconciles the machine's state once.
func (p plant) step(r Request) ctrl.Result {
	p.Helper()
	key := client.ObjectKey{Namespace: r.Machine.Namespace, Name: StateName(r.Machine.Name)}
	res, err := p.states.Reconcile(p.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		p.Fatal(err)
	}
	return res
}

// status asserts the machine's status.
func (p plant) status(r Request, state lcmv1.DrainState, message string) {
	p.Helper()
	var m lcmv1.LCMMachine
	if err := p.Get(p.Context(), r.Machine, &m); err != nil {
		p.Fatal(err)
	}
	if got := m.Status; got.KubernetesCordonDrain != state || got.KubernetesCordonDrainError != message {
		p.Fatalf("LCMMachine.status.kubernetesCordonDrain = %q, %q; want %q, %q", got.KubernetesCordonDrain, got.KubernetesCordonDrainError, state, message)
	}
}

func (p plant) missing(o client.Object) {
	p.Helper()
	if err := p.Get(p.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
		p.Errorf("Get(%T %s) error = %v, want NotFound", o, o.GetName(), err)
	}
}

func (p plant) unschedulable(r Request) bool {
	p.Helper()
	var n corev1.Node
	if err := p.Get(p.Context(), client.ObjectKey{Name: "host-" + r.Machine.Name}, &n); err != nil {
		p.Fatal(err)
	}
	return n.Spec.Unschedulable
}

// lockOf creates a lock of a node with a state, "" for none.
func (p plant) lockOf(r Request, name string, s lcmv1.WorkloadLockStatus) *lcmv1.NodeWorkloadLock {
	p.Helper()
	l := &lcmv1.NodeWorkloadLock{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: lcmv1.NodeWorkloadLockSpec{NodeName: "host-" + r.Machine.Name, ControllerName: "c"}}
	p.create(l)
	p.answer(l, &l.Status, s)
	return l
}

// answer sets the status of a lock as its application does.
func (p plant) answer(l client.Object, to *lcmv1.WorkloadLockStatus, s lcmv1.WorkloadLockStatus) {
	p.Helper()
	if s == (lcmv1.WorkloadLockStatus{}) {
		return
	}
	*to = s
	if err := p.Client.Status().Update(p.Context(), l); err != nil {
		p.Fatal(err)
	}
}

func walksAllStages(p plant) {
	r := p.machine("all-stages", "w-0")
	pod := p.pod(r, "app")
	p.entered(r, StageDrained, "")
	p.status(r, lcmv1.CordonDraining, "")
	var state lcmv1.LCMClusterState
	if err := p.Get(p.Context(), client.ObjectKey{Namespace: "all-stages", Name: "cd-w-0"}, &state); err != nil {
		p.Fatal(err)
	}
	want := lcmv1.LCMClusterStateSpec{ClusterName: "all-stages", Type: lcmv1.StateCordonDrain, Arg: "host-w-0", Value: "true"}
	if diff := cmp.Diff(want, state.Spec); diff != "" || state.Annotations["lcm.mirantis.com/cluster-state-reason"] != "upgrade" {
		p.Errorf("LCMClusterState has the annotations %v, spec (-want +got):\n%s", state.Annotations, diff)
	}
	if got := p.step(r).RequeueAfter; got != drain.Interval {
		p.Errorf("a drain that waits is looked at after %s, want %s", got, drain.Interval)
	}
	p.entered(r, StageDrained, "waiting for the end of all-stages/app")
	if err := p.Delete(p.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		p.Fatal(err)
	}
	p.step(r)
	p.entered(r, "", "")
	p.status(r, lcmv1.CordonDrained, "")
	cluster := client.ObjectKey{Namespace: "all-stages", Name: "all-stages"}
	got, err := p.LeaveCluster(p.Context(), cluster, "another")
	p.compare("LeaveCluster", got, err, StageClusterRequestGone, "LCMMachine w-0 is cordondrained")

	// The lease of the node is renewed as long as the machine needs it.
	for range 4 {
		p.clock.Step(p.step(r).RequeueAfter)
	}
	if owner, err := (&drain.Service{Client: p.Client, Clock: p.clock}).Owner(p.Context(), "host-w-0"); owner != "lcm/all-stages/cd-w-0" || err != nil {
		p.Errorf("Owner() = %q, %v; want the LCMClusterState", owner, err)
	}

	p.left(r, StageUncordoned)
	p.status(r, lcmv1.Uncordoning, "")
	p.step(r)
	p.left(r, "")
	p.status(r, "", "")
	if p.unschedulable(r) {
		p.Error("the node is unschedulable after Leave()")
	}
	p.missing(&state)
	p.missing(&lcmv1.NodeMaintenanceRequest{ObjectMeta: metav1.ObjectMeta{Name: "host-w-0"}})
	got, err = p.LeaveCluster(p.Context(), cluster, "w-0")
	p.compare("LeaveCluster", got, err, "", "")
	p.missing(&lcmv1.ClusterMaintenanceRequest{ObjectMeta: metav1.ObjectMeta{Name: "all-stages"}})
	p.left(r, "") // a second time

	// A cache that is late has the machine as it was.
	m := new(lcmv1.LCMMachine)
	if err := p.Get(p.Context(), client.ObjectKey{Namespace: "all-stages", Name: "w-0"}, m); err != nil {
		p.Fatal(err)
	}
	m.Status.KubernetesCordonDrain = lcmv1.Uncordoning
	if err := p.Client.Status().Update(p.Context(), m); err != nil {
		p.Fatal(err)
	}
	got, err = p.LeaveCluster(p.Context(), cluster, "another")
	p.compare("LeaveCluster", got, err, StageClusterRequestGone, "LCMMachine w-0 is uncordoning")
	got, err = p.LeaveCluster(p.Context(), cluster, "w-0")
	p.compare("LeaveCluster", got, err, "", "")
}

// Statement H38: a failed lock blocks with its errorMessage, an active one silently.
func locksBlock(p plant) {
	r := p.machine("locks", "w-1")
	pod := p.pod(r, "app")
	stands := func() {
		p.Helper()
		if p.unschedulable(r) {
			p.Fatal("the node is cordoned while a lock blocks")
		}
		p.missing(&lcmv1.LCMClusterState{ObjectMeta: metav1.ObjectMeta{Namespace: "locks", Name: "cd-w-1"}})
		if err := p.Get(p.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp != nil {
			p.Fatalf("the pod is deleted at %v, error %v, while a lock blocks", pod.DeletionTimestamp, err)
		}
	}
	all := &lcmv1.ClusterWorkloadLock{ObjectMeta: metav1.ObjectMeta{Name: "openstack"}, Spec: lcmv1.ClusterWorkloadLockSpec{ControllerName: "openstack"}}
	p.create(all)
	p.entered(r, StageClusterLocks, "") // it has no state yet
	p.missing(&lcmv1.NodeMaintenanceRequest{ObjectMeta: metav1.ObjectMeta{Name: "host-w-1"}})
	p.answer(all, &all.Status, lcmv1.WorkloadLockStatus{State: lcmv1.LockFailed, ErrorMessage: "quorum lost"})
	p.entered(r, StageClusterLocks, "ClusterWorkloadLock openstack failed: quorum lost")
	p.answer(all, &all.Status, lcmv1.WorkloadLockStatus{State: lcmv1.LockInactive})

	ceph := p.lockOf(r, "ceph-w-1", lcmv1.WorkloadLockStatus{State: lcmv1.LockActive})
	p.lockOf(Request{Machine: client.ObjectKey{Name: "other"}}, "ceph-other", lcmv1.WorkloadLockStatus{State: lcmv1.LockFailed, ErrorMessage: "of another node"})
	p.entered(r, StageNodeLocks, "")
	p.status(r, lcmv1.CordonDraining, "")
	stands()
	p.answer(ceph, &ceph.Status, lcmv1.WorkloadLockStatus{State: lcmv1.LockFailed, ErrorMessage: "2 OSDs are down"})
	p.entered(r, StageNodeLocks, "NodeWorkloadLock ceph-w-1 failed: 2 OSDs are down")
	p.status(r, lcmv1.CordonDraining, "NodeWorkloadLock ceph-w-1 failed: 2 OSDs are down")
	stands()
	p.answer(ceph, &ceph.Status, lcmv1.WorkloadLockStatus{State: lcmv1.LockInactive})
	p.entered(r, StageDrained, "")
	p.status(r, lcmv1.CordonDraining, "")
	p.step(r)
	if err := p.Get(p.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp == nil {
		p.Errorf("the pod is not deleted, error %v, after the locks are inactive", err)
	}
}

func budgetBlocks(p plant) {
	r := p.machine("budget", "w-2")
	p.pod(r, "held")
	one := intstr.FromInt32(1)
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "budget", Name: "held"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "held"}}},
	}
	p.create(b)
	patience.Await(p, "the status of the budget", func() bool {
		if err := p.Get(p.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			p.Fatal(err)
		}
		return b.Status.CurrentHealthy == 1
	}, b)
	p.entered(r, StageDrained, "")
	p.step(r)
	p.step(r)
	got, err := p.Enter(p.Context(), r)
	if err != nil || got.Done || !strings.HasPrefix(got.Message, "pod budget/held cannot be evicted: ") || !strings.Contains(got.Message, "budget held needs 1") {
		p.Fatalf("Enter() = %+v, %v; want the refusal of the budget", got, err)
	}
	p.status(r, lcmv1.CordonDraining, got.Message)
	var s lcmv1.LCMClusterState
	if err := p.Get(p.Context(), client.ObjectKey{Namespace: "budget", Name: "cd-w-2"}, &s); err != nil || s.Status.Attempt != 1 {
		p.Errorf("status.attempt = %d, error %v; want 1 for one message", s.Status.Attempt, err)
	}
}

func announcesADeletion(p plant) {
	r := p.machine("delete", "w-3")
	r.Reason = lcmv1.ReasonDelete
	p.entered(r, StageDrained, "")
	request := &lcmv1.NodeDeletionRequest{ObjectMeta: metav1.ObjectMeta{Name: "host-w-3"}}
	if err := p.Get(p.Context(), client.ObjectKeyFromObject(request), request); err != nil || request.Spec.NodeName != "host-w-3" {
		p.Errorf("NodeDeletionRequest: %+v, %v", request.Spec, err)
	}
	p.step(r)
	p.entered(r, "", "")
	p.left(r, StageUncordoned)
	p.step(r)
	p.left(r, "")
	p.missing(request)
}

func waitsForRequestsOfOthers(p plant) {
	r := p.machine("others", "w-4")
	theirs := &lcmv1.NodeMaintenanceRequest{ObjectMeta: metav1.ObjectMeta{Name: "host-w-4"}, Spec: lcmv1.NodeMaintenanceRequestSpec{NodeName: "host-w-4", Scope: lcmv1.ScopeDrain}}
	p.create(theirs)
	p.entered(r, StageNodeRequested, "the request host-w-4 is of somebody else: it waits until that is removed")
	p.left(r, StageUncordoned)
	p.step(r)
	p.left(r, "")
	if err := p.Get(p.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		p.Errorf("the request of somebody else after Leave(): %v, want it untouched", err)
	}
}

func leavesBeforeItIsDrained(p plant) {
	r := p.machine("left-early", "w-5")
	p.pod(r, "app")
	p.entered(r, StageDrained, "")
	p.step(r)
	p.left(r, StageUncordoned)
	p.step(r)
	p.left(r, "")
	if p.unschedulable(r) {
		p.Error("the node is unschedulable after a drain was given up")
	}
}

func leavesOtherTypesAlone(p plant) {
	r := p.machine("other-types", "w-6")
	s := &lcmv1.LCMClusterState{
		ObjectMeta: metav1.ObjectMeta{Namespace: "other-types", Name: StateName("w-6")},
		Spec:       lcmv1.LCMClusterStateSpec{ClusterName: "other-types", Type: lcmv1.StateSwarmDrain, Arg: "host-w-6", Value: "true"},
	}
	p.create(s)
	p.step(r)
	if err := p.Get(p.Context(), client.ObjectKeyFromObject(s), s); err != nil || s.Status != (lcmv1.LCMClusterStateStatus{}) || p.unschedulable(r) {
		p.Errorf("a swarm-drain has the status %+v, error %v, cordoned %v; want it untouched", s.Status, err, p.unschedulable(r))
	}
	if _, err := p.Enter(p.Context(), r); err == nil || !strings.Contains(err.Error(), "LCMClusterState other-types/cd-w-6 is of swarm-drain host-w-6") {
		p.Errorf("Enter() with another LCMClusterState of the name: error %v, want one that names it", err)
	}
}

func TestStateName(t *testing.T) {
	for _, tt := range []struct{ machine, want string }{
		{"W-0", "cd-w-0"},
		{strings.Repeat("a", 60), "cd-" + strings.Repeat("a", 60)},
		{"x" + strings.Repeat("a", 60), "cd-" + strings.Repeat("a", 60)},
		{"x-" + strings.Repeat("a", 59), "cd-" + strings.Repeat("a", 59)},
	} {
		if got := StateName(tt.machine); got != tt.want || len(got) > 63 {
			t.Errorf("StateName(%q) = %q, want %q", tt.machine, got, tt.want)
		}
	}
}

// A Node that its cluster needs does not exist: only a deletion takes that as drained.
func waitsForAMissingNode(p plant) {
	const waits = "Node host-w-9 does not exist: its node agent has to register it"
	r := p.machine("missing-node", "w-9")
	if err := p.Delete(p.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "host-w-9"}}); err != nil {
		p.Fatal(err)
	}
	p.api.Own = true
	p.entered(r, StageDrained, "")
	p.step(r)
	p.entered(r, StageDrained, waits)
	p.create(nodeOf("missing-node", "w-9"))
	p.step(r)
	p.entered(r, "", "")
	p.left(r, StageUncordoned)
	p.step(r)
	p.left(r, "")

	// Clusters that share an API may have no Nodes; but this Machine has had one.
	if err := p.Delete(p.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "host-w-9"}}); err != nil {
		p.Fatal(err)
	}
	p.api.Own = false
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "missing-node", Name: "w-9"}}
	p.create(m)
	m.Status.NodeRef = &clusterv1.NodeReference{Kind: "Node", Name: "host-w-9"}
	if err := p.Client.Status().Update(p.Context(), m); err != nil {
		p.Fatal(err)
	}
	p.entered(r, StageDrained, "")
	p.step(r)
	p.entered(r, StageDrained, waits)
	m.Status.NodeRef = nil
	if err := p.Client.Status().Update(p.Context(), m); err != nil {
		p.Fatal(err)
	}
	p.step(r)
	p.entered(r, "", "")
	p.left(r, StageUncordoned)
	p.step(r)
	p.left(r, "")

	p.api.Own = true
	r.Reason = lcmv1.ReasonDelete
	p.entered(r, StageDrained, "")
	p.step(r)
	p.entered(r, "", "")
}
