package idrac

import (
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
)

// Jobs are the standard's tasks at further URIs [V: all three from 4.x on; the first
// alone on iDRAC 8].
const (
	oldJobs    = manager + "/Jobs"
	jobs       = manager + "/Oem/Dell/Jobs"
	jobService = manager + "/Oem/Dell/DellJobService"
	plainJobs  = "/redfish/v1/JobService/Jobs"

	jobType = "#DellJob.v1_4_0.DellJob"
	biosJob = "Configure: BIOS.Setup.1-1" // [V]
)

// jobTypes maps names of jobs to JobType [V: sushy, JobType]. Storage jobs run while
// the system is on.
var jobTypes = map[string]any{
	biosJob: "BIOSConfiguration", importJob: "ImportConfiguration", exportJob: "ExportConfiguration",
	rebootJob: "RebootForce",
}

const rebootJob = "Reboot3" // [V: sushy, sample of a queue]

// jobData returns the properties of a job, below a path that ends with a slash or
// is empty.
func jobData(at string) []dialect.PropertyRule {
	return []dialect.PropertyRule{
		{Path: at + "Id", From: "Id"},
		{Path: at + "Name", From: "Name"},
		{Path: at + "Description", Value: "Job Instance"},
		// [V: the list of sushy; a cancelled job is Failed]
		{Path: at + "JobState", From: "TaskState", Value: "Running", Map: map[string]any{
			"New": "Scheduled", "Pending": "Scheduled", "Running": "Running", "Suspended": "Paused", "Interrupted": "Waiting",
			"Completed": "Completed", "Exception": "Failed", "Cancelled": "Failed",
		}},
		{Path: at + "JobType", From: "Name", Map: jobTypes, Value: "RealTimeNoRebootConfiguration"},
		{Path: at + "Message", From: "TaskState", Value: "Job in progress.", Map: map[string]any{
			"New": jobScheduled, "Pending": jobScheduled, "Completed": jobCompleted, "Exception": "Job failed.", "Cancelled": "Job cancelled: it failed.",
		}},
		// [V: JCP001 and PR19; the others are K]
		{Path: at + "MessageId", From: "TaskState", Value: "JCP000", Map: map[string]any{
			"New": "JCP001", "Pending": "JCP001", "Completed": "PR19", "Exception": "PR21", "Cancelled": "PR21",
		}},
		{Path: at + "MessageArgs", Value: []any{}},
		{Path: at + "MessageArgs@odata.count", Value: 0},
		{Path: at + "PercentComplete", From: "PercentComplete"},
		{Path: at + "CompletionTime", Value: nil},
		{Path: at + "CompletionTime", From: "EndTime"},
		{Path: at + "StartTime", Value: "TIME_NOW"},
		{Path: at + "EndTime", Value: "TIME_NA"},
		{Path: at + "TargetSettingsURI", From: "Name", Map: map[string]any{biosJob: biosSettings}},
	}
}

// taskOnlyProperties are the properties of a task that a job lacks.
var taskOnlyProperties = []string{
	"TaskState", "TaskStatus", "HidePayload", "Messages", "Messages@odata.count", "TaskMonitor", "Payload", "EstimatedDuration", "Links", "Oem",
}

// queue returns the queue of jobs at a URI.
func (g generation) queue(at string) ([]dialect.Resource, dialect.Action) {
	return []dialect.Resource{
			{URI: at, Type: "DellJobCollection.DellJobCollection", Name: "JobQueue", BasedOn: tasks, Set: []dialect.PropertyRule{
				{Path: "Id", Value: "JobQueue"}, {Path: "Description", Value: "Collection of Job Instances"},
			}},
			{URI: at + "/JID_{task:12}", Type: strings.TrimPrefix(jobType, "#"), BasedOn: task, Remove: taskOnlyProperties, Set: jobData(""), PassedMethods: []string{"DELETE"}},
		}, dialect.Action{
			// Creates the job that applies pending settings [V: Dell's scripts, which
			// expect 200 with the job in Location].
			ResourceURI: at, Name: "DellJobCollection.Create", Target: "/", Hidden: true,
			Parameters: []dialect.Parameter{
				{Name: "TargetSettingsURI", Required: true}, {Name: "StartTime"}, {Name: "EndTime"}, {Name: "RebootJobType"},
			},
			Effects: []dialect.Effect{
				{When: map[string][]string{"TargetSettingsURI": {"/redfish/v1/Systems/System.Embedded.1/Bios/Settings"}}, While: dialect.SettingsDue,
					Reject: new(g.message("SYS011", "Settings that a job has taken wait to be applied: there can be no other."))},
				{When: map[string][]string{"TargetSettingsURI": {"/redfish/v1/Systems/System.Embedded.1/Bios/Settings"}}, Status: 200, Requests: []dialect.StandardRequest{
					{Method: "PATCH", URI: biosSettings, Body: map[string]any{"@Redfish.SettingsApplyTime": map[string]any{"ApplyTime": "OnReset"}}},
				}},
			},
		}
}

