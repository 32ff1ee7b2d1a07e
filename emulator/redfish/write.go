package redfish

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/odata"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
)

// write answers a PATCH, POST or DELETE. The body is read before the host is
// locked: a slow client holds up nobody else.
func (x *request) write() {
	if q := x.r.URL.RawQuery; q != "" && odata.Asks(q) {
		x.refuse(http.StatusBadRequest, message.QueryNotSupportedOnOperation.With())
		return
	}
	if x.match.Upload != nil {
		c := x.call(resource.Document{}, x.match.View(resource.TakeSnapshot(x.host)), nil)
		out, err := uploads[x.match.Upload.Kind](x, c)
		x.answer(c, out, err, x.success)
		return
	}
	var in resource.Document
	if x.r.Method != http.MethodDelete || x.match.ApplyTimes != nil {
		var ok bool
		if in, ok = x.body(); !ok {
			return
		}
	}
	x.prefer = preferences(x.r.Header["Prefer"])
	unlock := func() {}
	if x.inner != resource.InnerHoldingLock { // whose request has done so
		unlock = x.s.lock(x.host)
	}
	locked := true
	free := func() {
		if locked {
			unlock()
			locked = false
		}
	}
	defer free()

	at := resource.TakeSnapshot(x.host)
	v := x.match.View(at)
	if !x.match.IsPresent(at) { // since the last look
		x.refuseMissing(at)
		return
	}
	if x.inner == "" {
		if !x.checkPrecondition(at) {
			return
		}
		q := vendor.Request{Method: x.r.Method, Match: x.match, At: at, BodySize: x.in}
		if no := x.vendor.Reject(q, in); no != nil {
			if no.PlainText {
				x.refusePlain(no.Status, no.Message)
			} else {
				x.refuse(no.Status, no.Message)
			}
			return
		}
		in = x.vendor.Decode(q, in)
	}
	var ok bool
	if x.when, ok = x.takeApplyTime(&in, v); !ok {
		return
	}
	switch {
	case x.match.Action != nil:
		x.act(in, v, free)
	case x.r.Method == http.MethodPatch:
		if x.writeOEM(in, v, free) {
			return
		}
		x.change(in, v, free)
	case x.r.Method == http.MethodPost:
		x.add(in, v)
	case x.r.Method == http.MethodDelete:
		var was *render.Representation
		if x.prefer.returns == returnRepresentation {
			was = x.s.renderer.Representation(x.match, at)
		}
		c := x.call(in, v, nil)
		out, err := x.match.Remove(x.context(), c)
		x.answer(c, out, err, func() *render.Representation { return was })
	}
}

// call is the request as it was understood.
func (x *request) call(in resource.Document, v resource.View, set resource.Values) resource.Call {
	return resource.Call{Host: x.host, View: v, Values: set, Actor: x.actor, From: x.from(), Request: x, Match: x.match, Method: x.r.Method, Body: in, ApplyTime: x.when}
}

// answer is what is said to an operation that shows no resource, unless the
// client prefers to see what there is to show.
func (x *request) answer(c resource.Call, out resource.Result, err error, otherwise func() *render.Representation) {
	switch {
	case err != nil:
		x.fail(err)
	case out.Task != "":
		if x.prefer.async {
			x.applyPreference("respond-async")
		}
		if out.Body != nil {
			x.setLocation(resource.TaskMonitorURI(out.Task))
			x.show(http.StatusAccepted, x.representationOf(out.Body))
			return
		}
		x.accepted(out.Task)
	case out.Inner != nil:
		x.relay(out.Inner)
	case out.Body != nil:
		x.show(cmp.Or(out.Status, http.StatusOK), x.representationOf(out.Body))
	case out.Status != 0 && out.Status != http.StatusNoContent:
		x.show(out.Status, x.success())
	case out.URI != "":
		x.setLocation(out.URI)
		x.done()
	case x.answerWithTask(c):
	case x.prefers(returnRepresentation):
		x.show(http.StatusOK, otherwise())
	default:
		x.prefers(returnMinimal)
		x.succeed()
	}
}

// accepted answers that a job goes on (DSP0266, "Asynchronous operations").
func (x *request) accepted(job string) {
	h := x.w.Header()
	if x.vendor.LocationIsTask() {
		x.setLocation(resource.TaskURI(job))
	} else {
		x.setLocation(resource.TaskMonitorURI(job))
	}
	if !x.vendor.LocationIsTask() {
		h["Retry-After"] = []string{retryAfter}
	}
	m := x.s.tree.Find(&url.URL{Path: resource.TaskURI(job)})
	p := x.s.renderer.Representation(m, resource.TakeSnapshot(x.host))
	if p == nil { // forgotten already
		x.status = http.StatusAccepted
		x.w.WriteHeader(x.status)
		return
	}
	h["Content-Type"], h["Content-Length"] = p.ContentType, p.ContentLength[:]
	x.send(http.StatusAccepted, p.Body)
}

