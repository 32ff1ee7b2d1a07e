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

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

var (
	script    = lcmv1.LCMStateItem{Runner: lcmv1.RunnerBash, Name: "swap", Version: "v2", Phase: lcmv1.PhaseDeploy, Params: map[string]string{"args": "-v"}}
	itemsHOC  = item.HostOS("test", "sample", "1.0.0", lcmv1.PhaseReconfigure)
	key       = client.ObjectKey{Namespace: "lab", Name: "w-0"}
	overwrite = map[string]map[string]string{itemsHOC[0].Name: {"url": "a"}, itemsHOC[1].Name: {"playbook": "main.yaml"}, "gone": {"a": "b"}}
)

func lcmCluster() *lcmv1.LCMCluster {
	return &lcmv1.LCMCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "c1"}, Spec: lcmv1.LCMClusterSpec{
		LCMType: lcmv1.LCMTypeK0s,
		MachinesTypes: map[lcmv1.MachineType][]lcmv1.LCMStateItem{
			lcmv1.MachineControl: {itemsHOC[0], itemsHOC[1]}, lcmv1.MachineWorker: {script, itemsHOC[0], itemsHOC[1]},
		},
	}}
}

func machine(change func(*lcmv1.LCMMachine)) *lcmv1.LCMMachine {
	m := &lcmv1.LCMMachine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	m.Spec = lcmv1.LCMMachineSpec{ClusterName: "c1", Type: lcmv1.MachineWorker, StateItemsOverwrites: overwrite}
	m.Status.Addresses = []lcmv1.NodeAddress{{Type: lcmv1.AddressInternalIP, Address: "10.0.0.5"}}
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
	if err := lcmv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	a := &api{}
	a.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&lcmv1.LCMMachine{}).WithInterceptorFuncs(interceptor.Funcs{
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
func (a *api) reconciled(t *testing.T, r *Machines) *lcmv1.LCMMachine {
	t.Helper()
	if result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil || result != (ctrl.Result{}) {
		t.Fatalf("Reconcile = %+v, %v", result, err)
	}
	m := new(lcmv1.LCMMachine)
	if err := a.Get(t.Context(), key, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// statements H13 and H36: the items of a machine, and its state, with one write of each.
func TestItemsAndStateOfAMachine(t *testing.T) {
	with := func(it lcmv1.LCMStateItem, params map[string]string) lcmv1.LCMStateItem {
		it.Params = params
		return it
	}
	hocs := []lcmv1.LCMStateItem{with(itemsHOC[0], map[string]string{"url": "a"}), with(itemsHOC[1], map[string]string{"playbook": "main.yaml"})}
	results := func(its ...lcmv1.LCMStateItem) map[string]lcmv1.StateItemStatus {
		out := map[string]lcmv1.StateItemStatus{}
		for _, it := range its {
			out[it.Name] = lcmv1.StateItemStatus{Hash: item.Hash(it, ""), Attempt: 1}
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		change func(*lcmv1.LCMMachine)
		items  []lcmv1.LCMStateItem
		state  lcmv1.MachineState
	}{
		{"worker", func(*lcmv1.LCMMachine) {}, []lcmv1.LCMStateItem{script, hocs[0], hocs[1]}, lcmv1.StateDeploy},
		{"assigned by its labels", func(m *lcmv1.LCMMachine) {
			m.Spec.ClusterName, m.Spec.Type, m.Labels = "", lcmv1.MachineUnassigned, map[string]string{"cluster.sigs.k8s.io/cluster-name": "c1"}
		}, []lcmv1.LCMStateItem{script, hocs[0], hocs[1]}, lcmv1.StateDeploy},
		{"assigned by its labels, of the control plane", func(m *lcmv1.LCMMachine) {
			m.Spec.ClusterName, m.Spec.Type = "", ""
			m.Labels = map[string]string{"cluster.sigs.k8s.io/cluster-name": "c1", "cluster.sigs.k8s.io/control-plane": "controlplane"}
		}, hocs, lcmv1.StateReconfigure},
		{"not assigned", func(m *lcmv1.LCMMachine) { m.Spec.ClusterName, m.Spec.Type = "", lcmv1.MachineUnassigned }, nil, lcmv1.StateUninitialized},
		{"that has deployed", func(m *lcmv1.LCMMachine) { m.Status.StateItemStatuses = results(script, itemsHOC[0]) }, []lcmv1.LCMStateItem{script, hocs[0], hocs[1]}, lcmv1.StateReconfigure},
		{"that is done", func(m *lcmv1.LCMMachine) { m.Status.StateItemStatuses = results(script, hocs[0], hocs[1]) }, []lcmv1.LCMStateItem{script, hocs[0], hocs[1]}, lcmv1.StateReady},
		{"that is not selected", func(m *lcmv1.LCMMachine) { m.Spec.StateItemsOverwrites = nil }, []lcmv1.LCMStateItem{script}, lcmv1.StateDeploy},
		{"control", func(m *lcmv1.LCMMachine) { m.Spec.Type = lcmv1.MachineControl }, hocs, lcmv1.StateReconfigure},
		{"bastion", func(m *lcmv1.LCMMachine) { m.Spec.Type = lcmv1.MachineBastion }, nil, lcmv1.StateReady},
		{"without an address", func(m *lcmv1.LCMMachine) { m.Status.Addresses = nil }, []lcmv1.LCMStateItem{script, hocs[0], hocs[1]}, lcmv1.StateUninitialized},
		{"of a cluster that does not exist", func(m *lcmv1.LCMMachine) {
			m.Spec.ClusterName, m.Spec.LCMType, m.Spec.StateItems = "c2", lcmv1.LCMTypeK0s, hocs
		}, hocs, lcmv1.StateReconfigure},
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
	done := func(its ...lcmv1.LCMStateItem) map[string]lcmv1.StateItemStatus {
		out := map[string]lcmv1.StateItemStatus{}
		for _, it := range its {
			out[it.Name] = lcmv1.StateItemStatus{Hash: item.Hash(it, ""), Attempt: 1}
		}
		return out
	}
	for _, tt := range []struct {
		name, release string
		results       []lcmv1.LCMStateItem
		items         []lcmv1.LCMStateItem
		reached       string
	}{
		{"that waits", "mosk-1", []lcmv1.LCMStateItem{old, hocs[0], hocs[1]}, []lcmv1.LCMStateItem{old, hocs[0], hocs[1]}, "mosk-1"},
		{"in service", "mosk-2", []lcmv1.LCMStateItem{old, hocs[0], hocs[1]}, []lcmv1.LCMStateItem{old, hocs[0], hocs[1]}, "mosk-1"},
		{"that is upgraded", "mosk-2", []lcmv1.LCMStateItem{old, hocs[0], hocs[1]}, []lcmv1.LCMStateItem{script, hocs[0], hocs[1]}, "mosk-1"},
		{"that was upgraded", "mosk-2", []lcmv1.LCMStateItem{script, hocs[0], hocs[1]}, []lcmv1.LCMStateItem{script, hocs[0], hocs[1]}, "mosk-2"},
	} {
		a, r := start(t, c.DeepCopy(), machine(func(m *lcmv1.LCMMachine) {
			m.Spec.Release, m.Status.Release = tt.release, "mosk-1"
			if tt.name != "in service" { // else its node is drained for the update
				m.Annotations, m.Status.KubernetesCordonDrain = map[string]string{item.UpdatingAnnotation: "true"}, lcmv1.CordonDrained
			}
			m.Spec.StateItems = []lcmv1.LCMStateItem{old, {Runner: lcmv1.RunnerAnsible, Name: "host-os-gone-reconfigure", Version: "v1", Phase: lcmv1.PhaseReconfigure, Params: map[string]string{"a": "b"}}}
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

// A machine that has to be rebooted for a release has it after the reboot alone.
func TestReleaseWaitsForTheReboot(t *testing.T) {
	c := lcmCluster()
	c.Spec.Release, c.Spec.NodesRebootRequired = "mosk-2", true
	for _, tt := range []struct {
		was, rebooted, want string
	}{{"mosk-1", "", "mosk-1"}, {"mosk-1", "mosk-1", "mosk-1"}, {"mosk-1", "mosk-2", "mosk-2"}, {"", "", "mosk-2"}} {
		a, r := start(t, c.DeepCopy(), machine(func(m *lcmv1.LCMMachine) {
			m.Spec.Release, m.Status.Release, m.Spec.StateItemsOverwrites = "mosk-2", tt.was, nil
			m.Annotations = map[string]string{item.UpdatingAnnotation: "true", item.RebootedAnnotation: tt.rebooted}
			m.Status.KubernetesCordonDrain = lcmv1.CordonDrained
			m.Status.StateItemStatuses = map[string]lcmv1.StateItemStatus{script.Name: {Hash: item.Hash(script, ""), Attempt: 1}}
		}))
		if m := a.reconciled(t, r); m.Status.Release != tt.want || m.Status.State != lcmv1.StateReady {
			t.Errorf("a machine of %q that was rebooted for %q: release %q, %s; want %q", tt.was, tt.rebooted, m.Status.Release, m.Status.State, tt.want)
		}
	}
}

// A worker gets the items of a release that has a phase prepare when it may be prepared. Until then
// one that is new has none, and one that is being deployed keeps those of before.
func TestItemsWaitForThePreparation(t *testing.T) {
	c := lcmCluster()
	c.Spec.MaxWorkerPrepareCount = 1
	prepare := lcmv1.LCMStateItem{Runner: lcmv1.RunnerDownloader, Name: "download", Version: "v1", Phase: lcmv1.PhasePrepare}
	for kind := range c.Spec.MachinesTypes {
		c.Spec.MachinesTypes[kind] = append([]lcmv1.LCMStateItem{prepare}, c.Spec.MachinesTypes[kind]...)
	}
	old := script
	old.Version = "v1"
	hocs := item.Merge(itemsHOC, overwrite)
	all := []lcmv1.LCMStateItem{prepare, script, hocs[0], hocs[1]}
	for _, tt := range []struct {
		name   string
		change func(*lcmv1.LCMMachine)
		want   []lcmv1.LCMStateItem
		state  lcmv1.MachineState
	}{
		{"new", func(*lcmv1.LCMMachine) {}, nil, lcmv1.StatePending},
		{"waiting", func(m *lcmv1.LCMMachine) {
			m.Annotations = map[string]string{item.PreparingAnnotation: item.AwaitsPreparation}
		}, nil, lcmv1.StatePending},
		{"with a place", func(m *lcmv1.LCMMachine) {
			m.Annotations = map[string]string{item.PreparingAnnotation: item.Preparing}
		}, all, lcmv1.StateDeploy},
		{"being deployed", func(m *lcmv1.LCMMachine) { m.Spec.StateItems = []lcmv1.LCMStateItem{old} }, []lcmv1.LCMStateItem{old, hocs[0], hocs[1]}, lcmv1.StateDeploy},
		{"prepared", func(m *lcmv1.LCMMachine) {
			m.Status.StateItemStatuses = map[string]lcmv1.StateItemStatus{prepare.Name: {Hash: item.Hash(prepare, ""), Attempt: 1}}
		}, all, lcmv1.StateDeploy},
		{"control plane", func(m *lcmv1.LCMMachine) { m.Spec.Type = lcmv1.MachineControl }, []lcmv1.LCMStateItem{prepare, hocs[0], hocs[1]}, lcmv1.StateReconfigure},
	} {
		a, r := start(t, c.DeepCopy(), machine(tt.change))
		m := a.reconciled(t, r)
		if diff := cmp.Diff(tt.want, m.Spec.StateItems); diff != "" || m.Status.State != tt.state {
			t.Errorf("%s: %s, want %s; items (-want +got):\n%s", tt.name, m.Status.State, tt.state, diff)
		}
	}
}

// The demanded versions of components follow with the items of the release. An LCMCluster without any
// leaves those of the machine.
func TestComponentsOfAMachine(t *testing.T) {
	for _, tt := range []struct{ cluster, release, want string }{{"3.7", "mosk-2", "3.7"}, {"3.7", "mosk-1", "3.6"}, {"", "mosk-2", "3.6"}} {
		c := lcmCluster()
		c.Spec.Release, c.Spec.Components.UCPVersion = "mosk-2", tt.cluster
		a, r := start(t, c, machine(func(m *lcmv1.LCMMachine) { m.Spec.Release, m.Spec.Components.UCPVersion = tt.release, "3.6" }))
		if got := a.reconciled(t, r).Spec.Components.UCPVersion; got != tt.want {
			t.Errorf("LCMCluster with %q, machine with %s: %q, want %q", tt.cluster, tt.release, got, tt.want)
		}
	}
}

// A change of the LCMCluster reaches its machines.
func TestMachinesOfAnLCMCluster(t *testing.T) {
	other := machine(func(m *lcmv1.LCMMachine) { m.Name, m.Spec.ClusterName = "w-1", "c2" })
	far := machine(func(m *lcmv1.LCMMachine) { m.Namespace = "other" })
	labeled := machine(func(m *lcmv1.LCMMachine) {
		m.Name, m.Spec.ClusterName, m.Labels = "w-2", "", map[string]string{"cluster.sigs.k8s.io/cluster-name": "c1"}
	})
	_, r := start(t, lcmCluster(), machine(func(*lcmv1.LCMMachine) {}), other, far, labeled)
	if got := r.machinesOf(t.Context(), lcmCluster()); len(got) != 2 || got[0].NamespacedName != key || got[1].Name != labeled.Name {
		t.Errorf("machinesOf = %v, want %s and %s", got, key, labeled.Name)
	}
}

func TestNewMachinesWithoutAClientReturnsAnError(t *testing.T) {
	if _, err := NewMachines(Config{}); err == nil {
		t.Error("no error")
	}
}
