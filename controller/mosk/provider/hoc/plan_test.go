package hoc

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	baremetal "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	cluster "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaas "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcm "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// statement H22: the Machines whose items may not change.
func TestNotReady(t *testing.T) {
	now := metav1.Now()
	for _, tt := range []struct {
		name   string
		change func(*cluster.Machine, *lcm.LCMMachine)
		want   string
	}{
		{"Ready", func(*cluster.Machine, *lcm.LCMMachine) {}, ""},
		{"executing items", func(m *cluster.Machine, _ *lcm.LCMMachine) {
			m.Status.ProviderStatus.Status = "Reconfigure"
			m.Status.ProviderStatus.Conditions = []baremetal.Condition{{Type: "Kubelet", Ready: true}, {Type: "LCM", Message: "items are executed"}}
		}, ""},
		{"no status", func(m *cluster.Machine, _ *lcm.LCMMachine) { m.Status.ProviderStatus = nil }, "the machine is not Ready: it has no status yet"},
		{"deploying", func(m *cluster.Machine, _ *lcm.LCMMachine) { m.Status.ProviderStatus.Status = "Deploy" }, "the machine is not Ready: its status is Deploy"},
		{"failing condition", func(m *cluster.Machine, _ *lcm.LCMMachine) {
			m.Status.ProviderStatus.Conditions = []baremetal.Condition{{Type: "LCM", Ready: true}, {Type: "Kubelet"}}
		}, "the machine is not Ready: its condition Kubelet is not"},
		{"maintenance that was asked for", func(m *cluster.Machine, _ *lcm.LCMMachine) { m.Spec.ProviderSpec.Value.Maintenance = true }, "the machine is in maintenance"},
		{"maintenance", func(m *cluster.Machine, _ *lcm.LCMMachine) { m.Status.ProviderStatus.Maintenance = true }, "the machine is in maintenance"},
		{"maintenance of the LCMMachine", func(_ *cluster.Machine, l *lcm.LCMMachine) { l.Spec.Maintenance = true }, "the machine is in maintenance"},
		{"deleted", func(m *cluster.Machine, _ *lcm.LCMMachine) { m.DeletionTimestamp = &now }, "the machine is being deleted"},
		{"graceful deletion", func(m *cluster.Machine, _ *lcm.LCMMachine) { m.Spec.ProviderSpec.Value.Delete = true }, "the machine is being deleted"},
		{"deletion is prepared", func(m *cluster.Machine, _ *lcm.LCMMachine) {
			m.Status.ProviderStatus.PrepareDeletionPhase = "started"
		}, "the machine is being deleted"},
	} {
		made := worker("w-0")
		m, l := made[0].(*cluster.Machine), made[1].(*lcm.LCMMachine)
		tt.change(m, l)
		if got := notReady(m, l); got != tt.want {
			t.Errorf("%s: notReady = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestCanonicalValues(t *testing.T) {
	for in, want := range map[string]string{
		`{ "b" : [1, {"d":0, "c":1.50}], "a":12345678901234567890 }`: `{"a":12345678901234567890,"b":[1,{"c":1.50,"d":0}]}`,
		`{"a":"<b>&"}`: `{"a":"<b>&"}`,
		`{}`:           `{}`,
		`null`:         "",
		`[]`:           "",
		``:             "",
	} {
		if got := canonical([]byte(in)); got != want {
			t.Errorf("canonical(%s) = %s, want %s", in, got, want)
		}
	}
}

// machinesStates of 1,000 machines with 5 configs fit into an object.
func TestStatesFit(t *testing.T) {
	states := func() map[string]kaas.ConfigMachineState {
		out := map[string]kaas.ConfigMachineState{}
		for i := range 1000 {
			s := kaas.ConfigMachineState{Selected: true, ObservedGeneration: 3, ConfigStateItemsStatuses: map[string]map[string]kaas.ConfigItemStatus{}}
			for c := range 5 {
				status := kaas.ConfigItemStatus{State: kaas.ItemSuccess, Hash: fmt.Sprintf("%064d", i)}
				if i == 7 && c == 3 {
					status = kaas.ConfigItemStatus{State: kaas.ItemFailed}
				}
				s.ConfigStateItemsStatuses[fmt.Sprintf("module-%d-1.0.0", c)] = map[string]kaas.ConfigItemStatus{
					fmt.Sprintf("host-os-download-baseline-module-%d-1.0.0-reconfigure", c): status, fmt.Sprintf("host-os-baseline-module-%d-1.0.0-reconfigure", c): status,
				}
			}
			out[fmt.Sprintf("production/worker-%04d", i)] = s
		}
		return out
	}
	all := size(t, states())
	for _, tt := range []struct {
		limit   int
		hash    bool
		success bool
	}{
		{all, true, true}, {all - 1, false, true}, {all * 6 / 10, false, true}, {all / 5, false, false},
	} {
		got := fit(states(), tt.limit)
		if n := size(t, got); n > tt.limit || len(got) != 1000 {
			t.Errorf("fit(%d) has %d bytes, %d machines", tt.limit, n, len(got))
		}
		s := got["production/worker-0000"].ConfigStateItemsStatuses["module-0-1.0.0"]["host-os-baseline-module-0-1.0.0-reconfigure"]
		if (s.Hash != "") != tt.hash || (s.State != "") != tt.success {
			t.Errorf("fit(%d): %+v", tt.limit, s)
		}
		if s := got["production/worker-0007"].ConfigStateItemsStatuses["module-3-1.0.0"]["host-os-baseline-module-3-1.0.0-reconfigure"]; s.State != kaas.ItemFailed {
			t.Errorf("fit(%d): the failed item: %+v", tt.limit, s)
		}
		full, entry := states()["production/worker-0007"], got["production/worker-0007"]
		if !isState(&entry, &full) {
			t.Errorf("fit(%d): isState does not recognize the entry", tt.limit)
		}
		if entry.Selected = false; isState(&entry, &full) {
			t.Errorf("fit(%d): isState recognizes another entry", tt.limit)
		}
	}
	if got := fit(states(), maxStates); size(t, got) > maxStates {
		t.Errorf("fit(%d) has %d bytes", maxStates, size(t, got))
	}
}

// Which changes of an object concern machines.
func TestChangesThatConcernMachines(t *testing.T) {
	o := hoc("test", config("sample", "1.0.0", ""))
	o.Status.MachinesStates = map[string]kaas.ConfigMachineState{"lab/w-0": {}, "lab/w-1": {SecretValuesChanged: true}}
	for _, tt := range []struct {
		name   string
		change func(*kaas.HostOSConfiguration)
		want   bool
	}{
		{"nothing", func(*kaas.HostOSConfiguration) {}, false},
		{"machinesStates", func(o *kaas.HostOSConfiguration) { o.Status.MachinesStates = nil }, false},
		{"labels", func(o *kaas.HostOSConfiguration) { o.Labels = map[string]string{"a": "b"} }, false},
		{"spec", func(o *kaas.HostOSConfiguration) { o.Generation++ }, true},
		{"deletion", func(o *kaas.HostOSConfiguration) { o.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		{"finalizer", func(o *kaas.HostOSConfiguration) { o.Finalizers = []string{Finalizer} }, true},
		{"validity", func(o *kaas.HostOSConfiguration) { o.Status.IsValid = nil }, true},
		{"generation that was validated", func(o *kaas.HostOSConfiguration) { o.Status.ObservedGeneration++ }, true},
		{"version of a Secret", func(o *kaas.HostOSConfiguration) { o.Status.Configs[0].SecretObjectVersion = "8" }, true},
		{"record", func(o *kaas.HostOSConfiguration) { o.Status.StateItems = []string{"a"} }, true},
	} {
		is := o.DeepCopy()
		tt.change(is)
		if got := concerns(o, is); got != tt.want {
			t.Errorf("%s: concerns = %v, want %v", tt.name, got, tt.want)
		}
	}
	is := o.DeepCopy()
	is.Status.MachinesStates["lab/w-0"] = kaas.ConfigMachineState{SecretValuesChanged: true}
	if got := newSecrets(o, is); len(got) != 1 || got[0] != key("w-0") {
		t.Errorf("newSecrets = %v, want w-0", got)
	}
}
