package redfish

import (
	"context"
	"net/http"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// preference is a Prefer header (RFC 7240; DSP0266, "Request headers"). Writes follow
// it where it makes sense.
type preference struct {
	returns string // "minimal" or "representation"; "" for no preference
	async   bool   // respond-async
}

// parsePrefer parses a Prefer header. Of a preference that is there twice the first
// counts (RFC 7240, §2).
func parsePrefer(header []string) (p preference) {
	for _, line := range header {
		for part := range strings.SplitSeq(line, ",") {
			part, _, _ = strings.Cut(part, ";") // the service knows no parameters
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			value = strings.ToLower(strings.Trim(strings.TrimSpace(value), `"`))
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "return":
				if p.returns == "" && (value == returnMinimal || value == returnRepresentation) {
					p.returns = value
				}
			case "respond-async":
				p.async = true
			}
		}
	}
	return p
}

// The values of the preference return.
const (
	returnMinimal        = "minimal"
	returnRepresentation = "representation"
)

// applyPreference adds a preference to the Preference-Applied header.
func (x *request) applyPreference(name string) {
	x.w.Header()["Preference-Applied"] = append(x.w.Header()["Preference-Applied"], name)
}

// applyReturn reports whether the client prefers a form of response, which is
// returnMinimal or returnRepresentation, and adds it to Preference-Applied if so.
func (x *request) applyReturn(form string) bool {
	if x.preference.returns != form {
		return false
	}
	x.applyPreference("return=" + form)
	return true
}

// sendMinimal sends 204 with the ETag of the changed resource.
func (x *request) sendMinimal(p *render.Representation) {
	x.w.Header()["Etag"] = p.ETag[:]
	x.sendNoContent()
}

// successBody returns a body with the message Success.
func (x *request) successBody() *render.Representation {
	return x.representationOf(resource.Object{"@Message.ExtendedInfo": x.vendor.Registries().ExtendedInfo(message.Success.With())})
}

// runAsTask runs an operation in the background, as a task, and sends 202. The host must
// not be locked.
func (x *request) runAsTask(c resource.Call, do func(context.Context, resource.Call) (resource.Result, error)) {
	x.outlives = true
	task, err := c.Host.RunTask(x.context(), c.OpenTask(), func(ctx context.Context, _ string) bmc.CloseTask {
		if _, err := do(ctx, c); err != nil {
			return bmc.CloseTask{Fault: errorText(err)}
		}
		return bmc.CloseTask{}
	})
	if err != nil {
		x.fail(err)
		return
	}
	if x.preference.async {
		x.applyPreference("respond-async")
	}
	x.sendAccepted(task.ID)
}

// sendCompletedTask sends 202 with a completed task for an operation that is completed
// already, if the client prefers respond-async. Otherwise it returns false.
func (x *request) sendCompletedTask(c resource.Call) bool {
	if !x.preference.async {
		return false
	}
	id, err := c.RecordTask(x.context())
	if err != nil { // there are too many tasks: the operation has succeeded all the same
		return false
	}
	x.applyPreference("respond-async")
	x.sendAccepted(id)
	return true
}

// errorText returns the text of an error for a task's messages: that of the response
// which the client would have received.
func errorText(err error) string {
	status, ms := errorResponse(err, "")
	if status == http.StatusInternalServerError {
		return "the service failed"
	}
	return ms[0].Text
}
