package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/scenarios/conformance/ipmi"
)

// pwrChecks are the checks of power.
var pwrChecks = []Check{
	{
		ID: "PWR-001", Title: "the reset types are listed, in place or by ActionInfo", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "an action is not supported", Remedy: "give the client the reset types, or use IPMI for power",
		After: []string{"SYS-001"}, Run: resetTypesListed,
	},
	{
		ID: "PWR-002", Title: "ForceOff leads to Off in time; a second one is harmless", Level: Disruptive, Protocol: Redfish, Step: Provision,
		Predicts: "deprovisioning hangs", Remedy: "raise the client's power time-out",
		After: []string{"PWR-001", "SYS-004"}, Run: forceOff,
	},
	{
		ID: "PWR-003", Title: "On leads to On in time, also at once after Off", Level: Disruptive, Protocol: Redfish, Step: Provision,
		Predicts: "409 after power off", Remedy: "let the client retry power on",
		After: []string{"PWR-002"}, Run: powerOn,
	},
	{
		ID: "PWR-004", Title: "ForceRestart restarts the system", Level: Disruptive, Protocol: Redfish, Step: Boot,
		Predicts: "the server hangs after a restart", Remedy: "use ForceOff and On",
		After: []string{"PWR-003"}, Run: forceRestart,
	},
	{
		ID: "PWR-005", Title: "GracefulShutdown ends with and without an operating system", Level: Disruptive, Protocol: Redfish, Step: Provision,
		Predicts: "soft power off hangs", Remedy: "let the client fall back to ForceOff",
		After: []string{"PWR-003"}, Run: gracefulShutdown,
	},
	{
		ID: "PWR-006", Title: "PowerCycle works if it is advertised", Level: Disruptive, Protocol: Redfish, Step: Day2,
		Predicts: "power cycles fail", Remedy: "use ForceOff and On",
		After: []string{"PWR-003"}, Run: powerCycle,
	},
	{
		ID: "PWR-007", Title: "Reset is answered 200, 202 with Location, or 204", Level: Disruptive, Protocol: Redfish, Step: Provision,
		Predicts: "clients wait for a task that does not exist", Remedy: "update the firmware",
		After: []string{"PWR-003"}, Run: resetAnswered,
	},
	{
		ID: "PWR-008", Title: "the power restore policy is readable", Level: ReadOnly, Protocol: Both, Step: Day2,
		Predicts: "servers stay off after an outage", Remedy: "set the policy in the BMC's own interface",
		After: []string{"SYS-001"}, Run: restorePolicyReadable,
	},
	{
		ID: "PWR-009", Title: "IPMI power on, off, cycle and soft work, also off when off", Level: Disruptive, Protocol: IPMI, Step: Provision,
		Predicts: "power off fails on a server that is off", Remedy: "let the client read the state first",
		After: []string{"SYS-004"}, Needs: []Facility{NeedsIPMI}, Run: ipmiPowers,
	},
	{
		ID: "PWR-010", Title: "BootProgress or PostState changes during POST", Level: Disruptive, Protocol: Redfish, Step: Boot,
		Predicts: "clients do not see a boot", Remedy: "wait for the agent in place of the BMC",
		After: []string{"PWR-003"}, Run: postVisible,
	},
}

// resetTypesListed finds the reset types as a client does: in the action itself or
// in the resource that its @Redfish.ActionInfo names.
func resetTypesListed(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	types, err := r.resetTypes(ctx, place.System.At("Actions", "#ComputerSystem.Reset"))
	if err != nil {
		return Judge(err)
	}
	var missing []string
	for _, t := range []string{"On", "ForceOff"} {
		if !slices.Contains(types, t) {
			missing = append(missing, t)
		}
	}
	if len(missing) > 0 {
		return Failed("the reset types %s lack %s", strings.Join(types, ", "), strings.Join(missing, " and "))
	}
	o := Passed("").With("reset types", "%s", strings.Join(types, " "))
	if !slices.Contains(types, "ForceRestart") {
		o.Verdict, o.Reason = Warn, "ForceRestart is not among the reset types "+strings.Join(types, ", ")
	}
	return o
}

// resetTypes returns the reset types of an action.
func (r *Run) resetTypes(ctx context.Context, action Value) ([]string, error) {
	if !action.Exists() {
		return nil, Findingf("%s is absent", action.Path())
	}
	if inline := action.At("ResetType@Redfish.AllowableValues"); inline.Exists() {
		return inline.Texts()
	}
	uri, err := action.At("@Redfish.ActionInfo").Text()
	if err != nil {
		return nil, Findingf("%s has neither ResetType@Redfish.AllowableValues nor @Redfish.ActionInfo", action.Path())
	}
	info, err := r.Page(ctx, uri)
	if err != nil {
		return nil, err
	}
	parameters, err := info.At("Parameters").List()
	if err != nil {
		return nil, err
	}
	for _, p := range parameters {
		if p.At("Name").TextOr("") == "ResetType" {
			return p.At("AllowableValues").Texts()
		}
	}
	return nil, Findingf("%s has no parameter ResetType", info.Path())
}

// restorePolicyReadable reads the power restore policy by both protocols.
func restorePolicyReadable(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	policies := []string{"AlwaysOn", "AlwaysOff", "LastState"}
	v := place.System.At("PowerRestorePolicy")
	if v.Null() {
		if r.Config().IPMI == "" {
			return Skipped("the system has no PowerRestorePolicy")
		}
	} else if text, err := v.Text(); err != nil || !slices.Contains(policies, text) {
		return Failed("PowerRestorePolicy is %s, not one of %s", abbreviate(v.Raw()), strings.Join(policies, ", "))
	}
	o := Passed("").With("PowerRestorePolicy", "%s", v.TextOr("absent"))
	if r.Config().IPMI == "" || r.bmc.dry != nil {
		return o
	}
	s, err := r.IPMISession(ctx)
	if err != nil {
		return o // IPMI-004 reports it
	}
	defer r.IPMIClose(ctx, s)
	data, err := r.IPMIDo(ctx, s, ipmi.GetChassisStatus)
	if err != nil || len(data) < 3 {
		return Judge(errors.Join(err, short("Get Chassis Status", data, 3)))
	}
	byIPMI := map[byte]string{0: "AlwaysOff", 1: "LastState", 2: "AlwaysOn"}[data[0]>>5&3]
	if byIPMI != "" && !v.Null() && byIPMI != v.TextOr("") {
		o.Verdict, o.Reason = Warn, fmt.Sprintf("Redfish says %s, IPMI %s", v.TextOr(""), byIPMI)
	}
	return o
}

// short returns a Finding when a response has too few bytes.
func short(what string, data []byte, least int) error {
	if len(data) >= least {
		return nil
	}
	return Findingf("%s has %d bytes, want %d", what, len(data), least)
}
