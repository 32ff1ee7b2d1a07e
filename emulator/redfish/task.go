package redfish

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func taskRows() []resource {
	return []resource{
		{uri: "/redfish/v1/TaskService", schema: "TaskService.v1_3_0", link: "Tasks", shows: PartTasks | PartTime,
			read: taskService, patch: &taskServicePatch, actions: taskServiceActions, volatile: []string{"DateTime"}},
		{uri: "/redfish/v1/TaskService/Tasks", schema: "TaskCollection", shows: PartTasks, name: "Tasks", of: "task"},
		{uri: "/redfish/v1/TaskService/Tasks/{task}", schema: "Task.v1_7_4", shows: PartTasks | PartTime, origins: true,
			read: task, remove: removeTask, volatile: []string{"PercentComplete"}},
		{uri: "/redfish/v1/TaskService/TaskMonitors/{monitor}", needs: ofMonitor, shows: PartTasks | PartTime, origins: true, link: "-",
			raw: monitor, answer: taskMonitorAnswer, own: ownMonitor, remove: removeMonitor},
	}
}

// ofMonitor lets who asked for an operation cancel it, as the registry does not
// say.
var ofMonitor = needs{get: []privilege{login}, delete: []privilege{configureManager, configureSelf}}

func taskURI(job string) string { return "/redfish/v1/TaskService/Tasks/" + job }

// taskMonitor is where a client waits for the end of a job (DSP0266,
// "Asynchronous operations").
func taskMonitor(job string) string { return "/redfish/v1/TaskService/TaskMonitors/" + job }

// keep is how long jobs are remembered.
func (v view) keep() bmc.TaskRetention {
	if j := v.b.Tasks; j != nil && j.Retention != nil {
		return *j.Retention
	}
	return v.b.Spec.TaskRetention
}

func taskService(v view) object {
	keep := v.keep()
	o := object{
		"Name": "Task Service", "ServiceEnabled": true, "Status": status("Enabled"), "CompletedTaskOverWritePolicy": "Oldest",
		"DateTime": rfc3339(v.now), "TaskMonitorAutoExpirySeconds": int(keep.Delivered / time.Second),
	}
	if keep.Ended > 0 {
		o["TaskAutoDeleteTimeoutMinutes"] = int(keep.Ended / time.Minute)
	}
	return o
}

// Bounds of how long tasks are remembered; DSP2046 gives the lower ones.
const (
	maxTaskMinutes    = 60 * 24 * 365
	maxMonitorSeconds = 86400
)

var taskServicePatch = patch{
	inputs: []input{
		{name: "TaskAutoDeleteTimeoutMinutes", kind: integer, min: 1, max: maxTaskMinutes},
		{name: "TaskMonitorAutoExpirySeconds", kind: integer, max: maxMonitorSeconds},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		keep := c.view.keep()
		keep.Ended = time.Duration(value(c.set, "TaskAutoDeleteTimeoutMinutes", int64(keep.Ended/time.Minute))) * time.Minute
		keep.Delivered = time.Duration(value(c.set, "TaskMonitorAutoExpirySeconds", int64(keep.Delivered/time.Second))) * time.Second
		_, err := c.host.ApplyBMC(ctx, bmc.SetTaskRetention{TaskRetention: keep})
		return reply{}, err
	},
}

var taskServiceActions = []action{{
	name: "TaskService.DeleteAllCompletedTasks",
	apply: func(ctx context.Context, c operation) (reply, error) {
		_, err := c.host.ApplyBMC(ctx, bmc.DeleteEndedTasks{})
		return reply{}, err
	},
}}

// job is the job that a task or its monitor is of.
func (v view) job() bmc.Task {
	id := v.ids["task"]
	if id == "" {
		id = v.ids["monitor"]
	}
	return pick(v.b.Tasks.All(), id, func(j bmc.Task) string { return j.ID })
}

