package odata

import (
	"encoding/json"
	"strings"
)

// Source is what a query may look at besides the resource that it is of.
type Source struct {
	// Get gives the resource at an address, without a fragment; false when it
	// is not there or not for this client. It is never changed.
	Get func(uri string) (Object, bool)
	// Page is how many members an answer shows at most; 0: all.
	Page int
	// Excerpts are the properties that belong to the excerpt of a type, by the
	// type's name without its version. A type that has none shows all.
	Excerpts map[string][]string
	// Most bounds how many other resources one query may show; 0: DefaultMost.
	Most int
}

// DefaultMost is the bound of a Source that names none.
const DefaultMost = 4096

// work is one evaluation of a query.
type work struct {
	*Query
	Source
	left int // resources that may still be shown
}

// errSize means that there is more to show than the service gives. DSP0266
// asks for 507 then ("The $expand query parameter").
func (w *work) errSize(parameter string) *Error {
	return &Error{Parameter: parameter, Why: Size, Detail: "asks for too many resources at once"}
}

// Apply is the answer to a query: of the resource at hand, which is not
// changed. Filter, skip and top come before the service's own paging, expand,
// excerpt and select after it (DSP0266, "Query parameters"). The error is an
// *Error.
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
		if member, isObject := members[0].(Object); isObject && !ok { // it stands in the collection
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

// page leaves of a collection the members that the query asks for, and of them
// as many as fit on a page. The count is of all that match.
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
	// $top is the size of a page. Of pages without members there is no end.
	if uri, ok := o["@odata.id"].(string); ok && show > 0 && from+show < len(matching) {
		out[nextLink] = uri + "?" + w.link(from+show)
	}
	return out, nil
}

// matches says whether the filter takes a member. One that this client may not
// read matches nothing: a filter must not tell what a GET does not.
func (w *work) matches(member any) (bool, *Error) {
	o, _ := member.(Object)
	if uri, ok := reference(member); ok {
		if o, ok = w.Get(uri); !ok {
			return false, nil
		}
	}
	return w.Filter.Match(o)
}

// reference is the address that a value links to, when it is a link and
// nothing else (DSP0266, "Reference properties").
func reference(value any) (string, bool) {
	o, ok := value.(Object)
	if !ok || len(o) != 1 {
		return "", false
	}
	uri, ok := o["@odata.id"].(string)
	return uri, ok
}

// typeOf is the name of an object's type without its version.
func typeOf(o Object) string {
	t, _ := o["@odata.type"].(string)
	name, _, _ := strings.Cut(strings.TrimPrefix(t, "#"), ".")
	return name
}
