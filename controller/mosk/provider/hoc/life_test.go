package hoc

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// The names of the items of the object test with the module sample.
const (
	download = "host-os-download-test-sample-1.0.0-reconfigure"
	playbook = "host-os-test-sample-1.0.0-reconfigure"
)

func empty(runner lcmv1.Runner, name string) lcmv1.LCMStateItem {
	return lcmv1.LCMStateItem{Runner: runner, Name: name, Version: "v1", Phase: lcmv1.PhaseReconfigure}
}

func unlabel(m *clusterv1.Machine) { m.Labels = nil }

// statements H11, H12 and H13: two of three workers are selected.
func TestItemsReachTheClusterAndSelectedMachines(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("sample", "1.0.0", `{"b": 1, "a": {"z": 1.50, "y": "<"}}`))}, worker("w-0"), worker("w-1"), worker("w-2"))...)
	l.machine("w-2", unlabel)
	writes := l.settle()
	its := []lcmv1.LCMStateItem{empty(lcmv1.RunnerDownloader, download), empty(lcmv1.RunnerAnsible, playbook)}
	want := map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineControl: its, lcmv1.MachineWorker: {releaseItem, its[0], its[1]}}
	if diff := cmp.Diff(want, get(l, "c1", new(lcmv1.LCMCluster)).Spec.MachinesTypes); diff != "" {
		t.Errorf("machinesTypes (-want +got):\n%s", diff)
	}
	overwrites := map[string]map[string]string{
		download: {"url": "http://repo.example/sample-1.0.0.tgz", "sha256": "5asample", "path": "/root/host-os-modules/sample-1.0.0"},
		playbook: {"playbook": "main.yaml", "ansible": "/usr/bin/ansible-playbook", "sha256": "5asample", "path": "/root/host-os-modules/sample-1.0.0", "values": `{"a":{"y":"<","z":1.5},"b":1}`},
	}
	its[0].Params, its[1].Params = overwrites[download], overwrites[playbook]
	for _, name := range []string{"w-0", "w-1"} {
		m := l.lcmMachine(name)
		if diff := cmp.Diff(overwrites, m.Spec.StateItemsOverwrites); diff != "" {
			t.Errorf("overwrites of %s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]lcmv1.LCMStateItem{releaseItem, its[0], its[1]}, m.Spec.StateItems); diff != "" {
			t.Errorf("items of %s (-want +got):\n%s", name, diff)
		}
	}
	other := l.lcmMachine("w-2")
	if diff := cmp.Diff([]lcmv1.LCMStateItem{releaseItem}, other.Spec.StateItems); diff != "" || other.Spec.StateItemsOverwrites != nil {
		t.Errorf("w-2 has overwrites %v, items (-want +got):\n%s", other.Spec.StateItemsOverwrites, diff)
	}
	statuses := map[string]map[string]kaasv1.ConfigItemStatus{"sample-1.0.0": {download: {State: kaasv1.ItemNotStarted}, playbook: {State: kaasv1.ItemNotStarted}}}
	state := kaasv1.ConfigMachineState{ObservedGeneration: 1, Selected: true, ConfigStateItemsStatuses: statuses}
	o := l.hoc("test")
	if diff := cmp.Diff(map[string]kaasv1.ConfigMachineState{"lab/w-0": state, "lab/w-1": state}, o.Status.MachinesStates); diff != "" {
		t.Errorf("machinesStates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{download, playbook}, o.Status.StateItems); diff != "" || !cmp.Equal(o.Finalizers, []string{Finalizer}) {
		t.Errorf("finalizers %q, stateItems (-want +got):\n%s", o.Finalizers, diff)
	}
	for what, n := range writes {
		if n != 1 {
			t.Errorf("%s was written %d times, want once", what, n)
		}
	}
}

// statements H9 and H10: an empty selector and the machines of another namespace. The LCMCluster
// has the placeholders of all objects in its namespace.
func TestSelectorSelectsNoMachine(t *testing.T) {
	placeholders := []string{releaseItem.Name, download, playbook}
	for name, tt := range map[string]struct {
		change func(*kaasv1.HostOSConfiguration)
		items  []string // of the LCMCluster
	}{
		"empty":               {func(o *kaasv1.HostOSConfiguration) { o.Spec.MachineSelector = metav1.LabelSelector{} }, placeholders},
		"empty, but not nil":  {func(o *kaasv1.HostOSConfiguration) { o.Spec.MachineSelector.MatchLabels = map[string]string{} }, placeholders},
		"another namespace":   {func(o *kaasv1.HostOSConfiguration) { o.Namespace = "other" }, []string{releaseItem.Name}},
		"label of no machine": {func(o *kaasv1.HostOSConfiguration) { o.Spec.MachineSelector.MatchLabels["a"] = "b" }, placeholders},
	} {
		o := hoc("test", config("sample", "1.0.0", ""))
		tt.change(o)
		l := start(t, objects([]client.Object{lcmCluster(), o}, worker("w-0"))...)
		l.settle()
		var listed []string
		for _, it := range get(l, "c1", new(lcmv1.LCMCluster)).Spec.MachinesTypes[lcmv1.MachineWorker] {
			listed = append(listed, it.Name)
			if it.Name != releaseItem.Name && it.Params != nil {
				t.Errorf("%s: the item %s of the LCMCluster has params", name, it.Name)
			}
		}
		if !slices.Equal(listed, tt.items) {
			t.Errorf("%s: the LCMCluster has %v, want %v", name, listed, tt.items)
		}
		if m := l.lcmMachine("w-0"); m.Spec.StateItemsOverwrites != nil || len(m.Spec.StateItems) != 1 {
			t.Errorf("%s: overwrites %v, items %v", name, m.Spec.StateItemsOverwrites, m.Spec.StateItems)
		}
		var current kaasv1.HostOSConfiguration
		if err := l.Get(t.Context(), client.ObjectKeyFromObject(o), &current); err != nil || current.Status.MachinesStates != nil {
			t.Errorf("%s: machinesStates %v, %v", name, current.Status.MachinesStates, err)
		}
	}
}

// statement H17: by order, then as listed; and several objects by their age.
func TestOrderOfItems(t *testing.T) {
	second, first := config("b", "1.0.0", ""), config("c", "1.0.0", "")
	second.Order, first.Order = ptr.To[int32](2), ptr.To[int32](1)
	l := start(t, objects([]client.Object{
		lcmCluster(), hoc("z", config("a", "1.0.0", ""), second, first, config("0", "1.0.0", "")), hoc("y", config("d", "1.0.0", ""))}, worker("w-0"))...)
	l.settle()
	want := []string{releaseItem.Name}
	for _, name := range []string{"z-c", "z-b", "z-a", "z-0", "y-d"} {
		want = append(want, "host-os-download-"+name+"-1.0.0-reconfigure", "host-os-"+name+"-1.0.0-reconfigure")
	}
	if diff := cmp.Diff(want, l.items("w-0")); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if got := l.run("w-0")["w-0"]; !cmp.Equal(want, got) {
		t.Errorf("executed %q, want %q", got, want)
	}
}

// statement H14: items of an earlier valid generation stay, whatever the object is now.
func TestInvalidConfigurationChangesNothing(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("sample", "1.0.0", `{"a":1}`))}, worker("w-0"))...)
	l.run("w-0")
	before, cl := l.lcmMachine("w-0"), get(l, "c1", new(lcmv1.LCMCluster))
	same := func(when string) {
		t.Helper()
		l.settle()
		if m := l.lcmMachine("w-0"); !cmp.Equal(m.Spec, before.Spec) || !cmp.Equal(get(l, "c1", new(lcmv1.LCMCluster)).Spec, cl.Spec) {
			t.Errorf("%s: the machine or the cluster has changed: %+v", when, m.Spec)
		}
		if s := l.hoc("test").Status.MachinesStates["lab/w-0"].ConfigStateItemsStatuses["sample-1.0.0"][playbook]; s.State != kaasv1.ItemSuccess {
			t.Errorf("%s: state %+v", when, s)
		}
	}
	l.edit("test", func(o *kaasv1.HostOSConfiguration) {
		o.Spec.Configs = []kaasv1.Config{config("other", "1.0.0", `{"a":2}`)}
		o.Spec.MachineSelector = metav1.LabelSelector{}
		o.Generation++
	})
	same("not validated")
	l.status("test", func(o *kaasv1.HostOSConfiguration) {
		validate(o)
		o.Status.IsValid = ptr.To(false)
	})
	same("not valid")
	l.edit("test", func(o *kaasv1.HostOSConfiguration) {
		o.Spec.Configs, o.Spec.MachineSelector = []kaasv1.Config{config("sample", "1.0.0", `{"a":"refused"}`)}, hoc("").Spec.MachineSelector
		o.Generation++
	})
	l.status("test", func(o *kaasv1.HostOSConfiguration) { o.Status.ObservedGeneration = o.Generation })
	same("not valid, with the items of before")
	l.status("test", func(o *kaasv1.HostOSConfiguration) {
		o.Status = kaasv1.HostOSConfigurationStatus{MachinesStates: o.Status.MachinesStates}
	})
	l.edit("test", func(o *kaasv1.HostOSConfiguration) {
		o.Spec.Configs = []kaasv1.Config{config("sample", "1.0.0", `{"a":1}`)}
	})
	same("without a status, as after a restore")
}

