package firmware

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

// The specification's three vendor-independent fields (B-262).
func TestFirmwareFieldsByVendor(t *testing.T) {
	no, yes := false, true
	for _, tt := range []struct {
		address string
		want    metal3.DesiredSettingsMap
		err     string
	}{
		{"ilo4://bmc", metal3.DesiredSettingsMap{"ProcVirtualization": str("Disabled"), "ProcHyperthreading": str("Enabled"), "Sriov": str("Enabled")}, ""},
		{"ilo5://bmc", metal3.DesiredSettingsMap{"ProcVirtualization": str("Disabled"), "ProcHyperthreading": str("Enabled"), "Sriov": str("Enabled")}, ""},
		{"idrac://bmc", metal3.DesiredSettingsMap{"ProcVirtualization": str("Disabled"), "LogicalProc": str("Enabled"), "SriovGlobalEnable": str("Enabled")}, ""},
		{"idrac-virtualmedia://bmc/redfish/v1/Systems/1", metal3.DesiredSettingsMap{"ProcVirtualization": str("Disabled"), "LogicalProc": str("Enabled"), "SriovGlobalEnable": str("Enabled")}, ""},
		{"irmc://bmc", metal3.DesiredSettingsMap{"CpuVtEnabled": str("false"), "HyperThreadingEnabled": str("true"), "SingleRootIOVirtualizationSupportEnabled": str("true")}, ""},
		{"redfish://bmc", nil, "firmware settings for redfish are not supported: remove spec.firmware, and use HostFirmwareSettings"},
		{"ipmi://bmc", nil, "firmware settings for ipmi are not supported: remove spec.firmware, and use HostFirmwareSettings"},
	} {
		h := newHost("node-0", "bmc")
		h.Spec.BMC.Address = tt.address
		h.Spec.Firmware = &metal3.FirmwareConfig{VirtualizationEnabled: &no, SimultaneousMultithreadingEnabled: &yes, SriovEnabled: &yes} //nolint:staticcheck // the specification has it
		got, _, err := vendorFields(h)
		if d := cmp.Diff(tt.want, got); d != "" || fmt.Sprint(err) != tt.err && (err != nil || tt.err != "") {
			t.Errorf("fields(%s) = %v, want %q (-want +got):\n%s", tt.address, err, tt.err, d)
		}
	}
}

func TestFirmwareFieldsAreApplied(t *testing.T) {
	no := false
	b := newBench(t, func(h *metal3.BareMetalHost) {
		h.Spec.BMC.Address = "idrac-virtualmedia://192.0.2.2/redfish/v1/Systems/1"
		h.Spec.Firmware = &metal3.FirmwareConfig{VirtualizationEnabled: &no} //nolint:staticcheck // the specification has it
	})
	b.bmc.Firmware(func(w *bmctest.Firmware) { w.Settings["ProcVirtualization"] = "Enabled" })
	b.until("available", b.settled)
	if got := b.now("ProcVirtualization"); got != "Disabled" {
		t.Errorf("ProcVirtualization = %v, want Disabled", got)
	}
	if got := b.host().Status.Provisioning.Firmware; got == nil || *got.VirtualizationEnabled {
		t.Errorf("status.provisioning.firmware = %+v", got)
	}
	h := b.host()
	h.Spec.BMC.Address = "redfish-virtualmedia://192.0.2.2/redfish/v1/Systems/1"
	h.Spec.Firmware.VirtualizationEnabled = new(true) //nolint:staticcheck // the specification has it
	b.store(&h)
	b.until("an error", func() bool { return b.host().Status.ErrorType != "" })
	if got := b.host().Status.ErrorMessage; got != "firmware settings for redfish are not supported: remove spec.firmware, and use HostFirmwareSettings" {
		t.Errorf("message %q", got)
	}
}

// A field whose setting the server does not have ends in one preparation error, which names
// each field and is not repeated; it goes with the field (B-53, B-262).
func TestFirmwareFieldWithoutSettingIsOneErrorThatNamesIt(t *testing.T) {
	b := newBench(t, func(h *metal3.BareMetalHost) {
		h.Spec.BMC.Address = "idrac-virtualmedia://192.0.2.2/redfish/v1/Systems/1"
		h.Spec.Firmware = &metal3.FirmwareConfig{VirtualizationEnabled: new(true), SimultaneousMultithreadingEnabled: new(false), SriovEnabled: new(true)} //nolint:staticcheck // the specification has it
	})
	b.bmc.Firmware(func(w *bmctest.Firmware) { w.Settings["ProcVirtualization"] = "Disabled" })
	b.until("an error", func() bool { return b.host().Status.ErrorType != "" })
	const want = "spec.firmware.simultaneousMultithreadingEnabled needs the BIOS setting LogicalProc, which the server does not have, " +
		"spec.firmware.sriovEnabled needs the BIOS setting SriovGlobalEnable, which the server does not have: " +
		"remove it, and use HostFirmwareSettings for the settings that it has"
	first := b.host().Status
	if first.ErrorType != metal3.PreparationError || first.ErrorMessage != want {
		t.Errorf("%s: %s, want %s: %s", first.ErrorType, first.ErrorMessage, metal3.PreparationError, want)
	}
	for range 50 {
		b.pass()
	}
	if now := b.host().Status; now.ErrorCount != first.ErrorCount || now.ErrorMessage != want {
		t.Errorf("error %d, %q after 50 passes, want the same one, %d", now.ErrorCount, now.ErrorMessage, first.ErrorCount)
	}
	if got := b.now("ProcVirtualization"); got != "Disabled" {
		t.Errorf("ProcVirtualization = %v, want it unchanged: all are applied, or none", got)
	}
	h := b.host()
	h.Spec.Firmware.SriovEnabled, h.Spec.Firmware.SimultaneousMultithreadingEnabled = nil, nil //nolint:staticcheck // the specification has it
	b.store(&h)
	b.until("available", b.settled)
	if got := b.now("ProcVirtualization"); got != "Enabled" {
		t.Errorf("ProcVirtualization = %v, want Enabled", got)
	}
}

// A setting that the BMC does not apply is called by its field, too.
func TestFirmwareFieldIsNamedWhenItsSettingIsNotApplied(t *testing.T) {
	b := newBench(t, func(h *metal3.BareMetalHost) {
		h.Spec.BMC.Address = "idrac-virtualmedia://192.0.2.2/redfish/v1/Systems/1"
		h.Spec.Firmware = &metal3.FirmwareConfig{SriovEnabled: new(true)} //nolint:staticcheck // the specification has it
	})
	b.bmc.Firmware(func(w *bmctest.Firmware) {
		w.Settings["SriovGlobalEnable"], w.Settings["ProcVirtualization"] = "Disabled", "Disabled"
		w.Needs = map[string]bmc.Settings{"SriovGlobalEnable": {"ProcVirtualization": "Enabled"}}
	})
	b.until("an error", func() bool { return b.host().Status.ErrorType != "" })
	if got, want := b.host().Status.ErrorMessage, "BIOS settings not applied: SriovGlobalEnable (spec.firmware.sriovEnabled) is Disabled, not Enabled (SriovGlobalEnable depends on ProcVirtualization)"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}
