package resource

import (
	"maps"
	"net/http"
	"strings"
)

// memberObject returns a member as its collection shows it: a link, or the
// expanded resource.
func (m *Match) memberObject(v View, id string) Object {
	uri := v.URI + "/" + id
	if m.memberRow == nil {
		return Ref(uri)
	}
	ids := maps.Clone(v.IDs)
	if ids == nil {
		ids = map[string]string{}
	}
	ids[m.memberVariable] = id
	v.URI, v.IDs = uri, ids
	return (&Match{Route: &Route{Row: m.memberRow}, URI: uri, IDs: ids}).Object(v)
}

// Object returns the body of a resource as the standard defines it, before a
// dialect changes it.
func (m *Match) Object(v View) Object {
	o := m.Standard(v)
	m.AddETag(v, o, m.Volatile)
	return o
}

// AddETag adds an ETag of the body that the body itself shows. The ETag does not
// cover the volatile properties.
func (m *Match) AddETag(v View, o Object, volatile []string) {
	if m.finish != nil {
		m.finish(v, o, func(o Object) string { return FormatETag(ETag(Encode(Without(o, volatile))), v.Dialect.Protocol.ETags) })
	}
}

// Standard returns the body of Object without the ETag that the row's finish
// function adds.
func (m *Match) Standard(v View) Object {
	o := m.Stable(v)
	m.addFragments(o, v)
	return o
}

// Stable returns the body of Standard without fragments.
func (m *Match) Stable(v View) Object {
	var o Object
	if m.memberVariable != "" {
		o = Object{"Name": m.collectionName}
		var members []Object
		for _, id := range Members[m.memberVariable](v) {
			members = append(members, m.memberObject(v, id))
		}
		o["Members@odata.count"] = len(members)
		o["Members"] = append([]Object{}, members...) // never null
		if capable := m.capabilitiesAnnotation(v); capable != nil {
			o["@Redfish.CollectionCapabilities"] = capable
		}
	} else {
		o = m.Read(v)
		if _, ok := o["Id"]; !ok && o["Members"] == nil { // collections have none
			o["Id"] = v.URI[strings.LastIndexByte(v.URI, '/')+1:]
		}
	}
	if times := m.OperationApplyTimes(v); times != nil {
		o[operationApplyTimeSupport] = times
	}
	if m.Patch != nil {
		annotateAllowableValues(o, m.Patch.Inputs, v)
		if refused := m.Refuses != nil && m.Refuses(v, http.MethodPatch); !refused && v.Dialect.Protocol.ListsWriteable(TypeName(m.Schema)) {
			annotateWriteable(o, m.Patch.Inputs, m.fragmentNames(v))
		}
	}
	if _, ok := o["@odata.id"]; !ok {
		o["@odata.id"] = v.URI
	}
	o["@odata.type"] = OdataType(m.Schema)
	if m.ODataType != "" {
		o["@odata.type"] = "#" + m.ODataType
	}
	for _, r := range m.subordinates {
		below := v
		below.URI = v.URI + r.URI[strings.LastIndexByte(r.URI, '/'):]
		if _, taken := o[r.Link]; !taken && (r.When == nil || r.When(below)) {
			o[r.Link] = Ref(below.URI)
		}
	}
	all, _ := o["Actions"].(Object)
	if all == nil {
		all = Object{}
	}
	for i := range m.Actions {
		if a := &m.Actions[i]; a.Hidden {
			continue
		} else if a.when == nil || a.when(v) {
			all["#"+a.Name] = a.object(v)
			if times := m.OperationApplyTimes(v); times != nil && a.SupportsApplyTime {
				all["#"+a.Name].(Object)[operationApplyTimeSupport] = times
			}
		}
	}
	if len(all) > 0 {
		o["Actions"] = all
	}
	return o
}

// Without returns a copy of an object without the properties at some paths: "A",
// "A/B".
func Without(o Object, paths []string) Object {
	less := maps.Clone(o)
	for _, path := range paths {
		name, rest, deeper := strings.Cut(path, "/")
		if below, ok := less[name].(Object); ok && deeper {
			less[name] = Without(below, []string{rest})
			continue
		}
		delete(less, name)
	}
	return less
}

// TypeName returns the name of a schema without its version.
func TypeName(schema string) string {
	name, _, _ := strings.Cut(schema, ".")
	return name
}

// OdataType returns the @odata.type of a versioned schema:
// "#Chassis.v1_28_0.Chassis".
func OdataType(schema string) string { return "#" + schema + "." + TypeName(schema) }

// schemaBaseURL returns the URL under which DMTF or SNIA publish the schemas of
// a type.
func schemaBaseURL(schema string) string {
	if strings.HasPrefix(schema, "Volume") {
		return "http://redfish.dmtf.org/schemas/swordfish/v1/"
	}
	return "http://redfish.dmtf.org/schemas/v1/"
}

// JSONSchema returns the URL at which the JSON schema of a type is published.
func JSONSchema(schema string) string { return schemaBaseURL(schema) + schema + ".json" }
