package item

import (
	"testing"

	lcm "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// machine is a worker with an address, whose items are done for the phases of done.
func machine(kind lcm.LCMType, phases, done []lcm.Phase, change ...func(*lcm.LCMMachine)) *lcm.LCMMachine {
	m := &lcm.LCMMachine{Spec: lcm.LCMMachineSpec{Type: lcm.MachineWorker, LCMType: kind}}
	m.Status.Addresses = []lcm.NodeAddress{{Type: lcm.AddressHostname, Address: "w"}, {Type: lcm.AddressInternalIP, Address: "192.0.2.1"}}
	m.Status.StateItemStatuses = map[string]lcm.StateItemStatus{}
	for _, p := range phases {
		m.Spec.StateItems = append(m.Spec.StateItems, lcm.LCMStateItem{Runner: lcm.RunnerBash, Name: string(p), Version: "v1", Phase: p})
	}
	for _, p := range done {
		for _, it := range m.Spec.StateItems {
			if it.Phase == p {
				m.Status.StateItemStatuses[it.Name] = lcm.StateItemStatus{Hash: Hash(it, "")}
			}
		}
	}
	for _, c := range change {
		c(m)
	}
	return m
}

func noAddress(m *lcm.LCMMachine)  { m.Status.Addresses = m.Status.Addresses[:1] }
func licensed(m *lcm.LCMMachine)   { m.Spec.RHELLicenseSubscription = "rhel" }
func applied(m *lcm.LCMMachine)    { m.Status.RHELLicenseApplied = true }
func bastion(m *lcm.LCMMachine)    { m.Spec.Type = lcm.MachineBastion }
func mustReboot(m *lcm.LCMMachine) { m.Spec.RebootRequired = true }
func rebooted(m *lcm.LCMMachine)   { m.Status.Reboot = &lcm.RebootStatus{Completed: true} }
func rebooting(m *lcm.LCMMachine)  { m.Status.Reboot = &lcm.RebootStatus{} }
func graceful(m *lcm.LCMMachine) {
	m.Annotations = map[string]string{GracefulRebootAnnotation: "true"}
}
func failed(m *lcm.LCMMachine) {
	for name, s := range m.Status.StateItemStatuses {
		s.ExitCode = 1
		m.Status.StateItemStatuses[name] = s
	}
}

func versions(want, is string) func(*lcm.LCMMachine) {
	return func(m *lcm.LCMMachine) {
		m.Spec.Components.UCPVersion, m.Status.Components.UCPVersion = want, is
	}
}

// statement H36: the truth table of ComputeState.
func TestComputeState(t *testing.T) {
	const (
		prep, depl, reco = lcm.PhasePrepare, lcm.PhaseDeploy, lcm.PhaseReconfigure
		k0s, byo, ucp    = lcm.LCMTypeK0s, lcm.LCMTypeBYO, lcm.LCMTypeUCP
	)
	type of = []lcm.Phase
	all := of{prep, depl, reco}
	for _, tt := range []struct {
		name string
		m    *lcm.LCMMachine
		want lcm.MachineState
	}{
		{"no InternalIP", machine(k0s, all, all, noAddress), lcm.StateUninitialized},
		{"no InternalIP of a bastion", machine(k0s, nil, nil, noAddress, bastion), lcm.StateUninitialized},
		{"licence not applied", machine(k0s, all, all, licensed), lcm.StateUninitialized},
		{"licence applied", machine(k0s, all, all, licensed, applied), lcm.StateReady},
		{"bastion", machine(k0s, of{depl}, nil, bastion), lcm.StateReady},
		{"bastion of an unknown type", machine("", nil, nil, bastion), lcm.StateReady},
		{"no type", machine("", all, all), lcm.StateUninitialized},
		{"unknown type", machine("openshift", all, all), lcm.StateUninitialized},

		{"k0s: no items", machine(k0s, nil, nil), lcm.StatePending},
		{"k0s: prepare", machine(k0s, of{prep}, nil), lcm.StatePrepare},
		{"k0s: prepare alone stays when done", machine(k0s, of{prep}, of{prep}), lcm.StatePrepare},
		{"k0s: deploy", machine(k0s, of{prep, depl}, of{prep}), lcm.StateDeploy},
		{"k0s: deploy done", machine(k0s, of{prep, depl}, of{depl}), lcm.StateReady},
		{"k0s: deploy failed", machine(k0s, of{depl}, of{depl}, failed), lcm.StateDeploy},
		{"k0s: reconfigure waits for deploy", machine(k0s, all, of{reco}), lcm.StateDeploy},
		{"k0s: reconfigure", machine(k0s, all, of{prep, depl}), lcm.StateReconfigure},
		{"k0s: all done", machine(k0s, all, all), lcm.StateReady},
		{"k0s: reconfigure alone", machine(k0s, of{reco}, nil), lcm.StateReconfigure},
		{"k0s: reconfigure done without deploy", machine(k0s, of{prep, reco}, of{reco}), lcm.StateReady},
		{"k0s: reboot demanded", machine(k0s, all, all, mustReboot), lcm.StateReboot},
		{"k0s: reboot begun", machine(k0s, all, all, mustReboot, rebooting), lcm.StateReboot},
		{"k0s: reboot done", machine(k0s, all, all, mustReboot, rebooted), lcm.StateReady},
		{"k0s: reboot after the items", machine(k0s, all, of{prep, depl}, mustReboot), lcm.StateReconfigure},
		{"k0s: versions do not count", machine(k0s, all, all, versions("2", "1")), lcm.StateReady},

		{"byo: no version", machine(byo, all, nil), lcm.StatePending},
		{"byo: another version", machine(byo, all, nil, versions("2", "1")), lcm.StateUpgrade},
		{"byo: the version, items and reboot do not count", machine(byo, all, nil, versions("2", "2"), mustReboot), lcm.StateReady},

		{"ucp: no items", machine(ucp, nil, nil, versions("2", "2")), lcm.StatePending},
		{"ucp: items first", machine(ucp, all, of{prep, depl}, versions("2", "1"), mustReboot), lcm.StateReconfigure},
		{"ucp: then the reboot", machine(ucp, all, all, versions("2", "1"), mustReboot), lcm.StateReboot},
		{"ucp: no version", machine(ucp, all, all, versions("2", "")), lcm.StateDeploy},
		{"ucp: another version", machine(ucp, all, all, versions("2", "1"), mustReboot, rebooted), lcm.StateUpgrade},
		{"ucp: the version", machine(ucp, all, all, versions("2", "2")), lcm.StateReady},
	} {
		if got := ComputeState(tt.m); got != tt.want {
			t.Errorf("%s: ComputeState = %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestGracefulRebootRequired(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    *lcm.LCMMachine
		want bool
	}{
		{"no annotation", machine("k0s", nil, nil), false},
		{"annotation", machine("k0s", nil, nil, graceful), true},
		{"reboot demanded already", machine("k0s", nil, nil, graceful, mustReboot), false},
		{"reboot not completed", machine("k0s", nil, nil, graceful, rebooting), true},
		{"reboot completed", machine("k0s", nil, nil, graceful, rebooted), false},
	} {
		if got := GracefulRebootRequired(tt.m); got != tt.want {
			t.Errorf("%s: GracefulRebootRequired = %t, want %t", tt.name, got, tt.want)
		}
	}
}
