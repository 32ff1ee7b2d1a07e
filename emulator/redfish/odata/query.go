// Package odata implements the query parameters of a GET (DSP0266, "Query
// parameters"): it parses them and applies them to decoded JSON objects. It reads
// other resources through a Source, and knows neither the resources nor HTTP.
package odata

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Object is a decoded JSON object: its values are strings, booleans, nil,
// json.Number or float64, []any and Objects.
type Object = map[string]any

// Support states which query parameters a service supports. The parser and
// ServiceRoot.ProtocolFeaturesSupported both read it, so that they agree.
type Support struct {
	TopSkip     bool // $top and $skip
	Select      bool // $select
	Filter      bool // $filter
	Only        bool // only
	Excerpt     bool // excerpt
	ExpandAll   bool // $expand=*
	ExpandLinks bool // $expand=~
	ExpandRest  bool // $expand=.
	Levels      int  // maximum of $levels; 0: $levels is not supported
	Lenient     bool // ignores unsupported parameters that begin with $, contrary to DSP0266
}

// Everything is the Support of a service with all query parameters.
var Everything = Support{
	TopSkip: true, Select: true, Filter: true, Only: true, Excerpt: true,
	ExpandAll: true, ExpandLinks: true, ExpandRest: true, Levels: 6,
}

// expands reports whether $expand is supported in any form.
func (s Support) expands() bool { return s.ExpandAll || s.ExpandLinks || s.ExpandRest }

// Why is the reason for which a query is refused.
type Why string

// The reasons.
const (
	Unsupported Why = "unsupported" // the service does not support the parameter
	Type        Why = "type"        // the value is of another type than the parameter's
	Form        Why = "form"        // the value has the right type but cannot be parsed
	Range       Why = "range"       // the value is out of range
	Combination Why = "combination" // the parameter cannot be combined with another
	Resource    Why = "resource"    // the parameter does not apply to the resource
	Size        Why = "size"        // the response would exceed the limit of the service
)

// Error describes why a query is refused.
type Error struct {
	Parameter string // "$top"
	Value     string // as the client sent it, decoded
	Why       Why
	Range     string // the allowed values, when Why is Range
	Detail    string // explanation for people; may be empty
}

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("odata: %s=%q: %s", e.Parameter, e.Value, e.Why)
	for _, more := range []string{e.Range, e.Detail} {
		if more != "" {
			s += ": " + more
		}
	}
	return s
}

// Query holds the parsed query parameters of a GET. The zero value with Top set to
// All is an empty query.
type Query struct {
	Filter  *Filter // nil: every member
	Skip    int     // members
	Top     int     // members; All: no limit
	Expand  Expand
	Select  *Selection // nil: every property
	Only    bool
	Excerpt bool

	sent []pair // the parameters in the order of the URI
}

// All is a Top without a limit.
const All = math.MaxInt

// pair is one decoded parameter.
type pair struct {
	name, value string
	assigned    bool // the parameter has a "="
}

// Plain reports whether the query is empty: the response is the unchanged resource.
func (q *Query) Plain() bool { return len(q.sent) == 0 }

// OfResource reports whether the response has properties of the resource alone, all
// or some of them, so that the ETag of the resource applies to it.
func (q *Query) OfResource() bool {
	return !slices.ContainsFunc(q.sent, func(p pair) bool { return p.name != "$select" && p.name != "excerpt" })
}

const (
	maxQuery  = 8 << 10 // bytes
	maxParams = 64
)

// parameters holds the query parameters of DSP0266 ("Query parameters").
var parameters = map[string]struct {
	has  func(Support) bool
	read func(*Query, pair, Support) *Error
}{
	"$top":    {func(s Support) bool { return s.TopSkip }, func(q *Query, p pair, _ Support) *Error { return p.number(&q.Top) }},
	"$skip":   {func(s Support) bool { return s.TopSkip }, func(q *Query, p pair, _ Support) *Error { return p.number(&q.Skip) }},
	"$expand": {Support.expands, (*Query).readExpand},
	"$select": {func(s Support) bool { return s.Select }, (*Query).readSelect},
	"$filter": {func(s Support) bool { return s.Filter }, (*Query).readFilter},
	"only":    {func(s Support) bool { return s.Only }, func(q *Query, p pair, _ Support) *Error { return p.flag(&q.Only) }},
	"excerpt": {func(s Support) bool { return s.Excerpt }, func(q *Query, p pair, _ Support) *Error { return p.flag(&q.Excerpt) }},
}