// statement H16: the distribution of a machine.
func TestDistributionThatTheModuleDoesNotSupport(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("sample", "1.0.0", ""), config("other", "1.0.0", ""))}, worker("w-0"))...)
	l.status("test", func(o *kaasv1.HostOSConfiguration) {
		o.Status.Configs[0].SupportedDistributions = []string{"ubuntu/jammy", "ubuntu/noble"}
	})
	others := []string{releaseItem.Name, "host-os-download-test-other-1.0.0-reconfigure", "host-os-test-other-1.0.0-reconfigure"}
	for _, tt := range []struct {
		distributions []string
		message       string
	}{
		{nil, "sample-1.0.0: the distribution is not reported yet: the module is for ubuntu/jammy, ubuntu/noble alone"},
		{[]string{"debian/bookworm"}, "sample-1.0.0: the distribution debian/bookworm is not one of ubuntu/jammy, ubuntu/noble"},
		{[]string{"ubuntu/noble"}, ""},
	} {
		m := l.lcmMachine("w-0")
		m.Status.Distribution = tt.distributions
		if err := l.Status().Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		l.settle()
		want := others
		if tt.message == "" {
			want = []string{releaseItem.Name, download, playbook, others[1], others[2]}
		}
		if diff := cmp.Diff(want, l.items("w-0")); diff != "" {
			t.Errorf("%q: items (-want +got):\n%s", tt.distributions, diff)
		}
		if s := l.hoc("test").Status.MachinesStates["lab/w-0"]; s.Message != tt.message || len(s.ConfigStateItemsStatuses) != len(want)/2 {
			t.Errorf("%q: state %+v, want message %q", tt.distributions, s, tt.message)
		}
	}
}

