package idrac

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// URIs of OEM services [V: sushy, oem/dell, reads the first four].
const (
	lifecycleService = manager + "/Oem/Dell/DellLCService"
	cardService      = manager + "/Oem/Dell/DelliDRACCardService"
	attributes       = manager + "/Oem/Dell/DellAttributes"
	raidService      = system + "/Oem/Dell/DellRaidService"
)

// extensions returns the OEM resources and actions that provisioning uses: on all
// generations the job queue, profiles and attributes, and from 4.x on the services.
// A real iDRAC also has OEM boot sources, which duplicate the standard's boot order,
// attributes of network ports, and updates from a catalogue.
func extensions(g generation) dialect.OEM {
	o := dialect.OEM{WritableProperties: g.attributeWrites(), Resources: g.attributeGroups(), Actions: g.profileActions()}
	queues := []string{oldJobs}
	if !g.old {
		queues = append(queues, jobs)
	}
	for _, at := range queues {
		all, queued := g.queue(at)
		o.Resources, o.Actions = append(o.Resources, all...), append(o.Actions, queued)
	}
	o.URIAliases = []dialect.URIMapping{{From: manager + "/LogServices/Sel", To: system + "/LogServices/Sel"}} // clients look for the event log below the manager
	if g.old {
		return o
	}
	o.URIAliases = append(o.URIAliases,
		// Sessions and virtual media are at their earlier URIs as well [V].
		dialect.URIMapping{From: "/redfish/v1/Sessions", To: "/redfish/v1/SessionService/Sessions"},
		dialect.URIMapping{From: managersMedia, To: media},
		dialect.URIMapping{From: system + "/SecureBoot/Oem/Dell/Certificates/{database}", To: system + "/SecureBoot/SecureBootDatabases/{database}/Certificates"}, // [V]
	)
	o.URIAliases = append(o.URIAliases, attributeAliases()...)
	service, acts := g.jobServiceResource()
	o.Resources = slices.Concat(o.Resources, jobServiceResources(), []dialect.Resource{service}, services(), attributeRegistry())
	o.Actions = slices.Concat(o.Actions, acts, g.lifecycleActions(), g.cardActions(), g.chassisActions(), g.raidActions())
	return o
}

// jobServiceResources returns the standard JobService, which lists the same jobs.
func jobServiceResources() []dialect.Resource {
	return []dialect.Resource{
		{URI: "/redfish/v1/JobService", Type: "JobService.v1_0_4.JobService", Name: "Job Service", Set: []dialect.PropertyRule{
			{Path: "Id", Value: "JobService"}, {Path: "ServiceEnabled", Value: true},
			{Path: "Status", Value: map[string]any{"State": "Enabled", "Health": "OK"}},
			{Path: "Jobs", Value: map[string]any{"@odata.id": plainJobs}},
			{Path: "ServiceCapabilities", Value: map[string]any{"Scheduling": true, "MaxJobs": 256}},
		}},
		{URI: plainJobs, Type: "JobCollection.JobCollection", Name: "Job Collection", BasedOn: tasks},
		{URI: plainJobs + "/JID_{task:12}", Type: "Job.v1_1_0.Job", BasedOn: task, PassedMethods: []string{"DELETE"},
			Remove: []string{"TaskState", "TaskStatus", "TaskMonitor", "EstimatedDuration", "Links", "Oem"},
			Set: []dialect.PropertyRule{
				{Path: "JobState", From: "TaskState"},
				{Path: "JobState", From: "TaskState", Map: map[string]any{"Cancelling": "Stopping"}, Otherwise: dialect.LeaveUnchanged}, // JobState has no Cancelling
				{Path: "JobStatus", From: "TaskStatus"},
			}},
	}
}

