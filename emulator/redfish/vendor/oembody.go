package vendor

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// body renders an OEM resource: the body of its BasedOn, then Name, Set, Remove, the
// hook Read, the stored object, and at last what clients have written.
func (w *oemResource) body(v resource.View) resource.Object {
	o := resource.Object{}
	if w.basedOn != nil {
		o = w.baseBody(v)
	}
	if w.Name != "" {
		o["Name"] = w.Name
	}
	for _, d := range w.Set {
		setProperty(o, d, v)
	}
	for _, path := range w.Remove {
		resource.RemoveAt(o, path)
	}
	if w.Read != nil {
		merge(o, w.Read(hookContext(v)))
	}
	if w.StoredAs != "" {
		value, _ := v.OEMValue(v.Fill(w.StoredAs))
		stored, _ := value.(resource.Object)
		merge(o, stored)
	}
	if len(w.Writable) > 0 {
		w.setWritten(o, v)
	}
	if all, ok := o["Members"].([]any); ok { // paging needs a list of objects
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

// merge sets the properties of top in an object. Objects that both have are merged.
func merge(o resource.Object, top map[string]any) {
	for name, value := range top {
		object, isObject := value.(resource.Object)
		if present, ok := o[name].(resource.Object); isObject && ok {
			merge(present, object)
			continue
		}
		o[name] = resource.Normalize(value)
	}
}

// baseBody returns the body of the BasedOn with the URIs of the OEM resource, and
// without the properties that identify it.
func (w *oemResource) baseBody(v resource.View) resource.Object {
	m := w.base(v)
	o := resource.Decode(resource.Encode(m.Object(m.View(v.Snapshot()))))
	MapTexts(o, func(text string) string {
		if !strings.HasPrefix(text, "/redfish/v1") {
			return text
		}
		path, tail := cutTail(text)
		path, _ = mapURIWith(w.links, path, v.IDs, exactCase)
		return path + tail
	})
	if all, ok := o["Members"].([]any); ok && w.someMembers {
		o["Members"] = slices.DeleteFunc(all, func(member any) bool {
			link, _ := member.(resource.Object)
			uri, _ := link["@odata.id"].(string)
			to := w.oem.match(http.MethodGet, uri)
			return to != nil && !to.IsPresent(v.Snapshot())
		})
	}
	if o["Id"] == m.URI[strings.LastIndexByte(m.URI, '/')+1:] {
		delete(o, "Id")
	}
	delete(o, "@odata.id")
	delete(o, "@odata.type")
	return o
}

// setProperty applies a rule of an OEM resource to its body.
func setProperty(o resource.Object, set dialect.PropertyRule, v resource.View) {
	value, ok := set.Value, true
	if set.From != "" {
		if value, ok = valueFrom(v, o, set.From); ok {
			value, ok = mapValue(set, value)
		}
	}
	if ok {
		resource.SetAt(o, v.Fill(set.Path), MapTexts(resource.Clone(resource.Normalize(value)), v.Fill))
	}
}

// valueFrom returns the value that the From of a rule names, and whether there is
// one: a stored value, a property of another resource, or one of the body itself.
func valueFrom(v resource.View, o resource.Object, from string) (any, bool) {
	switch name, stored := strings.CutPrefix(from, "="); {
	case stored:
		return v.OEMValue(v.Fill(name))
	case strings.HasPrefix(from, "/"):
		uri, path, _ := strings.Cut(v.Fill(from), "#")
		return resource.ValueAt(standardBody(v, uri), path)
	}
	return resource.ValueAt(o, from)
}

// hookContext returns the values that a hook may read.
func hookContext(v resource.View) dialect.HookContext {
	stored := map[string]any{}
	for name := range v.BMC.OEM.All() {
		stored[name], _ = v.OEMValue(name)
	}
	return dialect.HookContext{
		Machine: v.Machine, BMC: v.BMC, Now: v.Now, URI: v.URI, Variables: maps.Clone(v.IDs), Stored: stored,
		Standard: func(uri string) resource.Object { return standardBody(v, uri) },
	}
}

// standardBody returns the body of the resource at a standard URI, or nil.
func standardBody(v resource.View, uri string) resource.Object {
	s := sources{tree: v.Tree, at: v.Snapshot()}
	return s.body(uri)
}