// statements H20 and H21: a Secret's new data are reported, and then executed; the machine has its
// name and the version of its data alone. Another label is no change.
func TestChangeOfASecret(t *testing.T) {
	c := config("sample", "1.0.0", "")
	c.SecretValues = &kaasv1.SecretReference{Name: "s"}
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("other", "1.0.0", ""), c)}, worker("w-0"))...)
	l.run("w-0")
	params := l.lcmMachine("w-0").Spec.StateItemsOverwrites[playbook]
	if params[item.ParamSecretRef] != "lab/s" || params[item.ParamSecretVersion] != "7" || params[item.ParamValues] != "" {
		t.Errorf("params %v", params)
	}
	if l.hoc("test").Status.MachinesStates["lab/w-0"].SecretValuesChanged {
		t.Error("secretValuesChanged is true before any change")
	}
	l.status("test", func(o *kaasv1.HostOSConfiguration) { o.Status.Configs[1].SecretObjectVersion = "10" })
	if got := l.run("w-0"); len(got["w-0"]) != 0 || l.hoc("test").Status.MachinesStates["lab/w-0"].SecretValuesChanged {
		t.Errorf("executed %v after another label, want nothing", got)
	}
	l.status("test", func(o *kaasv1.HostOSConfiguration) {
		o.Status.Configs[1].SecretObjectVersion, o.Status.Configs[1].SecretDataVersion = "11", "11"
	})
	// The machine is not changed before the change is reported.
	r, err := New(Config{Client: l, Work: queue.Work{}})
	if err == nil {
		t.Fatal("New without a clock returned no error")
	}
	r = &Reconcilers{machines: &machines{Config: Config{Client: l}}}
	l.each("provider", r.machines, &lcmv1.LCMMachineList{})
	if v := l.lcmMachine("w-0").Spec.StateItemsOverwrites[playbook][item.ParamSecretVersion]; v != "7" {
		t.Errorf("secretVersion %s before the change was reported, want 7", v)
	}
	l.settle()
	if s := l.hoc("test").Status.MachinesStates["lab/w-0"]; !s.SecretValuesChanged || s.ConfigStateItemsStatuses["sample-1.0.0"][playbook].State != kaasv1.ItemNotStarted {
		t.Errorf("state after the change: %+v", s)
	}
	if got := l.agent("w-0", func(lcmv1.LCMStateItem) int { return 2 }); !cmp.Equal(got, []string{playbook}) {
		t.Errorf("executed %q, want the playbook alone", got)
	}
	l.settle()
	if s := l.hoc("test").Status.MachinesStates["lab/w-0"]; !s.SecretValuesChanged {
		t.Errorf("state after the playbook has failed: %+v", s)
	}
	l.agent("w-0", succeed)
	l.settle()
	if s := l.hoc("test").Status.MachinesStates["lab/w-0"]; s.SecretValuesChanged || s.ConfigStateItemsStatuses["sample-1.0.0"][playbook].State != kaasv1.ItemSuccess {
		t.Errorf("state after the playbook has succeeded: %+v", s)
	}
}

