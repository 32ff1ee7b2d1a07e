package deletion

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// lab is a management cluster whose nodes are in another API, the workload cluster's.
type lab struct {
	t *testing.T
	client.Client
	workload client.Client
	own      bool // whether the workload cluster's API is the cluster's own
}

// agentOf returns the annotations of a Node that the agent of a machine has registered.
func agentOf(namespace, machine string) map[string]string {
	return map[string]string{"metalab.dev/node-agent": "system:serviceaccount:" + namespace + ":" + machine + "-lcm-agent"}
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "lab", Name: name} }

// start makes the machines w-0 and w-1 of the cluster c1, whose nodes are host-w-0 and
// host-w-1.
func start(t *testing.T) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), lcmv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	build := func() client.Client {
		return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&lcmv1.LCMMachine{}, &lcmv1.LCMClusterState{}, &lcmv1.NodeWorkloadLock{}).Build()
	}
	l := &lab{t, build(), build(), false}
	for _, name := range []string{"w-0", "w-1"} {
		m := &lcmv1.LCMMachine{ObjectMeta: meta(name), Spec: lcmv1.LCMMachineSpec{ClusterName: "c1", Type: lcmv1.MachineWorker}}
		m.Status.Addresses = []lcmv1.NodeAddress{{Type: lcmv1.AddressHostname, Address: "host-" + name}}
		l.must(l.Create(t.Context(), m))
		l.must(l.workload.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "host-" + name, Annotations: agentOf("lab", name)}}))
	}
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) machine(name string) *lcmv1.LCMMachine {
	l.t.Helper()
	m := &lcmv1.LCMMachine{}
	l.must(l.Get(l.t.Context(), client.ObjectKey{Namespace: "lab", Name: name}, m))
	return m
}

func (l *lab) prepare(name string, demand bool) {
	l.t.Helper()
	m := l.machine(name)
	m.Spec.PrepareDeletion = demand
	l.must(l.Update(l.t.Context(), m))
}

// run reconciles both machines several times. The owner of LCMClusterStates drains and
// uncordons at once. It reports whether the last reconcile of w-0 looks again.
func (l *lab) run() (again bool) {
	l.t.Helper()
	for range 12 {
		for _, name := range []string{"w-0", "w-1"} {
			// Each reconciler is a new one: nothing is remembered.
			r, err := New(Config{Client: l, Work: queue.Work{Clock: clock.RealClock{}}, Workload: func(_ context.Context, namespace, cluster string) (workload.API, error) {
				if namespace != "lab" || cluster != "c1" {
					return workload.API{}, errors.New("another cluster")
				}
				return workload.API{Client: l.workload, Own: l.own}, nil
			}})
			l.must(err)
			result, err := r.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "lab", Name: name}})
			l.must(err)
			if name == "w-0" {
				again = result.RequeueAfter > 0
			}
		}
		var states lcmv1.LCMClusterStateList
		l.must(l.List(l.t.Context(), &states))
		for _, s := range states.Items {
			s.Status.Value = s.Spec.Value
			l.must(l.Status().Update(l.t.Context(), &s))
		}
	}
	return again
}

// phase fails the test unless a machine has this phase.
func (l *lab) phase(name, want, message string) {
	l.t.Helper()
	if s := l.machine(name).Status; s.PrepareDeletionPhase != want || s.KubernetesCordonDrainError != message {
		l.t.Errorf("%s: phase %q, %q, want %q, %q", name, s.PrepareDeletionPhase, s.KubernetesCordonDrainError, want, message)
	}
}

// requests returns the names of all requests of the workload cluster, and the drained nodes.
func (l *lab) requests() (out []string) {
	l.t.Helper()
	var clusters lcmv1.ClusterMaintenanceRequestList
	var nodes lcmv1.NodeMaintenanceRequestList
	var deletions lcmv1.NodeDeletionRequestList
	var states lcmv1.LCMClusterStateList
	for _, list := range []client.ObjectList{&clusters, &nodes, &deletions} {
		l.must(l.workload.List(l.t.Context(), list))
	}
	l.must(l.List(l.t.Context(), &states))
	for _, o := range clusters.Items {
		out = append(out, "maintenance of cluster "+o.Name)
	}
	for _, o := range nodes.Items {
		out = append(out, "maintenance of "+o.Spec.NodeName)
	}
	for _, o := range deletions.Items {
		out = append(out, "deletion of "+o.Spec.NodeName)
	}
	for _, o := range states.Items {
		out = append(out, o.Spec.Value+" drain of "+o.Spec.Arg+" for "+o.Annotations[lcmv1.ClusterStateReasonAnnotation])
	}
	return out
}

