package vendor

import (
	"maps"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// body is a vendor's own resource: what it is like, with what the vendor sets,
// what its hook says, and what clients have written, in this order.
func (w *oemResource) body(v resource.View) resource.Object {
	o := resource.Object{}
	if w.basedOn != nil {
		o = w.basisBody(v)
	}
	if w.Name != "" {
		o["Name"] = w.Name
	}
	for _, d := range w.Set {
		w.put(o, d, v)
	}
	for _, path := range w.Remove {
		resource.RemoveAt(o, path)
	}
	if w.Read != nil {
		merge(o, w.Read(hookContext(v)))
	}
	if w.StoredAs != "" {
		is, _ := v.OEMValue(v.Fill(w.StoredAs))
		top, _ := is.(resource.Object)
		merge(o, top)
	}
	if len(w.Writable) > 0 {
		w.showWritten(o, v)
	}
	if all, ok := o["Members"].([]any); ok { // of which pages are made
		o["Members@odata.count"] = len(all)
		members := []resource.Object{}
		for _, m := range all {
			if m, ok := m.(resource.Object); ok {
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
func merge(o resource.Object, top map[string]any) {
	for name, value := range top {
		more, ok := value.(resource.Object)
		if below, is := o[name].(resource.Object); ok && is {
			merge(below, more)
			continue
		}
		o[name] = resource.Normalize(value)
	}
}

// basisBody is the body of what a resource is like, as if it were the vendor's.
func (w *oemResource) basisBody(v resource.View) resource.Object {
	m := w.basis(v)
	o := resource.Decode(resource.Encode(m.Object(m.View(v.Snapshot()))))
	MapTexts(o, func(text string) string {
		if !strings.HasPrefix(text, "/redfish/v1") {
			return text
		}
		path, tail := text, ""
		if i := strings.IndexAny(text, "?#"); i >= 0 {
			path, tail = text[:i], text[i:]
		}
		path, _ = mapURIWith(w.moves, path, v.IDs, ExactCase)
		return path + tail
	})
	if o["Id"] == m.URI[strings.LastIndexByte(m.URI, '/')+1:] {
		delete(o, "Id")
	}
	delete(o, "@odata.id")
	delete(o, "@odata.type")
	return o
}

// put sets a property as a vendor's data say.
func (w *oemResource) put(o resource.Object, set dialect.PropertyRule, v resource.View) {
	value, ok := set.Value, true
	if set.From != "" {
		var is any
		if is, ok = sourceOf(v, o, set.From); ok {
			value, ok = mapped(set, is)
		}
	}
	if ok {
		resource.SetAt(o, v.Fill(set.Path), MapTexts(resource.Clone(resource.Normalize(value)), v.Fill))
	}
}

// sourceOf is where a vendor's data take a value from: a property of another
// resource, of what is kept, or of the body itself.
func sourceOf(v resource.View, o resource.Object, from string) (any, bool) {
	switch name, kept := strings.CutPrefix(from, "="); {
	case kept:
		return v.OEMValue(v.Fill(name))
	case strings.HasPrefix(from, "/"):
		at, path, _ := strings.Cut(v.Fill(from), "#")
		other := standardBody(v, at)
		if other == nil {
			return nil, false
		}
		return resource.ValueAt(other, path)
	}
	return resource.ValueAt(o, from)
}

// hookContext is what a hook sees.
func hookContext(v resource.View) dialect.HookContext {
	all := map[string]any{}
	for name := range v.BMC.OEM.All() {
		all[name], _ = v.OEMValue(name)
	}
	return dialect.HookContext{
		Machine: v.Machine, BMC: v.BMC, Now: v.Now, URI: v.URI, Variables: maps.Clone(v.IDs), Stored: all, Standard: func(uri string) resource.Object { return standardBody(v, uri) },
	}
}

// standardBody is a resource of the tree as the standard has it; nil where there
// is none.
func standardBody(v resource.View, uri string) resource.Object {
	return lookupAt(v.Tree, v.Snapshot())(uri)
}