// statement H22: items are withheld from one machine, and the others proceed.
func TestMachineThatIsNotReady(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("sample", "1.0.0", `{"a":1}`))}, worker("w-0"), worker("w-1"), worker("w-2"))...)
	maintenance := func(on bool) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Spec.ProviderSpec.Value.Maintenance = on }
	}
	l.machine("w-1", maintenance(true))
	l.run("w-0", "w-1", "w-2")
	if s := l.hoc("test").Status.MachinesStates["lab/w-1"]; s.Message != "the machine is in maintenance" || s.ObservedGeneration != 0 || !s.Selected {
		t.Errorf("state of w-1: %+v", s)
	}
	if m := l.lcmMachine("w-1"); m.Spec.StateItemsOverwrites != nil || l.lcmMachine("w-0").Status.State != lcmv1.StateReady {
		t.Errorf("overwrites of w-1: %v", m.Spec.StateItemsOverwrites)
	}
	l.machine("w-2", maintenance(true))
	l.change("test", func(o *kaasv1.HostOSConfiguration) { o.Spec.Configs[0].Values.Raw = []byte(`{"a":2}`) })
	if got := l.run("w-0", "w-2"); len(got["w-0"]) != 1 || len(got["w-2"]) != 0 {
		t.Errorf("executed %v, want the change on w-0 alone", got)
	}
	if s := l.hoc("test").Status.MachinesStates["lab/w-2"]; s.ObservedGeneration != 1 || s.ConfigStateItemsStatuses["sample-1.0.0"][playbook].State != kaasv1.ItemSuccess {
		t.Errorf("state of w-2, which has the earlier generation: %+v", s)
	}
	l.machine("w-1", maintenance(false))
	l.machine("w-2", maintenance(false))
	if got := l.run("w-0", "w-1", "w-2"); len(got["w-0"]) != 0 || len(got["w-1"]) != 2 || len(got["w-2"]) != 1 {
		t.Errorf("executed after the maintenance: %v", got)
	}
	if s := l.hoc("test").Status.MachinesStates["lab/w-2"]; s.ObservedGeneration != 2 || s.Message != "" {
		t.Errorf("state of w-2 after the maintenance: %+v", s)
	}
}