func (l *lab) has(want ...string) {
	l.t.Helper()
	if got := l.requests(); !slices.Equal(got, want) {
		l.t.Errorf("requests %q, want %q", got, want)
	}
}

func (l *lab) lock(state lcmv1.WorkloadLockState, message string) {
	l.t.Helper()
	o := &lcmv1.NodeWorkloadLock{ObjectMeta: metav1.ObjectMeta{Name: "ceph-host-w-0"}, Spec: lcmv1.NodeWorkloadLockSpec{NodeName: "host-w-0", ControllerName: "ceph"}}
	if err := l.workload.Create(l.t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
		l.t.Fatal(err)
	}
	l.must(l.workload.Get(l.t.Context(), client.ObjectKeyFromObject(o), o))
	o.Status = lcmv1.WorkloadLockStatus{State: state, ErrorMessage: message}
	l.must(l.workload.Status().Update(l.t.Context(), o))
}

var prepared = []string{"maintenance of cluster c1", "maintenance of host-w-0", "deletion of host-w-0", "true drain of host-w-0 for delete"}

// statement H38: the node of a machine that is to be deleted is announced to applications,
// whose locks block its drain; a lock that has failed is the phase failed. Then it is
// drained. The deletion of the LCMMachine removes node and requests.
func TestNodeLeavesItsCluster(t *testing.T) {
	l := start(t)
	l.run()
	l.phase("w-0", "", "")
	l.has() // nothing was demanded
	l.lock(lcmv1.LockActive, "")
	l.prepare("w-0", true)
	if !l.run() {
		t.Error("a machine whose locks are active is not looked at again")
	}
	l.phase("w-0", "started", "")
	l.has(prepared[:3]...)
	l.lock(lcmv1.LockFailed, "pool is degraded")
	l.run()
	l.phase("w-0", "failed", "NodeWorkloadLock ceph-host-w-0 failed: pool is degraded")
	l.has(prepared[:3]...)
	l.lock(lcmv1.LockInactive, "")
	if l.run() {
		t.Error("a machine that is prepared is looked at again")
	}
	l.phase("w-0", "completed", "")
	l.has(prepared...)
	l.lock(lcmv1.LockActive, "") // a pod that comes back undoes nothing
	l.run()
	l.phase("w-0", "completed", "")
	l.phase("w-1", "", "")

	l.must(l.Delete(t.Context(), l.machine("w-0")))
	if got := l.machine("w-0"); got.DeletionTimestamp.IsZero() {
		t.Fatal("the LCMMachine has no deletionTimestamp")
	}
	l.run()
	if err := l.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "w-0"}, &lcmv1.LCMMachine{}); !apierrors.IsNotFound(err) {
		t.Errorf("the LCMMachine: %v, want none", err)
	}
	l.has()
	var nodes corev1.NodeList
	l.must(l.workload.List(t.Context(), &nodes))
	if len(nodes.Items) != 1 || nodes.Items[0].Name != "host-w-1" {
		t.Errorf("nodes %+v, want that of w-1 alone", nodes.Items)
	}
}

// A demand that is withdrawn gives the node back, drained or not. The request for the
// cluster stays as long as another machine needs it.
func TestWithdrawnDemandGivesTheNodeBack(t *testing.T) {
	for _, state := range []lcmv1.WorkloadLockState{lcmv1.LockActive, lcmv1.LockInactive} {
		l := start(t)
		l.lock(state, "")
		l.prepare("w-0", true)
		l.run()
		l.prepare("w-0", false)
		l.run()
		l.phase("w-0", "", "")
		l.has()
		if m := l.machine("w-0"); !slices.Equal(m.Finalizers, []string{Finalizer}) || m.Status.KubernetesCordonDrain != "" {
			t.Errorf("%s: the machine has %q, %q", state, m.Finalizers, m.Status.KubernetesCordonDrain)
		}
	}
	l := start(t)
	l.prepare("w-0", true)
	l.prepare("w-1", true)
	l.run()
	l.prepare("w-1", false)
	l.run()
	l.phase("w-0", "completed", "")
	l.has(prepared...)
}

// An LCMMachine that is deleted before its node is out of service, by another policy, gives
// its requests back. Its Node may run workloads and stays.
func TestDeletionBeforeTheNodeIsReady(t *testing.T) {
	l := start(t)
	l.lock(lcmv1.LockActive, "")
	l.prepare("w-0", true)
	l.run()
	l.must(l.Delete(t.Context(), l.machine("w-0")))
	l.run()
	l.has()
	if err := l.workload.Get(t.Context(), client.ObjectKey{Name: "host-w-0"}, &corev1.Node{}); err != nil {
		t.Errorf("the Node: %v", err)
	}
}

