package drain

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// cluster is a real API with nodes, and a service on a virtual clock.
type cluster struct {
	*testing.T
	client.Client
	*Service
	clock *clocktesting.FakePassiveClock
}

func TestDrain(t *testing.T) {
	api, err := kube.Start(t.Context(), kube.Config{Dir: t.TempDir(), FastPaths: kube.FastPathsWanted(), Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := api.Stop(); err != nil {
			t.Error(err)
		}
	}()
	cl, err := client.New(api.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		test func(cluster, string)
	}{
		{"evicts-what-a-budget-lets-go", evictsWhatABudgetLetsGo},
		{"leaves-daemons-and-mirrors", leavesDaemonsAndMirrors},
		{"one-owner-at-a-time", oneOwnerAtATime},
		{"keeps-a-cordon-of-others", keepsACordonOfOthers},
		{"node-that-is-missing", drainsAMissingNode},
		{"lease-expires", takesOverAnExpiredLease},
		{"annotates-in-the-same-patch", annotatesInTheSamePatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			s := cluster{t, cl, &Service{Client: cl, Clock: c}, c}
			s.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: tt.name}})
			tt.test(s, tt.name)
		})
	}
}

// Lab time jumps: an owner of a lease could not renew it in time.
func TestLeasesRunByTheClockOfClients(t *testing.T) {
	lab, clients := clocktesting.NewFakePassiveClock(time.Unix(0, 0)), clocktesting.NewFakePassiveClock(time.Unix(1, 0))
	if got := New(nil, lab, clients).Clock; got != clients {
		t.Errorf("New(lab, clients) has the clock of %s, want that of clients", got.Now())
	}
	if got := New(nil, lab, nil).Clock; got != lab {
		t.Errorf("New(lab, nil) has the clock %v, want the lab's", got)
	}
}

func (c cluster) create(o client.Object) {
	c.Helper()
	if err := c.Create(c.Context(), o); err != nil {
		c.Fatal(err)
	}
}

// pod creates a pod on a node, which runs.
func (c cluster) pod(node, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	c.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}}},
	}
	for _, f := range change {
		f(p)
	}
	c.create(p)
	before := p.DeepCopy()
	p.Status.Phase, p.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := c.Status().Patch(c.Context(), p, client.MergeFrom(before)); err != nil { // the API's controllers change it, too
		c.Fatal(err)
	}
	return p
}

func (c cluster) drained(node, owner string, want Progress) {
	c.Helper()
	got, err := c.Drain(c.Context(), node, owner)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		c.Fatalf("Drain(%s, %s) error %v, progress (-want +got):\n%s", node, owner, err, diff)
	}
}

// finish ends a deleted pod as its node does.
func (c cluster) finish(p *corev1.Pod) {
	c.Helper()
	if err := c.Delete(c.Context(), p, client.GracePeriodSeconds(0)); err != nil {
		c.Fatal(err)
	}
}

func (c cluster) unschedulable(node string) bool {
	c.Helper()
	var n corev1.Node
	if err := c.Get(c.Context(), client.ObjectKey{Name: node}, &n); err != nil {
		c.Fatal(err)
	}
	return n.Spec.Unschedulable
}

// awaitBudget waits until the disruption controller has counted the pods of a budget.
func (c cluster) awaitBudget(b *policyv1.PodDisruptionBudget, healthy int32) {
	c.Helper()
	patience.Await(c, "the status of the budget", func() bool {
		if err := c.Get(c.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			c.Fatal(err)
		}
		return b.Status.ObservedGeneration == b.Generation && b.Status.CurrentHealthy == healthy
	}, b)
}

func evictsWhatABudgetLetsGo(c cluster, node string) {
	free, held := c.pod(node, "free"), c.pod(node, "held")
	one := intstr.FromInt32(1)
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "held"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "held"}}},
	}
	c.create(b)
	c.awaitBudget(b, 1)
	blocked := []Blocked{{
		"default/held",
		"Cannot evict pod as it would violate the pod's disruption budget. The disruption budget held needs 1 healthy pods and has 1 currently",
	}}
	c.drained(node, "lcm", Progress{Waiting: []string{"default/free"}, Blocked: blocked})
	if !c.unschedulable(node) {
		c.Error("the node is schedulable while it is drained")
	}
	c.finish(free)
	c.drained(node, "lcm", Progress{Blocked: blocked}) // as long as the budget does not change
	c.pod("elsewhere", "held-2", func(p *corev1.Pod) { p.Labels["app"] = "held" })
	c.awaitBudget(b, 2)
	c.drained(node, "lcm", Progress{Waiting: []string{"default/held"}})
	c.finish(held)
	c.drained(node, "lcm", Progress{Done: true})
	if err := c.Uncordon(c.Context(), node, "lcm"); err != nil || c.unschedulable(node) {
		c.Errorf("after Uncordon() the node is unschedulable: %v, error %v", c.unschedulable(node), err)
	}
	var l coordinationv1.Lease
	if err := c.Get(c.Context(), client.ObjectKey{Namespace: Namespace, Name: leasePrefix + node}, &l); !apierrors.IsNotFound(err) {
		c.Errorf("the lease of the node after Uncordon(): error %v, want NotFound", err)
	}
}

