package resource

import (
	"cmp"
	"context"
	"regexp"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

func managerRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Managers", Schema: "ManagerCollection", collectionName: "Managers", memberVariable: "manager"},
		{URI: "/redfish/v1/Managers/{manager}", Schema: "Manager.v1_24_0",
			DependsOn: partIdentity | partFirmware | partLife | partClock | partTime | partConsole | partNetwork,
			Read:      manager, Patch: &managerPatch, Actions: managerActions, Volatile: []string{"DateTime"}},
	}
}

// manager returns the Manager of the BMC. Its VirtualMedia links to the system's
// collection: DSP2046 deprecates the manager's collection in favour of that one,
// older clients read the manager only, and Ironic and others read both, so two
// collections would show each slot twice.
func manager(v View) Object {
	o := Object{
		"Name": "Manager", "Description": "Baseboard management controller", "ManagerType": "BMC", "Model": cmp.Or(v.Machine.Profile.BMCModel, v.Dialect.ManagerModel), "Manufacturer": v.Dialect.Vendor,
		"FirmwareVersion": v.Machine.BMCVersion(), "PowerState": "On", "Status": status(managerState(v.BMC.Life)),
		"DateTime": v.clockTime(), "DateTimeLocalOffset": v.localOffset(),
		"UUID": v.serviceUUID(), "ServiceEntryPointUUID": v.serviceUUID(),
		"VirtualMedia": Ref(v.system("VirtualMedia")), "SerialConsole": managerConsole(v),
		"Links": Object{
			"ManagerForServers": refs(v.system()), "ManagerForChassis": refs(v.chassis()), "ManagerInChassis": Ref(v.chassis()),
		},
	}
	if c := v.BMC.Clock; c != nil && c.Zone != "" {
		o["TimeZoneName"] = c.Zone
	}
	if l := v.BMC.Life; l != nil && !l.Up.IsZero() {
		o["LastResetTime"] = v.Local(l.Up)
	}
	return o
}

// managerState returns the Status.State of a BMC that responds.
func managerState(l *bmc.Life) string {
	if l.Is() == bmc.Leaving {
		return "UnavailableOffline"
	}
	return "Enabled"
}

// managerPatch sets the clock and enables the serial console. TimeZoneName is
// only displayed; the offset determines the time (DSP2046,
// Manager.TimeZoneName).
var managerPatch = Patch{
	Inputs: []Input{
		{Name: "DateTime", Kind: Text, form: isDateTime},
		{Name: "DateTimeLocalOffset", Kind: Text, form: isOffset},
		{Name: "TimeZoneName", Kind: Text, form: isZone},
		{Name: "SerialConsole", Kind: Group, Of: managerConsoleInputs},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		console, err := setConsole(c, "SerialConsole/ServiceEnabled")
		if err != nil {
			return Result{}, err
		}
		zone := bmc.SetZone{Name: Value(c.Values, "TimeZoneName", "")}
		if old := c.View.BMC.Clock; old != nil {
			zone = bmc.SetZone{UTCOffset: old.UTCOffset, Name: Value(c.Values, "TimeZoneName", old.Zone)}
		}
		offset, east := c.Values["DateTimeLocalOffset"].(string)
		if east {
			zone.UTCOffset = offsetMinutes(offset)
		}
		var do []bmc.Command
		if _, named := c.Values["TimeZoneName"]; east || named {
			do = append(do, zone)
		}
		if text, ok := c.Values["DateTime"].(string); ok {
			to, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return Result{}, err // not reached: the format was validated
			}
			do = append(do, bmc.SetTime{To: to})
		}
		for _, cmd := range do {
			if _, err := c.Host.ApplyBMC(ctx, cmd); err != nil {
				return Result{}, err
			}
		}
		return Result{}, console(ctx)
	},
}

// isDateTime reports whether a string is an RFC 3339 date-time from 1970 to
// 2105.
func isDateTime(s string) bool {
	t, err := time.Parse(time.RFC3339, s)
	return err == nil && t.Year() >= 1970 && t.Year() < 2106 // IPMI counts 32 bits of seconds
}

var offsetPattern = regexp.MustCompile(`^[-+][0-1][0-9]:[0-5][0-9]$`)

func isOffset(s string) bool { return offsetPattern.MatchString(s) }

// offsetMinutes returns an offset east of UTC in minutes.
func offsetMinutes(offset string) int {
	hours, _ := strconv.Atoi(offset[1:3])
	m, _ := strconv.Atoi(offset[4:])
	if m += 60 * hours; offset[0] == '-' {
		return -m
	}
	return m
}

var zonePattern = regexp.MustCompile(`^[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}$`)

// isZone reports whether a string can be the name of a time zone.
func isZone(s string) bool { return zonePattern.MatchString(s) }

var managerActions = []Action{
	{
		Name:   "Manager.Reset",
		Inputs: []Input{{Name: "ResetType", Kind: Text, Allowed: func(View) []string { return Texts(bmc.ResetKinds) }}},
		Apply: func(ctx context.Context, c Call) (Result, error) {
			kind := bmc.ResetKind(Value(c.Values, "ResetType", string(bmc.GracefulRestart)))
			_, err := c.Host.ApplyBMC(ctx, bmc.Restart{Kind: kind})
			return Result{}, err
		},
	},
	{
		Name:   "Manager.ResetToDefaults",
		Inputs: []Input{{Name: "ResetType", Kind: Text, Required: true, Allowed: func(View) []string { return Texts(bmc.ResetToDefaultsTypes) }}},
		Apply: func(ctx context.Context, c Call) (Result, error) {
			_, err := c.Host.ApplyBMC(ctx, bmc.ResetToDefaults{Type: bmc.ResetToDefaultsType(Value(c.Values, "ResetType", ""))})
			return Result{}, err
		},
	},
}
