package firmware

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

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
		{"redfish://bmc", nil, "firmware settings for redfish are not supported"},
		{"ipmi://bmc", nil, "firmware settings for ipmi are not supported"},
	} {
		h := newHost("node-0", "bmc")
		h.Spec.BMC.Address = tt.address
		h.Spec.Firmware = &metal3.FirmwareConfig{VirtualizationEnabled: &no, SimultaneousMultithreadingEnabled: &yes, SriovEnabled: &yes} //nolint:staticcheck // the specification has it
		got, err := vendorFields(h)
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
	if got := b.host().Status.ErrorMessage; got != "firmware settings for redfish are not supported" {
		t.Errorf("message %q", got)
	}
}
