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
		{URI: "/redfish/v1/TaskService", Schema: "TaskService.v1_3_0", Link: "Tasks", DependsOn: partTasks | partTime,
			Read: taskService, Patch: &taskServicePatch, Actions: taskServiceActions, Volatile: []string{"DateTime"}},
		{URI: "/redfish/v1/TaskService/Tasks", Schema: "TaskCollection", DependsOn: partTasks, collectionName: "Tasks", memberVariable: "task"},
		{URI: "/redfish/v1/TaskService/Tasks/{task}", Schema: "Task.v1_7_4", DependsOn: partTasks | partTime, linksToOrigins: true,
			Read: task, Remove: deleteTask, Volatile: []string{"PercentComplete"}},
		{URI: "/redfish/v1/TaskService/TaskMonitors/{monitor}", Privileges: taskMonitorPrivileges, DependsOn: partTasks | partTime, linksToOrigins: true, Link: "-",
			Raw: taskMonitor, Response: TaskMonitorResponse, BelongsTo: ownsTask, Remove: deleteTaskMonitor},
	}
}

// taskMonitorPrivileges lets the client that started an operation cancel it. The registry
// does not cover task monitors.
var taskMonitorPrivileges = Privileges{Get: []Privilege{Login}, Delete: []Privilege{ConfigureManager, configureSelf}}

// TaskURI returns the URI of a task.
func TaskURI(job string) string { return "/redfish/v1/TaskService/Tasks/" + job }

// TaskMonitorURI returns the URI of the task monitor, where a client waits for the end of a
// task (DSP0266, "Asynchronous operations").
func TaskMonitorURI(job string) string { return "/redfish/v1/TaskService/TaskMonitors/" + job }

// taskRetention returns how long the TaskService stores a task after its end, and a task
// monitor after it has delivered the result.
func (v View) taskRetention() bmc.TaskRetention {
	if j := v.BMC.Tasks; j != nil && j.Retention != nil {
		return *j.Retention
	}
	return v.BMC.Spec.TaskRetention
}

func taskService(v View) Object {
	keep := v.taskRetention()
	o := Object{
		"Name": "Task Service", "ServiceEnabled": true, "Status": status("Enabled"), "CompletedTaskOverWritePolicy": "Oldest",
		"DateTime": rfc3339(v.Now), "TaskMonitorAutoExpirySeconds": int(keep.Delivered / time.Second),
	}
	if keep.Ended > 0 {
		o["TaskAutoDeleteTimeoutMinutes"] = int(keep.Ended / time.Minute)
	}
	return o
}

// The bounds of the task retention. The lower ones are those of DSP2046.
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
		keep := c.View.taskRetention()
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

// Task returns the bmc.Task of the view's Task or task monitor.
func (v View) Task() bmc.Task {
	id := v.IDs["task"]
	if id == "" {
		id = v.IDs["monitor"]
	}
	return Find(v.BMC.Tasks.All(), id, func(j bmc.Task) string { return j.ID })
}

func task(v View) Object {
	j := v.Task()
	o := Object{
		"Name": j.Name, "TaskState": string(j.State), "TaskStatus": string(taskHealth(j)),
		"StartTime": rfc3339(j.Created), "PercentComplete": j.Percent(v.Now),
		"HidePayload": j.Request.Hidden, "Messages": v.MessageVersions().ExtendedInfo(taskMessages(v, j)...),
	}
	if !j.Until.IsZero() && j.Until.After(j.Begun) {
		o["EstimatedDuration"] = isoDuration(j.Until.Sub(j.Begun))
	}
	if j.State.Ended() {
		o["EndTime"] = rfc3339(j.Ended)
	}
	if !j.Closed {
		o["TaskMonitor"] = TaskMonitorURI(j.ID)
	}
	if r := j.Request; r.Method != "" && !r.Hidden {
		o["Payload"] = Object{"HttpOperation": r.Method, "TargetUri": r.Target, "JsonBody": r.Body}
	}
	if uri, ok := v.CreatedResource(j); ok {
		o["Links"] = Object{"CreatedResources": refs(uri)}
	}
	return o
}

// CreatedResource returns the URI of the resource that a task created, and whether that
// resource still exists.
func (v View) CreatedResource(j bmc.Task) (string, bool) {
	if j.Made == nil {
		return "", false
	}
	return v.OriginOfCondition(*j.Made)
}

// taskHealth returns the severity of the outcome of a task so far.
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

// taskMessages returns Task.Messages: the messages that the task reported and the one of
// its state.
func taskMessages(v View, j bmc.Task) []message.Message {
	var ms []message.Message
	if !j.Begun.IsZero() {
		ms = append(ms, message.TaskStarted.With(j.ID))
	}
	ms = append(ms, Map(j.Messages, v.EventMessage)...)
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

// FailureMessage returns the message with which a task monitor reports a failed operation.
func FailureMessage(j bmc.Task) message.Message {
	m := message.OperationFailed.With()
	m.Text = "The operation has failed: " + j.Fault + "."
	return m
}

// isoDuration returns a duration in whole seconds as DSP0266 writes durations.
func isoDuration(d time.Duration) string {
	return fmt.Sprintf("PT%dS", int64(d.Round(time.Second)/time.Second))
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// deleteTask cancels a running task and deletes a task that has ended.
func deleteTask(ctx context.Context, c Call) (Result, error) {
	j := c.View.Task()
	if !j.State.Ended() {
		return cancelTask(ctx, c, j)
	}
	_, err := c.Host.ApplyBMC(ctx, bmc.DeleteTask{ID: j.ID})
	return Result{}, err
}

// cancelTask cancels a task. When the cancellation takes time, the answer names the task
// again (DSP0266, "Asynchronous operations").
func cancelTask(ctx context.Context, c Call, j bmc.Task) (Result, error) {
	if err := c.Host.Cancel(ctx, j.ID); err != nil {
		return Result{}, err
	}
	now := Find(c.Host.BMC().Tasks.All(), j.ID, func(j bmc.Task) string { return j.ID })
	if now.ID != "" && !now.State.Ended() {
		return Result{Task: j.ID}, nil
	}
	return Result{}, nil
}

// taskMonitor returns the body of the task monitor of a running task. A task monitor is not
// a resource: it answers the task, and after its end what the operation itself would have
// answered.
func taskMonitor(v View) (MediaType, []byte) {
	t := &Match{Route: &Route{Row: &Row{Schema: "Task.v1_7_4", Read: task}}}
	below := v
	below.URI, below.IDs = TaskURI(v.IDs["monitor"]), map[string]string{"task": v.IDs["monitor"]}
	return JSON, Encode(t.Object(below))
}

func ownsTask(v View, who Actor) bool {
	j := v.Task()
	return j.Account != "" && j.Account == who.Account
}

// deleteTaskMonitor cancels the operation. The monitor of a task that has ended is deleted.
func deleteTaskMonitor(ctx context.Context, c Call) (Result, error) {
	j := c.View.Task()
	if !j.State.Ended() {
		return cancelTask(ctx, c, j)
	}
	_, err := c.Host.ApplyBMC(ctx, bmc.DeliverTask{ID: j.ID, Now: true})
	return Result{}, err
}
