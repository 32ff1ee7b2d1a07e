package redfish

import (
	"maps"
	"strings"
)

// shown is a member as its collection shows it.
func (m *match) shown(v view, id string) object {
	uri := v.uri + "/" + id
	if m.member == nil {
		return ref(uri)
	}
	ids := maps.Clone(v.ids)
	if ids == nil {
		ids = map[string]string{}
	}
	ids[m.of] = id
	v.uri, v.ids = uri, ids
	return (&match{route: &route{resource: m.member}, uri: uri, ids: ids}).object(v)
}

// object is the body of a resource as the standard has it.
func (m *match) object(v view) object {
	o := m.standard(v)
	m.showETag(v, o, m.volatile)
	return o
}

// showETag adds an ETag of the body that the body itself shows.
func (m *match) showETag(v view, o object, volatile []string) {
	if m.finish != nil {
		m.finish(v, o, func(o object) string { return written(etag(encode(without(o, volatile))), v.d.Protocol.ETags) })
	}
}

// standard is object without what finish adds: the properties of the row and
// those that all rows have in common.
func (m *match) standard(v view) object {
	o := m.stable(v)
	m.addFragments(o, v)
	return o
}

// stable is standard without fragments.
func (m *match) stable(v view) object {
	var o object
	if m.of != "" {
		o = object{"Name": m.name}
		var members []object
		for _, id := range things[m.of](v) {
			members = append(members, m.shown(v, id))
		}
		o["Members@odata.count"] = len(members)
		o["Members"] = append([]object{}, members...) // never null
		if capable := m.capable(v); capable != nil {
			o["@Redfish.CollectionCapabilities"] = capable
		}
	} else {
		o = m.read(v)
		if _, ok := o["Id"]; !ok && o["Members"] == nil { // collections have none
			o["Id"] = v.uri[strings.LastIndexByte(v.uri, '/')+1:]
		}
	}
	if times := m.applyTimes(v); times != nil {
		o[operationTimes] = times
	}
	if m.patch != nil {
		annotate(o, m.patch.inputs, v)
	}
	if _, ok := o["@odata.id"]; !ok {
		o["@odata.id"] = v.uri
	}
	o["@odata.type"] = odataType(m.schema)
	if m.typed != "" {
		o["@odata.type"] = "#" + m.typed
	}
	for _, r := range m.below {
		below := v
		below.uri = v.uri + r.uri[strings.LastIndexByte(r.uri, '/'):]
		if _, taken := o[r.link]; !taken && (r.when == nil || r.when(below)) {
			o[r.link] = ref(below.uri)
		}
	}
	all, _ := o["Actions"].(object)
	if all == nil {
		all = object{}
	}
	for i := range m.actions {
		if a := &m.actions[i]; a.hidden {
			continue
		} else if a.when == nil || a.when(v) {
			all["#"+a.name] = a.object(v)
			if times := m.applyTimes(v); times != nil && a.defers {
				all["#"+a.name].(object)[operationTimes] = times
			}
		}
	}
	if len(all) > 0 {
		o["Actions"] = all
	}
	return o
}

// without is an object but for some of its properties, which are named by their
// paths: "A", "A/B".
func without(o object, paths []string) object {
	less := maps.Clone(o)
	for _, path := range paths {
		name, rest, deeper := strings.Cut(path, "/")
		if below, ok := less[name].(object); ok && deeper {
			less[name] = without(below, []string{rest})
			continue
		}
		delete(less, name)
	}
	return less
}

// typeName is the name of a schema without its version.
func typeName(schema string) string {
	name, _, _ := strings.Cut(schema, ".")
	return name
}

func odataType(schema string) string { return "#" + schema + "." + typeName(schema) }

// published is where the DMTF and SNIA publish a type's schemas.
func published(schema string) string {
	if strings.HasPrefix(schema, "Volume") {
		return "http://redfish.dmtf.org/schemas/swordfish/v1/"
	}
	return "http://redfish.dmtf.org/schemas/v1/"
}

func jsonSchema(schema string) string { return published(schema) + schema + ".json" }
