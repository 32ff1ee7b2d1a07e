package odata

import (
	"strconv"
	"strings"
)

// Expand selects the links that a response replaces by their resources (DSP0266,
// "The $expand query parameter").
type Expand struct {
	Links  Links
	Levels int // $levels; 0: no link is expanded
}

// Links names a set of a resource's links; the values are those of $expand.
type Links string

// The sets of links.
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

// expand returns a copy of a resource with its links expanded. above lists the URIs
// of the resources that contain it: links to them are not expanded again.
func (w *work) expand(o Object, levels int, above []string) (Object, *Error) {
	out, err := w.within(o, levels, above, w.Expand.Links != OnlyLinks)
	if err != nil {
		return nil, err
	}
	return out.(Object), nil
}

// within expands the links in a value; wanted reports whether the query selects links
// at this place.
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
		for _, name := range sorted(x) { // the order decides which links stay when there are too many
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

// follow returns the resource that a link refers to, expanded in turn; the link itself
// when there is no such resource or it contains the link.
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

// same reports whether two URIs address the same resource; a trailing slash makes no
// difference.
func same(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// pointed returns the object at a JSON pointer (RFC 6901); false when there is none.
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
