package redfish

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/odata"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
)

// maxBody is the largest size of a JSON body, in bytes.
const maxBody = 256 << 10

// write serves a PATCH, POST or DELETE. It reads the body before it locks the host, so
// that a slow client delays nobody else.
func (x *request) write() {
	if q := x.r.URL.RawQuery; q != "" && odata.Asks(q) {
		x.sendError(http.StatusBadRequest, message.QueryNotSupportedOnOperation.With())
		return
	}
	if x.match.Upload != nil {
		c := x.call(resource.Document{}, x.match.View(resource.TakeSnapshot(x.host)), nil)
		out, err := uploads[x.match.Upload.Kind](x, c)
		x.sendResult(c, out, err, x.successBody)
		return
	}
	var in resource.Document
	if x.r.Method != http.MethodDelete || x.match.ApplyTimes != nil {
		var ok bool
		if in, ok = x.readBody(); !ok {
			return
		}
	}
	x.preference = parsePrefer(x.r.Header["Prefer"])
	unlock := x.lockHost()
	defer unlock()

	at := resource.TakeSnapshot(x.host)
	v := x.match.View(at)
	if !x.match.IsPresent(at) { // deleted while the body was read
		x.sendNotFound(at)
		return
	}
	if x.inner == "" {
		if !x.checkPrecondition(at) {
			return
		}
		q := vendor.Request{Method: x.r.Method, Match: x.match, At: at, BodySize: x.bytesIn}
		if rejection := x.vendor.Reject(q, in); rejection != nil {
			if rejection.Status == http.StatusMethodNotAllowed {
				x.w.Header()["Allow"] = x.allowAt(at)
			}
			if rejection.PlainText {
				x.sendPlainTextError(rejection.Status, rejection.Message)
			} else {
				x.sendError(rejection.Status, rejection.Message)
			}
			return
		}
		in = x.vendor.Decode(q, in)
	}
	var ok bool
	if x.applyTime, ok = x.takeApplyTime(&in, v); !ok {
		return
	}
	switch {
	case x.match.Action != nil:
		x.invokeAction(in, v, unlock)
	case x.r.Method == http.MethodPatch:
		if x.patchOEMProperties(in, v, unlock) {
			return
		}
		x.patch(in, v, unlock)
	case x.r.Method == http.MethodPost:
		x.create(in, v)
	case x.r.Method == http.MethodDelete:
		var deleted *render.Representation
		if x.preference.returns == returnRepresentation {
			deleted = x.readable(x.s.renderer.Representation(x.match, at), x.match, at)
		}
		c := x.call(in, v, nil)
		out, err := x.match.Remove(x.context(), c)
		x.sendResult(c, out, err, func() *render.Representation { return deleted })
	}
}

// lockHost locks the host for writes and returns the function that unlocks it, at its
// first call only. An inner request of one that holds the lock takes none.
func (x *request) lockHost() (unlock func()) {
	if x.inner == resource.InnerHoldingLock {
		return func() {}
	}
	release, locked := x.s.lock(x.host), true
	return func() {
		if locked {
			release()
			locked = false
		}
	}
}

// call returns the request as the functions of a row receive it. set are the valid
// values of the body.
func (x *request) call(in resource.Document, v resource.View, set resource.Values) resource.Call {
	return resource.Call{
		Host: x.host, View: v, Values: set, Actor: x.actor, From: x.clientAddress(), Request: x,
		Match: x.match, Method: x.r.Method, Body: in, ApplyTime: x.applyTime,
	}
}

