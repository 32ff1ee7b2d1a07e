package firmware

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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

// vendorFields returns the settings that the firmware field of a host asks for, and the
// field of each by the setting's name.
func vendorFields(h *metal3.BareMetalHost) (want metal3.DesiredSettingsMap, fields map[string]string, err error) {
	f := h.Spec.Firmware //nolint:staticcheck // the specification has it
	if f == nil {
		return nil, nil, nil
	}
	address, err := bmc.ParseAddress(h.Spec.BMC.Address)
	if err != nil {
		return nil, nil, err
	}
	names, ok := fieldNames[address.Hardware]
	if !ok {
		return nil, nil, fmt.Errorf("firmware settings for %s are not supported: remove spec.firmware, and use HostFirmwareSettings", address.Hardware)
	}
	want, fields = metal3.DesiredSettingsMap{}, map[string]string{}
	for _, one := range []struct {
		field, name string
		on          *bool
	}{
		{"virtualizationEnabled", names.virtualization, f.VirtualizationEnabled},
		{"simultaneousMultithreadingEnabled", names.threads, f.SimultaneousMultithreadingEnabled},
		{"sriovEnabled", names.sriov, f.SriovEnabled},
	} {
		if one.on == nil {
			continue
		}
		value := names.off
		if *one.on {
			value = names.on
		}
		want[one.name], fields[one.name] = intstr.FromString(value), "spec.firmware."+one.field
	}
	return want, fields, nil
}

// lackingSettings describes the wanted settings that the BMC does not show, "" when it
// shows all. Each is called as the user has written it: by its name (B-204), or by the
// field of the host that stands for it (B-262).
func (w *settingsWanted) lackingSettings() string {
	var names, fields []string
	for _, name := range slices.Sorted(maps.Keys(w.want)) {
		if _, shown := w.bios.Settings[name]; shown {
			continue
		}
		if field, ok := w.fields[name]; ok {
			fields = append(fields, fmt.Sprintf("%s needs the BIOS setting %s, which the server does not have", field, name))
		} else {
			names = append(names, fmt.Sprintf("setting %s is not in the Status field", name))
		}
	}
	if len(fields) > 0 {
		names = append(names, strings.Join(fields, ", ")+": remove it, and use HostFirmwareSettings for the settings that it has")
	}
	return strings.Join(names, "; ")
}

// lockedFields describes the fields of the host whose settings other settings lock; ""
// when there is none. Settings by name are judged before: see validate.
func (w *settingsWanted) lockedFields() string {
	var out []string
	locked := w.bios.Registry.Locks(w.bios.Settings, wantedValues(w.want, w.bios))
	for _, name := range slices.Sorted(maps.Keys(locked)) {
		if field, ok := w.fields[name]; ok {
			v := w.want[name]
			out = append(out, fmt.Sprintf("%s needs the BIOS setting %s=%s: %v", field, name, v.String(), locked[name]))
		}
	}
	return strings.Join(out, "; ")
}

// called returns a setting's name with the field of the host that stands for it.
func (w *settingsWanted) called(name string) string {
	if field, ok := w.fields[name]; ok {
		return name + " (" + field + ")"
	}
	return name
}