// Parse parses the query of a URI. It refuses unsupported parameters that begin with
// $ and ignores other unknown ones (DSP0266, "Query parameters"). The error is an
// *Error.
func (s Support) Parse(rawQuery string) (*Query, error) {
	q := &Query{Top: All}
	if len(rawQuery) > maxQuery {
		return nil, &Error{Parameter: "query", Why: Form, Detail: "is too long"}
	}
	for n, raw := range strings.Split(rawQuery, "&") {
		if n == maxParams {
			return nil, &Error{Parameter: "query", Why: Form, Detail: "has too many parameters"}
		}
		p, decoded := split(raw)
		known, ok := parameters[p.name]
		switch {
		case (!ok || !known.has(s)) && !s.Lenient && strings.HasPrefix(p.name, "$"):
			return nil, p.refused(Unsupported, "")
		case !ok || !known.has(s):
			continue
		case !decoded:
			return nil, p.refused(Form, "is not encoded as RFC 3986 says")
		case slices.ContainsFunc(q.sent, func(o pair) bool { return o.name == p.name }):
			return nil, p.refused(Combination, "is there twice")
		}
		if err := known.read(q, p, s); err != nil {
			return nil, err
		}
		q.sent = append(q.sent, p)
	}
	if q.Only && len(q.sent) > 1 {
		return nil, &Error{Parameter: "only", Why: Combination, Detail: "stands alone"}
	}
	return q, nil
}

// Asks reports whether a query has a parameter that DSP0266 defines, or reserves by its
// leading $.
func Asks(rawQuery string) bool {
	for raw := range strings.SplitSeq(rawQuery, "&") {
		p, _ := split(raw)
		if _, known := parameters[p.name]; known || strings.HasPrefix(p.name, "$") {
			return true
		}
	}
	return false
}

// split decodes one parameter; false when its value is not encoded correctly.
func split(raw string) (pair, bool) {
	name, value, assigned := strings.Cut(raw, "=")
	p := pair{name: name, value: value, assigned: assigned}
	if decoded, err := url.QueryUnescape(name); err == nil {
		p.name = decoded
	}
	decoded, err := url.QueryUnescape(value)
	if err == nil {
		p.value = decoded
	}
	return p, err == nil
}

func (p pair) refused(w Why, detail string) *Error {
	return &Error{Parameter: p.name, Value: p.value, Why: w, Detail: detail}
}

// number parses a number of members.
func (p pair) number(into *int) *Error {
	n, err := strconv.Atoi(p.value)
	switch {
	case errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(p.value, "-"):
		n = All // more than any collection has
	case err == nil && n < 0, errors.Is(err, strconv.ErrRange):
		e := p.refused(Range, "")
		e.Range = "0 and above"
		return e
	case err != nil:
		return p.refused(Type, "is no whole number")
	}
	*into = n
	return nil
}

// flag parses a parameter that has no value.
func (p pair) flag(into *bool) *Error {
	if p.value != "" {
		return p.refused(Form, "takes no value")
	}
	*into = true
	return nil
}

// link returns the query of the next page of a collection: the parameters of this
// query with another $skip.
func (q *Query) link(skip int) string {
	var b strings.Builder
	for _, p := range q.sent {
		if p.name == "$skip" || p.name == "only" { // "only" takes no other parameter
			continue
		}
		b.WriteString(p.name)
		if p.assigned {
			b.WriteString("=" + escape(p.value))
		}
		b.WriteByte('&')
	}
	return b.String() + "$skip=" + strconv.Itoa(skip)
}

// escape percent-encodes a value of a query (RFC 3986, §3.4). It leaves the characters
// that a query may contain, so that a filter stays readable.
func escape(value string) string {
	const plain = "-._~!$'()*,;:@/?"
	var b strings.Builder
	for _, c := range []byte(value) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}
