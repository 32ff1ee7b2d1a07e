package resource

import (
	"bytes"
	"net/http"
	"strings"
)

// This file builds the OpenAPI document of the service (DSP0266, "OpenAPI schema support";
// OpenAPI 3.0.3) from the tree. It has an operation for each method that a URI
// accepts, and refers to the schemas that DMTF publishes.

const yamlType MediaType = "application/yaml" // RFC 9512

// yamlMapping is a YAML mapping that keeps the order of its keys; yamlEntry is one of its entries.
type (
	yamlEntry struct {
		key   string
		value any // string, bool, []string, mapping or []mapping
	}
	yamlMapping []yamlEntry
)

func openAPI(v View) (MediaType, []byte) {
	paths := yamlMapping{}
	for _, t := range Routes(v.Tree.Rows, v.Tree) {
		if t.Action != nil && t.Action.Internal { // clients cannot call it
			continue
		}
		paths = append(paths, yamlEntry{t.Pattern, t.pathItem()})
	}
	doc := yamlMapping{
		{"openapi", "3.0.3"},
		{"info", yamlMapping{
			{"title", v.Dialect.Product + " Redfish service"}, {"version", v.Dialect.RedfishVersion},
			{"description", "The operations of this service. A server without a part does not have its resources."},
		}},
		{"security", []yamlMapping{{{"basic", []string{}}}, {{"token", []string{}}}}},
		{"paths", paths},
		{"components", yamlMapping{
			{"securitySchemes", yamlMapping{
				{"basic", yamlMapping{{"type", "http"}, {"scheme", "basic"}}},
				{"token", yamlMapping{{"type", "apiKey"}, {"in", "header"}, {"name", "X-Auth-Token"}}},
			}},
			{"schemas", yamlMapping{{"Oem", yamlMapping{{"type", "object"}}}}},
			{"responses", yamlMapping{
				{"Error", yamlMapping{
					{"description", "The request was refused."},
					{"content", content(schemaBaseURL("") + "redfish-error.v1_0_2.yaml#/components/schemas/redfish-error_v1_0_2_RedfishError")},
				}},
			}},
		}},
	}
	var b bytes.Buffer
	doc.write(&b, 0)
	return yamlType, b.Bytes()
}

// pathItem returns the OpenAPI path item of a route: its parameters and an operation for
// each method.
func (t *Route) pathItem() yamlMapping {
	out := yamlMapping{}
	if len(t.Vars) > 0 {
		var parameters []yamlMapping
		for _, name := range t.Vars {
			parameters = append(parameters, yamlMapping{
				{"name", name}, {"in", "path"}, {"required", true}, {"schema", yamlMapping{{"type", "string"}}},
			})
		}
		out = append(out, yamlEntry{"parameters", parameters})
	}
	for _, method := range t.Methods {
		if method == http.MethodHead || method == http.MethodOptions { // OpenAPI readers derive them
			continue
		}
		o := yamlMapping{{"operationId", strings.ToLower(method) + operationName(t.Pattern)}}
		if t.Public(method) {
			o = append(o, yamlEntry{"security", []yamlMapping{}})
		}
		if t.Upload != nil {
			o = append(o, yamlEntry{"requestBody", yamlMapping{{"required", true}, {"content", uploadContent}}})
		} else if ref := t.RequestSchema(method); ref != "" {
			body := yamlMapping{{"content", content(ref)}}
			if t.Action == nil {
				body = append(yamlMapping{{"required", true}}, body...)
			}
			o = append(o, yamlEntry{"requestBody", body})
		}
		out = append(out, yamlEntry{strings.ToLower(method), append(o, yamlEntry{"responses", t.responses(method)})})
	}
	return out
}