// readBody reads the JSON object of a request; actions and DELETE do not need one. When
// the body is invalid, it sends the error response and returns false.
func (x *request) readBody() (resource.Document, bool) {
	bad := func(status int, m message.Message) (resource.Document, bool) {
		x.sendError(status, m)
		return resource.Document{}, false
	}
	b, err := x.readBytes()
	x.bytesIn = int64(len(b))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return bad(http.StatusRequestEntityTooLarge, message.PayloadTooLarge.With())
	case errors.Is(err, os.ErrDeadlineExceeded): // the server cuts a client that is too slow
		return bad(http.StatusRequestTimeout, message.UnrecognizedRequestBody.With())
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
	if x.match.Action != nil && x.vendor.ActionTexts() {
		var text string
		if json.Unmarshal(b, &text) == nil && strings.HasPrefix(text, "{") {
			b = []byte(text)
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

// readBytes reads the body of a request, up to maxBody.
func (x *request) readBytes() ([]byte, error) {
	if n := x.r.ContentLength; n >= 0 && n <= maxBody {
		b := make([]byte, n)
		read, err := io.ReadFull(x.r.Body, b)
		return b[:read], err
	}
	return io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
}

// invokeAction serves the POST of an action (DSP0266, "POST (action)"). It unlocks the
// host for an action that takes long.
func (x *request) invokeAction(in resource.Document, v resource.View, unlock func()) {
	a := x.match.Action
	set, bad := resource.Validate(in, a.Inputs, v, nil)
	if len(bad) > 0 {
		x.sendError(http.StatusBadRequest, resource.Map(bad, func(r resource.InputError) message.Message { return r.ParameterMessage(a.Name) })...)
		return
	}
	c := x.call(in, v, set)
	if a.Slow {
		unlock()
		if x.preference.async || a.AsTask != nil && a.AsTask(v) {
			x.runAsTask(c, a.Apply)
			return
		}
	}
	out, err := a.Apply(x.context(), c)
	x.sendResult(c, out, err, x.successBody)
}

// patch serves a PATCH. It applies the valid properties and reports the others in the
// response (DSP0266, "PATCH (update)"). It unlocks the host for a change that takes long.
func (x *request) patch(in resource.Document, v resource.View, unlock func()) {
	if x.match.OEM != nil {
		x.patchOEMResource(in, v)
		return
	}
	permitted, bad := x.permittedProperties(in, v)
	var object resource.Object
	present := func() resource.Object { // made at the first call: few inputs need it
		if object == nil {
			object = x.match.Object(v)
		}
		return object
	}
	set, invalid := resource.Validate(permitted, x.match.Patch.Inputs, v, present)
	bad = append(bad, invalid...)
	switch {
	case len(set) == 0 && len(bad) == 0:
		x.sendError(http.StatusBadRequest, message.NoOperation.With())
		return
	case len(set) == 0:
		x.sendInputErrors(bad)
		return
	}
	c, n := x.call(in, v, set), len(set)
	if slow := x.match.Patch.Slow; slow != nil && slow(set) {
		unlock()
	}
	out, err := x.match.Patch.Apply(x.context(), c)
	if err != nil || out.Task != "" {
		x.sendResult(c, out, err, nil)
		return
	}
	bad = append(bad, out.InputErrors...)
	if len(out.InputErrors) >= n {
		x.sendInputErrors(bad)
		return
	}
	x.sendPatchResult(c, bad)
}

// permittedProperties returns a body without the properties that the actor may not
// change, and the errors for those.
func (x *request) permittedProperties(in resource.Document, v resource.View) (resource.Document, []resource.InputError) {
	if len(x.match.Privileges.Properties) == 0 { // the privilege of PATCH is that of each property
		return in, nil
	}
	belongsToActor := x.match.BelongsTo != nil && x.match.BelongsTo(v, x.actor)
	var bad []resource.InputError
	permitted := in.DeleteFunc(func(f resource.Field) bool {
		if resource.InputOf(x.match.Patch.Inputs, f.Name) < 0 || x.actor.AuthorizedToPatch(f.Name, x.match, belongsToActor) {
			return false
		}
		bad = append(bad, resource.InputError{Path: []string{f.Name}, Problem: resource.CustomMessage, Message: x.actor.Forbidden(), Status: http.StatusForbidden})
		return true
	})
	return permitted, bad
}

// memberMessage returns the message for an invalid property of a new member. Base
// before 1.14 has another message for a missing one.
func (x *request) memberMessage(r resource.InputError) message.Message {
	if old := message.CreateFailedMissingReqProperties; r.Problem == resource.Missing && x.vendor.Registries().Before(old.Registry, 14) {
		return old.With(r.Name()).About(r.Pointer())
	}
	return r.PropertyMessage()
}

// create serves the POST to a collection (DSP0266, "POST (create)").
func (x *request) create(in resource.Document, v resource.View) {
	c := x.match.Create
	set, bad := resource.Validate(in, c.Inputs, v, nil)
	if len(bad) > 0 {
		x.sendError(http.StatusBadRequest, resource.Map(bad, x.memberMessage)...)
		return
	}
	call := x.call(in, v, set)
	x.expectStatus(http.StatusCreated)
	created, err := c.Apply(x.context(), call)
	if err != nil || created.Task != "" {
		x.sendResult(call, created, err, nil)
		return
	}
	h := x.w.Header()
	uri := v.URI + "/" + created.ID
	x.setLocation(uri)
	if created.Token != "" {
		h["X-Auth-Token"], h["Cache-Control"] = []string{created.Token}, []string{"no-store"}
	}
	x.match = x.s.tree.Find(&url.URL{Path: uri})
	at := resource.TakeSnapshot(x.host)
	p := x.readable(x.s.renderer.Representation(x.match, at), x.match, at)
	if p == nil { // deleted in the meantime
		x.fail(bmc.ErrNotFound)
		return
	}
	if len(created.Messages) > 0 {
		x.sendRepresentation(http.StatusCreated, x.withMessages(p, created.Messages))
		return
	}
	if x.applyReturn(returnMinimal) {
		h["Etag"] = p.ETag[:]
		x.sendStatus(http.StatusCreated)
		return
	}
	x.applyReturn(returnRepresentation)
	x.sendRepresentation(http.StatusCreated, p)
}
