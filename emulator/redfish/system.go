package redfish

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func systemRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Systems", schema: "ComputerSystemCollection", name: "Systems", of: "system"},
		{uri: "/redfish/v1/Systems/{system}", schema: "ComputerSystem.v1_27_0",
			shows: bootShows | PartPower | PartAsset | PartPolicy | PartThermal | PartWatchdog | PartConsole | PartNetwork, read: system, patch: &systemPatch,
			actions: systemActions, fragments: systemFragments, moves: PartPower | PartAsset | PartThermal | PartStorage},
	}
}

func system(v view) object {
	p, id := v.m.Profile, v.m.Identity
	o := object{
		"Name": "System", "SystemType": "Physical", "HostingRoles": []string{"BareMetalServer"},
		"Manufacturer": id.Manufacturer, "Model": id.Model, "SKU": p.SKU, "PartNumber": id.PartNumber,
		"SerialNumber": id.Serial, "UUID": id.UUID, "BiosVersion": v.m.BIOSVersion(),
		"PowerRestorePolicy": string(v.m.Policy.Restore), "PowerRestorePolicy@Redfish.AllowableValues": restorePolicies(v),
		"PowerOnDelaySeconds": wholeSeconds(v.m.Policy.OnDelay), "PowerCycleDelaySeconds": wholeSeconds(v.m.Policy.CycleDelay),
		"ProcessorSummary": processors(v.m.Processors()),
		"MemorySummary":    memorySummary(p),
		"TrustedModules":   trustedModules(v), "HostWatchdogTimer": watchdog(v),
		"SerialConsole": serialConsole(v),
	}
	links := object{"Chassis": refs(v.chassis()), "ManagedBy": refs(v.manager())}
	o["Links"] = links
	if trusted := trustedIDs(v); len(trusted) > 0 {
		links["TrustedComponents"] = list(trusted, func(id string) object { return ref(v.chassis("TrustedComponents", id)) })
		links["TrustedComponents@odata.count"] = len(trusted)
	}
	devices, functions := []object{}, []object{}
	for _, c := range p.Cards {
		at := v.chassis("PCIeDevices", c.ID)
		devices = append(devices, ref(at))
		for _, f := range p.Functions(c) {
			functions = append(functions, ref(at+"/PCIeFunctions/"+f.ID))
		}
	}
	o["PCIeDevices"], o["PCIeDevices@odata.count"] = devices, len(devices)
	o["PCIeFunctions"], o["PCIeFunctions@odata.count"] = functions, len(functions)
	return o
}

// systemFragments are what changes of a system when it is switched, booted or
// marked, or when a part of it fails.
var systemFragments = []fragment{
	{shows: PartPower, of: systemPower},
	{shows: PartAsset, of: systemAsset},
	{in: "Status", shows: PartPower, of: func(v view) object { return object{"State": systemState(v.m.Phase), "Health": "OK"} }},
	{in: "Status", shows: PartThermal | PartStorage, of: func(v view) object { return object{"HealthRollup": worst(v.boxHealth(), v.disksHealth())} }},
	{in: "Boot", shows: PartPower | PartBoot, of: bootOverride},
	{in: "Boot", shows: bootShows, of: bootOrder},
}

func systemPower(v view) object {
	o := object{"PowerState": string(v.m.Power), "BootProgress": bootProgress(v)}
	if r := v.m.Reset; r != nil {
		o["LastResetTime"], o["LastResetCause"] = r.At.UTC().Format(time.RFC3339), string(r.Cause)
	}
	return o
}

func systemAsset(v view) object {
	o := object{"AssetTag": v.m.Asset.Tag, "HostName": v.m.Asset.HostName}
	showLight(v, o)
	return o
}

func wholeSeconds(d machine.Duration) int64 { return int64(d.Duration / time.Second) }

// bootProgress tells how far the boot is. Programs of the firmware other than
// its set-up have no value of their own.
func bootProgress(v view) object {
	o := object{"LastState": string(v.m.Progress), "LastStateTime": nil}
	if at := v.m.ProgressAt; !at.IsZero() {
		o["LastStateTime"] = at.UTC().Format(time.RFC3339)
	}
	if app := v.m.FirmwareApp; v.m.Phase == machine.InSetup && app != machine.BiosSetup {
		o["LastState"], o["OemLastState"] = "OEM", string(app)
	}
	if d := v.m.BootTime; d.Duration > 0 {
		o["LastBootTimeSeconds"] = wholeSeconds(d)
	}
	return o
}

// systemState is the Resource.State of a machine.
func systemState(p machine.Phase) string {
	switch p {
	case machine.Off, machine.Unplugged, machine.Delaying, machine.Cutting:
		return "Disabled"
	case machine.Starting, machine.POST, machine.Selecting:
		return "Starting"
	case machine.Paused:
		return "Quiesced"
	}
	return "Enabled"
}

func resetTypes(v view) []string { return texts(v.d.ResetTypes) }

