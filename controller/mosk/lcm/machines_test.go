package lcm

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	lcm "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

var (
	script    = lcm.LCMStateItem{Runner: lcm.RunnerBash, Name: "swap", Version: "v2", Phase: lcm.PhaseDeploy, Params: map[string]string{"args": "-v"}}
	itemsHOC  = item.HostOS("test", "sample", "1.0.0", lcm.PhaseReconfigure)
	key       = client.ObjectKey{Namespace: "lab", Name: "w-0"}
	overwrite = map[string]map[string]string{itemsHOC[0].Name: {"url": "a"}, itemsHOC[1].Name: {"playbook": "main.yaml"}, "gone": {"a": "b"}}
)

func lcmCluster() *lcm.LCMCluster {
	return &lcm.LCMCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "c1"}, Spec: lcm.LCMClusterSpec{
		LCMType: lcm.LCMTypeK0s,
		MachinesTypes: map[lcm.MachineType][]lcm.LCMStateItem{
			lcm.MachineControl: {itemsHOC[0], itemsHOC[1]}, lcm.MachineWorker: {script, itemsHOC[0], itemsHOC[1]},
		},
	}}
}

func machine(change func(*lcm.LCMMachine)) *lcm.LCMMachine {
	m := &lcm.LCMMachine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	m.Spec = lcm.LCMMachineSpec{ClusterName: "c1", Type: lcm.MachineWorker, StateItemsOverwrites: overwrite}
	m.Status.Addresses = []lcm.NodeAddress{{Type: lcm.AddressInternalIP, Address: "10.0.0.5"}}
	change(m)
	return m
}

// api is an API that counts the writes of objects and of statuses.
type api struct {
	client.Client
	specs, statuses int
}

func start(t *testing.T, objects ...client.Object) (*api, *Machines) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := lcm.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	a := &api{}
	a.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&lcm.LCMMachine{}).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			a.specs++
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			a.statuses++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}).Build()
	r, err := NewMachines(Config{Client: a, Work: queue.Work{Clock: clock.RealClock{}}})
	if err != nil {
		t.Fatal(err)
	}
	return a, r
}

