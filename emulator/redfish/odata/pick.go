package odata

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Selection is the set of properties that $select asks for (DSP0266, "The $select
// query parameter").
type Selection struct {
	below map[string]*Selection // selections within properties, by name; nil: all of the value
}

const maxSelected = 128 // paths

func (q *Query) readSelect(p pair, _ Support) *Error {
	root := &Selection{below: map[string]*Selection{}}
	paths := strings.Split(p.value, ",")
	if len(paths) > maxSelected {
		return p.refused(Form, "names more than "+strconv.Itoa(maxSelected)+" properties")
	}
	for _, path := range paths {
		path = strings.TrimSpace(path)
		if path == "*" { // OData's name for all of them
			root.below = nil
			continue
		}
		at := root
		for segment := range strings.SplitSeq(path, "/") {
			if segment == "" || strings.ContainsAny(segment, " '\"()*$?&=") {
				return p.refused(Form, "takes names of properties, as in Name,Status/State")
			}
			if at.below == nil { // a shorter path selects all of it
				break
			}
			next := at.below[segment]
			if next == nil {
				next = &Selection{below: map[string]*Selection{}}
				at.below[segment] = next
			}
			at = next
		}
		if at != root {
			at.below = nil
		}
	}
	if root.below != nil {
		q.Select = root
	}
	return nil
}

// always lists the annotations that $select never removes (DSP0266, "The $select
// query parameter").
var always = []string{"@odata.id", "@odata.type", "@odata.context", "@odata.etag"}

// of returns a copy of a resource with the selected properties. The selection applies
// to the resource and to each resource expanded within it, so that a client can ask
// for the UUIDs of all members (DSP0266, "The $expand query parameter").
func (s *Selection) of(o Object) Object {
	out, _ := s.pick(o, s).(Object)
	if out == nil {
		out = Object{}
	}
	return out
}

// none selects no property, but descends to expanded resources.
var none = &Selection{below: map[string]*Selection{}}

// pick returns the selected part of a value; nil when nothing of it is selected. root
// is the selection that applies to expanded resources.
func (s *Selection) pick(value any, root *Selection) any {
	if s.below == nil {
		return value
	}
	switch x := value.(type) {
	case []any:
		var out []any
		for _, y := range x {
			if picked := s.pick(y, root); picked != nil {
				out = append(out, picked)
			}
		}
		if out == nil {
			return nil
		}
		return out
	case Object:
		resource := isResource(x)
		if resource && s == none {
			s = root
		}
		out := Object{}
		for name, y := range x {
			if resource && slices.Contains(always, name) {
				out[name] = y
				continue
			}
			next := s.below[name]
			if next == nil {
				next = none
			}
			if picked := next.pick(y, root); picked != nil || next.below == nil {
				out[name] = picked
			}
		}
		// Counts and links to the next page stay with their property. Other annotations are
		// properties that nobody has selected: DMTF's use case checkers refuse them.
		for name, y := range x {
			property, term, annotates := strings.Cut(name, "@")
			if _, ok := out[property]; ok && annotates && property != "" && strings.HasPrefix(term, "odata.") {
				out[name] = y
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
	return nil
}

// isResource reports whether an object is a resource, neither a link nor an object
// within a resource.
func isResource(o Object) bool {
	_, id := o["@odata.id"].(string)
	_, kind := o["@odata.type"].(string)
	return id && kind
}

// excerpt returns a copy of a resource, and of each resource expanded within it, with
// the properties of its type's excerpt alone.
func (w *work) excerpt(o Object) Object {
	out := Object{}
	properties, has := w.Excerpts[typeOf(o)]
	for name, value := range o {
		property, _, annotates := strings.Cut(name, "@")
		switch {
		case !has, slices.Contains(properties, name), slices.Contains(always, name):
			out[name] = w.excerpts(value)
		case annotates && slices.Contains(properties, property):
			out[name] = value
		}
	}
	return out
}

func (w *work) excerpts(value any) any {
	switch x := value.(type) {
	case []any:
		out := make([]any, len(x))
		for i, y := range x {
			out[i] = w.excerpts(y)
		}
		return out
	case Object:
		return w.excerpt(x)
	}
	return value
}

func itoa(n int) string { return strconv.Itoa(n) }

func sorted(o Object) []string { return slices.Sorted(maps.Keys(o)) }