// uploadContent describes the body of an upload: an image alone, or an image with its
// parameters (DSP0266, "Software update"; UpdateService).
var uploadContent = yamlMapping{
	{"application/octet-stream", yamlMapping{{"schema", yamlMapping{{"type", "string"}, {"format", "binary"}}}}},
	{"multipart/form-data", yamlMapping{{"schema", yamlMapping{{"type", "object"}}}}},
}

// operationName returns a URI pattern in the form that an operationId contains.
func operationName(pattern string) string {
	var b strings.Builder
	for segment := range strings.FieldsFuncSeq(pattern, func(r rune) bool { return strings.ContainsRune("/{}.$", r) }) {
		b.WriteString(strings.ToUpper(segment[:1]) + segment[1:])
	}
	return b.String()
}

// RequestSchema returns a reference to the schema of the request body of a method, or ""
// when the method has no body.
func (t *Route) RequestSchema(method string) string {
	switch {
	case method == http.MethodDelete || method == http.MethodGet:
		return ""
	case t.Action != nil && strings.HasPrefix(t.Action.Name, "Oem."):
		return "#/components/schemas/Oem"
	case t.Action != nil:
		return openAPISchema(t.Schema, t.Action.verb()+"RequestBody")
	case method == http.MethodPost:
		return openAPISchema(t.memberSchema, "")
	}
	return openAPISchema(t.Schema, "")
}

// responses returns the OpenAPI responses to a method.
func (t *Route) responses(method string) yamlMapping {
	out := yamlMapping{}
	answer := func(status, description, schema string) {
		of := yamlMapping{{"description", description}}
		if schema != "" {
			of = append(of, yamlEntry{"content", content(schema)})
		}
		out = append(out, yamlEntry{status, of})
	}
	task := openAPISchema("Task.v1_7_4", "")
	switch {
	case method == http.MethodGet && t.Schema == "":
		answer("200", "The document.", "")
	case method == http.MethodGet:
		answer("200", "The resource.", openAPISchema(t.Schema, ""))
	case method == http.MethodPatch:
		answer("200", "The resource after the change.", openAPISchema(t.Schema, ""))
		answer("202", "The change continues as a task.", task)
		answer("204", "The resource was changed.", "")
	case t.Upload != nil:
		answer("202", "The upload is processed as a task.", task)
	case t.Action != nil:
		answer("200", "The result of the action.", "")
		answer("202", "The action continues as a task.", task)
		answer("204", "The action was carried out.", "")
	case method == http.MethodPost:
		answer("201", "The new resource.", openAPISchema(t.memberSchema, ""))
		answer("202", "The resource is being created as a task.", task)
	default:
		answer("202", "The resource is being deleted as a task.", task)
		answer("204", "The resource was deleted.", "")
	}
	return append(out, yamlEntry{"default", yamlMapping{{"$ref", "#/components/responses/Error"}}})
}

// openAPISchema returns a reference to the published schema of a type, or of a part of that
// schema.
func openAPISchema(schema, part string) string {
	name := TypeName(schema)
	if part == "" {
		part = name
	}
	return schemaBaseURL(schema) + schema + ".yaml#/components/schemas/" + strings.Replace(schema, ".", "_", 1) + "_" + part
}

func content(schema string) yamlMapping {
	return yamlMapping{{string(JSON), yamlMapping{{"schema", yamlMapping{{"$ref", schema}}}}}}
}

// write appends the mapping as YAML. It quotes text as JSON does, which YAML accepts.
func (m yamlMapping) write(b *bytes.Buffer, indent int) {
	for _, e := range m {
		b.WriteString(strings.Repeat("  ", indent))
		e.write(b, indent)
	}
}

func (e yamlEntry) write(b *bytes.Buffer, indent int) {
	b.Write(AppendString(nil, e.key))
	b.WriteByte(':')
	switch x := e.value.(type) {
	case yamlMapping:
		if len(x) == 0 {
			b.WriteString(" {}\n")
			return
		}
		b.WriteByte('\n')
		x.write(b, indent+1)
	case []yamlMapping:
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
