package redfish

import (
	"cmp"
	"context"
	"regexp"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

func managerRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Managers", schema: "ManagerCollection", name: "Managers", of: "manager"},
		{uri: "/redfish/v1/Managers/{manager}", schema: "Manager.v1_24_0",
			shows: PartIdentity | PartFirmware | PartLife | PartClock | PartTime | PartConsole | PartNetwork,
			read:  manager, patch: &managerPatch, actions: managerActions, volatile: []string{"DateTime"}},
	}
}

// manager is the BMC. Its VirtualMedia leads to the system's collection: DSP2046
// deprecates the manager's own in favour of that, older clients look at the
// manager only, and Ironic and others at both, so that two collections would
// show each slot twice.
func manager(v view) object {
	o := object{
		"Name": "Manager", "Description": "Baseboard management controller", "ManagerType": "BMC", "Model": cmp.Or(v.m.Profile.BMCModel, v.d.ManagerModel), "Manufacturer": v.d.Vendor,
		"FirmwareVersion": v.m.BMCVersion(), "PowerState": "On", "Status": status(managerState(v.b.Life)),
		"DateTime": v.clockTime(), "DateTimeLocalOffset": v.localOffset(),
		"UUID": v.serviceUUID(), "ServiceEntryPointUUID": v.serviceUUID(),
		"VirtualMedia": ref(v.system("VirtualMedia")), "SerialConsole": managerConsole(v),
		"Links": object{
			"ManagerForServers": refs(v.system()), "ManagerForChassis": refs(v.chassis()), "ManagerInChassis": ref(v.chassis()),
		},
	}
	if c := v.b.Clock; c != nil && c.Zone != "" {
		o["TimeZoneName"] = c.Zone
	}
	if l := v.b.Life; l != nil && !l.Up.IsZero() {
		o["LastResetTime"] = v.local(l.Up)
	}
	return o
}

// managerState is the Resource.State of a BMC that answers.
func managerState(l *bmc.Life) string {
	if l.Is() == bmc.Leaving {
		return "UnavailableOffline"
	}
	return "Enabled"
}

// managerPatch sets the clock, and whether the serial console is offered. The name of a time zone is only shown; it is the
// offset that counts (DSP2046, Manager.TimeZoneName).
var managerPatch = patch{
	inputs: []input{
		{name: "DateTime", kind: text, form: isDateTime},
		{name: "DateTimeLocalOffset", kind: text, form: isOffset},
		{name: "TimeZoneName", kind: text, form: isZone},
		{name: "SerialConsole", kind: group, of: managerConsoleInputs},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		console, err := setConsole(c, "SerialConsole/ServiceEnabled")
		if err != nil {
			return reply{}, err
		}
		zone := bmc.SetZone{Name: value(c.set, "TimeZoneName", "")}
		if old := c.view.b.Clock; old != nil {
			zone = bmc.SetZone{UTCOffset: old.UTCOffset, Name: value(c.set, "TimeZoneName", old.Zone)}
		}
		offset, east := c.set["DateTimeLocalOffset"].(string)
		if east {
			zone.UTCOffset = minutes(offset)
		}
		var do []bmc.Command
		if _, named := c.set["TimeZoneName"]; east || named {
			do = append(do, zone)
		}
		if text, ok := c.set["DateTime"].(string); ok {
			to, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return reply{}, err // its form was looked at
			}
			do = append(do, bmc.SetTime{To: to})
		}
		for _, cmd := range do {
			if _, err := c.host.ApplyBMC(ctx, cmd); err != nil {
				return reply{}, err
			}
		}
		return reply{}, console(ctx)
	},
}

// isDateTime says whether a text is a date-time (RFC 3339) of this era.
func isDateTime(s string) bool {
	t, err := time.Parse(time.RFC3339, s)
	return err == nil && t.Year() >= 1970 && t.Year() < 2106 // IPMI counts 32 bits of seconds
}

var offsets = regexp.MustCompile(`^[-+][0-1][0-9]:[0-5][0-9]$`)

func isOffset(s string) bool { return offsets.MatchString(s) }

// minutes is how far an offset is east of UTC.
func minutes(offset string) int {
	hours, _ := strconv.Atoi(offset[1:3])
	m, _ := strconv.Atoi(offset[4:])
	if m += 60 * hours; offset[0] == '-' {
		return -m
	}
	return m
}

var zones = regexp.MustCompile(`^[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}$`)

// isZone says whether a text can be the name of a time zone.
func isZone(s string) bool { return zones.MatchString(s) }

var managerActions = []action{
	{
		name:   "Manager.Reset",
		inputs: []input{{name: "ResetType", kind: text, values: func(view) []string { return texts(bmc.ResetKinds) }}},
		apply: func(ctx context.Context, c operation) (reply, error) {
			kind := bmc.ResetKind(value(c.set, "ResetType", string(bmc.GracefulRestart)))
			_, err := c.host.ApplyBMC(ctx, bmc.Restart{Kind: kind})
			return reply{}, err
		},
	},
	{
		name:   "Manager.ResetToDefaults",
		inputs: []input{{name: "ResetType", kind: text, required: true, values: func(view) []string { return texts(bmc.ResetToDefaultsTypes) }}},
		apply: func(ctx context.Context, c operation) (reply, error) {
			_, err := c.host.ApplyBMC(ctx, bmc.ResetToDefaults{Type: bmc.ResetToDefaultsType(value(c.set, "ResetType", ""))})
			return reply{}, err
		},
	},
}