// showURI answers with a resource, or without a body when it is not there, or not
// for the client to see.
func (x *request) showURI(status int, uri string) {
	at := resource.TakeSnapshot(x.host)
	m := x.s.tree.Find(&url.URL{Path: uri})
	if m != nil && m.Action == nil {
		if p := x.s.renderer.Representation(m, at); p != nil && x.actor.Authorized(http.MethodGet, m, at) {
			x.match = m
			x.show(status, p)
			return
		}
	}
	if status == http.StatusOK {
		status = http.StatusNoContent
	}
	x.status = status
	x.w.WriteHeader(status)
}

// representationOf is a page of a body that is no resource's.
func (x *request) representationOf(o resource.Object) *render.Representation {
	body := resource.Encode(x.vendor.Render(o, resource.TakeSnapshot(x.host)))
	p := render.NewRepresentation(resource.JSON, body, resource.ETag(body), nil)
	p.Allow = x.match.Allow
	return p
}

// body reads the JSON object of a request. An action or a DELETE needs none.
func (x *request) body() (resource.Document, bool) {
	bad := func(status int, m message.Message) (resource.Document, bool) {
		x.refuse(status, m)
		return resource.Document{}, false
	}
	b, err := x.bytes()
	x.in = int64(len(b))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return bad(http.StatusRequestEntityTooLarge, message.PayloadTooLarge.With())
	case err != nil:
		return bad(http.StatusBadRequest, message.UnrecognizedRequestBody.With())
	case len(b) == 0 && (x.match.Action != nil || x.r.Method == http.MethodDelete):
		return resource.Document{}, true
	}
	if t := x.r.Header.Get("Content-Type"); t != "" {
		if name, _, _ := strings.Cut(t, ";"); !strings.EqualFold(strings.TrimSpace(name), string(resource.JSON)) {
			return bad(http.StatusUnsupportedMediaType, message.UnrecognizedRequestBody.With())
		}
	}
	in, err := resource.Parse(b)
	switch {
	case errors.Is(err, resource.ErrMalformed):
		return bad(http.StatusBadRequest, message.MalformedJSON.With())
	case err != nil:
		return bad(http.StatusBadRequest, message.UnrecognizedRequestBody.With())
	case len(in.Fields) == 0 && x.match.Action == nil && x.r.Method != http.MethodDelete:
		return bad(http.StatusBadRequest, message.EmptyJSON.With())
	}
	if x.inner == "" {
		x.vendor.StandardURIs(in)
	}
	return in, true
}

// bytes reads the body of a request.
func (x *request) bytes() ([]byte, error) {
	if n := x.r.ContentLength; n >= 0 && n <= maxBody {
		b := make([]byte, n)
		got, err := io.ReadFull(x.r.Body, b)
		return b[:got], err
	}
	return io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
}

// act carries out an action (DSP0266, "POST (action)").
func (x *request) act(in resource.Document, v resource.View, free func()) {
	a := x.match.Action
	set, bad := resource.Validate(in, a.Inputs, v, nil)
	if len(bad) > 0 {
		x.refuse(http.StatusBadRequest, resource.Map(bad, func(r resource.InputError) message.Message { return r.ParameterMessage(a.Name) })...)
		return
	}
	c := x.call(in, v, set)
	if a.Slow {
		free()
		if x.prefer.async || a.AsTask != nil && a.AsTask(v) {
			x.runAsTask(c, a.Apply)
			return
		}
	}
	out, err := a.Apply(x.context(), c)
	x.answer(c, out, err, x.success)
}

// change carries out a PATCH. What can be changed is; what cannot is told
// (DSP0266, "PATCH (update)").
func (x *request) change(in resource.Document, v resource.View, free func()) {
	if x.match.OEM != nil {
		x.patchOEM(in, v)
		return
	}
	mine, bad := x.permittedProperties(in, v)
	var whole resource.Object
	shown := func() resource.Object { // which few ask for, and those often
		if whole == nil {
			whole = x.match.Object(v)
		}
		return whole
	}
	set, worse := resource.Validate(mine, x.match.Patch.Inputs, v, shown)
	bad = append(bad, worse...)
	switch {
	case len(set) == 0 && len(bad) == 0:
		x.refuse(http.StatusBadRequest, message.NoOperation.With())
		return
	case len(set) == 0:
		x.refuseAll(bad)
		return
	}
	c, n := x.call(in, v, set), len(set)
	if slow := x.match.Patch.Slow; slow != nil && slow(set) {
		free()
	}
	out, err := x.match.Patch.Apply(x.context(), c)
	if err != nil || out.Task != "" {
		x.answer(c, out, err, nil)
		return
	}
	bad = append(bad, out.InputErrors...)
	if len(out.InputErrors) >= n {
		x.refuseAll(bad)
		return
	}
	x.answerChange(c, bad)
}