// jobServiceResource returns the service that creates and deletes jobs, and its
// actions.
func (g generation) jobServiceResource() (dialect.Resource, []dialect.Action) {
	reboot := func(kind, reset string) dialect.Effect {
		return dialect.Effect{When: map[string][]string{"RebootJobType": {kind}}, Task: rebootJob, Requests: []dialect.StandardRequest{
			{Method: "POST", URI: system + "/Actions/ComputerSystem.Reset", Body: map[string]any{"ResetType": reset}},
		}}
	}
	return dialect.Resource{URI: jobService, Type: "DellJobService.v1_1_0.DellJobService", Name: "DellJobService",
			Set: []dialect.PropertyRule{{Path: "Id", Value: "Job Service"}, {Path: "Description", Value: "Makes and deletes jobs."}}},
		[]dialect.Action{
			{ResourceURI: jobService, Name: "DellJobService.DeleteJobQueue", Parameters: []dialect.Parameter{{Name: "JobID", Required: true}},
				Effects: []dialect.Effect{{Hook: g.deleteJobs}}},
			{ResourceURI: jobService, Name: "DellJobService.CreateRebootJob", Parameters: []dialect.Parameter{
				{Name: "RebootJobType", Required: true, AllowableValues: []string{"GracefulRebootWithForcedShutdown", "GracefulRebootWithoutForcedShutdown", "PowerCycle"}},
			}, Effects: []dialect.Effect{reboot("PowerCycle", "PowerCycle"), reboot("GracefulRebootWithForcedShutdown", "GracefulRestart"), reboot("GracefulRebootWithoutForcedShutdown", "GracefulRestart")}},
		}
}

// deleteJobs deletes one job, or all. Running jobs are deleted only with force [V:
// badfish#30: JID_CLEARALL does not clear what blocks, …_FORCE does].
func (g generation) deleteJobs(c dialect.ActionCall) (dialect.Effect, error) {
	id, _ := c.Body["JobID"].(string)
	const all, force = "JID_CLEARALL", "JID_CLEARALL_FORCE"
	var out dialect.Effect
	for _, j := range slices.Backward(c.BMC.Tasks.All()) {
		at := tasks + "/" + j.ID
		switch {
		case id != all && id != force && id != jobID(j):
			continue
		case j.State.Ended():
			out.Requests = append(out.Requests, dialect.StandardRequest{Method: "DELETE", URI: at})
		case j.State == bmc.TaskNew || j.State == bmc.TaskPending:
			// The first request ends the task, the second removes it.
			out.Requests = append(out.Requests, dialect.StandardRequest{Method: "DELETE", URI: at}, dialect.StandardRequest{Method: "DELETE", URI: at})
		case id == all:
			continue
		default:
			out.Requests = append(out.Requests, dialect.StandardRequest{Method: "DELETE", URI: at})
		}
		if id == jobID(j) {
			break
		}
	}
	if len(out.Requests) == 0 && id != all && id != force {
		return out, &dialect.Rejection{Message: g.message("SUP020", "There is no job %1."), Args: []string{id}} // [V: the id]
	}
	if id == force { // discards all pending settings, with or without a job
		out.Requests = append(out.Requests, dialect.StandardRequest{Method: "DELETE", URI: biosSettings})
	}
	// [V: 200 with SUP020 for success too]
	out.Status = 200
	out.Body = map[string]any{"@Message.ExtendedInfo": []any{
		map[string]any{"MessageId": "IDRAC." + short(g.registry) + ".SUP020", "Message": "The jobs were deleted.", "MessageArgs": []any{}, "Severity": "OK"},
		map[string]any{"MessageId": "Base." + short(g.base) + ".Success", "Message": "The request was carried out.", "MessageArgs": []any{}, "Severity": "OK"},
	}}
	return out, nil
}

// jobID returns the ID of a job as clients know it.
func jobID(j bmc.Task) string {
	const zeros = "000000000000"
	return "JID_" + zeros[min(len(j.ID), len(zeros)):] + j.ID
}

// short returns the version of a registry without its errata part, as message IDs
// have it.
func short(version string) string { return version[:strings.LastIndexByte(version, '.')] }
