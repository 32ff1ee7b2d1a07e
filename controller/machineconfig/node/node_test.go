package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

const (
	before = "rendered-worker-1"
	after  = "rendered-worker-2"
	image  = "registry.example.org/os/worker@sha256:1111111111111111111111111111111111111111111111111111111111111111"
)

var epoch = time.Unix(1_800_000_000, 0)

// node returns a Ready node that has the configuration before; changes complete it.
func node(name string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), Labels: map[string]string{"node-role.kubernetes.io/worker": ""}, CreationTimestamp: metav1.NewTime(epoch),
			Annotations: map[string]string{machineconfig.CurrentConfig: before, machineconfig.DesiredConfig: before, machineconfig.State: machineconfig.Done},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, c := range changes {
		c(n)
	}
	return n
}

func annotated(kv ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for i := 0; i < len(kv); i += 2 {
			if n.Annotations[kv[i]] = kv[i+1]; kv[i+1] == "" {
				delete(n.Annotations, kv[i])
			}
		}
	}
}

func zone(z string, age time.Duration) func(*corev1.Node) {
	return func(n *corev1.Node) {
		if n.CreationTimestamp = metav1.NewTime(epoch.Add(-age)); z != "" {
			n.Labels[corev1.LabelTopologyZone] = z
		}
	}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }
func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

func names(nodes []*corev1.Node) (out []string) {
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return out
}

// TestMaxUnavailableIsRoundedDownToAtLeastOne shows statement M8.
func TestMaxUnavailableIsRoundedDownToAtLeastOne(t *testing.T) {
	v := func(s string) *intstr.IntOrString { x := intstr.Parse(s); return &x }
	for _, tt := range []struct {
		v     *intstr.IntOrString
		nodes int
		want  int
	}{{nil, 5, 1}, {v("1"), 5, 1}, {v("30%"), 5, 1}, {v("0"), 5, 1}, {v("100%"), 5, 5}, {v("40%"), 5, 2}, {v("59%"), 5, 2}, {v("3"), 5, 3}, {v("many"), 5, 1}} {
		if got := MaxUnavailable(tt.v, tt.nodes); got != tt.want {
			t.Errorf("MaxUnavailable(%v, %d) = %d, want %d", tt.v, tt.nodes, got, tt.want)
		}
	}
}

func TestChoose(t *testing.T) {
	to := target{config: after}
	working := annotated(machineconfig.DesiredConfig, after, machineconfig.State, machineconfig.Working)
	failing := annotated(machineconfig.DesiredConfig, after, machineconfig.State, machineconfig.Degraded)
	failingOld := annotated(machineconfig.DesiredConfig, "rendered-worker-bad", machineconfig.State, machineconfig.Degraded)
	unreconcilable := annotated(machineconfig.DesiredConfig, "rendered-worker-bad", machineconfig.State, machineconfig.Unreconcilable)
	drained := annotated(machineconfig.DesiredDrain, "drain-rendered-worker-bad", machineconfig.LastAppliedDrain, "drain-rendered-worker-bad")
	joins := annotated(machineconfig.CurrentConfig, "", machineconfig.DesiredConfig, "", machineconfig.State, "")
	pressed := func(n *corev1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue})
	}
	for _, tt := range []struct {
		name     string // with the statement that it shows
		nodes    []*corev1.Node
		limit    int
		operator string
		want     []string
		deferred string
	}{
		{"as many as the limit", []*corev1.Node{node("a"), node("b"), node("c")}, 2, "", []string{"a", "b"}, ""},
		{"none while one is updated", []*corev1.Node{node("a", working), node("b")}, 1, "", nil, ""},
		{"statement M9: NotReady and cordoned nodes count", []*corev1.Node{node("a", notReady), node("b", cordoned), node("c"), node("d"), node("e")}, 3, "", []string{"c"}, ""},
		{"statement M9: they are not chosen", []*corev1.Node{node("a", notReady), node("b", cordoned), node("c", pressed)}, 5, "", nil, ""},
		{"statement M10: by zone, then age, then without zone", []*corev1.Node{node("a"), node("b", zone("z2", 5)), node("c", zone("z1", 1)), node("d", zone("z1", 3))}, 4, "", []string{"d", "c", "b", "a"}, ""},
		{"statement M10: the operator's node is last", []*corev1.Node{node("a"), node("b")}, 1, "a", []string{"b"}, "a"},
		{"statement M10: the operator's node, when it is alone", []*corev1.Node{node("a")}, 1, "a", []string{"a"}, ""},
		{"statement M11: a node that fails on another configuration gets this one", []*corev1.Node{node("a", failingOld), node("b", unreconcilable)}, 1, "", []string{"a"}, ""},
		{"statement M11: also after its drain, without capacity", []*corev1.Node{node("a", failingOld, drained, cordoned), node("b")}, 1, "", []string{"a"}, ""},
		{"a node that fails on this one counts", []*corev1.Node{node("a", failing), node("b"), node("c")}, 2, "", []string{"b"}, ""},
		{"a node that joins needs no capacity", []*corev1.Node{node("a", joins), node("b", working)}, 1, "", []string{"a"}, ""},
		{"updated nodes take nothing", []*corev1.Node{node("a", annotated(machineconfig.DesiredConfig, after, machineconfig.CurrentConfig, after)), node("b")}, 1, "", []string{"b"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := choose(tt.nodes, to, tt.limit, tt.operator)
			if diff := cmp.Diff(tt.want, names(got.nodes)); diff != "" || got.deferred != tt.deferred {
				t.Errorf("choose(limit %d): deferred %q, want %q; (-want +got):\n%s", tt.limit, got.deferred, tt.deferred, diff)
			}
		})
	}
}