func texts[T ~string](all []T) []string {
	return list(all, func(t T) string { return string(t) })
}

var systemPatch = patch{
	inputs: []input{
		{name: "AssetTag", kind: text, nullable: true, form: machine.ValidText},
		{name: "HostName", kind: text, nullable: true, form: isHostName},
		{name: "LocationIndicatorActive", kind: boolean},
		{name: "IndicatorLED", kind: text, values: lights},
		{name: "PowerRestorePolicy", kind: text, values: restorePolicies},
		{name: "PowerOnDelaySeconds", kind: integer, min: 0, max: maxDelay},
		{name: "PowerCycleDelaySeconds", kind: integer, min: 0, max: maxDelay},
		{name: "HostWatchdogTimer", kind: group, of: watchdogInputs},
		{name: "SerialConsole", kind: group, of: serialConsoleInputs},
		{name: "Boot", kind: group, of: bootInputs},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		all, err := setBoot(c)
		if err != nil {
			return reply{}, err
		}
		all = append(all, setWatchdog(c)...)
		console, err := setConsole(c, "SerialConsole/IPMI/ServiceEnabled")
		if err != nil {
			return reply{}, err
		}
		a := assetOf(c)
		a.Tag = text0(c.set, "AssetTag", a.Tag)
		a.HostName = text0(c.set, "HostName", a.HostName)
		if a != *c.view.m.Asset {
			all = append(all, machine.SetAsset{Asset: a})
		}
		p := *c.view.m.Policy
		p.Restore = machine.RestorePolicy(value(c.set, "PowerRestorePolicy", string(p.Restore)))
		p.OnDelay = secondsOr(c.set, "PowerOnDelaySeconds", p.OnDelay)
		p.CycleDelay = secondsOr(c.set, "PowerCycleDelaySeconds", p.CycleDelay)
		if p != *c.view.m.Policy {
			all = append(all, machine.SetPowerPolicy{PowerPolicy: p})
		}
		if err := applyAll(ctx, c, all); err != nil {
			return reply{}, err
		}
		return reply{}, console(ctx)
	},
}

const maxDelay = int64(machine.MaxDelay / time.Second)

// applyAll carries out commands as one. There may be none: what a client wants
// may be so already.
func applyAll(ctx context.Context, c operation, all []machine.Command) error {
	if len(all) == 0 {
		return nil
	}
	return c.host.Apply(ctx, machine.Transaction(all))
}

// text0 is what a client sent, "" if that is null, or otherwise if it sent
// nothing.
func text0(set values, name, otherwise string) string {
	if v, sent := set[name]; sent && v == nil {
		return ""
	}
	return value(set, name, otherwise)
}

// secondsOr is what a client sent as a number of seconds.
func secondsOr(set values, name string, otherwise machine.Duration) machine.Duration {
	if n, ok := set[name].(int64); ok {
		return machine.Duration{Duration: time.Duration(n) * time.Second}
	}
	return otherwise
}

func restorePolicies(view) []string { return texts(machine.RestorePolicies) }

var systemActions = []action{{
	name:   "ComputerSystem.Reset",
	inputs: []input{{name: "ResetType", kind: text, required: true, values: resetTypes}},
	apply: func(ctx context.Context, c operation) (reply, error) {
		kind := machine.ResetKind(value(c.set, "ResetType", ""))
		err := c.host.Apply(ctx, machine.Reset{Kind: kind, HangInPOST: slices.Contains(c.view.d.HangsAfterReset, kind)})
		if errors.Is(err, machine.ErrPower) {
			err = refused(kind, c.host.Machine().Power, c.view)
		}
		return reply{}, err
	},
}, {
	name: "ComputerSystem.SetDefaultBootOrder",
	apply: func(ctx context.Context, c operation) (reply, error) {
		return reply{}, c.host.Apply(ctx, machine.SetBootOrder{})
	},
}}

// wanted are the power states in which a reset finds what it is to bring
// about.
var wanted = map[machine.ResetKind][]machine.Power{
	machine.ResetOn:          {machine.PowerOn, machine.PoweringOn},
	machine.ForceOn:          {machine.PowerOn, machine.PoweringOn},
	machine.ForceOff:         {machine.PowerOff, machine.PoweringOff},
	machine.GracefulShutdown: {machine.PowerOff, machine.PoweringOff},
	machine.Pause:            {machine.PowerPaused},
	machine.Resume:           {machine.PowerOn},
}

// refused answers a reset that the power state does not allow. It is nil when
// the state is as wanted and the vendor's BMC takes that for success.
func refused(kind machine.ResetKind, power machine.Power, v view) error {
	switch {
	case slices.Contains(wanted[kind], power) && v.d.RedundantReset == dialect.AcceptRedundant:
		return nil
	case wanted[kind] == nil && power == machine.PowerOff:
		return decline(http.StatusConflict, message.ChassisPowerStateOnRequired.With(v.d.ChassisID))
	}
	return decline(http.StatusConflict, message.ResourceInUse.With())
}
