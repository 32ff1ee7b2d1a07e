package firmware

import (
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// vendorNames holds a vendor's names of the three settings that the specification
// has for all vendors.
type vendorNames struct {
	virtualization, threads, sriov string
	on, off                        string
}

var (
	iloNames = vendorNames{"ProcVirtualization", "ProcHyperthreading", "Sriov", "Enabled", "Disabled"}

	// fieldNames maps the driver's name of the hardware to the names that its BMC has
	// for them in Redfish (B-262). Other hardware does not have these settings.
	fieldNames = map[string]vendorNames{
		"ilo":   iloNames,
		"ilo5":  iloNames,
		"idrac": {"ProcVirtualization", "LogicalProc", "SriovGlobalEnable", "Enabled", "Disabled"},
		"irmc":  {"CpuVtEnabled", "HyperThreadingEnabled", "SingleRootIOVirtualizationSupportEnabled", "true", "false"},
	}
)

// vendorFields returns the settings that the firmware field of a host asks for.
func vendorFields(h *metal3.BareMetalHost) (metal3.DesiredSettingsMap, error) {
	f := h.Spec.Firmware //nolint:staticcheck // the specification has it
	if f == nil {
		return nil, nil
	}
	address, err := bmc.ParseAddress(h.Spec.BMC.Address)
	if err != nil {
		return nil, err
	}
	names, ok := fieldNames[address.Hardware]
	if !ok {
		return nil, fmt.Errorf("firmware settings for %s are not supported", address.Hardware)
	}
	out := metal3.DesiredSettingsMap{}
	for _, one := range []struct {
		name string
		want *bool
	}{{names.virtualization, f.VirtualizationEnabled}, {names.threads, f.SimultaneousMultithreadingEnabled}, {names.sriov, f.SriovEnabled}} {
		switch {
		case one.want == nil:
		case *one.want:
			out[one.name] = intstr.FromString(names.on)
		default:
			out[one.name] = intstr.FromString(names.off)
		}
	}
	return out, nil
}
