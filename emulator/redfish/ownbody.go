package redfish

import (
	"maps"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// body is a vendor's own resource: what it is like, with what the vendor sets,
// what its hook says, and what clients have written, in this order.
func (w *vendorRow) body(v view) object {
	o := object{}
	if w.like != nil {
		o = w.begins(v)
	}
	if w.Name != "" {
		o["Name"] = w.Name
	}
	for _, d := range w.Set {
		w.put(o, d, v)
	}
	for _, path := range w.Remove {
		dropAt(o, path)
	}
	if w.Read != nil {
		merge(o, w.Read(hookContext(v)))
	}
	if w.StoredAs != "" {
		is, _ := v.kept(v.fill(w.StoredAs))
		top, _ := is.(object)
		merge(o, top)
	}
	if len(w.Writable) > 0 {
		w.overlay(o, v)
	}
	if all, ok := o["Members"].([]any); ok { // of which pages are made
		o["Members@odata.count"] = len(all)
		members := []object{}
		for _, m := range all {
			if m, ok := m.(object); ok {
				members = append(members, m)
			}
		}
		if len(members) == len(all) {
			o["Members"] = members
		}
	}
	return o
}

// merge lays an object over another.
func merge(o object, top map[string]any) {
	for name, value := range top {
		more, ok := value.(object)
		if below, is := o[name].(object); ok && is {
			merge(below, more)
			continue
		}
		o[name] = normal(value)
	}
}

// begins is the body of what a resource is like, as if it were the vendor's.
func (w *vendorRow) begins(v view) object {
	m := w.likeness(v)
	o := decode(encode(m.object(m.view(v.snapshot()))))
	mapTexts(o, func(text string) string {
		if !strings.HasPrefix(text, "/redfish/v1") {
			return text
		}
		path, tail := text, ""
		if i := strings.IndexAny(text, "?#"); i >= 0 {
			path, tail = text[:i], text[i:]
		}
		path, _ = movedAt(w.moves, path, v.ids, exact)
		return path + tail
	})
	if o["Id"] == m.uri[strings.LastIndexByte(m.uri, '/')+1:] {
		delete(o, "Id")
	}
	delete(o, "@odata.id")
	delete(o, "@odata.type")
	return o
}

// put sets a property as a vendor's data say.
func (w *vendorRow) put(o object, set dialect.PropertyRule, v view) {
	value, ok := set.Value, true
	if set.From != "" {
		var is any
		if is, ok = sourceOf(v, o, set.From); ok {
			value, ok = drawn(set, is)
		}
	}
	if ok {
		setAt(o, v.fill(set.Path), mapTexts(cloned(normal(value)), v.fill))
	}
}

// sourceOf is where a vendor's data take a value from: a property of another
// resource, of what is kept, or of the body itself.
func sourceOf(v view, o object, from string) (any, bool) {
	switch name, kept := strings.CutPrefix(from, "="); {
	case kept:
		return v.kept(v.fill(name))
	case strings.HasPrefix(from, "/"):
		at, path, _ := strings.Cut(v.fill(from), "#")
		other := standardBody(v, at)
		if other == nil {
			return nil, false
		}
		return valueAt(other, path)
	}
	return valueAt(o, from)
}

// hookContext is what a hook sees.
func hookContext(v view) dialect.HookContext {
	all := map[string]any{}
	for name := range v.b.OEM.All() {
		all[name], _ = v.kept(name)
	}
	return dialect.HookContext{
		Machine: v.m, BMC: v.b, Now: v.now, URI: v.uri, Variables: maps.Clone(v.ids), Stored: all, Standard: func(uri string) object { return standardBody(v, uri) },
	}
}

// standardBody is a resource of the tree as the standard has it; nil where there
// is none.
func standardBody(v view, uri string) object { return browseAt(v.tree, v.snapshot())(uri) }
