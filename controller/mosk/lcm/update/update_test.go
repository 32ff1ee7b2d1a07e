package update

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/maintenance"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// lab is an API with the reconcilers of updates and of items. It is the maintenance of
// nodes and, in agents, the agents.
type lab struct {
	*testing.T
	client.Client
	updates  *Clusters
	items    *lcm.Machines
	blocked  map[string]bool // machines whose drain waits
	failing  map[string]bool // machines whose items fail
	reboots  map[string]bool // machines whose update asks for a reboot
	cordoned map[string]bool
	most     map[string]int // cordoned at a time, by the first part of the names
	log      []string
	closed   int                // calls of LeaveCluster
	cached   []lcmv1.LCMMachine // the LCMMachines that the cache has, if it is late
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(name), Labels: map[string]string{clusterv1.ClusterNameLabel: "c1"}}
}

func script(version string) lcmv1.LCMStateItem {
	return lcmv1.LCMStateItem{Runner: lcmv1.RunnerBash, Name: "kubelet", Version: version, Phase: lcmv1.PhaseDeploy}
}

// pair returns a Machine of a group, and its LCMMachine, which has executed the items of v1.
func pair(name, group string, index *int32) []client.Object {
	m := &clusterv1.Machine{ObjectMeta: meta(name)}
	m.Labels[kaasv1.UpdateGroupLabel] = group
	m.Spec.ProviderSpec.Value.UpgradeIndex = index
	l := &lcmv1.LCMMachine{ObjectMeta: meta(name), Spec: lcmv1.LCMMachineSpec{ClusterName: "c1", Type: lcmv1.MachineWorker, StateItems: []lcmv1.LCMStateItem{script("v1")}}}
	if strings.HasPrefix(name, "control") {
		l.Spec.Type = lcmv1.MachineControl
	}
	l.Status.Addresses = []lcmv1.NodeAddress{{Type: lcmv1.AddressInternalIP, Address: "192.0.2.1"}}
	l.Status.StateItemStatuses = map[string]lcmv1.StateItemStatus{"kubelet": {Hash: item.Hash(script("v1"), ""), Attempt: 1}}
	return []client.Object{m, l}
}

func updateGroup(name string, index, concurrent int, reboot bool) *kaasv1.UpdateGroup {
	return &kaasv1.UpdateGroup{ObjectMeta: meta(name), Spec: kaasv1.UpdateGroupSpec{Index: index, ConcurrentUpdates: concurrent, RebootIfUpdateRequires: reboot}}
}