// TestDoneNeedsEqualImages shows statement M12: both images are absent, or they are equal.
func TestDoneNeedsEqualImages(t *testing.T) {
	to := target{config: before, image: image}
	layered := annotated(machineconfig.DesiredOSImage, image, machineconfig.DesiredImage, image, machineconfig.CurrentImage, image)
	for _, tt := range []struct {
		name string
		n    *corev1.Node
		to   target
		want bool
	}{
		{"no image", node("a"), target{config: before}, true},
		{"image", node("a", layered), to, true},
		{"image not booted", node("a", layered, annotated(machineconfig.CurrentImage, "")), to, false},
		{"image under one name", node("a", layered, annotated(machineconfig.DesiredImage, "")), to, false},
		{"image to leave", node("a", layered, annotated(machineconfig.DesiredOSImage, "", machineconfig.DesiredImage, "")), target{config: before}, false},
		{"other configuration", node("a"), target{config: after}, false},
		{"not uncordoned", node("a", annotated(machineconfig.DesiredDrain, "uncordon-"+before, machineconfig.LastAppliedDrain, "drain-"+before)), target{config: before}, false},
		{"uncordoned", node("a", annotated(machineconfig.DesiredDrain, "uncordon-"+before, machineconfig.LastAppliedDrain, "uncordon-"+before)), target{config: before}, true},
		{"state Working", node("a", annotated(machineconfig.State, machineconfig.Working)), target{config: before}, false},
	} {
		if got := (state{tt.n}).updated(tt.to); got != tt.want {
			t.Errorf("%s: updated = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func pool(name string) *mcv1.MachineConfigPool {
	p := &mcv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"},
		Spec:       mcv1.MachineConfigPoolSpec{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + name: ""}}},
	}
	p.Spec.Configuration.Name = after
	return p
}

func TestNodesAreInOnePool(t *testing.T) {
	m := newMembership([]mcv1.MachineConfigPool{*pool("worker"), *pool("master"), *pool("infra"), *pool("gpu")})
	role := func(roles ...string) *corev1.Node {
		n := node("n")
		n.Labels = map[string]string{}
		for _, r := range roles {
			n.Labels["node-role.kubernetes.io/"+r] = ""
		}
		return n
	}
	for _, tt := range []struct {
		roles []string
		want  string // "" is none
		err   string
	}{
		{[]string{"worker"}, "worker", ""}, {[]string{"worker", "infra"}, "infra", ""}, {[]string{"worker", "master"}, "master", ""}, {nil, "", ""},
		{[]string{"worker", "infra", "gpu"}, "", "matches the MachineConfigPools gpu, infra"}, {[]string{"master", "gpu"}, "", "matches the MachineConfigPools gpu, master"},
	} {
		p, err := m.of(role(tt.roles...))
		got := ""
		if p != nil {
			got = p.Name
		}
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("pool of a node with the roles %q = %q, %v; want %q, %q", tt.roles, got, err, tt.want, tt.err)
		}
	}
}

