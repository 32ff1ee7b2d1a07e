// Package odata owns the query parameters of a read (DSP0266, "Query
// parameters"): it parses them and carries them out on decoded JSON objects.
// Where other resources come from it is told; it knows none, and no HTTP.
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

// Support says which query parameters a service carries out. It answers
// requests and fills ServiceRoot.ProtocolFeaturesSupported, so that the two
// cannot differ.
type Support struct {
	TopSkip     bool // $top and $skip
	Select      bool // $select
	Filter      bool // $filter
	Only        bool // only
	Excerpt     bool // excerpt
	ExpandAll   bool // $expand=*
	ExpandLinks bool // $expand=~
	ExpandRest  bool // $expand=.
	Levels      int  // most that $levels may ask for; 0: $levels is not supported
	Lenient     bool // ignores what begins with $ and is not supported, against DSP0266
}

// Everything is the support of a service that leaves nothing out.
var Everything = Support{
	TopSkip: true, Select: true, Filter: true, Only: true, Excerpt: true,
	ExpandAll: true, ExpandLinks: true, ExpandRest: true, Levels: 6,
}

// expands says whether $expand is supported at all.
func (s Support) expands() bool { return s.ExpandAll || s.ExpandLinks || s.ExpandRest }

// Why says what is wrong with a query.
type Why string

// What can be wrong with a query.
const (
	Unsupported Why = "unsupported" // the service does not carry out the parameter
	Type        Why = "type"        // the value is of another type than the parameter's
	Form        Why = "form"        // the value is of the right type but cannot be read
	Range       Why = "range"       // the value lies outside of what the parameter takes
	Combination Why = "combination" // the parameter cannot be used beside another
	Resource    Why = "resource"    // the parameter does not apply to the resource
	Size        Why = "size"        // the answer would be larger than the service gives
)

// Error is a query that is refused.
type Error struct {
	Parameter string // "$top"
	Value     string // as the client sent it, decoded
	Why       Why
	Range     string // what the parameter takes, when Why is Range
	Detail    string // for people: what exactly is wrong; may be empty
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

// Query is what the query parameters of a read ask for. The zero value, but
// for Top, asks for nothing.
type Query struct {
	Filter  *Filter // nil: every member
	Skip    int     // members
	Top     int     // members; All: no bound
	Expand  Expand
	Select  *Selection // nil: every property
	Only    bool
	Excerpt bool

	sent []pair // parameters of the query, in the order in which they came
}

// All is a Top without a bound.
const All = math.MaxInt

// pair is one parameter as the client sent it, decoded.
type pair struct {
	name, value string
	assigned    bool // has a "="
}

// Plain says whether the query asks for nothing: the resource as it is.
func (q *Query) Plain() bool { return len(q.sent) == 0 }

// OfResource says whether the answer shows nothing but the resource itself,
// whole or in part: whether the resource's ETag is the answer's.
func (q *Query) OfResource() bool {
	return !slices.ContainsFunc(q.sent, func(p pair) bool { return p.name != "$select" && p.name != "excerpt" })
}

const (
	maxQuery  = 8 << 10 // bytes
	maxParams = 64
)

// parameters are those that Redfish knows (DSP0266, "Query parameters").
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

// Parse reads the query of a URI. A parameter that begins with $ is carried
// out or refused; others that are not known are ignored (DSP0266, "Query
// parameters"). The error is an *Error.
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

// Asks says whether a query has a parameter that Redfish gives a meaning, or
// keeps for itself by its $.
func Asks(rawQuery string) bool {
	for raw := range strings.SplitSeq(rawQuery, "&") {
		p, _ := split(raw)
		if _, known := parameters[p.name]; known || strings.HasPrefix(p.name, "$") {
			return true
		}
	}
	return false
}

// split decodes one parameter; false when its value cannot be decoded.
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

// number reads a number of members.
func (p pair) number(into *int) *Error {
	n, err := strconv.Atoi(p.value)
	switch {
	case errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(p.value, "-"):
		n = All // more than there can be
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

// flag reads a parameter that takes no value.
func (p pair) flag(into *bool) *Error {
	if p.value != "" {
		return p.refused(Form, "takes no value")
	}
	*into = true
	return nil
}

// link is the query of the rest of a collection: what was sent, with another
// $skip.
func (q *Query) link(skip int) string {
	var b strings.Builder
	for _, p := range q.sent {
		if p.name == "$skip" || p.name == "only" { // of all members, the only one is none of the rest
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

// escape encodes a value of a query (RFC 3986, §3.4). It leaves in place what
// may stand there and makes a filter readable.
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