// start starts a lab whose LCMCluster has new items for all machines.
func start(t *testing.T, limit int, objects ...client.Object) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(kaasv1.AddToScheme(scheme), lcmv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := &lcmv1.LCMCluster{ObjectMeta: meta("c1"), Spec: lcmv1.LCMClusterSpec{
		LCMType: lcmv1.LCMTypeK0s, MaxWorkerUpgradeCount: limit,
		MachinesTypes: map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineControl: {script("v2")}, lcmv1.MachineWorker: {script("v2")}},
	}}
	l := &lab{T: t, blocked: map[string]bool{}, failing: map[string]bool{}, reboots: map[string]bool{}, cordoned: map[string]bool{}, most: map[string]int{}}
	l.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, c)...).WithStatusSubresource(&clusterv1.Machine{}, &lcmv1.LCMMachine{}, &lcmv1.LCMCluster{}).Build()
	var err error
	late := interceptor.NewClient(l.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if all, ok := list.(*lcmv1.LCMMachineList); ok && l.cached != nil {
				all.Items = slices.Clone(l.cached)
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
	l.updates, err = New(Config{Client: late, Maintenance: l, Work: queue.Work{Clock: clock.RealClock{}}})
	l.must(err)
	l.items, err = lcm.NewMachines(lcm.Config{Client: l.Client, Work: queue.Work{Clock: clock.RealClock{}}})
	l.must(err)
	return l
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) all() []lcmv1.LCMMachine {
	l.Helper()
	var list lcmv1.LCMMachineList
	l.must(l.List(l.Context(), &list))
	return list.Items
}

func (l *lab) state(key client.ObjectKey, state lcmv1.DrainState) {
	l.Helper()
	var m lcmv1.LCMMachine
	l.must(l.Get(l.Context(), key, &m))
	m.Status.KubernetesCordonDrain = state
	l.must(l.Status().Update(l.Context(), &m))
}

// Enter implements Maintainer.
func (l *lab) Enter(_ context.Context, r maintenance.Request) (maintenance.Progress, error) {
	if r.Reason != lcmv1.ReasonUpgrade {
		l.Errorf("reason %q, want upgrade", r.Reason)
	}
	name := r.Machine.Name
	if !l.cordoned[name] {
		l.log = append(l.log, "cordon "+name)
		l.cordoned[name] = true
	}
	count := map[string]int{}
	for n := range l.cordoned {
		group, _, _ := strings.Cut(n, "-")
		count[group]++
		l.most[group] = max(l.most[group], count[group])
		l.most[""] = max(l.most[""], len(l.cordoned))
	}
	if l.blocked[name] {
		l.state(r.Machine, lcmv1.CordonDraining)
		return maintenance.Progress{Stage: maintenance.StageDrained, After: 1}, nil
	}
	l.state(r.Machine, lcmv1.CordonDrained)
	return maintenance.Progress{Done: true}, nil
}

// Leave implements Maintainer.
func (l *lab) Leave(_ context.Context, r maintenance.Request) (maintenance.Progress, error) {
	delete(l.cordoned, r.Machine.Name)
	l.log = append(l.log, "uncordon "+r.Machine.Name)
	l.state(r.Machine, "")
	return maintenance.Progress{Done: true}, nil
}

// LeaveCluster implements Maintainer.
func (l *lab) LeaveCluster(context.Context, client.ObjectKey, string) (maintenance.Progress, error) {
	l.closed++
	return maintenance.Progress{Done: true}, nil
}

// agent is what the agent of a machine does.
func (l *lab) agent(m lcmv1.LCMMachine) {
	l.Helper()
	for _, it := range m.Spec.StateItems {
		if item.Ready(it, m.Status.StateItemStatuses, "") || l.failing[m.Name] {
			continue
		}
		if !l.cordoned[m.Name] {
			l.Errorf("%s gets the item %s %s while its node is in service", m.Name, it.Name, it.Version)
		}
		m.Status.StateItemStatuses[it.Name] = lcmv1.StateItemStatus{Hash: item.Hash(it, ""), Attempt: 1}
		m.Status.HostInfo = &lcmv1.HostInfo{RebootRequired: l.reboots[m.Name]}
		l.log = append(l.log, "update "+m.Name)
	}
	switch {
	case m.Spec.RebootRequired && (m.Status.Reboot == nil || !m.Status.Reboot.Completed):
		l.log = append(l.log, "reboot "+m.Name)
		m.Status.Reboot, m.Status.HostInfo = &lcmv1.RebootStatus{Completed: true}, &lcmv1.HostInfo{}
	case !m.Spec.RebootRequired:
		m.Status.Reboot = nil
	}
	l.must(l.Status().Update(l.Context(), &m))
}

func (l *lab) passes(n int) {
	l.Helper()
	for range n {
		_, err := l.updates.Reconcile(l.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "lab", Name: "c1"}})
		l.must(err)
		for _, m := range l.all() {
			_, err := l.items.Reconcile(l.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&m)})
			l.must(err)
		}
		for _, m := range l.all() {
			l.agent(m)
		}
	}
}

// updated returns the machines in the order of their updates.
func (l *lab) updated() (out []string) {
	for _, line := range l.log {
		if name, ok := strings.CutPrefix(line, "update "); ok {
			out = append(out, name)
		}
	}
	return out
}

// statement H37: with every limit, no more nodes are cordoned than maxWorkerUpgradeCount,
// and all machines are updated in the order of their upgradeIndex, out of service.
func TestNeverMoreCordonedThanTheLimit(t *testing.T) {
	for limit := 1; limit <= 4; limit++ {
		var objects []client.Object
		for i := range 5 {
			objects = append(objects, pair(fmt.Sprintf("w-%d", i), "", ptr.To(int32(9-i)))...)
		}
		l := start(t, limit, objects...)
		l.passes(40)
		if l.most[""] != limit {
			t.Errorf("limit %d: %d nodes were cordoned at a time", limit, l.most[""])
		}
		got := l.updated()
		if limit == 1 && !slices.Equal(got, []string{"w-4", "w-3", "w-2", "w-1", "w-0"}) || len(got) != 5 {
			t.Errorf("limit %d: updated %v, want all by upgradeIndex", limit, got)
		}
		for _, m := range l.all() {
			if item.Behind(l.cluster(), &m) || m.Annotations[item.UpdatingAnnotation] != "" || l.cordoned[m.Name] {
				t.Errorf("limit %d: %s has %+v, annotations %v, cordoned %t after the update", limit, m.Name, m.Spec.StateItems, m.Annotations, l.cordoned[m.Name])
			}
		}
		if l.closed != 1 {
			t.Errorf("limit %d: the request of the cluster's maintenance was removed %d times, want once", limit, l.closed)
		}
	}
}

func (l *lab) cluster() *lcmv1.LCMCluster {
	l.Helper()
	c := new(lcmv1.LCMCluster)
	l.must(l.Get(l.Context(), client.ObjectKey{Namespace: "lab", Name: "c1"}, c))
	return c
}