// Two machines of one host name share an API: the Node is that of the first.
func TestNodeOfAnotherMachineStays(t *testing.T) {
	l := start(t)
	n := &corev1.Node{}
	l.must(l.workload.Get(t.Context(), client.ObjectKey{Name: "host-w-0"}, n))
	n.Annotations = map[string]string{"metalab.dev/node-agent": "system:serviceaccount:other:w-0-lcm-agent"}
	l.must(l.workload.Update(t.Context(), n))
	l.prepare("w-0", true)
	l.run()
	if got := l.machine("w-0").Status.PrepareDeletionPhase; got != lcmv1.DeletionCompleted {
		t.Errorf("the phase is %q, want %q: the machine has no Node", got, lcmv1.DeletionCompleted)
	}
	l.must(l.Delete(t.Context(), l.machine("w-0")))
	l.run()
	l.must(l.workload.Get(t.Context(), client.ObjectKey{Name: "host-w-0"}, n))
	if n.Spec.Unschedulable || !n.DeletionTimestamp.IsZero() {
		t.Errorf("the other machine's Node is unschedulable: %t, deleted at %v", n.Spec.Unschedulable, n.DeletionTimestamp)
	}
}

// The Node goes with its Machine, whatever the policy: only graceful prepares the deletion.
func TestNodeOfADeletedMachineIsRemoved(t *testing.T) {
	node := func(l *lab) error {
		return l.workload.Get(t.Context(), client.ObjectKey{Name: "host-w-0"}, &corev1.Node{})
	}
	for name, tt := range map[string]struct {
		machine, deleted bool
		account          map[string]string // of the Node
		own, second      bool
		stays            bool
	}{
		"its Machine is deleted":                       {machine: true, deleted: true, account: agentOf("lab", "w-0")},
		"its Machine lives":                            {machine: true, account: agentOf("lab", "w-0"), stays: true},
		"it has no Machine":                            {account: agentOf("lab", "w-0"), stays: true},
		"the same Machine of another namespace has it": {machine: true, deleted: true, account: agentOf("other", "w-0"), stays: true},
		"another Machine has it":                       {machine: true, deleted: true, account: agentOf("lab", "w-1"), stays: true},
		"nobody tells whose it is":                     {machine: true, deleted: true, stays: true},
		"an operator has made it":                      {machine: true, deleted: true, account: map[string]string{"metalab.dev/node-agent": "system:serviceaccount:lab-nodes:host-w-0"}, stays: true},
		"it is in the cluster's API":                   {machine: true, deleted: true, own: true},
		"it is there, and another Machine's":           {machine: true, deleted: true, own: true, account: agentOf("lab", "w-1"), stays: true},
		"two machines there report its name":           {machine: true, deleted: true, own: true, second: true, stays: true},
	} {
		l := start(t)
		l.own = tt.own
		n := &corev1.Node{}
		l.must(l.workload.Get(t.Context(), client.ObjectKey{Name: "host-w-0"}, n))
		n.Annotations = tt.account
		l.must(l.workload.Update(t.Context(), n))
		if tt.machine {
			l.must(l.Create(t.Context(), &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "w-0", Finalizers: []string{"a/b"}}}))
		}
		if tt.deleted {
			l.must(l.Delete(t.Context(), &clusterv1.Machine{ObjectMeta: meta("w-0")}))
		}
		if tt.second {
			other := l.machine("w-1")
			other.Status.Addresses = l.machine("w-0").Status.Addresses
			l.must(l.Status().Update(t.Context(), other))
		}
		l.run()
		l.must(l.Delete(t.Context(), l.machine("w-0")))
		l.run()
		if err := l.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "w-0"}, &lcmv1.LCMMachine{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: the LCMMachine: %v, want none", name, err)
		}
		if err := node(l); (err == nil) != tt.stays || client.IgnoreNotFound(err) != nil {
			t.Errorf("%s: the Node: %v, want that it stays: %t", name, err, tt.stays)
		}
	}
}

func TestNewNeedsItsFields(t *testing.T) {
	l := start(t)
	of := func(context.Context, string, string) (workload.API, error) {
		return workload.API{Client: l.workload}, nil
	}
	for _, c := range []Config{{Workload: of, Work: queue.Work{Clock: clock.RealClock{}}}, {Client: l, Work: queue.Work{Clock: clock.RealClock{}}}, {Client: l, Workload: of}} {
		if _, err := New(c); err == nil {
			t.Errorf("New(%+v) returned no error", c)
		}
	}
}