// statements H23 and H24: from Not Started to Success, by way of a failure.
func TestStatesOfItems(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("sample", "1.0.0", ""), config("other", "1.0.0", ""))}, worker("w-0"))...)
	states := func() string {
		var out []string
		s := l.hoc("test").Status.MachinesStates["lab/w-0"].ConfigStateItemsStatuses
		for _, state := range []kaasv1.ConfigItemStatus{s["sample-1.0.0"][download], s["sample-1.0.0"][playbook], s["other-1.0.0"]["host-os-test-other-1.0.0-reconfigure"]} {
			out = append(out, string(state.State))
			if (state.State == kaasv1.ItemSuccess) != (len(state.Hash) == 64) {
				t.Errorf("state %+v: a hash belongs to Success", state)
			}
		}
		return strings.Join(append(out, string(l.lcmMachine("w-0").Status.State)), ", ")
	}
	l.settle()
	l.agent("w-0", func(it lcmv1.LCMStateItem) int { return map[string]int{download: item.NotExited}[it.Name] })
	l.settle()
	running := l.lcmMachine("w-0")
	s := running.Status.StateItemStatuses[download]
	s.FinishedAt = nil
	running.Status.StateItemStatuses[download] = s
	if err := l.Status().Update(t.Context(), running); err != nil {
		t.Fatal(err)
	}
	l.settle()
	if got, want := states(), "Running, Not Started, Not Started, Reconfigure"; got != want {
		t.Errorf("states %s, want %s", got, want)
	}
	l.agent("w-0", func(it lcmv1.LCMStateItem) int { return map[string]int{playbook: 2}[it.Name] })
	l.settle()
	if got, want := states(), "Success, Failed, Not Started, Reconfigure"; got != want {
		t.Errorf("states %s, want %s", got, want)
	}
	l.agent("w-0", succeed)
	l.settle()
	if got, want := states(), "Success, Success, Success, Ready"; got != want {
		t.Errorf("states %s, want %s", got, want)
	}
}

// statements H26, H27 and H28: which items are executed again.
func TestWhatIsExecutedAgain(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("sample", "1.0.0", `{"a":1,"b":2}`), config("other", "1.0.0", ""))}, worker("w-0"))...)
	if got := l.run("w-0"); len(got["w-0"]) != 5 {
		t.Fatalf("executed %q, want 5 items", got)
	}
	if writes := l.settle(); len(writes) != 0 {
		t.Errorf("a restart has written %v", writes)
	}
	l.change("test", func(o *kaasv1.HostOSConfiguration) { o.Spec.Configs[0].Values.Raw = []byte(`{ "b": 2, "a": 1 }`) })
	if got := l.run("w-0"); len(got["w-0"]) != 0 {
		t.Errorf("executed %q after the same values in another order", got)
	}
	l.change("test", func(o *kaasv1.HostOSConfiguration) { o.Spec.Configs[0].Values.Raw = []byte(`{"a":1}`) })
	if got := l.run("w-0"); !cmp.Equal(got["w-0"], []string{playbook}) {
		t.Errorf("executed %q after a change of values, want the playbook", got)
	}
	clearSelector := func(o *kaasv1.HostOSConfiguration) { o.Spec.MachineSelector.MatchLabels = nil }
	restore := func(o *kaasv1.HostOSConfiguration) {
		o.Spec.MachineSelector.MatchLabels = map[string]string{"day2": "true"}
	}
	l.change("test", clearSelector)
	l.settle()
	if s := l.hoc("test").Status.MachinesStates["lab/w-0"]; s.Selected || s.Message == "" {
		t.Errorf("state with results that the agent has not removed: %+v", s)
	}
	l.change("test", restore) // before the agent has seen that anything is gone
	l.settle()
	if m := l.lcmMachine("w-0"); len(m.Spec.StateItemsOverwrites) != 0 {
		t.Errorf("overwrites before the agent has removed the results: %v", m.Spec.StateItemsOverwrites)
	}
	if got := l.run("w-0"); len(got["w-0"]) != 4 {
		t.Errorf("executed %q after the selector was cleared and restored, want all items of the object", got)
	}
}

