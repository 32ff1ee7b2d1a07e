package redfish

import (
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

func TestOpenAPIDocumentDescribesRequests(t *testing.T) {
	s := newService(t, newHost(t))
	w := call(t, s, "", "GET", "/redfish/v1/openapi.yaml", "")
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/yaml;charset=utf-8" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	type operation struct {
		ID       string              `yaml:"operationId"`
		Security *[]map[string][]any `yaml:"security"`
		Body     map[string]any      `yaml:"requestBody"`
		Answers  map[string]any      `yaml:"responses"`
	}
	var doc struct {
		OpenAPI string
		Info    struct{ Title, Version string }
		Paths   map[string]struct {
			Parameters []struct {
				Name, In string
				Required bool
			}
			Get, Patch, Post, Delete *operation
		}
		Components struct {
			Schemas, Responses map[string]any
			Security           map[string]any `yaml:"securitySchemes"`
		}
	}
	must(t, yaml.Unmarshal(w.Body.Bytes(), &doc))
	if !strings.HasPrefix(doc.OpenAPI, "3.0.") || doc.Info.Title == "" || doc.Info.Version == "" || len(doc.Components.Security) != 2 {
		t.Errorf("openapi %s: info %+v, security %v", doc.OpenAPI, doc.Info, doc.Components.Security)
	}
	seen, documented := map[string]bool{}, 0
	for _, route := range resource.Routes(s.tree.Rows, s.tree) {
		p, ok := doc.Paths[route.Pattern]
		if route.Action != nil && route.Action.Internal {
			if ok {
				t.Errorf("%s is documented, and is for no client", route.Pattern)
			}
			continue
		}
		documented++
		if !ok {
			t.Errorf("%s is not documented", route.Pattern)
			continue
		}
		var named []string
		for _, parameter := range p.Parameters {
			named = append(named, parameter.Name)
			if parameter.In != "path" || !parameter.Required {
				t.Errorf("%s: parameter %+v", route.Pattern, parameter)
			}
		}
		if !slices.Equal(named, resource.Variables(route.Pattern)) {
			t.Errorf("%s has the parameters %q", route.Pattern, named)
		}
		for method, o := range map[string]*operation{"GET": p.Get, "PATCH": p.Patch, "POST": p.Post, "DELETE": p.Delete} {
			if takes := slices.Contains(route.Methods, method); takes != (o != nil) {
				t.Errorf("%s %s is accepted: %t, documented: %t", method, route.Pattern, takes, o != nil)
			}
			if o == nil {
				continue
			}
			if o.ID == "" || seen[o.ID] || o.Answers["default"] == nil || len(o.Answers) < 2 {
				t.Errorf("%s %s: operationId %q, responses %d", method, route.Pattern, o.ID, len(o.Answers))
			}
			seen[o.ID] = true
			if open := o.Security != nil && len(*o.Security) == 0; open != route.Public(method) {
				t.Errorf("%s %s needs no authentication: %t, documented: %t", method, route.Pattern, route.Public(method), open)
			}
			if writes := method == "PATCH" || method == "POST"; writes != (o.Body != nil) {
				t.Errorf("%s %s has a body: %t", method, route.Pattern, o.Body != nil)
			}
		}
	}
	if len(doc.Paths) != documented {
		t.Errorf("%d paths are documented, want %d", len(doc.Paths), documented)
	}
	for _, ref := range regexp.MustCompile(`"\$ref": "([^"]+)"`).FindAllStringSubmatch(w.Body.String(), -1) {
		if local, ok := strings.CutPrefix(ref[1], "#/components/"); ok {
			kind, name, _ := strings.Cut(local, "/")
			if map[string]map[string]any{"schemas": doc.Components.Schemas, "responses": doc.Components.Responses}[kind][name] == nil {
				t.Errorf("there is no %s", ref[1])
			}
			continue
		}
		// DMTF publishes the same files as JSON and as YAML; the bundle has the former.
		file, part, _ := strings.Cut(ref[1], "#/components/schemas/")
		json := strings.TrimSuffix(path.Base(file), ".yaml") + ".json"
		raw, err := dmtf(t).read(schemaFolder + json)
		definition := part[strings.LastIndexByte(part, '_')+1:]
		if err != nil || !strings.Contains(string(raw), `"`+definition+`"`) && !strings.HasSuffix(definition, "RequestBody") {
			t.Errorf("%s: %v", ref[1], err)
		}
	}
}

func TestOpenAPIActionsHaveRequestBodies(t *testing.T) {
	bodies := 0
	for _, route := range resource.Routes(resource.Rows(), &resource.Tree{}) {
		if route.Action == nil || route.Action.Internal || route.RequestSchema(http.MethodPost) == "" || strings.HasPrefix(route.Action.Name, "Oem.") {
			continue
		}
		bodies++
		raw, err := dmtf(t).read(schemaFolder + route.Schema + ".json")
		if kind, verb, _ := strings.Cut(route.Action.Name, "."); err != nil || kind != resource.TypeName(route.Schema) || !strings.Contains(string(raw), `"`+verb+`": {`) {
			t.Errorf("%s has no action %s (%v)", route.Schema, route.Action.Name, err)
		}
	}
	if bodies == 0 {
		t.Error("no action was checked")
	}
}