// world is the API as the controller sees it.
type world struct {
	client.WithWatch
	r       *Reconciler
	patches []string // patches of Nodes
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	if err := mcv1.Install(s); err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	w := &world{}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).
		WithStatusSubresource(&mcv1.MachineConfigPool{}, &mcv1.MachineOSConfig{}, &mcv1.MachineOSBuild{}, &mcv1.MachineConfigNode{}).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if n, ok := o.(*corev1.Node); ok {
				b, err := p.Data(n)
				if err != nil {
					return err
				}
				w.patches = append(w.patches, n.Name+" "+string(b))
			}
			return c.Patch(ctx, o, p, opts...)
		}}).Build()
	r, err := New(Config{Client: c, Reader: c, Work: queue.Work{Clock: clocktesting.NewFakeClock(epoch)}})
	if err != nil {
		t.Fatal(err)
	}
	w.WithWatch, w.r = c, r
	return w
}

func (w *world) reconcile(t *testing.T, name string) *mcv1.MachineConfigPool {
	t.Helper()
	if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}}); err != nil {
		t.Fatalf("Reconcile(%s): %v", name, err)
	}
	p := new(mcv1.MachineConfigPool)
	if err := w.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *world) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	n := new(corev1.Node)
	if err := w.Get(t.Context(), client.ObjectKey{Name: name}, n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *world) change(t *testing.T, o client.Object, change func()) {
	t.Helper()
	change()
	if err := w.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// updating checks the conditions Updated and Updating.
func updating(t *testing.T, p *mcv1.MachineConfigPool, updated, updating bool, message string) {
	t.Helper()
	for conditionType, want := range map[mcv1.MachineConfigPoolConditionType]bool{mcv1.MachineConfigPoolUpdated: updated, mcv1.MachineConfigPoolUpdating: updating} {
		if got := machineconfig.ConditionIsTrue(p, conditionType); got != want {
			t.Errorf("%s = %v, want %v", conditionType, got, want)
		}
	}
	conditionType := mcv1.MachineConfigPoolUpdating
	if updated {
		conditionType = mcv1.MachineConfigPoolUpdated
	}
	if c := machineconfig.Condition(p, conditionType); c == nil || !strings.Contains(c.Message, message) {
		t.Errorf("%s = %+v, want a message with %q", conditionType, c, message)
	}
}

// TestPausedPoolLeavesItsNodes shows statement M7.
func TestPausedPoolLeavesItsNodes(t *testing.T) {
	p := pool("worker")
	p.Spec.Paused = true
	w := newWorld(t, p, node("a"))
	updating(t, w.reconcile(t, "worker"), false, false, "Pool is paused; will not update to MachineConfig "+after)
	if len(w.patches) > 0 {
		t.Errorf("nodes of a paused pool got %q, want nothing", w.patches)
	}
	p = w.reconcile(t, "worker")
	w.change(t, p, func() { p.Spec.Paused = false })
	updating(t, w.reconcile(t, "worker"), false, true, "All nodes are updating to MachineConfig "+after)
	if got := w.node(t, "a").Annotations[machineconfig.DesiredConfig]; got != after {
		t.Errorf("desiredConfig = %q, want %q after the pause", got, after)
	}
}

// TestRolloutNeverExceedsTheLimit rolls out to 20 nodes whose daemons end in another order than
// they began, with a cache that is late by one reconcile (statements M8 and M12).
func TestRolloutNeverExceedsTheLimit(t *testing.T) {
	p := pool("worker")
	v := intstr.FromString("30%")
	p.Spec.MaxUnavailable = &v
	objects := []client.Object{p}
	for i := range 20 {
		objects = append(objects, node(fmt.Sprintf("n-%02d", i)))
	}
	w := newWorld(t, objects...)
	most, ended := 0, 0
	for round := 0; ended < 20; round++ {
		if round > 100 {
			t.Fatalf("%d of 20 nodes are updated after %d rounds", ended, round)
		}
		w.reconcile(t, "worker")
		var list corev1.NodeList
		if err := w.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		var busy []*corev1.Node
		ended = 0
		for i := range list.Items {
			switch n := &list.Items[i]; {
			case n.Annotations[machineconfig.CurrentConfig] == after:
				ended++
			case n.Annotations[machineconfig.DesiredConfig] == after:
				busy = append(busy, n)
			}
		}
		if most = max(most, len(busy)); len(busy) > 0 {
			n := busy[len(busy)-1]
			w.change(t, n, func() { n.Annotations[machineconfig.CurrentConfig] = after })
		}
	}
	if most != 6 {
		t.Errorf("%d nodes at a time, want 6: 30%% of 20", most)
	}
	updating(t, w.reconcile(t, "worker"), true, false, "All nodes are updated with MachineConfig "+after)
	for _, n := range []string{"n-00", "n-19"} {
		if taints := w.node(t, n).Spec.Taints; len(taints) > 0 {
			t.Errorf("taints of %s = %v, want none after the update", n, taints)
		}
	}
}

func TestOutdatedNodesAreTainted(t *testing.T) {
	w := newWorld(t, pool("worker"), node("a"), node("b"))
	w.reconcile(t, "worker")
	for _, n := range []string{"a", "b"} {
		if taints := w.node(t, n).Spec.Taints; !cmp.Equal(taints, []corev1.Taint{machineconfig.UpdateTaint}) {
			t.Errorf("taints of %s = %v, want %v", n, taints, machineconfig.UpdateTaint)
		}
	}
	if got := w.node(t, "b").Annotations[machineconfig.DesiredConfig]; got != before {
		t.Errorf("desiredConfig of the second node = %s, want %s: the limit is 1", got, before)
	}
}

// osConfig returns the MachineOSConfig of a pool whose build is current, and a build of the
// configuration after with a condition.
func osConfig(progress mcv1.BuildProgress, current string) (*mcv1.MachineOSConfig, *mcv1.MachineOSBuild) {
	c := &mcv1.MachineOSConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "worker", Annotations: map[string]string{machineconfig.CurrentBuildAnnotation: current}},
		Spec:       mcv1.MachineOSConfigSpec{MachineConfigPool: mcv1.MachineConfigPoolReference{Name: "worker"}},
		Status:     mcv1.MachineOSConfigStatus{CurrentImagePullSpec: image},
	}
	b := &mcv1.MachineOSBuild{
		ObjectMeta: metav1.ObjectMeta{Name: "worker-2", Labels: map[string]string{machineconfig.TargetPoolLabel: "worker"}},
		Spec:       mcv1.MachineOSBuildSpec{MachineConfig: mcv1.MachineConfigReference{Name: after}, MachineOSConfig: mcv1.MachineOSConfigReference{Name: "worker"}},
	}
	if progress != "" {
		b.Status.Conditions = []metav1.Condition{{Type: string(progress), Status: metav1.ConditionTrue}}
	}
	if progress == mcv1.MachineOSBuildSucceeded {
		b.Status.DigestedImagePushSpec = image
	}
	return c, b
}