// services returns the vendor's services that only have actions.
func services() []dialect.Resource {
	of := func(at, name, kind string) dialect.Resource {
		return dialect.Resource{URI: at, Type: name + "." + kind + "." + name, Name: name, Set: []dialect.PropertyRule{{Path: "Id", Value: name}}}
	}
	return []dialect.Resource{
		of(lifecycleService, "DellLCService", "v1_5_0"), of(cardService, "DelliDRACCardService", "v1_6_0"), of(raidService, "DellRaidService", "v1_5_0"),
	}
}

// lifecycleActions returns the actions that report whether the controller is ready.
// Clients poll them after a reset [V: sushy: "Ready", up to 96 times 10 s].
func (g generation) lifecycleActions() []dialect.Action {
	status := func(lc, server, overall string) map[string]any {
		return map[string]any{"LCStatus": lc, "RTStatus": lc, "ServerStatus": server, "Status": overall, "TelemetryStatus": lc}
	}
	return []dialect.Action{{ResourceURI: lifecycleService, Name: "DellLCService.GetRemoteServicesAPIStatus", Effects: []dialect.Effect{
		{While: dialect.AfterStart, For: ready, Body: status("NotReady", "Invalid", "NotReady")},
		{While: dialect.InPOST, Body: status("Ready", "InPOST", "Ready")},
		{While: dialect.SystemOff, Body: status("Ready", "PoweredOff", "Ready")},
		{Body: status("Ready", "OutOfPOST", "Ready")},
	}}}
}

const ready = 60e9 // time from the first response of the BMC until the Lifecycle Controller is ready [K]

// cardActions returns the action that resets the controller.
func (g generation) cardActions() []dialect.Action {
	reset := func(force []string, kind string) dialect.Effect {
		return dialect.Effect{When: map[string][]string{"Force": force}, Requests: []dialect.StandardRequest{
			{Method: "POST", URI: manager + "/Actions/Manager.Reset", Body: map[string]any{"ResetType": kind}},
		}}
	}
	return []dialect.Action{{
		ResourceURI: cardService, Name: "DelliDRACCardService.iDRACReset", Parameters: []dialect.Parameter{{Name: "Force", AllowableValues: []string{"Graceful", "Force"}}},
		Effects: []dialect.Effect{reset([]string{"Graceful", ""}, "GracefulRestart"), reset([]string{"Force"}, "ForceRestart")},
	}}
}

// chassisActions returns the action that cycles the power feeds, and with them the
// BMC [V]. It discards the pending BIOS settings [V].
func (g generation) chassisActions() []dialect.Action {
	reset := func(kind string) []dialect.StandardRequest {
		return []dialect.StandardRequest{
			{Method: "POST", URI: system + "/Actions/ComputerSystem.Reset", Body: map[string]any{"ResetType": kind}},
			{Method: "POST", URI: manager + "/Actions/Manager.Reset", Body: map[string]any{"ResetType": "ForceRestart"}},
		}
	}
	final := func(state ...string) map[string][]string { return map[string][]string{"FinalPowerState": state} }
	return []dialect.Action{
		{
			ResourceURI: chassis, Name: "DellOemChassis.ExtendedReset", Parameters: []dialect.Parameter{
				{Name: "ResetType", Required: true, AllowableValues: []string{"PowerCycle"}}, {Name: "FinalPowerState", AllowableValues: []string{"On", "Off"}},
			},
			Effects: []dialect.Effect{
				{While: dialect.SystemOff, When: final("Off", ""), Requests: reset("On")[1:]},
				{While: dialect.SystemOff, When: final("On"), Requests: reset("On")},
				{When: final("On", ""), Requests: reset("PowerCycle")},
				{When: final("Off"), Requests: reset("ForceOff")},
			},
		},
		{ResourceURI: biosSettings, Name: "DellManager.ClearPending", Effects: []dialect.Effect{
			{While: dialect.SettingsDue, Reject: new(g.message("SYS011", "Settings that a job has taken are given up with the job alone."))},
			{Requests: []dialect.StandardRequest{{Method: "DELETE", URI: biosSettings}}},
		}},
	}
}
