package resource

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

func systemRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Systems", Schema: "ComputerSystemCollection", collectionName: "Systems", memberVariable: "system"},
		{URI: "/redfish/v1/Systems/{system}", Schema: "ComputerSystem.v1_27_0",
			DependsOn: bootParts | partPower | partAsset | partPolicy | partThermal | partWatchdog | partConsole | partNetwork, Read: system, Patch: &systemPatch,
			Actions: systemActions, Fragments: systemFragments, FragmentParts: partPower | partAsset | partThermal | partStorage},
	}
}

func system(v View) Object {
	p, id := v.Machine.Profile, v.Machine.Identity
	o := Object{
		"Name": "System", "SystemType": "Physical", "HostingRoles": []string{"BareMetalServer"},
		"Manufacturer": id.Manufacturer, "Model": id.Model, "SKU": p.SKU, "PartNumber": id.PartNumber,
		"SerialNumber": id.Serial, "UUID": id.UUID, "BiosVersion": v.Machine.BIOSVersion(),
		"PowerRestorePolicy": string(v.Machine.Policy.Restore), "PowerRestorePolicy@Redfish.AllowableValues": restorePolicies(v),
		"PowerOnDelaySeconds": integerSeconds(v.Machine.Policy.OnDelay), "PowerCycleDelaySeconds": integerSeconds(v.Machine.Policy.CycleDelay),
		"ProcessorSummary": processors(v.Machine.Processors()),
		"MemorySummary":    memorySummary(p),
		"TrustedModules":   trustedModules(v), "HostWatchdogTimer": watchdog(v),
		"SerialConsole": serialConsole(v),
	}
	links := Object{"Chassis": refs(v.chassis()), "ManagedBy": refs(v.manager())}
	o["Links"] = links
	if trusted := trustedIDs(v); len(trusted) > 0 {
		links["TrustedComponents"] = Map(trusted, func(id string) Object { return Ref(v.chassis("TrustedComponents", id)) })
		links["TrustedComponents@odata.count"] = len(trusted)
	}
	devices, functions := []Object{}, []Object{}
	for _, c := range p.Cards {
		at := v.chassis("PCIeDevices", c.ID)
		devices = append(devices, Ref(at))
		for _, f := range p.Functions(c) {
			functions = append(functions, Ref(at+"/PCIeFunctions/"+f.ID))
		}
	}
	o["PCIeDevices"], o["PCIeDevices@odata.count"] = devices, len(devices)
	o["PCIeFunctions"], o["PCIeFunctions@odata.count"] = functions, len(functions)
	return o
}

// systemFragments are the properties of a ComputerSystem that change when it is powered,
// booted or labelled, or when one of its parts fails.
var systemFragments = []fragment{
	{DependsOn: partPower, Properties: systemPower},
	{DependsOn: partAsset, Properties: systemAsset},
	{In: "Status", DependsOn: partPower, Properties: func(v View) Object { return Object{"State": systemState(v.Machine.Phase), "Health": "OK"} }},
	{In: "Status", DependsOn: partThermal | partStorage, Properties: func(v View) Object { return Object{"HealthRollup": worstHealth(v.chassisHealth(), v.storageHealth())} }},
	{In: "Boot", DependsOn: partPower | partBoot, Properties: bootOverride},
	{In: "Boot", DependsOn: bootParts, Properties: bootOrder},
}

func systemPower(v View) Object {
	o := Object{"PowerState": string(v.Machine.Power), "BootProgress": bootProgress(v)}
	if r := v.Machine.Reset; r != nil {
		o["LastResetTime"], o["LastResetCause"] = r.At.UTC().Format(time.RFC3339), string(r.Cause)
	}
	return o
}

func systemAsset(v View) Object {
	o := Object{"AssetTag": v.Machine.Asset.Tag, "HostName": v.Machine.Asset.HostName}
	addIndicator(v, o)
	return o
}

func integerSeconds(d machine.Duration) int64 { return int64(d.Duration / time.Second) }

// bootProgress returns ComputerSystem.BootProgress. Programs of the firmware other than its
// set-up have no value of their own.
func bootProgress(v View) Object {
	o := Object{"LastState": string(v.Machine.Progress), "LastStateTime": nil}
	if at := v.Machine.ProgressAt; !at.IsZero() {
		o["LastStateTime"] = at.UTC().Format(time.RFC3339)
	}
	if app := v.Machine.FirmwareApp; v.Machine.Phase == machine.InSetup && app != machine.BiosSetup {
		o["LastState"], o["OemLastState"] = "OEM", string(app)
	}
	if d := v.Machine.BootTime; d.Duration > 0 {
		o["LastBootTimeSeconds"] = integerSeconds(d)
	}
	return o
}

// systemState returns the Resource.State of a machine.
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

func resetTypes(v View) []string { return Texts(v.Dialect.ResetTypes) }

// Texts converts a slice of a string type to strings.
func Texts[T ~string](all []T) []string {
	return Map(all, func(t T) string { return string(t) })
}