// statements H29 and H30: the object stays until the agent has removed the results.
func TestDeletion(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("sample", "1.0.0", "")), hoc("stays", config("sample", "1.0.0", ""))}, worker("w-0"), worker("w-1"))...)
	l.run("w-0", "w-1")
	if err := l.Delete(t.Context(), hoc("test")); err != nil {
		t.Fatal(err)
	}
	l.settle()
	rest := []string{releaseItem.Name, "host-os-download-stays-sample-1.0.0-reconfigure", "host-os-stays-sample-1.0.0-reconfigure"}
	if diff := cmp.Diff(rest, l.items("w-0")); diff != "" || len(l.lcmMachine("w-0").Spec.StateItemsOverwrites) != 2 {
		t.Errorf("items of w-0 (-want +got):\n%s", diff)
	}
	if got := len(get(l, "c1", new(lcmv1.LCMCluster)).Spec.MachinesTypes[lcmv1.MachineControl]); got != 2 {
		t.Errorf("the LCMCluster has %d items for control, want 2", got)
	}
	l.agent("w-0", succeed)
	l.settle()
	states := l.hoc("test").Status.MachinesStates // w-1 is offline
	if s, exists := states["lab/w-1"]; !exists || s.Selected || len(states) != 1 {
		t.Errorf("machinesStates while w-1 is offline: %+v", states)
	}
	if got := l.agent("w-1", succeed); len(got) != 0 {
		t.Errorf("w-1 executed %q", got)
	}
	l.settle()
	if err := l.Get(t.Context(), key("test"), new(kaasv1.HostOSConfiguration)); !apierrors.IsNotFound(err) {
		t.Errorf("the object after all agents have removed the results: %v", err)
	}
}

// An object that was never applied, and one whose items others have taken over, do not wait.
func TestDeletionDoesNotWaitForItemsOfOthers(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("x", config("b-c", "1.0.0", "")), hoc("x-b", config("c", "1.0.0", ""))}, worker("w-0"))...)
	l.status("x-b", func(o *kaasv1.HostOSConfiguration) { o.Status.IsValid = ptr.To(false) })
	l.run("w-0")
	if o := l.hoc("x-b"); len(o.Finalizers) != 0 || o.Status.StateItems != nil {
		t.Errorf("an object that is not valid has finalizers %q and items %q", o.Finalizers, o.Status.StateItems)
	}
	l.change("x", func(o *kaasv1.HostOSConfiguration) { o.Spec.Configs = []kaasv1.Config{config("d", "1.0.0", "")} })
	l.status("x-b", validate)
	l.run("w-0")
	if err := l.Delete(t.Context(), hoc("x")); err != nil {
		t.Fatal(err)
	}
	l.run("w-0")
	if err := l.Get(t.Context(), key("x"), new(kaasv1.HostOSConfiguration)); !apierrors.IsNotFound(err) {
		t.Errorf("x still exists: %v, %v", err, l.hoc("x").Status.StateItems)
	}
	if diff := cmp.Diff([]string{releaseItem.Name, "host-os-download-x-b-c-1.0.0-reconfigure", "host-os-x-b-c-1.0.0-reconfigure"}, l.items("w-0")); diff != "" {
		t.Errorf("items of x-b (-want +got):\n%s", diff)
	}
}