func task(v view) object {
	j := v.job()
	o := object{
		"Name": j.Name, "TaskState": string(j.State), "TaskStatus": string(taskHealth(j)),
		"StartTime": rfc3339(j.Created), "PercentComplete": j.Percent(v.now),
		"HidePayload": j.Request.Hidden, "Messages": v.spoken().ExtendedInfo(taskMessages(v, j)...),
	}
	if !j.Until.IsZero() && j.Until.After(j.Begun) {
		o["EstimatedDuration"] = isoDuration(j.Until.Sub(j.Begun))
	}
	if j.State.Ended() {
		o["EndTime"] = rfc3339(j.Ended)
	}
	if !j.Closed {
		o["TaskMonitor"] = taskMonitor(j.ID)
	}
	if r := j.Request; r.Method != "" && !r.Hidden {
		o["Payload"] = object{"HttpOperation": r.Method, "TargetUri": r.Target, "JsonBody": r.Body}
	}
	if uri, ok := v.made(j); ok {
		o["Links"] = object{"CreatedResources": refs(uri)}
	}
	return o
}

// made is the address of what a job has made, if that is still there.
func (v view) made(j bmc.Task) (string, bool) {
	if j.Made == nil {
		return "", false
	}
	return v.origin(*j.Made)
}

// taskHealth is how well a job went, or goes.
func taskHealth(j bmc.Task) event.Severity {
	if j.State == bmc.TaskException {
		return event.Critical
	}
	worst := event.OK
	for _, n := range j.Messages {
		if n.Severity() != event.OK {
			worst = event.Warning
		}
	}
	return worst
}

// taskMessages tell what has become of a task, and what it has told itself.
func taskMessages(v view, j bmc.Task) []message.Message {
	var ms []message.Message
	if !j.Begun.IsZero() {
		ms = append(ms, message.TaskStarted.With(j.ID))
	}
	ms = append(ms, list(j.Messages, v.word)...)
	switch j.State {
	case bmc.TaskSuspended, bmc.TaskInterrupted:
		ms = append(ms, message.TaskPaused.With(j.ID))
	case bmc.TaskCancelled:
		ms = append(ms, message.TaskCancelled.With(j.ID))
	case bmc.TaskException:
		aborted := message.TaskAborted.With(j.ID)
		aborted.Text = strings.TrimSuffix(aborted.Text, ".") + ": " + j.Fault + "."
		ms = append(ms, aborted)
	case bmc.TaskCompleted:
		done := message.TaskCompletedOK.With(j.ID)
		if taskHealth(j) != event.OK {
			done = message.TaskCompletedWarning.With(j.ID)
		}
		ms = append(ms, done)
	}
	return ms
}

// failure is why an operation failed, for who waits for it.
func failure(j bmc.Task) message.Message {
	m := message.OperationFailed.With()
	m.Text = "The operation has failed: " + j.Fault + "."
	return m
}

func isoDuration(d time.Duration) string {
	return fmt.Sprintf("PT%dS", int64(d.Round(time.Second)/time.Second))
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// removeTask cancels a task that is under way, and removes one that has ended.
func removeTask(ctx context.Context, c operation) (reply, error) {
	j := c.view.job()
	if !j.State.Ended() {
		return cancelJob(ctx, c, j)
	}
	_, err := c.host.ApplyBMC(ctx, bmc.DeleteTask{ID: j.ID})
	return reply{}, err
}

// cancelJob cancels a job. What takes its time is answered by the task again
// (DSP0266, "Asynchronous operations").
func cancelJob(ctx context.Context, c operation, j bmc.Task) (reply, error) {
	if err := c.host.Cancel(ctx, j.ID); err != nil {
		return reply{}, err
	}
	now := pick(c.host.BMC().Tasks.All(), j.ID, func(j bmc.Task) string { return j.ID })
	if now.ID != "" && !now.State.Ended() {
		return reply{job: j.ID}, nil
	}
	return reply{}, nil
}

// monitor is the task monitor of a job that is under way. It is no resource:
// what it answers is the task, or else what the operation itself would.
func monitor(v view) (mime, []byte) {
	t := &match{route: &route{resource: &resource{schema: "Task.v1_7_4", read: task}}}
	below := v
	below.uri, below.ids = taskURI(v.ids["monitor"]), map[string]string{"task": v.ids["monitor"]}
	return jsonType, encode(t.object(below))
}

func ownMonitor(v view, who actor) bool {
	j := v.job()
	return j.Account != "" && j.Account == who.account
}

// removeMonitor cancels the operation. One that has ended is no longer
// remembered.
func removeMonitor(ctx context.Context, c operation) (reply, error) {
	j := c.view.job()
	if !j.State.Ended() {
		return cancelJob(ctx, c, j)
	}
	_, err := c.host.ApplyBMC(ctx, bmc.DeliverTask{ID: j.ID, Now: true})
	return reply{}, err
}
