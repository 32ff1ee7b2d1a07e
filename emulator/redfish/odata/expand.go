package odata

import (
	"strconv"
	"strings"
)

// Expand says which links show what they lead to (DSP0266, "The $expand query
// parameter").
type Expand struct {
	Links  Links
	Levels int // how deep; 0: not at all
}

// Links are a set of a resource's links; the values are those of $expand.
type Links string

// The sets.
const (
	AllLinks  Links = "*"
	RestLinks Links = "." // all but those within a Links property
	OnlyLinks Links = "~" // those within a Links property
)

func (q *Query) readExpand(p pair, s Support) *Error {
	which, levels, hasLevels := strings.Cut(p.value, "(")
	has, known := map[Links]bool{AllLinks: s.ExpandAll, RestLinks: s.ExpandRest, OnlyLinks: s.ExpandLinks}[Links(which)]
	switch {
	case !known:
		return p.refused(Form, "takes *, . or ~, each with or without ($levels=n)")
	case !has:
		return p.refused(Unsupported, "")
	}
	q.Expand = Expand{Links: Links(which), Levels: 1}
	if !hasLevels {
		return nil
	}
	text, named := strings.CutPrefix(levels, "$levels=")
	text, closed := strings.CutSuffix(text, ")")
	if !named || !closed {
		return p.refused(Form, "takes *, . or ~, each with or without ($levels=n)")
	}
	n, err := strconv.Atoi(text)
	switch {
	case s.Levels == 0:
		return &Error{Parameter: "$levels", Value: text, Why: Unsupported}
	case err != nil && strings.Trim(text, "0123456789") != "" || text == "":
		return &Error{Parameter: "$levels", Value: text, Why: Type, Detail: "is no whole number"}
	case err != nil || n < 1 || n > s.Levels:
		return &Error{Parameter: "$levels", Value: text, Why: Range, Range: "1 to " + strconv.Itoa(s.Levels)}
	}
	q.Expand.Levels = n
	return nil
}

// expand is a copy of a resource in which links show what they lead to. above
// are the addresses of the resources around it: none shows itself again, for
// that says nothing new.
func (w *work) expand(o Object, levels int, above []string) (Object, *Error) {
	out, err := w.within(o, levels, above, w.Expand.Links != OnlyLinks)
	if err != nil {
		return nil, err
	}
	return out.(Object), nil
}

// within expands the links in a value; wanted says whether links at this place
// are among those that the query asks for.
func (w *work) within(value any, levels int, above []string, wanted bool) (any, *Error) {
	if uri, ok := reference(value); ok && wanted {
		return w.follow(value, uri, levels, above)
	}
	switch x := value.(type) {
	case []any:
		out := make([]any, len(x))
		for i, y := range x {
			var err *Error
			if out[i], err = w.within(y, levels, above, wanted); err != nil {
				return nil, err
			}
		}
		return out, nil
	case Object:
		out := make(Object, len(x))
		for _, name := range sorted(x) { // so that the same links are left when there are too many
			inside := wanted
			if name == "Links" {
				inside = w.Expand.Links != RestLinks
			}
			var err *Error
			if out[name], err = w.within(x[name], levels, above, inside); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}

// follow is what a link leads to, or the link where it leads nowhere.
func (w *work) follow(link any, to string, levels int, above []string) (any, *Error) {
	uri, fragment, hasFragment := strings.Cut(to, "#")
	for _, a := range above {
		if same(a, uri) {
			return link, nil
		}
	}
	o, ok := w.Get(uri)
	if hasFragment {
		o, ok = pointed(o, fragment)
	}
	if !ok {
		return link, nil
	}
	if w.left--; w.left < 0 {
		return nil, w.errSize("$expand")
	}
	if all, ok := o[members].([]any); ok && w.Page > 0 && len(all) > w.Page {
		rest := work{Query: &Query{Top: All}, Source: w.Source}
		var err *Error
		if o, err = rest.page(o, all); err != nil {
			return nil, err
		}
	}
	if levels == 1 {
		return o, nil
	}
	return w.expand(o, levels-1, append(above[:len(above):len(above)], uri))
}

// same says whether two addresses are of one resource: a slash at the end makes
// no other one.
func same(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// pointed is the object that a JSON pointer leads to (RFC 6901).
func pointed(o Object, pointer string) (Object, bool) {
	var value any = o
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for segment := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch x := value.(type) {
		case Object:
			value = x[unescape.Replace(segment)]
		case []any:
			i, err := strconv.Atoi(segment)
			if err != nil || i < 0 || i >= len(x) {
				return nil, false
			}
			value = x[i]
		default:
			return nil, false
		}
	}
	found, ok := value.(Object)
	return found, ok
}