// TestLayeredPoolWaitsForItsImage shows statements M25 and M27: no node gets the configuration before
// the build of exactly it has succeeded and its image is the MachineOSConfig's.
func TestLayeredPoolWaitsForItsImage(t *testing.T) {
	for _, tt := range []struct {
		name     string
		progress mcv1.BuildProgress
		current  string
		change   func(*mcv1.MachineOSConfig, *mcv1.MachineOSBuild)
		updating bool
		message  string
	}{
		{"no build", "", "", func(_ *mcv1.MachineOSConfig, b *mcv1.MachineOSBuild) { b.Spec.MachineConfig.Name = before }, true, "Pool is waiting for a new OS image build to start (mosc: worker)"},
		{"build without conditions", "", "", nil, true, "OS image build to start (mosb: worker-2)"},
		{"prepared", mcv1.MachineOSBuildPrepared, "", nil, true, "OS image build to start (mosb: worker-2)"},
		{"building", mcv1.MachineOSBuilding, "", nil, true, "OS image build to complete (mosb: worker-2)"},
		{"succeeded, not handed on", mcv1.MachineOSBuildSucceeded, "worker-1", nil, true, "OS image build to complete (mosb: worker-2)"},
		{"another image", mcv1.MachineOSBuildSucceeded, "worker-2", func(c *mcv1.MachineOSConfig, _ *mcv1.MachineOSBuild) { c.Status.CurrentImagePullSpec = "other" }, true, "OS image build to complete (mosb: worker-2)"},
		{"spec not observed", mcv1.MachineOSBuildSucceeded, "worker-2", func(c *mcv1.MachineOSConfig, _ *mcv1.MachineOSBuild) { c.Generation = 2 }, true, "OS image build to complete (mosb: worker-2)"},
		{"failed", mcv1.MachineOSBuildFailed, "worker-1", nil, false, "MachineOSBuild worker-2 of " + after + " has not succeeded"},
		{"interrupted", mcv1.MachineOSBuildInterrupted, "worker-1", nil, false, "MachineOSBuild worker-2 of " + after + " has not succeeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, b := osConfig(tt.progress, tt.current)
			if tt.change != nil {
				tt.change(c, b)
			}
			w := newWorld(t, pool("worker"), node("a"), c, b)
			updating(t, w.reconcile(t, "worker"), false, tt.updating, tt.message)
			if len(w.patches) > 0 {
				t.Errorf("nodes got %q, want nothing", w.patches)
			}
		})
	}
}

