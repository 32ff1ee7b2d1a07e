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

// query applies the query parameters of the request to a representation and returns
// the result. When they are invalid, it sends the error response and returns nil.
func (x *request) query(p *render.Representation) *render.Representation {
	q, err := x.vendor.QuerySupport().Parse(x.r.URL.RawQuery)
	if err != nil {
		x.sendQueryError(err)
		return nil
	}
	if q.Plain() {
		return p
	}
	if x.match.Raw != nil {
		x.sendQueryError(&odata.Error{Why: odata.Resource})
		return nil
	}
	source := x.querySource()
	if omitted := x.vendor.ExpandOmits(); len(omitted) > 0 && q.Expand.Levels > 0 {
		source.Get = omitProperties(source.Get, x.match.URI, omitted)
	}
	o, ok := source.Get(x.match.URI)
	if !ok { // deleted in the meantime
		x.sendNotFound(resource.TakeSnapshot(x.host))
		return nil
	}
	out, err := q.Apply(o, source)
	if err != nil {
		x.sendQueryError(err)
		return nil
	}
	body := resource.Encode(out)
	// A response that shows one resource, or a part of it, has the resource's ETag.
	// Any other changes with each resource that it shows.
	tag, _ := out["@odata.etag"].(string)
	if !q.OfResource() && !q.Only {
		tag = x.vendor.ETag(body)
	}
	result := render.NewRepresentation(resource.JSON, body, tag, p.Link)
	result.Allow = p.Allow
	return result
}

// omitProperties returns a function that leaves some properties out of what get
// returns, except for one URI.
func omitProperties(get func(string) (resource.Object, bool), exceptURI string, names []string) func(string) (resource.Object, bool) {
	return func(uri string) (resource.Object, bool) {
		o, ok := get(uri)
		if !ok || uri == exceptURI {
			return o, ok
		}
		reduced := maps.Clone(o)
		for _, name := range names {
			delete(reduced, name)
		}
		return reduced, true
	}
}

// querySource returns the resources that the client may read, as of one time.
func (x *request) querySource() odata.Source {
	at := resource.TakeSnapshot(x.host)
	if x.isPublic() { // $expand shows resources that need authentication
		if actor, ok := x.authenticate(); ok {
			x.actor = actor
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

// readableBody returns the body of a resource, or nil if the client may not read it.
// A collection has all of its members.
func (x *request) readableBody(uri string, at *resource.Snapshot) resource.Object {
	m := x.route(&url.URL{Path: uri})
	if m == nil { // a standard URI
		m = x.s.tree.Find(&url.URL{Path: uri})
	}
	if m == nil || m.Raw != nil || m.Action != nil || m.Members {
		return nil
	}
	p := x.s.renderer.Representation(m, at)
	if p == nil || !m.Unauthenticated && !x.actor.Authorized(http.MethodGet, m, at) {
		return nil
	}
	p = x.readable(p, m, at)
	o := resource.Decode(p.Body)
	if _, paged := o["Members@odata.nextLink"]; paged {
		all := x.readable(p.With(resource.Encode(x.s.renderer.AllMembers(m, at))), m, at)
		o = resource.Decode(all.Body)
		o["@odata.etag"] = p.Tag() // it covers all members
	}
	return o
}

// sendQueryError sends the error response to invalid query parameters (DSP0266, "Query
// parameters").
func (x *request) sendQueryError(err error) {
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
	x.sendError(status, m)
}
