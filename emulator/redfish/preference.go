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

// preference is what a client would rather have (RFC 7240; DSP0266, "Request
// headers"). Who writes gets it where it makes sense.
type preference struct {
	returns string // "minimal" or "representation"; "" none of them
	async   bool   // not to wait
}

// preferences reads a Prefer header. Of one that is there twice the first
// counts (RFC 7240, §2).
func preferences(header []string) (p preference) {
	for _, line := range header {
		for part := range strings.SplitSeq(line, ",") {
			part, _, _ = strings.Cut(part, ";") // parameters, of which none is known
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

// The values of return.
const (
	returnMinimal        = "minimal"
	returnRepresentation = "representation"
)

// applyPreference tells a preference that the answer follows.
func (x *request) applyPreference(name string) {
	x.w.Header()["Preference-Applied"] = append(x.w.Header()["Preference-Applied"], name)
}

// prefers says whether the client prefers that form of an answer, which is then
// told to follow it.
func (x *request) prefers(form string) bool {
	if x.prefer.returns != form {
		return false
	}
	x.applyPreference("return=" + form)
	return true
}

// answerMinimal answers a change with less than the resource.
func (x *request) answerMinimal(p *render.Representation) {
	x.w.Header()["Etag"] = p.ETag[:]
	x.done()
}

// success is a body that says that all went well.
func (x *request) success() *render.Representation {
	return x.representationOf(resource.Object{"@Message.ExtendedInfo": x.vendor.Registries().ExtendedInfo(message.Success.With())})
}

// runAsTask carries out an operation that others need not wait for while the
// client goes on, under a job of its own.
func (x *request) runAsTask(c resource.Call, do func(context.Context, resource.Call) (resource.Result, error)) {
	x.outlives = true
	job, err := c.Host.Carry(x.context(), c.OpenTask(), func(ctx context.Context, _ string) bmc.CloseTask {
		if _, err := do(ctx, c); err != nil {
			return bmc.CloseTask{Fault: errorText(err)}
		}
		return bmc.CloseTask{}
	})
	if err != nil {
		x.fail(err)
		return
	}
	if x.prefer.async {
		x.applyPreference("respond-async")
	}
	x.accepted(job.ID)
}

// answerWithTask answers an operation that is done with a job that is done, for a
// client that prefers to look for the outcome of all its requests in one way.
func (x *request) answerWithTask(c resource.Call) bool {
	if !x.prefer.async {
		return false
	}
	job, err := c.RecordTask(x.context())
	if err != nil { // as many as there can be: it is not worth failing for
		return false
	}
	x.applyPreference("respond-async")
	x.accepted(job)
	return true
}

// errorText is an error for people: what the client would have been errorText.
func errorText(err error) string {
	status, ms := answered(err, "")
	if status == http.StatusInternalServerError {
		return "the service failed"
	}
	return ms[0].Text
}