// TestConfigurationAndImageAreInOnePatch shows statement M28.
func TestConfigurationAndImageAreInOnePatch(t *testing.T) {
	c, b := osConfig(mcv1.MachineOSBuildSucceeded, "worker-2")
	w := newWorld(t, pool("worker"), node("a"), c, b)
	updating(t, w.reconcile(t, "worker"), false, true, "with OS image "+image)
	if len(w.patches) != 1 {
		t.Fatalf("%d patches of the node, want one: %q", len(w.patches), w.patches)
	}
	var p struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(w.patches[0], "a ")), &p); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{machineconfig.DesiredConfig: after, machineconfig.DesiredOSImage: image, machineconfig.DesiredImage: image}
	if diff := cmp.Diff(want, p.Metadata.Annotations); diff != "" {
		t.Errorf("annotations of the patch (-want +got):\n%s", diff)
	}
	var m mcv1.MachineConfigNode
	if err := w.Get(t.Context(), client.ObjectKey{Name: "a"}, &m); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t, "worker") // reads its own writes
	if err := w.Get(t.Context(), client.ObjectKey{Name: "a"}, &m); err != nil || m.Spec.ConfigVersion.Desired != after || string(m.Spec.ConfigImage.DesiredImage) != image || m.Spec.Pool.Name != "worker" {
		t.Errorf("MachineConfigNode = %+v, %v; want the configuration, the image and the pool", m.Spec, err)
	}
}

// TestDefinitionWithoutImagesIsNotWrittenAgain has an API that drops spec.configImage of
// MachineConfigNodes, as upstream's default definition does.
func TestDefinitionWithoutImagesIsNotWrittenAgain(t *testing.T) {
	c, b := osConfig(mcv1.MachineOSBuildSucceeded, "worker-2")
	w := newWorld(t, pool("worker"), node("a"), c, b)
	writes := 0
	drops := interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if m, ok := o.(*mcv1.MachineConfigNode); ok {
				writes++
				m.Spec.ConfigImage = mcv1.MachineConfigNodeSpecConfigImage{}
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			err := c.Patch(ctx, o, p, opts...)
			if m, ok := o.(*mcv1.MachineConfigNode); ok && err == nil {
				writes++
				m.Spec.ConfigImage = mcv1.MachineConfigNodeSpecConfigImage{}
				err = c.Update(ctx, m)
			}
			return err
		},
	}
	r, err := New(Config{Client: interceptor.NewClient(w.WithWatch, drops), Reader: w.WithWatch, Work: queue.Work{Clock: clocktesting.NewFakeClock(epoch)}})
	if err != nil {
		t.Fatal(err)
	}
	w.r = r
	for range 2 { // the first look writes the MachineConfigNode, and the second one its new target
		w.reconcile(t, "worker")
	}
	before := writes
	w.reconcile(t, "worker")
	w.reconcile(t, "worker")
	var m mcv1.MachineConfigNode
	if err := w.Get(t.Context(), client.ObjectKey{Name: "a"}, &m); err != nil || m.Spec.ConfigVersion.Desired != after {
		t.Fatalf("MachineConfigNode = %+v, %v; want the configuration %s", m.Spec, err, after)
	}
	if writes != before {
		t.Errorf("%d writes of a MachineConfigNode that is right, want none", writes-before)
	}
}

// TestOptOutRemovesTheImage shows statement M37: the limit holds, and the configuration stays.
func TestOptOutRemovesTheImage(t *testing.T) {
	layered := annotated(machineconfig.CurrentConfig, after, machineconfig.DesiredConfig, after, machineconfig.DesiredOSImage, image, machineconfig.DesiredImage, image, machineconfig.CurrentImage, image)
	w := newWorld(t, pool("worker"), node("a", layered), node("b", layered))
	updating(t, w.reconcile(t, "worker"), false, true, "All nodes are updating to")
	a := w.node(t, "a").Annotations
	if a[machineconfig.DesiredOSImage]+a[machineconfig.DesiredImage] != "" || a[machineconfig.DesiredConfig] != after {
		t.Errorf("annotations of the first node = %v, want the configuration without an image", a)
	}
	if got := w.node(t, "b").Annotations[machineconfig.DesiredOSImage]; got != image {
		t.Errorf("desiredOSimage of the second node = %q, want %q: the limit is 1", got, image)
	}
}

