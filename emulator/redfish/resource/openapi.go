package resource

import (
	"bytes"
	"net/http"
	"strings"
)

// The OpenAPI document of the service (DSP0266, "OpenAPI schema support";
// OpenAPI 3.0.3), made from the tree: an operation for each method that an
// address takes, with references to the schemas that DMTF publishes.

const yamlType MediaType = "application/yaml" // RFC 9512

// entry and mapping are a YAML mapping whose keys keep their order.
type (
	entry struct {
		key   string
		value any // string, bool, []string, mapping or []mapping
	}
	mapping []entry
)

func openAPI(v View) (MediaType, []byte) {
	paths := mapping{}
	for _, t := range Routes(v.Tree.Rows, v.Tree) {
		if t.Action != nil && t.Action.Inner { // for no client
			continue
		}
		paths = append(paths, entry{t.Pattern, t.operations()})
	}
	doc := mapping{
		{"openapi", "3.0.3"},
		{"info", mapping{
			{"title", v.Dialect.Product + " Redfish service"}, {"version", v.Dialect.RedfishVersion},
			{"description", "What this service serves. Resources that a server does not have are not there."},
		}},
		{"security", []mapping{{{"basic", []string{}}}, {{"token", []string{}}}}},
		{"paths", paths},
		{"components", mapping{
			{"securitySchemes", mapping{
				{"basic", mapping{{"type", "http"}, {"scheme", "basic"}}},
				{"token", mapping{{"type", "apiKey"}, {"in", "header"}, {"name", "X-Auth-Token"}}},
			}},
			{"schemas", mapping{{"Oem", mapping{{"type", "object"}}}}},
			{"responses", mapping{
				{"Error", mapping{
					{"description", "The request was refused."},
					{"content", content(published("") + "redfish-error.v1_0_2.yaml#/components/schemas/redfish-error_v1_0_2_RedfishError")},
				}},
			}},
		}},
	}
	var b bytes.Buffer
	doc.write(&b, 0)
	return yamlType, b.Bytes()
}

// operations are what an address takes, as a path item.
func (t *Route) operations() mapping {
	out := mapping{}
	if len(t.Vars) > 0 {
		var parameters []mapping
		for _, name := range t.Vars {
			parameters = append(parameters, mapping{
				{"name", name}, {"in", "path"}, {"required", true}, {"schema", mapping{{"type", "string"}}},
			})
		}
		out = append(out, entry{"parameters", parameters})
	}
	for _, method := range t.Methods {
		if method == http.MethodHead || method == http.MethodOptions { // which say nothing of their own
			continue
		}
		o := mapping{{"operationId", strings.ToLower(method) + operationName(t.Pattern)}}
		if t.Public(method) {
			o = append(o, entry{"security", []mapping{}})
		}
		if t.Upload != nil {
			o = append(o, entry{"requestBody", mapping{{"required", true}, {"content", uploaded}}})
		} else if ref := t.Sends(method); ref != "" {
			body := mapping{{"content", content(ref)}}
			if t.Action == nil {
				body = append(mapping{{"required", true}}, body...)
			}
			o = append(o, entry{"requestBody", body})
		}
		out = append(out, entry{strings.ToLower(method), append(o, entry{"responses", t.responses(method)})})
	}
	return out
}

// uploaded is what a client sends that sends a file, alone or with its
// parameters (DSP0266, "Software update"; UpdateService).
var uploaded = mapping{
	{"application/octet-stream", mapping{{"schema", mapping{{"type", "string"}, {"format", "binary"}}}}},
	{"multipart/form-data", mapping{{"schema", mapping{{"type", "object"}}}}},
}

// operationName is a pattern as part of a name.
func operationName(pattern string) string {
	var b strings.Builder
	for segment := range strings.FieldsFuncSeq(pattern, func(r rune) bool { return strings.ContainsRune("/{}.$", r) }) {
		b.WriteString(strings.ToUpper(segment[:1]) + segment[1:])
	}
	return b.String()
}

// Sends is the schema of what a client sends; "" for nothing.
func (t *Route) Sends(method string) string {
	switch {
	case method == http.MethodDelete || method == http.MethodGet:
		return ""
	case t.Action != nil && strings.HasPrefix(t.Action.Name, "Oem."):
		return "#/components/schemas/Oem"
	case t.Action != nil:
		return openAPISchema(t.Schema, t.Action.verb()+"RequestBody")
	case method == http.MethodPost:
		return openAPISchema(t.makes, "")
	}
	return openAPISchema(t.Schema, "")
}

// responses are the answers to a method.
func (t *Route) responses(method string) mapping {
	out := mapping{}
	answer := func(status, description, schema string) {
		of := mapping{{"description", description}}
		if schema != "" {
			of = append(of, entry{"content", content(schema)})
		}
		out = append(out, entry{status, of})
	}
	task := openAPISchema("Task.v1_7_4", "")
	switch {
	case method == http.MethodGet && t.Schema == "":
		answer("200", "The document.", "")
	case method == http.MethodGet:
		answer("200", "The resource.", openAPISchema(t.Schema, ""))
	case method == http.MethodPatch:
		answer("200", "The resource as it is now.", openAPISchema(t.Schema, ""))
		answer("202", "The change goes on as a task.", task)
		answer("204", "The resource was changed.", "")
	case t.Upload != nil:
		answer("202", "What was sent is put to use as a task.", task)
	case t.Action != nil:
		answer("200", "What the action has to tell.", "")
		answer("202", "The action goes on as a task.", task)
		answer("204", "The action was carried out.", "")
	case method == http.MethodPost:
		answer("201", "The new resource.", openAPISchema(t.makes, ""))
		answer("202", "The resource is being created as a task.", task)
	default:
		answer("202", "The resource is being deleted as a task.", task)
		answer("204", "The resource was deleted.", "")
	}
	return append(out, entry{"default", mapping{{"$ref", "#/components/responses/Error"}}})
}

// openAPISchema refers to the published schema of a type, or of something that
// belongs to it.
func openAPISchema(schema, part string) string {
	name := TypeName(schema)
	if part == "" {
		part = name
	}
	return published(schema) + schema + ".yaml#/components/schemas/" + strings.Replace(schema, ".", "_", 1) + "_" + part
}

func content(schema string) mapping {
	return mapping{{string(JSON), mapping{{"schema", mapping{{"$ref", schema}}}}}}
}

// write writes YAML: what is text is quoted as JSON does, which YAML takes.
func (m mapping) write(b *bytes.Buffer, indent int) {
	for _, e := range m {
		b.WriteString(strings.Repeat("  ", indent))
		e.write(b, indent)
	}
}

func (e entry) write(b *bytes.Buffer, indent int) {
	b.Write(AppendText(nil, e.key))
	b.WriteByte(':')
	switch x := e.value.(type) {
	case mapping:
		if len(x) == 0 {
			b.WriteString(" {}\n")
			return
		}
		b.WriteByte('\n')
		x.write(b, indent+1)
	case []mapping:
		if len(x) == 0 {
			b.WriteString(" []\n")
			return
		}
		b.WriteByte('\n')
		for _, m := range x {
			b.WriteString(strings.Repeat("  ", indent+1) + "- ")
			m[0].write(b, indent+2)
			m[1:].write(b, indent+2)
		}
	default:
		b.WriteByte(' ')
		b.Write(appendValue(nil, x))
		b.WriteByte('\n')
	}
}
