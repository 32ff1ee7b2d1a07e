package redfish

import (
	"net/http"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// answerers answer a GET that the representation is not the answer to.
var answerers = map[resource.AnswerKind]func(x *request, v resource.View){resource.EventStream: (*request).stream, resource.TaskMonitorAnswer: answerMonitor}

// answerTask answers the reading of a task as that of its monitor, but that a task
// that has ended is shown where the operation has no answer of its own. It says
// whether it has answered.
func (x *request) answerTask(p *render.Representation, at *resource.Snapshot) bool {
	j := x.match.View(at).Task()
	switch {
	case !j.State.Ended():
		x.show(http.StatusAccepted, p)
	case j.State == bmc.TaskCompleted && j.Result != "":
		x.answerTaskResult(j)
	default:
		return false
	}
	return true
}

// answerTaskResult answers with what a job has answered.
func (x *request) answerTaskResult(j bmc.Task) {
	kind := resource.JSON
	switch j.Result[0] {
	case '{':
	case '<':
		kind = resource.XML
	default:
		kind = "text/plain"
	}
	x.w.Header()["Content-Type"] = []string{string(kind) + ";charset=utf-8"}
	x.send(http.StatusOK, []byte(j.Result))
}

// answerMonitor answers the reading of a task monitor: with 202 until the job
// has ended, then as the operation would have been answered.
func answerMonitor(x *request, v resource.View) {
	j := v.Task()
	if !j.State.Ended() {
		x.accepted(j.ID)
		return
	}
	if x.r.Method != http.MethodHead {
		if _, err := x.host.ApplyBMC(x.context(), bmc.DeliverTask{ID: j.ID, Now: x.vendor.MonitorReadOnce()}); err != nil {
			x.fail(err)
			return
		}
	}
	if j.State == bmc.TaskCompleted && j.Result != "" {
		x.answerTaskResult(j)
		return
	}
	told := resource.Map(j.Messages, v.EventMessage)
	made, ok := v.CreatedResource(j)
	switch {
	case j.State == bmc.TaskException:
		x.refuse(http.StatusInternalServerError, append(told, resource.FailureMessage(j))...)
	case ok:
		x.setLocation(made)
		x.showURI(http.StatusCreated, made)
	case j.Request.Method == http.MethodPatch || j.Request.Method == http.MethodPut:
		x.showURI(http.StatusOK, j.Request.Target)
	case len(told) > 0:
		x.refuse(http.StatusOK, told...)
	default:
		x.done()
	}
}

// taskRead is a task that clients have looked for.
type taskRead struct {
	host resource.Host
	job  string
}

// hidesNewTask says whether a read of a task is one of the first, which find that there
// is none.
func (x *request) hidesNewTask() bool {
	most := x.vendor.MissingTaskReads()
	if most == 0 {
		return false
	}
	id := x.match.IDs["task"]
	if x.r.Method != http.MethodGet || id == "" || x.inner != "" {
		return false
	}
	k := taskRead{x.host, id}
	n, _ := x.s.taskReads.Get(k)
	if n >= most {
		return false
	}
	x.s.taskReads.Put(k, n+1)
	return true
}