// TestMovedNodeAdoptsItsPool shows statement M42.
func TestMovedNodeAdoptsItsPool(t *testing.T) {
	infra := pool("infra")
	infra.Spec.Configuration.Name = "rendered-infra-1"
	c, b := osConfig(mcv1.MachineOSBuildSucceeded, "worker-2")
	layered := annotated(machineconfig.CurrentConfig, after, machineconfig.DesiredConfig, after, machineconfig.DesiredOSImage, image, machineconfig.DesiredImage, image, machineconfig.CurrentImage, image)
	w := newWorld(t, pool("worker"), infra, node("a", layered), c, b)
	if p := w.reconcile(t, "worker"); p.Status.UpdatedMachineCount != 1 {
		t.Errorf("updatedMachineCount of worker = %d, want 1", p.Status.UpdatedMachineCount)
	}
	n := w.node(t, "a")
	w.change(t, n, func() { n.Labels["node-role.kubernetes.io/infra"] = "" })
	if p := w.reconcile(t, "infra"); p.Status.MachineCount != 1 {
		t.Errorf("machineCount of infra = %d, want 1", p.Status.MachineCount)
	}
	a := w.node(t, "a").Annotations
	if a[machineconfig.DesiredConfig] != "rendered-infra-1" || a[machineconfig.DesiredOSImage] != "" {
		t.Errorf("annotations of the moved node = %v, want the configuration of infra without an image", a)
	}
	if p := w.reconcile(t, "worker"); p.Status.MachineCount != 0 {
		t.Errorf("machineCount of worker = %d, want 0", p.Status.MachineCount)
	}
}

// TestEmptySelectorSelectsNothing shows that the event SelectingAll is all that follows.
func TestEmptySelectorSelectsNothing(t *testing.T) {
	p := pool("worker")
	p.Spec.NodeSelector = &metav1.LabelSelector{}
	w := newWorld(t, p, node("a"))
	w.reconcile(t, "worker")
	var events corev1.EventList
	if err := w.List(t.Context(), &events); err != nil || len(events.Items) != 1 || events.Items[0].Reason != "SelectingAll" {
		t.Errorf("events = %v, %v; want SelectingAll", events.Items, err)
	}
	if len(w.patches) > 0 {
		t.Errorf("nodes got %q, want nothing", w.patches)
	}
}

// TestDegradedNodesAreReported shows statement M15 at the pool: NodeDegraded has the reason of the node.
func TestDegradedNodesAreReported(t *testing.T) {
	w := newWorld(t, pool("worker"), node("a", annotated(machineconfig.DesiredConfig, after, machineconfig.State, machineconfig.Unreconcilable, machineconfig.Reason, "disks differ")), node("b"))
	p := w.reconcile(t, "worker")
	c := machineconfig.Condition(p, mcv1.MachineConfigPoolNodeDegraded)
	if c == nil || c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, `Node a is reporting: "disks differ"`) || p.Status.DegradedMachineCount != 1 {
		t.Errorf("NodeDegraded = %+v, count %d; want the reason of node a", c, p.Status.DegradedMachineCount)
	}
	if !machineconfig.ConditionIsTrue(p, mcv1.MachineConfigPoolDegraded) {
		t.Error("Degraded is not True")
	}
}

func TestOperatorNodeIsDeferred(t *testing.T) {
	p := pool("master")
	operator := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: machineconfig.Namespace, Name: "o", Labels: map[string]string{"k8s-app": "machine-config-operator"}}, Spec: corev1.PodSpec{NodeName: "a"}}
	control := func(n *corev1.Node) { n.Labels = map[string]string{"node-role.kubernetes.io/master": ""} }
	w := newWorld(t, p, operator, node("a", control), node("b", control))
	w.reconcile(t, "master")
	if a, b := w.node(t, "a").Annotations[machineconfig.DesiredConfig], w.node(t, "b").Annotations[machineconfig.DesiredConfig]; a != before || b != after {
		t.Errorf("desiredConfig = %s and %s, want the node of the operator last", a, b)
	}
	var events corev1.EventList
	if err := w.List(t.Context(), &events); err != nil || !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "DeferringOperatorNodeUpdate" }) {
		t.Errorf("events = %v, %v; want DeferringOperatorNodeUpdate", events.Items, err)
	}
}
