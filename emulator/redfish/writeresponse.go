package redfish

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// sendResult sends the response to a write that shows no resource. representation
// returns the body for a client that prefers one.
func (x *request) sendResult(c resource.Call, out resource.Result, err error, representation func() *render.Representation) {
	switch {
	case err != nil:
		x.fail(err)
	case out.Task != "":
		if x.preference.async {
			x.applyPreference("respond-async")
		}
		if out.Body != nil {
			x.setLocation(resource.TaskMonitorURI(out.Task))
			x.sendRepresentation(http.StatusAccepted, x.representationOf(out.Body))
			return
		}
		x.sendAccepted(out.Task)
	case out.Inner != nil:
		x.sendInnerResponse(out.Inner)
	case out.Body != nil:
		x.sendRepresentation(cmp.Or(out.Status, http.StatusOK), x.representationOf(out.Body))
	case out.Status != 0 && out.Status != http.StatusNoContent:
		x.sendRepresentation(out.Status, x.successBody())
	case out.URI != "":
		x.setLocation(out.URI)
		x.sendNoContent()
	case x.sendCompletedTask(c):
	case x.applyReturn(returnRepresentation):
		x.sendRepresentation(http.StatusOK, representation())
	default:
		x.applyReturn(returnMinimal)
		x.sendSuccess()
	}
}

// sendAccepted sends 202 with a running task and the Location of its monitor (DSP0266,
// "Asynchronous operations"). Retry-After is the time until the task's expected end.
func (x *request) sendAccepted(taskID string) {
	h := x.w.Header()
	if x.vendor.LocationIsTask() {
		x.setLocation(resource.TaskURI(taskID))
	} else {
		x.setLocation(resource.TaskMonitorURI(taskID))
		t := resource.Find(x.host.BMC().Tasks.All(), taskID, func(t bmc.Task) string { return t.ID })
		h["Retry-After"] = []string{x.retryAfter(t.Until)}
	}
	m := x.s.tree.Find(&url.URL{Path: resource.TaskURI(taskID)})
	at := resource.TakeSnapshot(x.host)
	p := x.readable(x.s.renderer.Representation(m, at), m, at)
	if p == nil { // deleted in the meantime
		x.sendStatus(http.StatusAccepted)
		return
	}
	h["Content-Type"], h["Content-Length"] = p.ContentType, p.ContentLength[:]
	x.send(http.StatusAccepted, p.Body)
}

// sendResource sends the representation of the resource at a standard URI, or a response
// without a body when the resource does not exist or the client may not read it.
func (x *request) sendResource(status int, uri string) {
	at := resource.TakeSnapshot(x.host)
	m := x.s.tree.Find(&url.URL{Path: uri})
	if m != nil && m.Action == nil {
		if p := x.s.renderer.Representation(m, at); p != nil && x.actor.Authorized(http.MethodGet, m, at) {
			x.match = m
			x.sendRepresentation(status, x.readable(p, m, at))
			return
		}
	}
	if status == http.StatusOK {
		status = http.StatusNoContent
	}
	x.sendStatus(status)
}

// representationOf returns the representation of a body that is not a resource, in the
// vendor's form.
func (x *request) representationOf(o resource.Object) *render.Representation {
	body := resource.Encode(x.vendor.Render(o, resource.TakeSnapshot(x.host)))
	p := render.NewRepresentation(resource.JSON, body, resource.ETag(body), nil)
	p.Allow = x.match.Allow
	return p
}

// sendPatchResult sends the response to a PATCH that has changed something. bad are the
// properties that it has not changed.
func (x *request) sendPatchResult(c resource.Call, bad []resource.InputError) {
	at := resource.TakeSnapshot(x.host)
	if len(bad) == 0 && x.preference.returns == "" && x.vendor.HasSuccessMessage() && x.match.IsPresent(at) {
		if !x.sendCompletedTask(c) { // this vendor does not show the resource
			x.sendSuccess()
		}
		return
	}
	p := x.readable(x.s.renderer.Representation(x.match, at), x.match, at)
	switch {
	case p == nil: // the change has removed the resource
		x.sendNoContent()
	case len(bad) > 0:
		x.sendRepresentation(http.StatusOK, x.withInputErrors(p, bad))
	case x.sendCompletedTask(c):
	case x.applyReturn(returnMinimal):
		x.sendMinimal(p)
	case x.vendor.HasSuccessMessage():
		x.sendSuccess()
	default:
		x.applyReturn(returnRepresentation)
		x.sendRepresentation(http.StatusOK, p)
	}
}

// sendInputErrors sends the error response to a request that changes nothing. The status
// is that of the errors, or 400 if they differ.
func (x *request) sendInputErrors(bad []resource.InputError) {
	status := bad[0].Status
	for _, r := range bad {
		if r.Status != status {
			status = 0
		}
	}
	if status == 0 {
		status = http.StatusBadRequest
	}
	x.sendError(status, resource.Map(bad, resource.InputError.PropertyMessage)...)
}

// withInputErrors returns a representation with the messages of the properties that were
// not changed, both for the resource and beside each property (DSP0266, "Extended
// information").
func (x *request) withInputErrors(p *render.Representation, bad []resource.InputError) *render.Representation {
	const info = "@Message.ExtendedInfo"
	if len(bad) > resource.MaxMessages {
		bad = bad[:resource.MaxMessages]
	}
	o := resource.Decode(p.Body)
	o[info] = x.vendor.Registries().ExtendedInfo(resource.Map(bad, resource.InputError.PropertyMessage)...)
	for _, r := range bad {
		in := o
		for _, name := range r.Path[:len(r.Path)-1] {
			in, _ = in[name].(resource.Object)
		}
		if in != nil { // the body has the object of the property
			in[r.Property()+info] = x.vendor.Registries().ExtendedInfo(r.PropertyMessage())
		}
	}
	return p.With(resource.Encode(o))
}

// withMessages returns a representation with messages for the resource.
func (x *request) withMessages(p *render.Representation, ms []message.Message) *render.Representation {
	o := resource.Decode(p.Body)
	o["@Message.ExtendedInfo"] = x.vendor.Registries().ExtendedInfo(ms...)
	return p.With(resource.Encode(o))
}
