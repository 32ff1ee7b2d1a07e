package redfish

import (
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestOpenAPIDocumentTellsWhatTheServiceTakes(t *testing.T) {
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
	seen, told := map[string]bool{}, 0
	for _, route := range routes(s.tree.rows, s.tree) {
		p, ok := doc.Paths[route.pattern]
		if route.action != nil && route.action.inner {
			if ok {
				t.Errorf("%s is told, and is for no client", route.pattern)
			}
			continue
		}
		told++
		if !ok {
			t.Errorf("%s is not told", route.pattern)
			continue
		}
		var named []string
		for _, parameter := range p.Parameters {
			named = append(named, parameter.Name)
			if parameter.In != "path" || !parameter.Required {
				t.Errorf("%s: parameter %+v", route.pattern, parameter)
			}
		}
		if !slices.Equal(named, variables(route.pattern)) {
			t.Errorf("%s has the parameters %q", route.pattern, named)
		}
		for method, o := range map[string]*operation{"GET": p.Get, "PATCH": p.Patch, "POST": p.Post, "DELETE": p.Delete} {
			if takes := slices.Contains(route.methods, method); takes != (o != nil) {
				t.Errorf("%s %s is taken: %t, told: %t", method, route.pattern, takes, o != nil)
			}
			if o == nil {
				continue
			}
			if o.ID == "" || seen[o.ID] || o.Answers["default"] == nil || len(o.Answers) < 2 {
				t.Errorf("%s %s: operationId %q, responses %d", method, route.pattern, o.ID, len(o.Answers))
			}
			seen[o.ID] = true
			if open := o.Security != nil && len(*o.Security) == 0; open != route.public(method) {
				t.Errorf("%s %s needs no login: %t, told: %t", method, route.pattern, route.public(method), open)
			}
			if writes := method == "PATCH" || method == "POST"; writes != (o.Body != nil) {
				t.Errorf("%s %s has a body: %t", method, route.pattern, o.Body != nil)
			}
		}
	}
	if len(doc.Paths) != told {
		t.Errorf("%d paths are told, want %d", len(doc.Paths), told)
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

func TestPublishedActionsHaveTheirBodies(t *testing.T) {
	bodies := 0
	for _, route := range routes(rows(), &Tree{}) {
		if route.action == nil || route.action.inner || route.sends(http.MethodPost) == "" || strings.HasPrefix(route.action.name, "Oem.") {
			continue
		}
		bodies++
		raw, err := dmtf(t).read(schemaFolder + route.schema + ".json")
		if kind, verb, _ := strings.Cut(route.action.name, "."); err != nil || kind != typeName(route.schema) || !strings.Contains(string(raw), `"`+verb+`": {`) {
			t.Errorf("%s has no action %s (%v)", route.schema, route.action.name, err)
		}
	}
	if bodies == 0 {
		t.Error("no action was checked")
	}
}