var systemPatch = Patch{
	Inputs: []Input{
		{Name: "AssetTag", Kind: Text, nullable: true, form: machine.ValidText},
		{Name: "HostName", Kind: Text, nullable: true, form: isHostName},
		{Name: "LocationIndicatorActive", Kind: Boolean},
		{Name: "IndicatorLED", Kind: Text, Allowed: indicatorStates},
		{Name: "PowerRestorePolicy", Kind: Text, Allowed: restorePolicies},
		{Name: "PowerOnDelaySeconds", Kind: Integer, Min: 0, Max: maxDelay},
		{Name: "PowerCycleDelaySeconds", Kind: Integer, Min: 0, Max: maxDelay},
		{Name: "HostWatchdogTimer", Kind: Group, Of: watchdogInputs},
		{Name: "SerialConsole", Kind: Group, Of: serialConsoleInputs},
		{Name: "Boot", Kind: Group, Of: bootInputs},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		all, err := bootCommands(c)
		if err != nil {
			return Result{}, err
		}
		all = append(all, setWatchdog(c)...)
		console, err := setConsole(c, "SerialConsole/IPMI/ServiceEnabled")
		if err != nil {
			return Result{}, err
		}
		a := patchedAsset(c)
		a.Tag = textOrEmpty(c.Values, "AssetTag", a.Tag)
		a.HostName = textOrEmpty(c.Values, "HostName", a.HostName)
		if a != *c.View.Machine.Asset {
			all = append(all, machine.SetAsset{Asset: a})
		}
		p := *c.View.Machine.Policy
		p.Restore = machine.RestorePolicy(Value(c.Values, "PowerRestorePolicy", string(p.Restore)))
		p.OnDelay = durationValue(c.Values, "PowerOnDelaySeconds", p.OnDelay)
		p.CycleDelay = durationValue(c.Values, "PowerCycleDelaySeconds", p.CycleDelay)
		if p != *c.View.Machine.Policy {
			all = append(all, machine.SetPowerPolicy{PowerPolicy: p})
		}
		if err := applyAll(ctx, c, all); err != nil {
			return Result{}, err
		}
		return Result{}, console(ctx)
	},
}

const maxDelay = int64(machine.MaxDelay / time.Second)

// applyAll executes commands as one transaction. The list may be empty, when the request
// changes nothing.
func applyAll(ctx context.Context, c Call, all []machine.Command) error {
	if len(all) == 0 {
		return nil
	}
	return c.Host.Apply(ctx, machine.Transaction(all))
}

// textOrEmpty returns the text that the client sent, "" for null, or otherwise when the
// client sent nothing.
func textOrEmpty(set Values, name, otherwise string) string {
	if v, sent := set[name]; sent && v == nil {
		return ""
	}
	return Value(set, name, otherwise)
}

// durationValue returns the number of seconds that the client sent as a duration, or
// otherwise when the client sent none.
func durationValue(set Values, name string, otherwise machine.Duration) machine.Duration {
	if n, ok := set[name].(int64); ok {
		return machine.Duration{Duration: time.Duration(n) * time.Second}
	}
	return otherwise
}

func restorePolicies(View) []string { return Texts(machine.RestorePolicies) }

var systemActions = []Action{{
	Name:   "ComputerSystem.Reset",
	Inputs: []Input{{Name: "ResetType", Kind: Text, Required: true, Allowed: resetTypes}},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		kind := machine.ResetKind(Value(c.Values, "ResetType", ""))
		err := c.Host.Apply(ctx, machine.Reset{Kind: kind, HangInPOST: slices.Contains(c.View.Dialect.HangsAfterReset, kind)})
		if errors.Is(err, machine.ErrPower) && slices.Contains(restarts, kind) && c.Host.Machine().Power == machine.PowerOff {
			err = c.Host.Apply(ctx, machine.Reset{Kind: machine.ForceOn})
		}
		if errors.Is(err, machine.ErrPower) {
			err = refuseReset(kind, c.Host.Machine().Power, c.View)
		}
		return Result{}, err
	},
}, {
	Name: "ComputerSystem.SetDefaultBootOrder",
	Apply: func(ctx context.Context, c Call) (Result, error) {
		return Result{}, c.Host.Apply(ctx, machine.SetBootOrder{})
	},
}}

// restarts are the resets that end in the power state On, also when they begin in Off: a
// system that is off is switched on (DSP2046, Resource.ResetType). The model refuses them
// then, as IPMI recommends (IPMI v2.0 rev 1.1, §28.3).
var restarts = []machine.ResetKind{machine.ForceRestart, machine.GracefulRestart, machine.PowerCycle}

// resetEndStates lists the power states in which a reset has nothing to do.
var resetEndStates = map[machine.ResetKind][]machine.Power{
	machine.ResetOn:          {machine.PowerOn, machine.PoweringOn},
	machine.ForceOn:          {machine.PowerOn, machine.PoweringOn},
	machine.ForceOff:         {machine.PowerOff, machine.PoweringOff},
	machine.GracefulShutdown: {machine.PowerOff, machine.PoweringOff},
	machine.Pause:            {machine.PowerPaused},
	machine.Resume:           {machine.PowerOn},
}

// refuseReset returns the error for a reset that the power state does not allow. It returns
// nil when the state is one of resetEndStates and the vendor's BMC answers that with
// success.
func refuseReset(kind machine.ResetKind, power machine.Power, v View) error {
	switch {
	case slices.Contains(resetEndStates[kind], power) && v.Dialect.RedundantReset == dialect.AcceptRedundant:
		return nil
	case resetEndStates[kind] == nil && power == machine.PowerOff:
		return Reject(http.StatusConflict, message.ChassisPowerStateOnRequired.With(v.Dialect.ChassisID))
	}
	return Reject(http.StatusConflict, message.ResourceInUse.With())
}