// answerChange answers a PATCH of which something was done.
func (x *request) answerChange(c resource.Call, bad []resource.InputError) {
	at := resource.TakeSnapshot(x.host)
	if len(bad) == 0 && x.prefer.returns == "" && x.vendor.HasSuccessMessage() && x.match.IsPresent(at) {
		if !x.answerWithTask(c) { // the resource is not shown
			x.succeed()
		}
		return
	}
	p := x.s.renderer.Representation(x.match, at)
	switch {
	case p == nil: // no longer there, for what was changed
		x.done()
	case len(bad) > 0: // which must be told
		x.show(http.StatusOK, x.withRefusals(p, bad))
	case x.answerWithTask(c):
	case x.prefers(returnMinimal):
		x.answerMinimal(p)
	case x.vendor.HasSuccessMessage():
		x.succeed()
	default:
		x.prefers(returnRepresentation)
		x.show(http.StatusOK, p)
	}
}

// permittedProperties takes out of a request the properties that the actor may not
// change.
func (x *request) permittedProperties(in resource.Document, v resource.View) (resource.Document, []resource.InputError) {
	if len(x.match.Privileges.Properties) == 0 { // what holds for one holds for all
		return in, nil
	}
	own := x.match.BelongsTo != nil && x.match.BelongsTo(v, x.actor)
	var bad []resource.InputError
	mine := in.DeleteFunc(func(f resource.Field) bool {
		if resource.InputOf(x.match.Patch.Inputs, f.Name) < 0 || x.actor.AuthorizedToPatch(f.Name, x.match, own) {
			return false
		}
		bad = append(bad, resource.InputError{Path: []string{f.Name}, Problem: resource.CustomMessage, Message: x.actor.Forbidden(), Status: http.StatusForbidden})
		return true
	})
	return mine, bad
}

// refuseAll refuses a request of which nothing is taken.
func (x *request) refuseAll(bad []resource.InputError) {
	status := bad[0].Status
	for _, r := range bad {
		if r.Status != status {
			status = 0
		}
	}
	if status == 0 {
		status = http.StatusBadRequest
	}
	x.refuse(status, resource.Map(bad, resource.InputError.PropertyMessage)...)
}

// withRefusals is a page that tells which properties were not changed, both of
// the whole resource and beside each property (DSP0266, "Extended information").
func (x *request) withRefusals(p *render.Representation, bad []resource.InputError) *render.Representation {
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
		if in != nil { // it is of a group that is shown
			in[r.Property()+info] = x.vendor.Registries().ExtendedInfo(r.PropertyMessage())
		}
	}
	return p.With(resource.Encode(o))
}

// withMessages is a page that tells something beside what it shows.
func (x *request) withMessages(p *render.Representation, ms []message.Message) *render.Representation {
	o := resource.Decode(p.Body)
	o["@Message.ExtendedInfo"] = x.vendor.Registries().ExtendedInfo(ms...)
	return p.With(resource.Encode(o))
}

// ofMember words a refusal as one of a property of a new member. Before Base
// 1.14 a property that is missing had a message of its own there.
func (x *request) ofMember(r resource.InputError) message.Message {
	if old := message.CreateFailedMissingReqProperties; r.Problem == resource.Missing && x.vendor.Registries().Before(old.Registry, 14) {
		return old.With(r.Name()).About(r.Pointer())
	}
	return r.PropertyMessage()
}

// add carries out a POST to a collection (DSP0266, "POST (create)").
func (x *request) add(in resource.Document, v resource.View) {
	c := x.match.Create
	set, bad := resource.Validate(in, c.Inputs, v, nil)
	if len(bad) > 0 {
		x.refuse(http.StatusBadRequest, resource.Map(bad, x.ofMember)...)
		return
	}
	op := x.call(in, v, set)
	x.expectStatus(http.StatusCreated)
	made, err := c.Apply(x.context(), op)
	if err != nil || made.Task != "" {
		x.answer(op, made, err, nil)
		return
	}
	h := x.w.Header()
	uri := v.URI + "/" + made.ID
	x.setLocation(uri)
	if made.Token != "" {
		h["X-Auth-Token"], h["Cache-Control"] = []string{made.Token}, []string{"no-store"}
	}
	x.match = x.s.tree.Find(&url.URL{Path: uri})
	p := x.s.renderer.Representation(x.match, resource.TakeSnapshot(x.host))
	if p == nil { // gone again
		x.fail(bmc.ErrNotFound)
		return
	}
	if len(made.Messages) > 0 { // which must be told
		x.show(http.StatusCreated, x.withMessages(p, made.Messages))
		return
	}
	if x.prefers(returnMinimal) {
		h["Etag"] = p.ETag[:]
		x.status = http.StatusCreated
		x.w.WriteHeader(x.status)
		return
	}
	x.prefers(returnRepresentation)
	x.show(http.StatusCreated, p)
}