// statement H37: the control plane comes first, then UpdateGroups by index; those with the
// same index are updated at the same time, each with its own concurrentUpdates.
func TestUpdateGroups(t *testing.T) {
	objects := []client.Object{
		updateGroup("late", 7, 2, false), updateGroup("a", 3, 1, false), updateGroup("b", 3, 2, false), updateGroup("c1-default", 9, 3, false),
	}
	for name, group := range map[string]string{
		"late-0": "late", "late-1": "late", "a-0": "a", "a-1": "a", "b-0": "b", "b-1": "b", "b-2": "b",
		"control-0": "late", "control-1": "", "w-0": "", "w-1": "no such group", "w-2": "",
	} {
		objects = append(objects, pair(name, group, nil)...)
	}
	l := start(t, 1, objects...)
	l.passes(60)
	var stages []string
	for _, name := range l.updated() {
		groupName, _, _ := strings.Cut(name, "-")
		stage := map[string]string{"control": "control", "a": "3", "b": "3", "late": "7", "w": "9"}[groupName]
		if len(stages) == 0 || stages[len(stages)-1] != stage {
			stages = append(stages, stage)
		}
	}
	if diff := cmp.Diff([]string{"control", "3", "7", "9"}, stages); diff != "" || len(l.updated()) != 12 {
		t.Errorf("updated %v, stages (-want +got):\n%s", l.updated(), diff)
	}
	want := map[string]int{"control": 1, "a": 1, "b": 2, "late": 2, "w": 3, "": 3}
	if diff := cmp.Diff(want, l.most); diff != "" {
		t.Errorf("most nodes cordoned at a time (-want +got):\n%s", diff)
	}
}

// statement H37: a machine that cannot be drained, or whose items fail, occupies its place
// until it is repaired, and no other machine gets new items meanwhile.
func TestMachineThatIsNotUpdatedStopsTheOthers(t *testing.T) {
	for _, what := range []string{"drain", "items", "reboot of another", "withdrawn reboot of another", "deletion of another"} {
		l := start(t, 1, slices.Concat(pair("w-0", "", nil), pair("w-1", "", nil))...)
		switch what {
		case "drain":
			l.blocked["w-0"] = true
		case "items":
			l.failing["w-0"] = true
		case "reboot of another":
			m := l.all()[1]
			m.Annotations = map[string]string{item.GracefulRebootAnnotation: "true"}
			l.must(l.Update(t.Context(), &m))
		case "withdrawn reboot of another":
			m := l.all()[1]
			m.Annotations = map[string]string{item.HeldForRebootAnnotation: "true"}
			l.must(l.Update(t.Context(), &m))
		case "deletion of another":
			l.state(client.ObjectKey{Namespace: "lab", Name: "w-1"}, lcmv1.CordonDraining)
		}
		l.passes(10)
		if got := l.updated(); len(got) > 0 || l.most[""] > 1 {
			t.Errorf("%s: updated %v, %d cordoned", what, got, l.most[""])
		}
		clear(l.blocked)
		clear(l.failing)
		l.passes(20)
		if what == "drain" || what == "items" {
			if got := l.updated(); !slices.Equal(got, []string{"w-0", "w-1"}) {
				t.Errorf("%s: updated %v after the repair, want both", what, got)
			}
		}
	}
}