func leavesDaemonsAndMirrors(c cluster, node string) {
	yes := true
	c.pod(node, "daemon", func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "1", Controller: &yes}}
	})
	// The garbage collector would delete it: its owner does not exist.
	c.drained(node, "lcm", Progress{Done: true})
	for _, tt := range []struct {
		name string
		pod  corev1.Pod
		want bool
	}{
		{"of nobody", corev1.Pod{}, false},
		{"mirror", corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}}}, true},
		{"of a ReplicaSet", corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Controller: &yes}}}}, false},
		{"of a DaemonSet", corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Controller: &yes}}}}, true},
		{"of a DaemonSet that is not its controller", corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet"}}}}, false},
		{"of a DaemonSet of another group", corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "DaemonSet", Controller: &yes}}}}, false},
	} {
		if got := stays(&tt.pod); got != tt.want {
			c.Errorf("stays(pod %s) = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func oneOwnerAtATime(c cluster, node string) {
	p := c.pod(node, "waits")
	c.drained(node, "lcm", Progress{Waiting: []string{"default/waits"}})
	held := new(HeldError)
	if _, err := c.Drain(c.Context(), node, "mcd"); !errors.As(err, &held) || held.Owner != "lcm" {
		c.Fatalf("Drain() by another owner: error %v, want a HeldError that names lcm", err)
	}
	if err := c.Uncordon(c.Context(), node, "mcd"); err != nil || !c.unschedulable(node) {
		c.Fatalf("Uncordon() by another owner: error %v, unschedulable %v; want nothing done", err, c.unschedulable(node))
	}
	if owner, err := c.Owner(c.Context(), node); owner != "lcm" || err != nil {
		c.Errorf("Owner() = %q, %v; want lcm", owner, err)
	}
	c.finish(p)
	if err := c.Uncordon(c.Context(), node, "lcm"); err != nil {
		c.Fatal(err)
	}
	c.drained(node, "mcd", Progress{Done: true})
}

func keepsACordonOfOthers(c cluster, node string) {
	var n corev1.Node
	if err := c.Get(c.Context(), client.ObjectKey{Name: node}, &n); err != nil {
		c.Fatal(err)
	}
	n.Spec.Unschedulable = true
	if err := c.Update(c.Context(), &n); err != nil {
		c.Fatal(err)
	}
	c.drained(node, "lcm", Progress{Done: true})
	if err := c.Uncordon(c.Context(), node, "lcm"); err != nil || !c.unschedulable(node) {
		c.Errorf("Uncordon() of a node that an operator had cordoned: error %v, unschedulable %v; want it left cordoned", err, c.unschedulable(node))
	}
}

func drainsAMissingNode(c cluster, _ string) {
	pod := c.pod("gone", "left")
	c.drained("gone", "lcm", Progress{Waiting: []string{pod.Namespace + "/left"}})
	c.finish(pod)
	c.drained("gone", "lcm", Progress{Missing: "gone"})
	if got, want := (Progress{Missing: "gone"}).String(), "Node gone does not exist: its node agent has to register it"; got != want {
		c.Errorf("String() = %q, want %q", got, want)
	}
	if err := c.Uncordon(c.Context(), "gone", "lcm"); err != nil {
		c.Errorf("Uncordon() of a node that does not exist: %v", err)
	}
}

func takesOverAnExpiredLease(c cluster, node string) {
	c.drained(node, "lcm", Progress{Done: true})
	c.clock.SetTime(c.clock.Now().Add(Lease / 2))
	c.drained(node, "lcm", Progress{Done: true}) // renews it
	c.clock.SetTime(c.clock.Now().Add(Lease - time.Second))
	held := new(HeldError)
	if _, err := c.Drain(c.Context(), node, "mcd"); !errors.As(err, &held) {
		c.Fatalf("Drain() within the renewed lease: error %v, want a HeldError", err)
	}
	c.clock.SetTime(c.clock.Now().Add(time.Second))
	if owner, err := c.Owner(c.Context(), node); owner != "" || err != nil {
		c.Errorf("Owner() after the lease = %q, %v; want nobody", owner, err)
	}
	c.drained(node, "mcd", Progress{Done: true})
	if _, err := c.Drain(c.Context(), node, "lcm"); !errors.As(err, &held) || held.Owner != "mcd" {
		c.Errorf("Drain() by the owner that has lost the node: error %v, want a HeldError that names mcd", err)
	}
	if err := c.Uncordon(c.Context(), node, "mcd"); err != nil || c.unschedulable(node) {
		c.Errorf("Uncordon() by who took over: error %v, unschedulable %v; want it schedulable", err, c.unschedulable(node))
	}
}

func annotatesInTheSamePatch(c cluster, node string) {
	uncordon := func(want bool) {
		c.Helper()
		n, err := c.UncordonAnnotated(c.Context(), node, "mcd", map[string]string{"example.org/done": "yes"})
		if err != nil || n.Annotations["example.org/done"] != "yes" || n.Spec.Unschedulable != want || c.unschedulable(node) != want {
			c.Fatalf("UncordonAnnotated(): Node %+v, error %v; want unschedulable %t, with the annotation", n, err, want)
		}
	}
	c.drained(node, "lcm", Progress{Done: true})
	uncordon(true) // the node is another owner's
	if err := c.Uncordon(c.Context(), node, "lcm"); err != nil {
		c.Fatal(err)
	}
	c.drained(node, "mcd", Progress{Done: true})
	uncordon(false)
	if owner, err := c.Owner(c.Context(), node); owner != "" || err != nil {
		c.Errorf("Owner() = %q, %v; want nobody", owner, err)
	}
	if _, err := c.UncordonAnnotated(c.Context(), "gone", "mcd", map[string]string{"a": "b"}); !apierrors.IsNotFound(err) {
		c.Errorf("UncordonAnnotated() of a node that does not exist: %v, want NotFound", err)
	}
}
