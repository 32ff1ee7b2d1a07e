package redfish

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

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
	var in document
	if x.r.Method != http.MethodDelete {
		var ok bool
		if in, ok = x.body(); !ok {
			return
		}
	}
	unlock := x.s.lock(x.host)
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
	if x.match.missing(v) != "" || !x.match.there(v) { // since the last look
		x.gone(at)
		return
	}
	if !x.precondition(at) {
		return
	}
	switch {
	case x.match.action != nil:
		x.act(in, v, free)
	case x.r.Method == http.MethodPatch:
		x.change(in, v)
	case x.r.Method == http.MethodPost:
		x.add(in, v)
	case x.r.Method == http.MethodDelete:
		out, err := x.match.remove(x.r.Context(), x.operation(in, v, nil))
		x.answer(out, err)
	}
}

// operation is the request as it was understood.
func (x *exchange) operation(in document, v view, set values) operation {
	from, _, _ := net.SplitHostPort(x.r.RemoteAddr)
	return operation{host: x.host, view: v, set: set, who: x.who, from: from, x: x, in: in}
}

// answer is what is said to an operation that shows no resource.
func (x *exchange) answer(out reply, err error) {
	switch {
	case err != nil:
		x.fail(err)
	case out.job != "":
		x.accepted(out.job)
	case out.body != nil:
		x.show(http.StatusOK, x.loose(out.body))
	default:
		x.done()
	}
}

// accepted answers that a job goes on (DSP0266, "Asynchronous operations").
func (x *exchange) accepted(job string) {
	h := x.w.Header()
	h["Location"], h["Retry-After"] = []string{taskMonitor(job)}, []string{retryAfter}
	m := x.s.find(&url.URL{Path: taskURI(job)})
	p := x.s.page(m, look(x.host))
	if p == nil { // forgotten already
		x.status = http.StatusAccepted
		x.w.WriteHeader(x.status)
		return
	}
	h["Content-Type"], h["Content-Length"] = p.content, p.length
	x.send(http.StatusAccepted, p.body)
}

// showAt answers with a resource, or without a body when it is not there, or not
// for the client to see.
func (x *exchange) showAt(status int, uri string) {
	at := look(x.host)
	m := x.s.find(&url.URL{Path: uri})
	if m != nil && m.action == nil {
		if p := x.s.page(m, at); p != nil && x.who.may(http.MethodGet, m, at) {
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
func (x *exchange) loose(o object) *page {
	body := encode(o)
	p := newPage(jsonType, body, etag(body), nil)
	p.allow = x.match.allow
	return p
}

// body reads the JSON object of a request. An action needs none.
func (x *exchange) body() (document, bool) {
	bad := func(status int, m message.Message) (document, bool) {
		x.refuse(status, m)
		return document{}, false
	}
	b, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return bad(http.StatusRequestEntityTooLarge, message.PayloadTooLarge.With())
	case err != nil:
		return bad(http.StatusBadRequest, message.UnrecognizedRequestBody.With())
	case len(b) == 0 && x.match.action != nil:
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
	case len(in.names) == 0 && x.match.action == nil:
		return bad(http.StatusBadRequest, message.EmptyJSON.With())
	}
	return in, true
}

// act carries out an action (DSP0266, "POST (action)").
func (x *exchange) act(in document, v view, free func()) {
	a := x.match.action
	set, bad := accept(in, a.inputs, v, nil)
	if len(bad) > 0 {
		x.refuse(http.StatusBadRequest, list(bad, func(r refusal) message.Message { return r.ofParameter(a.name) })...)
		return
	}
	if a.slow {
		free()
	}
	out, err := a.apply(x.r.Context(), x.operation(in, v, set))
	x.answer(out, err)
}

// change carries out a PATCH. What can be changed is; what cannot is told
// (DSP0266, "PATCH (update)").
func (x *exchange) change(in document, v view) {
	set, bad := accept(in, x.match.patch.inputs, v, sync.OnceValue(func() object { return x.match.object(v) }))
	switch {
	case len(set) == 0 && len(bad) == 0:
		x.refuse(http.StatusBadRequest, message.NoOperation.With())
		return
	case len(set) == 0:
		x.refuse(http.StatusBadRequest, list(bad, refusal.ofProperty)...)
		return
	}
	out, err := x.match.patch.apply(x.r.Context(), x.operation(in, v, set))
	if err != nil || out.job != "" {
		x.answer(out, err)
		return
	}
	at := look(x.host)
	p := x.s.page(x.match, at)
	if len(bad) > 0 {
		p = x.annotated(x.match.object(x.match.view(at)), p, bad)
	}
	x.show(http.StatusOK, p)
}

// annotated is a page that tells which properties were not changed, both of
// the whole resource and beside each property (DSP0266, "Extended information").
func (x *exchange) annotated(o object, p *page, bad []refusal) *page {
	const info = "@Message.ExtendedInfo"
	if len(bad) > maxTold {
		bad = bad[:maxTold]
	}
	o["@odata.etag"] = p.etag
	o[info] = x.spoken().ExtendedInfo(list(bad, refusal.ofProperty)...)
	for _, r := range bad {
		in := o
		for _, name := range r.path[:len(r.path)-1] {
			in, _ = in[name].(object) // refusals are of groups, which are shown
		}
		in[r.property()+info] = x.spoken().ExtendedInfo(r.ofProperty())
	}
	told := newPage(jsonType, encode(o), p.etag, p.link)
	told.allow = p.allow
	return told
}

// add carries out a POST to a collection (DSP0266, "POST (create)").
func (x *exchange) add(in document, v view) {
	c := x.match.create
	set, bad := accept(in, c.inputs, v, nil)
	if len(bad) > 0 {
		x.refuse(http.StatusBadRequest, list(bad, refusal.ofProperty)...)
		return
	}
	made, err := c.apply(x.r.Context(), x.operation(in, v, set))
	if err != nil || made.job != "" {
		x.answer(made, err)
		return
	}
	h := x.w.Header()
	uri := v.uri + "/" + made.id
	h["Location"] = []string{uri}
	if made.token != "" {
		h["X-Auth-Token"], h["Cache-Control"] = []string{made.token}, []string{"no-store"}
	}
	x.match = x.s.find(&url.URL{Path: uri})
	p := x.s.page(x.match, look(x.host))
	if p == nil { // gone again
		x.fail(bmc.ErrNotFound)
		return
	}
	x.show(http.StatusCreated, p)
}
