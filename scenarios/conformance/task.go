package conformance

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

// taskChecks are the checks of tasks.
var taskChecks = []Check{
	{
		ID: "TASK-001", Title: "TaskService: states, monitors and retention", Level: ReadOnly, Protocol: Redfish, Step: Prepare,
		Predicts: "clients lose their tasks", Remedy: "use a client that reads the resource in place of the task",
		After: []string{"AUTH-001"}, Run: tasksSound,
	},
}

// taskStates are the states of a task (DSP0268, Task).
var taskStates = []string{
	"New", "Starting", "Running", "Suspended", "Interrupted", "Pending", "Stopping", "Completed", "Killed", "Exception", "Service", "Cancelling", "Cancelled",
}

// endedStates are those in which a task stays.
var endedStates = []string{"Completed", "Killed", "Exception", "Cancelled"}

// taskEnd is how a task has ended.
type taskEnd struct {
	ok      bool
	problem string
	states  []string
	over    bool // the end was seen
	gone    bool // the task was removed before its end was seen
	late    bool // its first reads were answered 404
}

// taskOf returns the URI of the task, or its monitor, that a write was answered with; "" without
// one (DSP0266, "Asynchronous operations").
func taskOf(resp *Response) string {
	if resp.Status != http.StatusAccepted {
		return ""
	}
	return resp.Header.Get("Location")
}

// finishTask waits until the task of a write has ended, if there is one, and returns its states. A
// task that fails is a Finding, which names what it is for.
func (r *Run) finishTask(ctx context.Context, resp *Response, what string) (states []string, err error) {
	uri := taskOf(resp)
	if uri == "" {
		return nil, nil
	}
	end, err := r.awaitTask(ctx, uri, postLimit)
	if err == nil && !end.ok {
		err = Findingf("the task of %s: %s", what, end.problem)
	}
	return end.states, err
}

// awaitTask follows the Location of a 202: a task, or a monitor that answers 202
// until the operation ends.
func (r *Run) awaitTask(ctx context.Context, uri string, limit time.Duration) (taskEnd, error) {
	var end taskEnd
	reads := 0
	done, err := r.Poll(ctx, 2*time.Second, limit, func() (bool, error) {
		resp, err := r.Do(ctx, Request{URI: uri})
		if err != nil {
			return false, err
		}
		reads++
		switch {
		case resp.Status == http.StatusNotFound && len(end.states) == 0 && reads < 10:
			end.late = true
			return false, nil
		case resp.Status == http.StatusNotFound || resp.Status == http.StatusGone:
			end.ok, end.gone = true, true // the effect of the operation shows the rest
			return true, nil
		case resp.Status >= 400:
			end.problem, end.over = resp.Problem(), true
			return true, nil
		}
		v, err := resp.JSON()
		if err != nil && len(resp.Body) > 0 {
			return false, err
		}
		state := v.At("TaskState").TextOr("")
		if state == "" {
			state = v.At("JobState").TextOr("")
		}
		if state == "" {
			end.ok = resp.Status != http.StatusAccepted // the operation's own response
			end.over = end.ok
			return end.ok, nil
		}
		if !slices.Contains(end.states, state) {
			end.states = append(end.states, state)
		}
		if slices.Contains(endedStates, state) || state == "Failed" || state == "CompletedWithErrors" {
			end.ok = state == "Completed" && v.At("TaskStatus").TextOr("OK") != "Critical"
			if end.over = true; !end.ok {
				end.problem = "the task is " + state + ": " + v.At("Messages", "0", "Message").TextOr("without a message")
			}
			return true, nil
		}
		return false, nil
	})
	if err == nil && !done && r.bmc.dry == nil {
		end.problem = "the task has not ended in " + limit.String() + ": " + strings.Join(end.states, ", ")
	}
	return end, err
}

// tasksSound reads the task service and its tasks.
func tasksSound(ctx context.Context, r *Run) Outcome {
	root, err := r.Page(ctx, "/redfish/v1/")
	if err != nil {
		return Judge(err)
	}
	uri, err := root.At("Tasks").Link()
	if err != nil {
		return Failed("the service root has no link to Tasks")
	}
	service, err := r.Page(ctx, uri)
	if err != nil {
		return Judge(err)
	}
	if on, err := service.At("ServiceEnabled").Bool(); err == nil && !on {
		return Failed("the task service is disabled")
	}
	tasks, err := service.At("Tasks").Link()
	if err != nil {
		return Judge(err)
	}
	members, err := r.Members(ctx, tasks)
	if err != nil {
		return Judge(err)
	}
	o := Passed("").With("tasks", "%d", len(members)).With("retention", "%s", service.At("CompletedTaskOverWritePolicy").TextOr("unknown"))
	for _, m := range members[:min(len(members), 20)] {
		resp, err := r.Do(ctx, Request{URI: m})
		if err != nil {
			return Judge(err)
		}
		if resp.Status != http.StatusOK && resp.Status != http.StatusAccepted { // 202: it runs
			return Failed("GET %s: %s", m, resp.Problem())
		}
		v, err := resp.JSON()
		if err != nil {
			return Judge(err)
		}
		state, err := v.At("TaskState").Text()
		if err != nil {
			return Judge(err)
		}
		if !slices.Contains(taskStates, state) {
			return Failed("TaskState of %s is %q, which is not in the schema", m, state)
		}
	}
	return o
}
