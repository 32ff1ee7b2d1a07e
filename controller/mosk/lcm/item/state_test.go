package item

import (
	"testing"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// machine is a worker with an address, whose items are done for the phases of done.
func machine(kind lcmv1.LCMType, phases, done []lcmv1.Phase, change ...func(*lcmv1.LCMMachine)) *lcmv1.LCMMachine {
	m := &lcmv1.LCMMachine{Spec: lcmv1.LCMMachineSpec{Type: lcmv1.MachineWorker, LCMType: kind}}
	m.Status.Addresses = []lcmv1.NodeAddress{{Type: lcmv1.AddressHostname, Address: "w"}, {Type: lcmv1.AddressInternalIP, Address: "192.0.2.1"}}
	m.Status.StateItemStatuses = map[string]lcmv1.StateItemStatus{}
	for _, p := range phases {
		m.Spec.StateItems = append(m.Spec.StateItems, lcmv1.LCMStateItem{Runner: lcmv1.RunnerBash, Name: string(p), Version: "v1", Phase: p})
	}
	for _, p := range done {
		for _, it := range m.Spec.StateItems {
			if it.Phase == p {
				m.Status.StateItemStatuses[it.Name] = lcmv1.StateItemStatus{Hash: Hash(it, "")}
			}
		}
	}
	for _, c := range change {
		c(m)
	}
	return m
}

func noAddress(m *lcmv1.LCMMachine)  { m.Status.Addresses = m.Status.Addresses[:1] }
func licensed(m *lcmv1.LCMMachine)   { m.Spec.RHELLicenseSubscription = "rhel" }
func applied(m *lcmv1.LCMMachine)    { m.Status.RHELLicenseApplied = true }
func bastion(m *lcmv1.LCMMachine)    { m.Spec.Type = lcmv1.MachineBastion }
func mustReboot(m *lcmv1.LCMMachine) { m.Spec.RebootRequired = true }
func rebooted(m *lcmv1.LCMMachine)   { m.Status.Reboot = &lcmv1.RebootStatus{Completed: true} }
func rebooting(m *lcmv1.LCMMachine)  { m.Status.Reboot = &lcmv1.RebootStatus{} }
func graceful(m *lcmv1.LCMMachine) {
	m.Annotations = map[string]string{GracefulRebootAnnotation: "true"}
}
func failed(m *lcmv1.LCMMachine) {
	for name, s := range m.Status.StateItemStatuses {
		s.ExitCode = 1
		m.Status.StateItemStatuses[name] = s
	}
}

func versions(want, current string) func(*lcmv1.LCMMachine) {
	return func(m *lcmv1.LCMMachine) {
		m.Spec.Components.UCPVersion, m.Status.Components.UCPVersion = want, current
	}
}

// statement H36: the truth table of ComputeState.
func TestComputeState(t *testing.T) {
	const (
		prep, depl, reco = lcmv1.PhasePrepare, lcmv1.PhaseDeploy, lcmv1.PhaseReconfigure
		k0s, byo, ucp    = lcmv1.LCMTypeK0s, lcmv1.LCMTypeBYO, lcmv1.LCMTypeUCP
	)
	type phases = []lcmv1.Phase
	all := phases{prep, depl, reco}
	for _, tt := range []struct {
		name string
		m    *lcmv1.LCMMachine
		want lcmv1.MachineState
	}{
		{"no InternalIP", machine(k0s, all, all, noAddress), lcmv1.StateUninitialized},
		{"no InternalIP of a bastion", machine(k0s, nil, nil, noAddress, bastion), lcmv1.StateUninitialized},
		{"licence not applied", machine(k0s, all, all, licensed), lcmv1.StateUninitialized},
		{"licence applied", machine(k0s, all, all, licensed, applied), lcmv1.StateReady},
		{"bastion", machine(k0s, phases{depl}, nil, bastion), lcmv1.StateReady},
		{"bastion of an unknown type", machine("", nil, nil, bastion), lcmv1.StateReady},
		{"no type", machine("", all, all), lcmv1.StateUninitialized},
		{"unknown type", machine("openshift", all, all), lcmv1.StateUninitialized},

		{"k0s: no items", machine(k0s, nil, nil), lcmv1.StatePending},
		{"k0s: prepare", machine(k0s, phases{prep}, nil), lcmv1.StatePrepare},
		{"k0s: prepare alone stays when done", machine(k0s, phases{prep}, phases{prep}), lcmv1.StatePrepare},
		{"k0s: deploy", machine(k0s, phases{prep, depl}, phases{prep}), lcmv1.StateDeploy},
		{"k0s: deploy done", machine(k0s, phases{prep, depl}, phases{depl}), lcmv1.StateReady},
		{"k0s: deploy failed", machine(k0s, phases{depl}, phases{depl}, failed), lcmv1.StateDeploy},
		{"k0s: reconfigure waits for deploy", machine(k0s, all, phases{reco}), lcmv1.StateDeploy},
		{"k0s: reconfigure", machine(k0s, all, phases{prep, depl}), lcmv1.StateReconfigure},
		{"k0s: all done", machine(k0s, all, all), lcmv1.StateReady},
		{"k0s: reconfigure alone", machine(k0s, phases{reco}, nil), lcmv1.StateReconfigure},
		{"k0s: reconfigure done without deploy", machine(k0s, phases{prep, reco}, phases{reco}), lcmv1.StateReady},
		{"k0s: reboot demanded", machine(k0s, all, all, mustReboot), lcmv1.StateReboot},
		{"k0s: reboot begun", machine(k0s, all, all, mustReboot, rebooting), lcmv1.StateReboot},
		{"k0s: reboot done", machine(k0s, all, all, mustReboot, rebooted), lcmv1.StateReady},
		{"k0s: reboot after the items", machine(k0s, all, phases{prep, depl}, mustReboot), lcmv1.StateReconfigure},
		{"k0s: versions do not count", machine(k0s, all, all, versions("2", "1")), lcmv1.StateReady},

		{"byo: no version", machine(byo, all, nil), lcmv1.StatePending},
		{"byo: another version", machine(byo, all, nil, versions("2", "1")), lcmv1.StateUpgrade},
		{"byo: the version, items and reboot do not count", machine(byo, all, nil, versions("2", "2"), mustReboot), lcmv1.StateReady},

		{"ucp: no items", machine(ucp, nil, nil, versions("2", "2")), lcmv1.StatePending},
		{"ucp: items first", machine(ucp, all, phases{prep, depl}, versions("2", "1"), mustReboot), lcmv1.StateReconfigure},
		{"ucp: then the reboot", machine(ucp, all, all, versions("2", "1"), mustReboot), lcmv1.StateReboot},
		{"ucp: no version", machine(ucp, all, all, versions("2", "")), lcmv1.StateDeploy},
		{"ucp: another version", machine(ucp, all, all, versions("2", "1"), mustReboot, rebooted), lcmv1.StateUpgrade},
		{"ucp: the version", machine(ucp, all, all, versions("2", "2")), lcmv1.StateReady},
	} {
		if got := ComputeState(tt.m); got != tt.want {
			t.Errorf("%s: ComputeState = %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestGracefulRebootRequired(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    *lcmv1.LCMMachine
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
