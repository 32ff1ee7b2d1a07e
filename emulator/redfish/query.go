package redfish

import (
	"errors"
	"maps"
	"net/http"
	"net/url"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/odata"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// query is the page that a query asks for, made from the page of the resource;
// nil when the query was refused.
func (x *request) query(p *render.Representation) *render.Representation {
	q, err := x.vendor.QuerySupport().Parse(x.r.URL.RawQuery)
	if err != nil {
		x.refuseQuery(err)
		return nil
	}
	if q.Plain() {
		return p
	}
	if x.match.Raw != nil {
		x.refuseQuery(&odata.Error{Why: odata.Resource})
		return nil
	}
	from := x.source()
	if omitted := x.vendor.ExpandOmits(); len(omitted) > 0 && q.Expand.Levels > 0 {
		from.Get = omitProperties(from.Get, x.match.URI, omitted)
	}
	o, ok := from.Get(x.match.URI)
	if !ok { // since the last look
		x.refuseMissing(resource.TakeSnapshot(x.host))
		return nil
	}
	out, err := q.Apply(o, from)
	if err != nil {
		x.refuseQuery(err)
		return nil
	}
	body := resource.Encode(out)
	// Of the resource, or of the only member, the ETag stays what it is. More
	// changes with each resource that it shows.
	tag, _ := out["@odata.etag"].(string)
	if !q.OfResource() && !q.Only {
		tag = x.vendor.QueryETag(body)
	}
	asked := render.NewRepresentation(resource.JSON, body, tag, p.Link)
	asked.Allow = p.Allow
	return asked
}

// omitProperties is get, but that other resources than one lack some properties.
func omitProperties(get func(string) (resource.Object, bool), whole string, names []string) func(string) (resource.Object, bool) {
	return func(uri string) (resource.Object, bool) {
		o, ok := get(uri)
		if !ok || uri == whole {
			return o, ok
		}
		less := maps.Clone(o)
		for _, name := range names {
			delete(less, name)
		}
		return less, true
	}
}

// source shows queries what this client may read, all of it as of one time.
func (x *request) source() odata.Source {
	at := resource.TakeSnapshot(x.host)
	if x.public() { // which needs no login, but what it links to does
		if who, ok := x.authenticate(); ok {
			x.actor = who
		}
	}
	seen := map[string]resource.Object{}
	get := func(uri string) (resource.Object, bool) {
		if o, ok := seen[uri]; ok {
			return o, o != nil
		}
		o := x.readableBody(uri, at)
		seen[uri] = o
		return o, o != nil
	}
	return odata.Source{Get: get, Page: x.vendor.PageSize(), Excerpts: resource.Excerpts}
}

// readableBody is the body of a resource as this client would read it, or nil.
func (x *request) readableBody(uri string, at *resource.Snapshot) resource.Object {
	m := x.find(&url.URL{Path: uri})
	if m == nil { // an address of ours
		m = x.s.tree.Find(&url.URL{Path: uri})
	}
	if m == nil || m.Raw != nil || m.Action != nil || m.Members {
		return nil
	}
	p := x.s.renderer.Representation(m, at)
	if p == nil || !m.Unauthenticated && !x.actor.Authorized(http.MethodGet, m, at) {
		return nil
	}
	o := resource.Decode(p.Body)
	if _, cut := o["Members@odata.nextLink"]; cut {
		o = resource.Decode(resource.Encode(m.Object(m.View(at))))
		o["@odata.etag"] = p.Tag() // which is of all members
	}
	return o
}

// refuseQuery answers a query that is not carried out (DSP0266, "Query
// parameters").
func (x *request) refuseQuery(err error) {
	var e *odata.Error
	if !errors.As(err, &e) {
		x.fail(err)
		return
	}
	status := http.StatusBadRequest
	var m message.Message
	switch e.Why {
	case odata.Unsupported:
		status, m = x.vendor.UnsupportedQueryStatus(), message.QueryParameterUnsupported.With(e.Parameter)
	case odata.Type:
		m = message.QueryParameterValueTypeError.With(e.Value, e.Parameter)
	case odata.Form:
		m = message.QueryParameterValueFormatError.With(e.Value, e.Parameter)
	case odata.Range:
		m = message.QueryParameterOutOfRange.With(e.Value, e.Parameter, e.Range)
	case odata.Combination:
		m = message.QueryCombinationInvalid.With()
	case odata.Resource:
		m = message.QueryNotSupportedOnResource.With()
	case odata.Size:
		status, m = http.StatusInsufficientStorage, message.InsufficientStorage.With()
	}
	if e.Detail != "" {
		m.Resolution += " " + e.Parameter + " " + e.Detail + "."
	}
	x.refuse(status, m)
}
