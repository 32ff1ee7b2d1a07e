package hoc

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// statement H22: the Machines whose items may not change.
func TestNotReady(t *testing.T) {
	now := metav1.Now()
	for _, tt := range []struct {
		name   string
		change func(*clusterv1.Machine, *lcmv1.LCMMachine)
		want   string
	}{
		{"Ready", func(*clusterv1.Machine, *lcmv1.LCMMachine) {}, ""},
		{"executing items", func(m *clusterv1.Machine, _ *lcmv1.LCMMachine) {
			m.Status.ProviderStatus.Status = "Reconfigure"
			m.Status.ProviderStatus.Conditions = []baremetalv1.Condition{{Type: "Kubelet", Ready: true}, {Type: "LCM", Message: "items are executed"}}
		}, ""},
		{"no status", func(m *clusterv1.Machine, _ *lcmv1.LCMMachine) { m.Status.ProviderStatus = nil }, "the machine is not Ready: it has no status yet"},
		{"deploying", func(m *clusterv1.Machine, _ *lcmv1.LCMMachine) { m.Status.ProviderStatus.Status = "Deploy" }, "the machine is not Ready: its status is Deploy"},
		{"failing condition", func(m *clusterv1.Machine, _ *lcmv1.LCMMachine) {
			m.Status.ProviderStatus.Conditions = []baremetalv1.Condition{{Type: "LCM", Ready: true}, {Type: "Kubelet"}}
		}, "the machine is not Ready: its condition Kubelet is not"},
		{"maintenance that was asked for", func(m *clusterv1.Machine, _ *lcmv1.LCMMachine) { m.Spec.ProviderSpec.Value.Maintenance = true }, "the machine is in maintenance"},
		{"maintenance", func(m *clusterv1.Machine, _ *lcmv1.LCMMachine) { m.Status.ProviderStatus.Maintenance = true }, "the machine is in maintenance"},
		{"maintenance of the LCMMachine", func(_ *clusterv1.Machine, l *lcmv1.LCMMachine) { l.Spec.Maintenance = true }, "the machine is in maintenance"},
		{"deleted", func(m *clusterv1.Machine, _ *lcmv1.LCMMachine) { m.DeletionTimestamp = &now }, "the machine is being deleted"},
		{"graceful deletion", func(m *clusterv1.Machine, _ *lcmv1.LCMMachine) { m.Spec.ProviderSpec.Value.Delete = true }, "the machine is being deleted"},
		{"deletion is prepared", func(m *clusterv1.Machine, _ *lcmv1.LCMMachine) {
			m.Status.ProviderStatus.PrepareDeletionPhase = "started"
		}, "the machine is being deleted"},
	} {
		made := worker("w-0")
		m, l := made[0].(*clusterv1.Machine), made[1].(*lcmv1.LCMMachine)
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
	states := func() map[string]kaasv1.ConfigMachineState {
		out := map[string]kaasv1.ConfigMachineState{}
		for i := range 1000 {
			s := kaasv1.ConfigMachineState{Selected: true, ObservedGeneration: 3, ConfigStateItemsStatuses: map[string]map[string]kaasv1.ConfigItemStatus{}}
			for c := range 5 {
				status := kaasv1.ConfigItemStatus{State: kaasv1.ItemSuccess, Hash: fmt.Sprintf("%064d", i)}
				if i == 7 && c == 3 {
					status = kaasv1.ConfigItemStatus{State: kaasv1.ItemFailed}
				}
				s.ConfigStateItemsStatuses[fmt.Sprintf("module-%d-1.0.0", c)] = map[string]kaasv1.ConfigItemStatus{
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
		if s := got["production/worker-0007"].ConfigStateItemsStatuses["module-3-1.0.0"]["host-os-baseline-module-3-1.0.0-reconfigure"]; s.State != kaasv1.ItemFailed {
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
	o.Status.MachinesStates = map[string]kaasv1.ConfigMachineState{"lab/w-0": {}, "lab/w-1": {SecretValuesChanged: true}}
	for _, tt := range []struct {
		name   string
		change func(*kaasv1.HostOSConfiguration)
		want   bool
	}{
		{"nothing", func(*kaasv1.HostOSConfiguration) {}, false},
		{"machinesStates", func(o *kaasv1.HostOSConfiguration) { o.Status.MachinesStates = nil }, false},
		{"labels", func(o *kaasv1.HostOSConfiguration) { o.Labels = map[string]string{"a": "b"} }, false},
		{"deadline", func(o *kaasv1.HostOSConfiguration) {
			o.Annotations = map[string]string{item.TimeoutAnnotation: "2h"}
		}, true},
		{"spec", func(o *kaasv1.HostOSConfiguration) { o.Generation++ }, true},
		{"deletion", func(o *kaasv1.HostOSConfiguration) { o.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		{"finalizer", func(o *kaasv1.HostOSConfiguration) { o.Finalizers = []string{Finalizer} }, true},
		{"validity", func(o *kaasv1.HostOSConfiguration) { o.Status.IsValid = nil }, true},
		{"generation that was validated", func(o *kaasv1.HostOSConfiguration) { o.Status.ObservedGeneration++ }, true},
		{"version of a Secret", func(o *kaasv1.HostOSConfiguration) { o.Status.Configs[0].SecretObjectVersion = "8" }, true},
		{"version of a Secret's data", func(o *kaasv1.HostOSConfiguration) { o.Status.Configs[0].SecretDataVersion = "8" }, true},
		{"record", func(o *kaasv1.HostOSConfiguration) { o.Status.StateItems = []string{"a"} }, true},
	} {
		after := o.DeepCopy()
		tt.change(after)
		if got := concerns(o, after); got != tt.want {
			t.Errorf("%s: concerns = %v, want %v", tt.name, got, tt.want)
		}
	}
	after := o.DeepCopy()
	after.Status.MachinesStates["lab/w-0"] = kaasv1.ConfigMachineState{SecretValuesChanged: true}
	if got := newSecrets(o, after); len(got) != 1 || got[0] != key("w-0") {
		t.Errorf("newSecrets = %v, want w-0", got)
	}
}