// A machine whose update has ended is not taken out of service for the next one as it was: marked.
// Nothing would give it the items, since it is not marked any longer.
func TestLateCacheDoesNotTakeAMachineOutOfService(t *testing.T) {
	l := start(t, 1, pair("w-0", "", nil)...)
	for range 20 {
		l.passes(1)
		if slices.Contains(l.log, "update w-0") {
			break
		}
	}
	was := l.all() // marked, and its items are done
	l.passes(1)
	if slices.Contains(slices.Collect(maps.Keys(l.all()[0].Annotations)), item.UpdatingAnnotation) || was[0].Annotations[item.UpdatingAnnotation] == "" {
		t.Fatalf("annotations %v, then %v: want the mark, then none", was[0].Annotations, l.all()[0].Annotations)
	}
	c := l.cluster()
	c.Spec.MachinesTypes[lcmv1.MachineWorker] = []lcmv1.LCMStateItem{script("v3")}
	l.must(l.Update(t.Context(), c))
	l.cached = was
	l.passes(1)
	l.cached = nil
	l.passes(10)
	want := []string{"cordon w-0", "update w-0", "uncordon w-0", "cordon w-0", "update w-0", "uncordon w-0"}
	if diff := cmp.Diff(want, l.log); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

// statement H37: rebootIfUpdateRequires reboots a machine that its update has asked to
// reboot while its node is out of service; without it, nothing reboots.
func TestRebootOfAnUpdate(t *testing.T) {
	l := start(t, 1, append(slices.Concat(pair("a-0", "a", nil), pair("b-0", "b", nil)), updateGroup("a", 1, 1, true), updateGroup("b", 2, 1, false))...)
	l.reboots["a-0"], l.reboots["b-0"] = true, true
	l.passes(30)
	want := []string{"cordon a-0", "update a-0", "reboot a-0", "uncordon a-0", "cordon b-0", "update b-0", "uncordon b-0"}
	if diff := cmp.Diff(want, l.log); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	for _, m := range l.all() {
		if m.Spec.RebootRequired {
			t.Errorf("%s has rebootRequired still", m.Name)
		}
	}
}

func TestNewNeedsItsFields(t *testing.T) {
	if _, err := New(Config{Work: queue.Work{Clock: clock.RealClock{}, Queues: &queue.Monitor{}}}); err == nil {
		t.Error("New() without a client has no error")
	}
}

// upgraded returns a lab whose machines, with the items of v1, come from a release to r2.
func upgraded(t *testing.T, from string, reboot bool, items lcmv1.LCMStateItem) *lab {
	t.Helper()
	l := start(t, 1, slices.Concat(pair("w-0", "", nil), pair("w-1", "", nil))...)
	c := l.cluster()
	c.Spec.Release, c.Spec.NodesRebootRequired = "r2", reboot
	c.Spec.MachinesTypes[lcmv1.MachineWorker] = []lcmv1.LCMStateItem{items}
	l.must(l.Update(t.Context(), c))
	for _, m := range l.all() {
		m.Spec.Release = "r2"
		l.must(l.Update(t.Context(), &m))
		m.Status.Release = from
		l.must(l.Status().Update(t.Context(), &m))
	}
	return l
}

// nodesRebootRequired reboots each machine that comes from another release, once, after its items
// and while its node is out of service; also where the release changes no item of the machine.
func TestUpgradeThatNeedsAReboot(t *testing.T) {
	for _, tt := range []struct {
		name, from string
		reboot     bool
		items      lcmv1.LCMStateItem
		want       string // of each machine
	}{
		{"other items", "r1", true, script("v2"), "cordon, update, reboot, uncordon"},
		{"the same items", "r1", true, script("v1"), "cordon, reboot, uncordon"},
		{"not required", "r1", false, script("v2"), "cordon, update, uncordon"},
		{"not required, the same items", "r1", false, script("v1"), ""},
		{"the release of before", "r2", true, script("v1"), ""},
		{"no release", "", true, script("v1"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := upgraded(t, tt.from, tt.reboot, tt.items)
			l.passes(40)
			var want []string
			for _, name := range []string{"w-0", "w-1"} {
				for _, what := range strings.Fields(strings.ReplaceAll(tt.want, ",", "")) {
					want = append(want, what+" "+name)
				}
			}
			if diff := cmp.Diff(want, l.log); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
			for _, m := range l.all() {
				if m.Spec.RebootRequired || m.Status.Release != "r2" || m.Annotations[item.UpdatingAnnotation] != "" {
					t.Errorf("%s: rebootRequired %t, release %q, annotations %v", m.Name, m.Spec.RebootRequired, m.Status.Release, m.Annotations)
				}
			}
		})
	}
}

// A node that still drains is not rebooted.
func TestRebootWaitsForTheDrain(t *testing.T) {
	l := upgraded(t, "r1", true, script("v1"))
	l.blocked["w-0"] = true
	l.passes(10)
	if want := []string{"cordon w-0"}; !slices.Equal(l.log, want) {
		t.Errorf("while the drain waits: %v, want %v", l.log, want)
	}
	l.blocked = map[string]bool{}
	l.passes(30)
	if want := []string{"cordon w-0", "reboot w-0", "uncordon w-0", "cordon w-1", "reboot w-1", "uncordon w-1"}; !slices.Equal(l.log, want) {
		t.Errorf("after it: %v, want %v", l.log, want)
	}
}

// The status of an earlier reboot would end the next one at once: its demand waits until the agent
// has removed it.
func TestRebootWaitsForTheEndOfTheOneBefore(t *testing.T) {
	l := upgraded(t, "r1", true, script("v1"))
	m := l.all()[0]
	m.Annotations = map[string]string{item.UpdatingAnnotation: "true"}
	m.Status.KubernetesCordonDrain = lcmv1.CordonDrained
	for _, tt := range []struct {
		status *lcmv1.RebootStatus
		want   action
	}{{&lcmv1.RebootStatus{Completed: true}, stepEnter}, {nil, stepReboot}} {
		m.Status.Reboot = tt.status
		if got := decide(facts{cluster: *l.cluster(), machines: []target{{LCMMachine: &m}}}); len(got) != 1 || got[0].do != tt.want {
			t.Errorf("reboot %+v: steps %+v, want %s", tt.status, got, tt.want)
		}
	}
}
