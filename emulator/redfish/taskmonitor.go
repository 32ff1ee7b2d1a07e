package redfish

import (
	"net/http"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// readTask sends the response to a read of a task whose URI a vendor's service gives
// out in the place of the task monitor: 202 until the task has ended, and then the
// operation's response. It returns false for a task without one: the task itself is
// shown.
func (x *request) readTask(p *render.Representation, at *resource.Snapshot) bool {
	t := x.match.View(at).Task()
	switch {
	case !t.State.Ended():
		x.sendRepresentation(http.StatusAccepted, p)
	case t.State == bmc.TaskCompleted && t.Result != "":
		x.sendTaskResult(t, at)
	default:
		return false
	}
	return true
}

// sendTaskResult sends the response of the operation that a task ran. Its media type
// follows from the first character.
func (x *request) sendTaskResult(t bmc.Task, at *resource.Snapshot) {
	kind := resource.JSON
	switch t.Result[0] {
	case '{':
	case '<':
		kind = resource.XML
	default:
		kind = "text/plain"
	}
	x.w.Header()["Content-Type"] = []string{string(kind) + ";charset=utf-8"}
	result := t.Result
	if !x.actor.ReadsURISecrets(x.match, at) {
		result = resource.HideURISecrets(result)
	}
	x.send(http.StatusOK, []byte(result))
}

// readTaskMonitor sends the response to a read of a task monitor: 202 until the task
// has ended, and then the response that the operation would have had (DSP0266,
// "Asynchronous operations"). A HEAD does not count as reading the result.
func (x *request) readTaskMonitor(v resource.View) {
	t := v.Task()
	if !t.State.Ended() {
		x.sendAccepted(t.ID)
		return
	}
	if x.r.Method != http.MethodHead {
		if _, err := x.host.ApplyBMC(x.context(), bmc.DeliverTask{ID: t.ID, Now: x.vendor.MonitorReadOnce()}); err != nil {
			x.fail(err)
			return
		}
	}
	if t.State == bmc.TaskCompleted && t.Result != "" {
		x.sendTaskResult(t, resource.TakeSnapshot(x.host))
		return
	}
	messages := resource.Map(t.Messages, v.EventMessage)
	created, ok := v.CreatedResource(t)
	switch {
	case t.State == bmc.TaskException:
		x.sendError(http.StatusInternalServerError, append(messages, resource.FailureMessage(t))...)
	case ok:
		x.setLocation(created)
		x.sendResource(http.StatusCreated, created)
	case t.Request.Method == http.MethodPatch || t.Request.Method == http.MethodPut:
		x.sendResource(http.StatusOK, t.Request.Target)
	case len(messages) > 0:
		x.sendError(http.StatusOK, messages...)
	default:
		x.sendNoContent()
	}
}

// taskRead names a task in the cache of reads by clients.
type taskRead struct {
	host resource.Host
	id   string
}

// hidesNewTask reports whether a read of a task is one of the first, which a vendor's
// service answers with 404 although the task exists. It counts the read.
func (x *request) hidesNewTask() bool {
	hidden := x.vendor.MissingTaskReads()
	if hidden == 0 {
		return false
	}
	id := x.match.IDs["task"]
	if x.r.Method != http.MethodGet || id == "" || x.inner != "" {
		return false
	}
	k := taskRead{x.host, id}
	n, _ := x.s.taskReads.Get(k)
	if n >= hidden {
		return false
	}
	x.s.taskReads.Put(k, n+1)
	return true
}
