package conformance

import (
	"context"
	"slices"
	"strings"
)

// bootChecks are the checks of the boot override.
var bootChecks = []Check{
	{
		ID: "BOOT-001", Title: "targets, Enabled and Mode with allowable values", Level: ReadOnly, Protocol: Redfish, Step: Boot,
		Predicts: "the boot device cannot be chosen", Remedy: "use IPMI for the boot device",
		After: []string{"SYS-001"}, Run: overrideReadable,
	},
	{
		ID: "BOOT-002", Title: "PATCH of Once and Pxe is read back", Level: Reversible, Protocol: Redfish, Step: Boot,
		Predicts: "the server boots from disk again", Remedy: "use IPMI for the boot device",
		After: []string{"BOOT-001"}, Run: overrideWritten,
	},
	{
		ID: "BOOT-003", Title: "minimal, full and redundant payloads are accepted", Level: Reversible, Protocol: Redfish, Step: Boot,
		Predicts: "400 on setting the boot device", Remedy: "use a client with a workaround for this payload",
		After: []string{"BOOT-002"}, Run: payloadsAccepted,
	},
	{
		ID: "BOOT-004", Title: "If-Match: none, weak and strong ETags on a PATCH of Boot", Level: Reversible, Protocol: Redfish, Step: Boot,
		Predicts: "412 or 428 on setting the boot device", Remedy: "use a client that tries ETags in turn",
		After: []string{"BOOT-002"}, Run: etagsAccepted,
	},
	{
		ID: "BOOT-005", Title: "the override is written to the System", Level: Reversible, Protocol: Redfish, Step: Boot,
		Predicts: "Boot of the System is read-only", Remedy: "use a client that follows @Redfish.Settings",
		After: []string{"BOOT-001"}, Run: overrideOfSystem,
	},
	{
		ID: "BOOT-006", Title: "Continuous is accepted", Level: Reversible, Protocol: Redfish, Step: Boot,
		Predicts: "the boot device does not persist", Remedy: "let the client use Once",
		After: []string{"BOOT-002"}, Run: continuousAccepted,
	},
	{
		ID: "BOOT-007", Title: "Disabled or None clears the override", Level: Reversible, Protocol: Redfish, Step: Boot,
		Predicts: "boot loops", Remedy: "clear the override in the BMC's own interface",
		After: []string{"BOOT-002"}, Run: overrideCleared,
	},
	{
		ID: "BOOT-008", Title: "Once is consumed by exactly one reset", Level: Disruptive, Protocol: Redfish, Step: Provision,
		Predicts: "the server is installed again and again", Remedy: "clear the override after the boot",
		After: []string{"BOOT-002", "PWR-003"}, Run: onceConsumed,
	},
	{
		ID: "BOOT-009", Title: "the mode survives a change of the target", Level: Reversible, Protocol: Redfish, Step: Boot,
		Predicts: "the mode falls back to Legacy", Remedy: "send the mode with every change",
		After: []string{"BOOT-002"}, Run: modeSurvives,
	},
	{
		ID: "BOOT-010", Title: "PXE: a DHCP DISCOVER comes from the NIC of the given MAC", Level: Disruptive, Protocol: Redfish, Step: Boot,
		Predicts: "PXE never happens", Remedy: "enable PXE for the NIC in the BIOS, and check its VLAN",
		After: []string{"BOOT-002", "PWR-003"}, Needs: []Facility{NeedsDHCP}, Run: pxeHeard,
	},
	{
		ID: "BOOT-011", Title: "UEFI HTTP boot: HttpBootUri is accepted and fetched", Level: Disruptive, Protocol: Redfish, Step: Boot,
		Predicts: "redfish-https boot fails", Remedy: "use PXE or virtual media",
		After: []string{"BOOT-002", "PWR-003"}, Needs: []Facility{NeedsMedia}, Run: httpBooted,
	},
	{
		ID: "BOOT-012", Title: "BootOrder is read, reordered and restored", Level: Reversible, Protocol: Redfish, Step: Provision,
		Predicts: "the disk does not come first after a deployment", Remedy: "set the boot order in the BIOS",
		After: []string{"BOOT-001"}, Run: orderChanged,
	},
	{
		ID: "BOOT-013", Title: "an override during POST is refused with a retryable error", Level: Disruptive, Protocol: Redfish, Step: Boot,
		Predicts: "the boot device is lost during POST", Remedy: "let the client retry after POST",
		After: []string{"BOOT-002", "PWR-003"}, Run: overrideDuringPOST,
	},
	{
		ID: "BOOT-014", Title: "IPMI boot device PXE, disk and CD, EFI and persistent, is read back", Level: Reversible, Protocol: IPMI, Step: Boot,
		Predicts: "the boot device is not set", Remedy: "use Redfish for the boot device",
		After: []string{"SYS-004"}, Needs: []Facility{NeedsIPMI}, Run: ipmiBootDevices,
	},
}

// Names of the boot override's properties.
const (
	bootTarget  = "BootSourceOverrideTarget"
	bootEnabled = "BootSourceOverrideEnabled"
	bootMode    = "BootSourceOverrideMode"
)

// override is a boot override; an empty property is not sent.
type override struct{ target, enabled, mode string }

func overrideOf(boot Value) override {
	return override{boot.At(bootTarget).TextOr(""), boot.At(bootEnabled).TextOr(""), boot.At(bootMode).TextOr("")}
}

func (o override) body() map[string]any {
	boot := map[string]string{}
	for name, v := range map[string]string{bootTarget: o.target, bootEnabled: o.enabled, bootMode: o.mode} {
		if v != "" {
			boot[name] = v
		}
	}
	return map[string]any{"Boot": boot}
}

// without returns what of an override differs from another.
func (o override) without(now override) override {
	if o.target == now.target {
		o.target = ""
	}
	if o.enabled == now.enabled {
		o.enabled = ""
	}
	if o.mode == now.mode {
		o.mode = ""
	}
	return o
}

func (o override) String() string {
	return strings.Join(slices.DeleteFunc([]string{o.enabled, o.target, o.mode}, func(s string) bool { return s == "" }), " ")
}

// overrideReadable looks at the boot override and its allowable values.
func overrideReadable(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	boot := place.System.At("Boot")
	if !boot.Exists() {
		return Failed("%s has no Boot", place.SystemURI)
	}
	for _, name := range []string{bootTarget, bootEnabled} {
		if v := boot.At(name); !v.Null() {
			if _, err := v.Text(); err != nil {
				return Judge(err)
			}
		} else if !v.Exists() {
			return Failed("%s has no %s", boot.Path(), name)
		}
	}
	targets, err := boot.At(bootTarget + "@Redfish.AllowableValues").Texts()
	if err != nil {
		return Judge(err)
	}
	o := Passed("").With("boot targets", "%s", strings.Join(targets, " "))
	if !slices.Contains(targets, "Pxe") {
		return Failed("the boot targets %s lack Pxe", strings.Join(targets, ", "))
	}
	var missing []string
	if boot.At(bootMode).Null() {
		missing = append(missing, bootMode)
	}
	if !slices.ContainsFunc(targets, func(t string) bool { return t == "Cd" || t == "UsbCd" }) {
		missing = append(missing, "the target Cd")
	}
	if enabled, err := boot.At(bootEnabled + "@Redfish.AllowableValues").Texts(); err == nil && !slices.Contains(enabled, "Continuous") {
		o = o.Quirky("boot-no-continuous")
	}
	if len(missing) > 0 {
		o.Verdict, o.Reason = Warn, "the boot override lacks "+strings.Join(missing, " and ")
	}
	return o
}