// A deletion also waits for the items of configs that the object no longer has.
func TestDeletionWaitsForRemovedConfigs(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("sample", "1.0.0", ""))}, worker("w-0"))...)
	l.run("w-0")
	l.change("test", func(o *kaasv1.HostOSConfiguration) { o.Spec.Configs = []kaasv1.Config{config("other", "1.0.0", "")} })
	l.settle()
	if err := l.Delete(t.Context(), hoc("test")); err != nil {
		t.Fatal(err)
	}
	l.settle()
	if got := l.hoc("test").Status.StateItems; len(got) != 4 {
		t.Errorf("stateItems %q, want those of both configs", got)
	}
	l.agent("w-0", succeed)
	l.settle()
	if err := l.Get(t.Context(), key("test"), new(kaasv1.HostOSConfiguration)); !apierrors.IsNotFound(err) {
		t.Errorf("the object still exists: %v", err)
	}
}

// statements H31 and H32: a machine leaves, and another one joins.
func TestMachinesLeaveAndJoin(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("sample", "1.0.0", ""))}, worker("w-0"), worker("w-1"))...)
	l.machine("w-1", unlabel)
	l.run("w-0", "w-1")
	l.machine("w-0", unlabel)
	l.machine("w-1", func(m *clusterv1.Machine) { m.Labels = map[string]string{"day2": "true"} })
	if got := l.run("w-0", "w-1"); !cmp.Equal(got, map[string][]string{"w-0": nil, "w-1": {download, playbook}}) {
		t.Errorf("executed %q, want the items on w-1", got)
	}
	m := l.lcmMachine("w-0")
	if len(m.Spec.StateItemsOverwrites) != 0 || len(m.Spec.StateItems) != 1 || len(m.Status.StateItemStatuses) != 1 {
		t.Errorf("w-0 has overwrites %v, items %v, results %v", m.Spec.StateItemsOverwrites, m.Spec.StateItems, m.Status.StateItemStatuses)
	}
	if states := l.hoc("test").Status.MachinesStates; len(states) != 1 || !states["lab/w-1"].Selected {
		t.Errorf("machinesStates %+v", states)
	}
}

// What others write to the same fields stays.
func TestItemsAndOverwritesOfOthersStay(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("sample", "1.0.0", ""))}, worker("w-0"))...)
	m := l.lcmMachine("w-0")
	m.Spec.StateItemsOverwrites = map[string]map[string]string{releaseItem.Name: {"args": "-q"}, "host-os-gone-a-1.0.0-reconfigure": {"url": "a"}}
	if err := l.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	l.settle()
	m = l.lcmMachine("w-0")
	if len(m.Spec.StateItemsOverwrites) != 3 || m.Spec.StateItemsOverwrites[releaseItem.Name]["args"] != "-q" || m.Spec.StateItems[0].Params["args"] != "-q" {
		t.Errorf("overwrites %v, items %v", m.Spec.StateItemsOverwrites, m.Spec.StateItems)
	}
}

// At most one write of an object by each controller follows a change, and none of a
// machine that is not selected.
func TestWritesOfAChange(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("a", "1.0.0", ""), config("b", "1.0.0", ""), config("c", "1.0.0", `{"a":1}`))}, worker("w-0"), worker("w-1"))...)
	l.machine("w-1", unlabel)
	l.run("w-0", "w-1")
	l.change("test", func(o *kaasv1.HostOSConfiguration) {
		o.Spec.Configs[2].Values.Raw = []byte(`{"a":2}`)
		o.Spec.Configs[0].Description = "changed, too"
	})
	want := map[string]int{
		"provider: *v1alpha1.HostOSConfiguration test status": 1, "provider: *v1alpha1.LCMMachine w-0": 1,
		"lcm: *v1alpha1.LCMMachine w-0": 1, "lcm: *v1alpha1.LCMMachine w-0 status": 1,
	}
	if diff := cmp.Diff(want, l.settle()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func size(t *testing.T, states map[string]kaasv1.ConfigMachineState) int {
	b, err := json.Marshal(states)
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}
