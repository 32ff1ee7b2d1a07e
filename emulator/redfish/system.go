package redfish

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func systemRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Systems", schema: "ComputerSystemCollection", needs: ofComponents, name: "Systems", of: "system"},
		{uri: "/redfish/v1/Systems/{system}", schema: "ComputerSystem.v1_27_0", needs: ofComponents,
			shows: showsIdentity | showsPower | showsAsset, read: system, patch: &systemPatch, actions: systemActions},
		{uri: "/redfish/v1/Systems/{system}/EthernetInterfaces", schema: "EthernetInterfaceCollection", needs: ofComponents, shows: showsIdentity,
			name: "Ethernet Interfaces", of: "nic"},
		{uri: "/redfish/v1/Systems/{system}/EthernetInterfaces/{nic}", schema: "EthernetInterface.v1_12_4", needs: ofComponents, shows: showsIdentity,
			read: ethernetInterface},
	}
}

func system(v view) object {
	p, id := v.m.Profile, v.m.Identity
	return object{
		"Name": "System", "SystemType": "Physical",
		"Manufacturer": p.Manufacturer, "Model": p.Model, "SKU": p.SKU, "PartNumber": p.PartNumber,
		"SerialNumber": id.Serial, "UUID": id.UUID, "BiosVersion": p.BIOS.Version,
		"PowerState": string(v.m.Power), "Status": status(systemState(v.m.Phase)),
		"BootProgress":     object{"LastState": v.m.Phase.Progress()},
		"Boot":             boot(v),
		"ProcessorSummary": processors(p.Processors),
		"MemorySummary":    object{"TotalSystemMemoryGiB": float64(p.MemoryMiB) / 1024},

		"Links": object{"Chassis": refs(v.chassis()), "ManagedBy": refs(v.manager())},
	}
}

// systemState is the Resource.State of a machine.
func systemState(p machine.Phase) string {
	switch p {
	case machine.Off, machine.Cutting:
		return "Disabled"
	case machine.Starting, machine.POST, machine.Selecting:
		return "Starting"
	}
	return "Enabled"
}

func processors(p machine.Processors) object {
	return object{
		"Count": p.Sockets, "CoreCount": p.Sockets * p.Cores, "LogicalProcessorCount": p.Sockets * p.Threads,
		"Model": p.Model,
	}
}

func boot(v view) object {
	o := v.m.Override
	return object{
		"BootSourceOverrideEnabled": string(o.Enabled), "BootSourceOverrideEnabled@Redfish.AllowableValues": bootEnableds(v),
		"BootSourceOverrideTarget": string(o.Target), "BootSourceOverrideTarget@Redfish.AllowableValues": bootTargets(v),
		"BootSourceOverrideMode": string(o.Mode), "BootSourceOverrideMode@Redfish.AllowableValues": bootModes(v),
	}
}

func bootEnableds(view) []string  { return texts(machine.Enableds) }
func bootModes(view) []string     { return texts(machine.Modes) }
func bootTargets(v view) []string { return texts(v.d.BootTargets) }
func resetTypes(v view) []string  { return texts(v.d.ResetTypes) }

func texts[T ~string](all []T) []string {
	return list(all, func(t T) string { return string(t) })
}

var systemPatch = patch{
	inputs: []input{{name: "Boot", kind: group, of: []input{
		{name: "BootSourceOverrideEnabled", kind: text, values: bootEnableds},
		{name: "BootSourceOverrideTarget", kind: text, values: bootTargets},
		{name: "BootSourceOverrideMode", kind: text, values: bootModes},
	}}},
	apply: func(ctx context.Context, c operation) (reply, error) {
		o, set := c.view.m.Override, c.set
		o.Enabled = machine.Enabled(value(set, "Boot/BootSourceOverrideEnabled", string(o.Enabled)))
		o.Target = machine.SourceKind(value(set, "Boot/BootSourceOverrideTarget", string(o.Target)))
		o.Mode = machine.Mode(value(set, "Boot/BootSourceOverrideMode", string(o.Mode)))
		return reply{}, c.host.Apply(ctx, machine.SetOverride{Override: o})
	},
}

var systemActions = []action{{
	name:   "ComputerSystem.Reset",
	inputs: []input{{name: "ResetType", kind: text, required: true, values: resetTypes}},
	apply: func(ctx context.Context, c operation) (reply, error) {
		kind := machine.ResetKind(value(c.set, "ResetType", ""))
		err := c.host.Apply(ctx, machine.Reset{Kind: kind})
		if errors.Is(err, machine.ErrPower) {
			err = refused(kind, c.host.Machine().Power, c.view)
		}
		return reply{}, err
	},
}}

// wanted are the power states in which a reset finds what it is to bring
// about.
var wanted = map[machine.ResetKind][]machine.Power{
	machine.ResetOn:          {machine.PowerOn, machine.PoweringOn},
	machine.ForceOn:          {machine.PowerOn, machine.PoweringOn},
	machine.ForceOff:         {machine.PowerOff, machine.PoweringOff},
	machine.GracefulShutdown: {machine.PowerOff, machine.PoweringOff},
}

// refused answers a reset that the power state does not allow. It is nil when
// the state is as wanted and the vendor's BMC takes that for success.
func refused(kind machine.ResetKind, power machine.Power, v view) error {
	switch {
	case slices.Contains(wanted[kind], power) && v.d.Redundant == dialect.Accept:
		return nil
	case wanted[kind] == nil && power == machine.PowerOff:
		return decline(http.StatusConflict, message.ChassisPowerStateOnRequired.With(v.d.ChassisID))
	}
	return decline(http.StatusConflict, message.ResourceInUse.With())
}

func ethernetInterface(v view) object {
	n := pick(v.m.Identity.NICs, v.ids["nic"], func(n machine.NIC) string { return n.ID })
	return object{
		"Name": "Ethernet Interface " + n.ID, "EthernetInterfaceType": "Physical", "InterfaceEnabled": true,
		"MACAddress": n.MAC, "PermanentMACAddress": n.MAC, "SpeedMbps": n.SpeedMbps, "FullDuplex": true,
		"LinkStatus": "LinkUp", "Status": status("Enabled"),
		"Links": object{"Chassis": ref(v.chassis())},
	}
}
