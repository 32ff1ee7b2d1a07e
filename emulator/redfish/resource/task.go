package resource

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func taskRows() []Row {
	return []Row{
		{URI: "/redfish/v1/TaskService", Schema: "TaskService.v1_3_0", Link: "Tasks", DependsOn: PartTasks | PartTime,
			Read: taskService, Patch: &taskServicePatch, Actions: taskServiceActions, Volatile: []string{"DateTime"}},
		{URI: "/redfish/v1/TaskService/Tasks", Schema: "TaskCollection", DependsOn: PartTasks, Name: "Tasks", MemberVariable: "task"},
		{URI: "/redfish/v1/TaskService/Tasks/{task}", Schema: "Task.v1_7_4", DependsOn: PartTasks | PartTime, origins: true,
			Read: task, Remove: removeTask, Volatile: []string{"PercentComplete"}},
		{URI: "/redfish/v1/TaskService/TaskMonitors/{monitor}", Privileges: ofMonitor, DependsOn: PartTasks | PartTime, origins: true, Link: "-",
			Raw: monitor, Answer: TaskMonitorAnswer, BelongsTo: ownMonitor, Remove: removeMonitor},
	}
}

// ofMonitor lets who asked for an operation cancel it, as the registry does not
// say.
var ofMonitor = Privileges{Get: []Privilege{Login}, Delete: []Privilege{ConfigureManager, configureSelf}}

func TaskURI(job string) string { return "/redfish/v1/TaskService/Tasks/" + job }

// TaskMonitor is where a client waits for the end of a job (DSP0266,
// "Asynchronous operations").
func TaskMonitor(job string) string { return "/redfish/v1/TaskService/TaskMonitors/" + job }

// keep is how long jobs are remembered.
func (v View) keep() bmc.TaskRetention {
	if j := v.BMC.Tasks; j != nil && j.Retention != nil {
		return *j.Retention
	}
	return v.BMC.Spec.TaskRetention
}

func taskService(v View) Object {
	keep := v.keep()
	o := Object{
		"Name": "Task Service", "ServiceEnabled": true, "Status": status("Enabled"), "CompletedTaskOverWritePolicy": "Oldest",
		"DateTime": rfc3339(v.Now), "TaskMonitorAutoExpirySeconds": int(keep.Delivered / time.Second),
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

var taskServicePatch = Patch{
	Inputs: []Input{
		{Name: "TaskAutoDeleteTimeoutMinutes", Kind: Integer, Min: 1, Max: maxTaskMinutes},
		{Name: "TaskMonitorAutoExpirySeconds", Kind: Integer, Max: maxMonitorSeconds},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		keep := c.View.keep()
		keep.Ended = time.Duration(Value(c.Values, "TaskAutoDeleteTimeoutMinutes", int64(keep.Ended/time.Minute))) * time.Minute
		keep.Delivered = time.Duration(Value(c.Values, "TaskMonitorAutoExpirySeconds", int64(keep.Delivered/time.Second))) * time.Second
		_, err := c.Host.ApplyBMC(ctx, bmc.SetTaskRetention{TaskRetention: keep})
		return Result{}, err
	},
}

var taskServiceActions = []Action{{
	Name: "TaskService.DeleteAllCompletedTasks",
	Apply: func(ctx context.Context, c Call) (Result, error) {
		_, err := c.Host.ApplyBMC(ctx, bmc.DeleteEndedTasks{})
		return Result{}, err
	},
}}

// Job is the job that a task or its monitor is of.
func (v View) Job() bmc.Task {
	id := v.IDs["task"]
	if id == "" {
		id = v.IDs["monitor"]
	}
	return Find(v.BMC.Tasks.All(), id, func(j bmc.Task) string { return j.ID })
}

func task(v View) Object {
	j := v.Job()
	o := Object{
		"Name": j.Name, "TaskState": string(j.State), "TaskStatus": string(taskHealth(j)),
		"StartTime": rfc3339(j.Created), "PercentComplete": j.Percent(v.Now),
		"HidePayload": j.Request.Hidden, "Messages": v.Spoken().ExtendedInfo(taskMessages(v, j)...),
	}
	if !j.Until.IsZero() && j.Until.After(j.Begun) {
		o["EstimatedDuration"] = isoDuration(j.Until.Sub(j.Begun))
	}
	if j.State.Ended() {
		o["EndTime"] = rfc3339(j.Ended)
	}
	if !j.Closed {
		o["TaskMonitor"] = TaskMonitor(j.ID)
	}
	if r := j.Request; r.Method != "" && !r.Hidden {
		o["Payload"] = Object{"HttpOperation": r.Method, "TargetUri": r.Target, "JsonBody": r.Body}
	}
	if uri, ok := v.CreatedBy(j); ok {
		o["Links"] = Object{"CreatedResources": Refs(uri)}
	}
	return o
}

// CreatedBy is the address of what a job has made, if that is still there.
func (v View) CreatedBy(j bmc.Task) (string, bool) {
	if j.Made == nil {
		return "", false
	}
	return v.Origin(*j.Made)
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
func taskMessages(v View, j bmc.Task) []message.Message {
	var ms []message.Message
	if !j.Begun.IsZero() {
		ms = append(ms, message.TaskStarted.With(j.ID))
	}
	ms = append(ms, Map(j.Messages, v.Word)...)
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

// Failure is why an operation failed, for who waits for it.
func Failure(j bmc.Task) message.Message {
	m := message.OperationFailed.With()
	m.Text = "The operation has failed: " + j.Fault + "."
	return m
}

func isoDuration(d time.Duration) string {
	return fmt.Sprintf("PT%dS", int64(d.Round(time.Second)/time.Second))
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// removeTask cancels a task that is under way, and removes one that has ended.
func removeTask(ctx context.Context, c Call) (Result, error) {
	j := c.View.Job()
	if !j.State.Ended() {
		return cancelJob(ctx, c, j)
	}
	_, err := c.Host.ApplyBMC(ctx, bmc.DeleteTask{ID: j.ID})
	return Result{}, err
}

// cancelJob cancels a job. What takes its time is answered by the task again
// (DSP0266, "Asynchronous operations").
func cancelJob(ctx context.Context, c Call, j bmc.Task) (Result, error) {
	if err := c.Host.Cancel(ctx, j.ID); err != nil {
		return Result{}, err
	}
	now := Find(c.Host.BMC().Tasks.All(), j.ID, func(j bmc.Task) string { return j.ID })
	if now.ID != "" && !now.State.Ended() {
		return Result{Task: j.ID}, nil
	}
	return Result{}, nil
}

// monitor is the task monitor of a job that is under way. It is no resource:
// what it answers is the task, or else what the operation itself would.
func monitor(v View) (MediaType, []byte) {
	t := &Match{Route: &Route{Row: &Row{Schema: "Task.v1_7_4", Read: task}}}
	below := v
	below.URI, below.IDs = TaskURI(v.IDs["monitor"]), map[string]string{"task": v.IDs["monitor"]}
	return JSON, Encode(t.Object(below))
}

func ownMonitor(v View, who Actor) bool {
	j := v.Job()
	return j.Account != "" && j.Account == who.Account
}

// removeMonitor cancels the operation. One that has ended is no longer
// remembered.
func removeMonitor(ctx context.Context, c Call) (Result, error) {
	j := c.View.Job()
	if !j.State.Ended() {
		return cancelJob(ctx, c, j)
	}
	_, err := c.Host.ApplyBMC(ctx, bmc.DeliverTask{ID: j.ID, Now: true})
	return Result{}, err
}
