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
)

// write answers a PATCH, POST or DELETE. The body is read before the host is
// locked: a slow client holds up nobody else.
func (x *exchange) write() {
	if q := x.r.URL.RawQuery; q != "" && odata.Asks(q) {
		x.refuse(http.StatusBadRequest, message.QueryNotSupportedOnOperation.With())
		return
	}
	if x.match.upload != nil {
		c := x.operation(document{}, x.match.view(look(x.host)), nil)
		out, err := uploads[x.match.upload.kind](x, c)
		x.answer(c, out, err, x.success)
		return
	}
	var in document
	if x.r.Method != http.MethodDelete || x.match.applies != nil {
		var ok bool
		if in, ok = x.body(); !ok {
			return
		}
	}
	x.prefer = preferences(x.r.Header["Prefer"])
	unlock := func() {}
	if x.inner != within { // whose request has done so
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

	at := look(x.host)
	v := x.match.view(at)
	if !x.match.isThere(at) { // since the last look
		x.gone(at)
		return
	}
	if x.inner == "" {
		if !x.precondition(at) {
			return
		}
		q := ofRequest{Method: x.r.Method, Match: x.match, At: at, BodySize: x.in}
		if no := x.vendor().Reject(q, in); no != nil {
			if no.PlainText {
				x.refusePlain(no.Status, no.Message)
			} else {
				x.refuse(no.Status, no.Message)
			}
			return
		}
		in = x.vendor().Decode(q, in)
	}
	var ok bool
	if x.when, ok = x.effective(&in, v); !ok {
		return
	}
	switch {
	case x.match.action != nil:
		x.act(in, v, free)
	case x.r.Method == http.MethodPatch:
		if x.writeOEM(in, v, free) {
			return
		}
		x.change(in, v, free)
	case x.r.Method == http.MethodPost:
		x.add(in, v)
	case x.r.Method == http.MethodDelete:
		var was *representation
		if x.prefer.returns == returnRepresentation {
			was = x.s.renderer.representation(x.match, at)
		}
		c := x.operation(in, v, nil)
		out, err := x.match.remove(x.context(), c)
		x.answer(c, out, err, func() *representation { return was })
	}
}

// operation is the request as it was understood.
func (x *exchange) operation(in document, v view, set values) operation {
	return operation{host: x.host, view: v, set: set, who: x.who, from: x.from(), x: x, match: x.match, method: x.r.Method, in: in, when: x.when}
}

// answer is what is said to an operation that shows no resource, unless the
// client prefers to see what there is to show.
func (x *exchange) answer(c operation, out reply, err error, otherwise func() *representation) {
	switch {
	case err != nil:
		x.fail(err)
	case out.job != "":
		if x.prefer.async {
			x.honour("respond-async")
		}
		if out.body != nil {
			x.locate(taskMonitor(out.job))
			x.show(http.StatusAccepted, x.loose(out.body))
			return
		}
		x.accepted(out.job)
	case out.made != nil:
		x.relay(out.made)
	case out.body != nil:
		x.show(cmp.Or(out.status, http.StatusOK), x.loose(out.body))
	case out.status != 0 && out.status != http.StatusNoContent:
		x.show(out.status, x.success())
	case out.at != "":
		x.locate(out.at)
		x.done()
	case x.afterwards(c):
	case x.returns(returnRepresentation):
		x.show(http.StatusOK, otherwise())
	default:
		x.returns(returnMinimal)
		x.succeed()
	}
}

// accepted answers that a job goes on (DSP0266, "Asynchronous operations").
func (x *exchange) accepted(job string) {
	h := x.w.Header()
	if x.host.Dialect().Tasks.LocationIsTask {
		x.locate(taskURI(job))
	} else {
		x.locate(taskMonitor(job))
	}
	if !x.host.Dialect().Tasks.LocationIsTask {
		h["Retry-After"] = []string{retryAfter}
	}
	m := x.s.tree.find(&url.URL{Path: taskURI(job)})
	p := x.s.renderer.representation(m, look(x.host))
	if p == nil { // forgotten already
		x.status = http.StatusAccepted
		x.w.WriteHeader(x.status)
		return
	}
	h["Content-Type"], h["Content-Length"] = p.content, p.length[:]
	x.send(http.StatusAccepted, p.body)
}

// showAt answers with a resource, or without a body when it is not there, or not
// for the client to see.
func (x *exchange) showAt(status int, uri string) {
	at := look(x.host)
	m := x.s.tree.find(&url.URL{Path: uri})
	if m != nil && m.action == nil {
		if p := x.s.renderer.representation(m, at); p != nil && x.who.may(http.MethodGet, m, at) {
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

// loose is a page of a body that is no resource's.
func (x *exchange) loose(o object) *representation {
	body := encode(x.vendor().Render(o, look(x.host)))
	p := newRepresentation(jsonType, body, etag(body), nil)
	p.allow = x.match.allow
	return p
}

// body reads the JSON object of a request. An action or a DELETE needs none.
func (x *exchange) body() (document, bool) {
	bad := func(status int, m message.Message) (document, bool) {
		x.refuse(status, m)
		return document{}, false
	}
	b, err := x.bytes()
	x.in = int64(len(b))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return bad(http.StatusRequestEntityTooLarge, message.PayloadTooLarge.With())
	case err != nil:
		return bad(http.StatusBadRequest, message.UnrecognizedRequestBody.With())
	case len(b) == 0 && (x.match.action != nil || x.r.Method == http.MethodDelete):
		return document{}, true
	}
	if t := x.r.Header.Get("Content-Type"); t != "" {
		if name, _, _ := strings.Cut(t, ";"); !strings.EqualFold(strings.TrimSpace(name), string(jsonType)) {
			return bad(http.StatusUnsupportedMediaType, message.UnrecognizedRequestBody.With())
		}
	}
	in, err := parse(b)
	switch {
	case errors.Is(err, errMalformed):
		return bad(http.StatusBadRequest, message.MalformedJSON.With())
	case err != nil:
		return bad(http.StatusBadRequest, message.UnrecognizedRequestBody.With())
	case len(in.fields) == 0 && x.match.action == nil && x.r.Method != http.MethodDelete:
		return bad(http.StatusBadRequest, message.EmptyJSON.With())
	}
	if x.inner == "" {
		x.vendor().StandardURIs(in)
	}
	return in, true
}

// bytes reads the body of a request.
func (x *exchange) bytes() ([]byte, error) {
	if n := x.r.ContentLength; n >= 0 && n <= maxBody {
		b := make([]byte, n)
		got, err := io.ReadFull(x.r.Body, b)
		return b[:got], err
	}
	return io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
}

// act carries out an action (DSP0266, "POST (action)").
func (x *exchange) act(in document, v view, free func()) {
	a := x.match.action
	set, bad := accept(in, a.inputs, v, nil)
	if len(bad) > 0 {
		x.refuse(http.StatusBadRequest, list(bad, func(r refusal) message.Message { return r.ofParameter(a.name) })...)
		return
	}
	c := x.operation(in, v, set)
	if a.slow {
		free()
		if x.prefer.async || a.late != nil && a.late(v) {
			x.later(c, a.apply)
			return
		}
	}
	out, err := a.apply(x.context(), c)
	x.answer(c, out, err, x.success)
}

// change carries out a PATCH. What can be changed is; what cannot is told
// (DSP0266, "PATCH (update)").
func (x *exchange) change(in document, v view, free func()) {
	if x.match.vendor != nil {
		x.patchOEM(in, v)
		return
	}
	mine, bad := x.permitted(in, v)
	var whole object
	shown := func() object { // which few ask for, and those often
		if whole == nil {
			whole = x.match.object(v)
		}
		return whole
	}
	set, worse := accept(mine, x.match.patch.inputs, v, shown)
	bad = append(bad, worse...)
	switch {
	case len(set) == 0 && len(bad) == 0:
		x.refuse(http.StatusBadRequest, message.NoOperation.With())
		return
	case len(set) == 0:
		x.refuseAll(bad)
		return
	}
	c, n := x.operation(in, v, set), len(set)
	if slow := x.match.patch.slow; slow != nil && slow(set) {
		free()
	}
	out, err := x.match.patch.apply(x.context(), c)
	if err != nil || out.job != "" {
		x.answer(c, out, err, nil)
		return
	}
	bad = append(bad, out.bad...)
	if len(out.bad) >= n {
		x.refuseAll(bad)
		return
	}
	x.changed(c, bad)
}

// changed answers a PATCH of which something was done.
func (x *exchange) changed(c operation, bad []refusal) {
	at := look(x.host)
	if len(bad) == 0 && x.prefer.returns == "" && at.d.Presentation.Errors.Success != nil && x.match.isThere(at) {
		if !x.afterwards(c) { // the resource is not shown
			x.succeed()
		}
		return
	}
	p := x.s.renderer.representation(x.match, at)
	switch {
	case p == nil: // no longer there, for what was changed
		x.done()
	case len(bad) > 0: // which must be told
		x.show(http.StatusOK, x.annotated(p, bad))
	case x.afterwards(c):
	case x.returns(returnMinimal):
		x.without(p)
	case x.host.Dialect().Presentation.Errors.Success != nil:
		x.succeed()
	default:
		x.returns(returnRepresentation)
		x.show(http.StatusOK, p)
	}
}

// permitted takes out of a request the properties that the actor may not
// change.
func (x *exchange) permitted(in document, v view) (document, []refusal) {
	if len(x.match.needs.properties) == 0 { // what holds for one holds for all
		return in, nil
	}
	own := x.match.own != nil && x.match.own(v, x.who)
	var bad []refusal
	mine := in.but(func(f field) bool {
		if inputOf(x.match.patch.inputs, f.name) < 0 || x.who.maySet(f.name, x.match, own) {
			return false
		}
		bad = append(bad, refusal{path: []string{f.name}, why: outright, says: x.who.forbidden(), status: http.StatusForbidden})
		return true
	})
	return mine, bad
}

// refuseAll refuses a request of which nothing is taken.
func (x *exchange) refuseAll(bad []refusal) {
	status := bad[0].status
	for _, r := range bad {
		if r.status != status {
			status = 0
		}
	}
	if status == 0 {
		status = http.StatusBadRequest
	}
	x.refuse(status, list(bad, refusal.ofProperty)...)
}

// annotated is a page that tells which properties were not changed, both of
// the whole resource and beside each property (DSP0266, "Extended information").
func (x *exchange) annotated(p *representation, bad []refusal) *representation {
	const info = "@Message.ExtendedInfo"
	if len(bad) > maxMessages {
		bad = bad[:maxMessages]
	}
	o := decode(p.body)
	o[info] = x.spoken().ExtendedInfo(list(bad, refusal.ofProperty)...)
	for _, r := range bad {
		in := o
		for _, name := range r.path[:len(r.path)-1] {
			in, _ = in[name].(object)
		}
		if in != nil { // it is of a group that is shown
			in[r.property()+info] = x.spoken().ExtendedInfo(r.ofProperty())
		}
	}
	return p.with(encode(o))
}

// telling is a page that tells something beside what it shows.
func (x *exchange) telling(p *representation, ms []message.Message) *representation {
	o := decode(p.body)
	o["@Message.ExtendedInfo"] = x.spoken().ExtendedInfo(ms...)
	return p.with(encode(o))
}

// ofMember words a refusal as one of a property of a new member. Before Base
// 1.14 a property that is missing had a message of its own there.
func (x *exchange) ofMember(r refusal) message.Message {
	if old := message.CreateFailedMissingReqProperties; r.why == missing && x.spoken().Before(old.Registry, 14) {
		return old.With(r.name()).About(r.pointer())
	}
	return r.ofProperty()
}

// add carries out a POST to a collection (DSP0266, "POST (create)").
func (x *exchange) add(in document, v view) {
	c := x.match.create
	set, bad := accept(in, c.inputs, v, nil)
	if len(bad) > 0 {
		x.refuse(http.StatusBadRequest, list(bad, x.ofMember)...)
		return
	}
	op := x.operation(in, v, set)
	x.expect(http.StatusCreated)
	made, err := c.apply(x.context(), op)
	if err != nil || made.job != "" {
		x.answer(op, made, err, nil)
		return
	}
	h := x.w.Header()
	uri := v.uri + "/" + made.id
	x.locate(uri)
	if made.token != "" {
		h["X-Auth-Token"], h["Cache-Control"] = []string{made.token}, []string{"no-store"}
	}
	x.match = x.s.tree.find(&url.URL{Path: uri})
	p := x.s.renderer.representation(x.match, look(x.host))
	if p == nil { // gone again
		x.fail(bmc.ErrNotFound)
		return
	}
	if len(made.told) > 0 { // which must be told
		x.show(http.StatusCreated, x.telling(p, made.told))
		return
	}
	if x.returns(returnMinimal) {
		h["Etag"] = p.etag[:]
		x.status = http.StatusCreated
		x.w.WriteHeader(x.status)
		return
	}
	x.returns(returnRepresentation)
	x.show(http.StatusCreated, p)
}