// reconciled reconciles the machine and returns it.
func (a *api) reconciled(t *testing.T, r *Machines) *lcm.LCMMachine {
	t.Helper()
	if result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil || result != (ctrl.Result{}) {
		t.Fatalf("Reconcile = %+v, %v", result, err)
	}
	m := new(lcm.LCMMachine)
	if err := a.Get(t.Context(), key, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// statements H13 and H36: the items of a machine, and its state, with one write of each.
func TestItemsAndStateOfAMachine(t *testing.T) {
	with := func(it lcm.LCMStateItem, params map[string]string) lcm.LCMStateItem {
		it.Params = params
		return it
	}
	hocs := []lcm.LCMStateItem{with(itemsHOC[0], map[string]string{"url": "a"}), with(itemsHOC[1], map[string]string{"playbook": "main.yaml"})}
	results := func(its ...lcm.LCMStateItem) map[string]lcm.StateItemStatus {
		out := map[string]lcm.StateItemStatus{}
		for _, it := range its {
			out[it.Name] = lcm.StateItemStatus{Hash: item.Hash(it, ""), Attempt: 1}
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		change func(*lcm.LCMMachine)
		items  []lcm.LCMStateItem
		state  lcm.MachineState
	}{
		{"worker", func(*lcm.LCMMachine) {}, []lcm.LCMStateItem{script, hocs[0], hocs[1]}, lcm.StateDeploy},
		{"assigned by its labels", func(m *lcm.LCMMachine) {
			m.Spec.ClusterName, m.Spec.Type, m.Labels = "", lcm.MachineUnassigned, map[string]string{"cluster.sigs.k8s.io/cluster-name": "c1"}
		}, []lcm.LCMStateItem{script, hocs[0], hocs[1]}, lcm.StateDeploy},
		{"assigned by its labels, of the control plane", func(m *lcm.LCMMachine) {
			m.Spec.ClusterName, m.Spec.Type = "", ""
			m.Labels = map[string]string{"cluster.sigs.k8s.io/cluster-name": "c1", "cluster.sigs.k8s.io/control-plane": "controlplane"}
		}, hocs, lcm.StateReconfigure},
		{"not assigned", func(m *lcm.LCMMachine) { m.Spec.ClusterName, m.Spec.Type = "", lcm.MachineUnassigned }, nil, lcm.StateUninitialized},
		{"that has deployed", func(m *lcm.LCMMachine) { m.Status.StateItemStatuses = results(script, itemsHOC[0]) }, []lcm.LCMStateItem{script, hocs[0], hocs[1]}, lcm.StateReconfigure},
		{"that is done", func(m *lcm.LCMMachine) { m.Status.StateItemStatuses = results(script, hocs[0], hocs[1]) }, []lcm.LCMStateItem{script, hocs[0], hocs[1]}, lcm.StateReady},
		{"that is not selected", func(m *lcm.LCMMachine) { m.Spec.StateItemsOverwrites = nil }, []lcm.LCMStateItem{script}, lcm.StateDeploy},
		{"control", func(m *lcm.LCMMachine) { m.Spec.Type = lcm.MachineControl }, hocs, lcm.StateReconfigure},
		{"bastion", func(m *lcm.LCMMachine) { m.Spec.Type = lcm.MachineBastion }, nil, lcm.StateReady},
		{"without an address", func(m *lcm.LCMMachine) { m.Status.Addresses = nil }, []lcm.LCMStateItem{script, hocs[0], hocs[1]}, lcm.StateUninitialized},
		{"of a cluster that does not exist", func(m *lcm.LCMMachine) {
			m.Spec.ClusterName, m.Spec.LCMType, m.Spec.StateItems = "c2", lcm.LCMTypeK0s, hocs
		}, hocs, lcm.StateReconfigure},
	} {
		a, r := start(t, lcmCluster(), machine(tt.change))
		m := a.reconciled(t, r)
		if diff := cmp.Diff(tt.items, m.Spec.StateItems); diff != "" {
			t.Errorf("%s: items (-want +got):\n%s", tt.name, diff)
		}
		if m.Status.State != tt.state {
			t.Errorf("%s: state %s, want %s", tt.name, m.Status.State, tt.state)
		}
		if a.specs > 1 || a.statuses != 1 {
			t.Errorf("%s: %d writes of the object, %d of its status, want at most one", tt.name, a.specs, a.statuses)
		}
		specs := a.specs
		if a.reconciled(t, r); a.specs != specs || a.statuses != 1 {
			t.Errorf("%s: a second reconcile has written", tt.name)
		}
	}
}

// A machine that may not have the LCMCluster's release yet stays with the items of its own,
// and host OS items follow. It has a release once it is Ready with the items of that.
func TestReleaseOfAMachine(t *testing.T) {
	c := lcmCluster()
	c.Spec.Release = "mosk-2"
	old := script
	old.Version = "v1"
	hocs := item.Merge(itemsHOC, overwrite)
	done := func(its ...lcm.LCMStateItem) map[string]lcm.StateItemStatus {
		out := map[string]lcm.StateItemStatus{}
		for _, it := range its {
			out[it.Name] = lcm.StateItemStatus{Hash: item.Hash(it, ""), Attempt: 1}
		}
		return out
	}
	for _, tt := range []struct {
		name, release string
		results       []lcm.LCMStateItem
		items         []lcm.LCMStateItem
		reached       string
	}{
		{"that waits", "mosk-1", []lcm.LCMStateItem{old, hocs[0], hocs[1]}, []lcm.LCMStateItem{old, hocs[0], hocs[1]}, "mosk-1"},
		{"in service", "mosk-2", []lcm.LCMStateItem{old, hocs[0], hocs[1]}, []lcm.LCMStateItem{old, hocs[0], hocs[1]}, "mosk-1"},
		{"that is upgraded", "mosk-2", []lcm.LCMStateItem{old, hocs[0], hocs[1]}, []lcm.LCMStateItem{script, hocs[0], hocs[1]}, "mosk-1"},
		{"that was upgraded", "mosk-2", []lcm.LCMStateItem{script, hocs[0], hocs[1]}, []lcm.LCMStateItem{script, hocs[0], hocs[1]}, "mosk-2"},
	} {
		a, r := start(t, c.DeepCopy(), machine(func(m *lcm.LCMMachine) {
			m.Spec.Release, m.Status.Release = tt.release, "mosk-1"
			if tt.name != "in service" { // else its node is drained for the update
				m.Annotations, m.Status.KubernetesCordonDrain = map[string]string{item.UpdatingAnnotation: "true"}, lcm.CordonDrained
			}
			m.Spec.StateItems = []lcm.LCMStateItem{old, {Runner: lcm.RunnerAnsible, Name: "host-os-gone-reconfigure", Version: "v1", Phase: lcm.PhaseReconfigure, Params: map[string]string{"a": "b"}}}
			m.Status.StateItemStatuses = done(tt.results...)
		}))
		m := a.reconciled(t, r)
		if diff := cmp.Diff(tt.items, m.Spec.StateItems); diff != "" {
			t.Errorf("%s: items (-want +got):\n%s", tt.name, diff)
		}
		if m.Status.Release != tt.reached || a.specs != 1 || a.statuses != 1 {
			t.Errorf("%s: release %q, %d writes of the object, %d of its status, want %q and one each", tt.name, m.Status.Release, a.specs, a.statuses, tt.reached)
		}
	}
}

// A change of the LCMCluster reaches its machines.
func TestMachinesOfAnLCMCluster(t *testing.T) {
	other := machine(func(m *lcm.LCMMachine) { m.Name, m.Spec.ClusterName = "w-1", "c2" })
	far := machine(func(m *lcm.LCMMachine) { m.Namespace = "other" })
	labeled := machine(func(m *lcm.LCMMachine) {
		m.Name, m.Spec.ClusterName, m.Labels = "w-2", "", map[string]string{"cluster.sigs.k8s.io/cluster-name": "c1"}
	})
	_, r := start(t, lcmCluster(), machine(func(*lcm.LCMMachine) {}), other, far, labeled)
	if got := r.machinesOf(t.Context(), lcmCluster()); len(got) != 2 || got[0].NamespacedName != key || got[1].Name != labeled.Name {
		t.Errorf("machinesOf = %v, want %s and %s", got, key, labeled.Name)
	}
}

func TestNewMachinesWithoutAClientReturnsAnError(t *testing.T) {
	if _, err := NewMachines(Config{}); err == nil {
		t.Error("no error")
	}
}
