package idrac

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// Services of the vendor's own [V: sushy, oem/dell, asks for the first four].
const (
	lifecycleService = manager + "/Oem/Dell/DellLCService"
	cardService      = manager + "/Oem/Dell/DelliDRACCardService"
	attributes       = manager + "/Oem/Dell/DellAttributes"
	raidService      = system + "/Oem/Dell/DellRaidService"
)

// own is what only these controllers have: the older ones a queue of jobs,
// profiles and attributes, those from 4.x on the services as well. Of what the
// real ones have these are what provisioning asks for. Left out are the boot
// sources of the vendor's own (the standard's boot order says the same), the
// attributes of network ports, and updates from a catalogue, which there is
// none of here.
func own(g generation) dialect.Own {
	o := dialect.Own{Writes: g.attributeWrites(), Resources: g.attributeGroups(), Actions: g.ofProfile()}
	queues := []string{oldJobs}
	if !g.old {
		queues = append(queues, jobs)
	}
	for _, at := range queues {
		all, queued := g.queue(at)
		o.Resources, o.Actions = append(o.Resources, all...), append(o.Actions, queued)
	}
	o.Also = []dialect.Move{{From: manager + "/LogServices/Sel", To: system + "/LogServices/Sel"}} // where the event log of these controllers stands
	if g.old {
		return o
	}
	o.Also = append(o.Also,
		// Sessions and virtual media are where they were, too [V].
		dialect.Move{From: "/redfish/v1/Sessions", To: "/redfish/v1/SessionService/Sessions"},
		dialect.Move{From: managersMedia, To: media},
		dialect.Move{From: system + "/SecureBoot/Oem/Dell/Certificates/{database}", To: system + "/SecureBoot/SecureBootDatabases/{database}/Certificates"}, // [V]
	)
	service, acts := g.ofJobService()
	o.Resources = slices.Concat(o.Resources, ofJobs(), []dialect.Resource{service}, services())
	o.Actions = slices.Concat(o.Actions, acts, g.ofLifecycle(), g.ofCard(), g.ofChassis(), g.ofRAID())
	return o
}

// ofJobs is the standard's service of jobs, which shows the same.
func ofJobs() []dialect.Resource {
	return []dialect.Resource{
		{At: "/redfish/v1/JobService", Type: "JobService.v1_0_4.JobService", Name: "Job Service", Set: []dialect.Datum{
			{Path: "Id", Value: "JobService"}, {Path: "ServiceEnabled", Value: true},
			{Path: "Status", Value: map[string]any{"State": "Enabled", "Health": "OK"}},
			{Path: "Jobs", Value: map[string]any{"@odata.id": plainJobs}},
			{Path: "ServiceCapabilities", Value: map[string]any{"Scheduling": true, "MaxJobs": 256}},
		}},
		{At: plainJobs, Type: "JobCollection.JobCollection", Name: "Job Collection", Like: tasks},
		{At: plainJobs + "/JID_{task:12}", Type: "Job.v1_1_0.Job", Like: task, Takes: []string{"DELETE"},
			Drop: []string{"TaskState", "TaskStatus", "TaskMonitor", "EstimatedDuration", "Links", "Oem"},
			Set: []dialect.Datum{
				{Path: "JobState", From: "TaskState"},
				{Path: "JobState", From: "TaskState", Map: map[string]any{"Cancelling": "Stopping"}, Else: dialect.AsItIs}, // which jobs have no word for
				{Path: "JobStatus", From: "TaskStatus"},
			}},
	}
}

// services are those that only have actions.
func services() []dialect.Resource {
	of := func(at, name, kind string) dialect.Resource {
		return dialect.Resource{At: at, Type: name + "." + kind + "." + name, Name: name, Set: []dialect.Datum{{Path: "Id", Value: name}}}
	}
	return []dialect.Resource{
		of(lifecycleService, "DellLCService", "v1_5_0"), of(cardService, "DelliDRACCardService", "v1_6_0"), of(raidService, "DellRaidService", "v1_5_0"),
	}
}

// ofLifecycle tells whether the controller is ready, for which clients wait
// after a reset [V: sushy: "Ready", up to 96 times 10 s].
func (g generation) ofLifecycle() []dialect.Action {
	status := func(lc, server, overall string) map[string]any {
		return map[string]any{"LCStatus": lc, "RTStatus": lc, "ServerStatus": server, "Status": overall, "TelemetryStatus": lc}
	}
	return []dialect.Action{{On: lifecycleService, Name: "DellLCService.GetRemoteServicesAPIStatus", Does: []dialect.Effect{
		{While: dialect.AfterStart, For: ready, Body: status("NotReady", "Invalid", "NotReady")},
		{While: dialect.InPOST, Body: status("Ready", "InPOST", "Ready")},
		{While: dialect.SystemOff, Body: status("Ready", "PoweredOff", "Ready")},
		{Body: status("Ready", "OutOfPOST", "Ready")},
	}}}
}

const ready = 60e9 // after which the Lifecycle Controller is, once the controller answers [K]

// ofCard resets the controller.
func (g generation) ofCard() []dialect.Action {
	reset := func(force []string, kind string) dialect.Effect {
		return dialect.Effect{When: map[string][]string{"Force": force}, Steps: []dialect.Step{
			{Method: "POST", At: manager + "/Actions/Manager.Reset", Body: map[string]any{"ResetType": kind}},
		}}
	}
	return []dialect.Action{{
		On: cardService, Name: "DelliDRACCardService.iDRACReset", Inputs: []dialect.Input{{Name: "Force", Values: []string{"Graceful", "Force"}}},
		Does: []dialect.Effect{reset([]string{"Graceful", ""}, "GracefulRestart"), reset([]string{"Force"}, "ForceRestart")},
	}}
}

// ofChassis takes the power away altogether, and with it the controller's [V];
// and what waits in Bios/Settings is given up [V].
func (g generation) ofChassis() []dialect.Action {
	reset := func(kind string) []dialect.Step {
		return []dialect.Step{
			{Method: "POST", At: system + "/Actions/ComputerSystem.Reset", Body: map[string]any{"ResetType": kind}},
			{Method: "POST", At: manager + "/Actions/Manager.Reset", Body: map[string]any{"ResetType": "ForceRestart"}},
		}
	}
	final := func(state ...string) map[string][]string { return map[string][]string{"FinalPowerState": state} }
	return []dialect.Action{
		{
			On: chassis, Name: "DellOemChassis.ExtendedReset", Inputs: []dialect.Input{
				{Name: "ResetType", Required: true, Values: []string{"PowerCycle"}}, {Name: "FinalPowerState", Values: []string{"On", "Off"}},
			},
			Does: []dialect.Effect{
				{While: dialect.SystemOff, When: final("Off", ""), Steps: reset("On")[1:]},
				{While: dialect.SystemOff, When: final("On"), Steps: reset("On")},
				{When: final("On", ""), Steps: reset("PowerCycle")},
				{When: final("Off"), Steps: reset("ForceOff")},
			},
		},
		{On: biosSettings, Name: "DellManager.ClearPending", Does: []dialect.Effect{
			{While: dialect.SettingsDue, Refuse: new(g.say("SYS011", "Settings that a job has taken are given up with the job alone."))},
			{Steps: []dialect.Step{{Method: "DELETE", At: biosSettings}}},
		}},
	}
}
