package odata

import (
	"encoding/json"
	"strings"
)

// Source provides the data that a query needs in addition to its resource.
type Source struct {
	// Get returns the resource at a URI without a fragment; false when it does not
	// exist or this client may not read it. Callers do not change the resource.
	Get func(uri string) (Object, bool)
	// Page is the maximum number of members in a response; 0: no limit.
	Page int
	// Excerpts maps a resource type, without its version, to the properties of its
	// excerpt. The excerpt of a type that is absent has all properties.
	Excerpts map[string][]string
	// Most is the maximum number of other resources in a response; 0: DefaultMost.
	Most int
}

// DefaultMost is the limit of a Source whose Most is 0.
const DefaultMost = 4096

// work is the evaluation of one query.
type work struct {
	*Query
	Source
	left int // number of resources that may still be added
}

// errSize returns the error of a query whose response would have too many
// resources. DSP0266 requires status 507 for it ("The $expand query parameter").
func (w *work) errSize(parameter string) *Error {
	return &Error{Parameter: parameter, Why: Size, Detail: "asks for too many resources at once"}
}

// Apply returns the response to a query of a resource, and does not change the
// resource. It applies $filter, $skip and $top before the service's own paging, and
// $expand, excerpt and $select after it (DSP0266, "Query parameters"). The error is
// an *Error.
func (q *Query) Apply(o Object, from Source) (Object, error) {
	w := &work{Query: q, Source: from, left: from.Most}
	if w.left <= 0 {
		w.left = DefaultMost
	}
	members, isCollection := o[members].([]any)
	if !isCollection {
		for _, p := range q.sent {
			switch p.name {
			case "$filter", "$skip", "$top", "only":
				return nil, p.refused(Resource, "is for collections")
			}
		}
	}
	if q.Only && len(members) == 1 {
		uri, ok := reference(members[0])
		if ok {
			if member, ok := w.Get(uri); ok {
				return member, nil
			}
		}
		if member, isObject := members[0].(Object); isObject && !ok { // the collection contains it, not a link to it
			return member, nil
		}
	}
	if isCollection {
		var err *Error
		if o, err = w.page(o, members); err != nil {
			return nil, err
		}
	}
	if q.Expand.Levels > 0 {
		uri, _ := o["@odata.id"].(string)
		var err *Error
		if o, err = w.expand(o, q.Expand.Levels, []string{uri}); err != nil {
			return nil, err
		}
	}
	if q.Excerpt {
		o = w.excerpt(o)
	}
	if q.Select != nil {
		o = q.Select.of(o)
	}
	return o, nil
}

// Names of a collection's properties (DSP0266, "Resource collections").
const (
	members  = "Members"
	count    = "Members@odata.count"
	nextLink = "Members@odata.nextLink"
)

// page returns a collection with the members that the query selects, at most a page
// of them. Members@odata.count counts all members that match the filter.
func (w *work) page(o Object, all []any) (Object, *Error) {
	matching := all
	if w.Filter != nil {
		matching = nil
		for _, m := range all {
			ok, err := w.matches(m)
			if err != nil {
				return nil, err
			}
			if ok {
				matching = append(matching, m)
			}
		}
	}
	from := min(w.Skip, len(matching))
	show := min(w.Top, len(matching)-from)
	if w.Page > 0 {
		show = min(show, w.Page)
	}
	if len(matching) == len(all) && show == len(all) {
		return o, nil
	}
	out := Object{}
	for name, value := range o {
		out[name] = value
	}
	out[count] = json.Number(itoa(len(matching)))
	out[members] = append([]any{}, matching[from:from+show]...) // never null
	delete(out, nextLink)
	// $top is the size of a page. $top=0 must not link to another empty page.
	if uri, ok := o["@odata.id"].(string); ok && show > 0 && from+show < len(matching) {
		out[nextLink] = uri + "?" + w.link(from+show)
	}
	return out, nil
}

// matches reports whether a member matches the filter. A member that this client may
// not read never matches: a filter must not disclose what a GET does not.
func (w *work) matches(member any) (bool, *Error) {
	o, _ := member.(Object)
	if uri, ok := reference(member); ok {
		if o, ok = w.Get(uri); !ok {
			return false, nil
		}
	}
	return w.Filter.Match(o)
}

// reference returns the URI of a value that is a link and nothing else; false for
// other values (DSP0266, "Reference properties").
func reference(value any) (string, bool) {
	o, ok := value.(Object)
	if !ok || len(o) != 1 {
		return "", false
	}
	uri, ok := o["@odata.id"].(string)
	return uri, ok
}

// typeOf returns the type of an object without its version.
func typeOf(o Object) string {
	t, _ := o["@odata.type"].(string)
	name, _, _ := strings.Cut(strings.TrimPrefix(t, "#"), ".")
	return name
}
