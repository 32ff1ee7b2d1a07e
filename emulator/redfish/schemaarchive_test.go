package redfish

import (
	"archive/zip"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

func newServiceWith(t testing.TB, h *host, c Config) *Service {
	t.Helper()
	c.Rack = rack{h}
	s, err := New(c)
	must(t, err)
	return s
}

func TestSchemasAreServedFromArchive(t *testing.T) {
	// The archives have the layout of DMTF's DSP8010 and DSP8011.
	archive := fstest.MapFS{
		"DSP8010_2025.4/json-schema/ComputerSystem.v1_27_0.json": {Data: []byte(`{"title":"#ComputerSystem.v1_27_0.ComputerSystem"}`)},
		"DSP8010_2025.4/csdl/ComputerSystem_v1.xml":              {Data: []byte(`<edmx/>`)},
		"DSP8010_2025.4/openapi/openapi.yaml":                    {Data: []byte(`x`)},
		"DSP8011_2025.4/Base.1.22.1.json":                        {Data: []byte(`{"Id":"Base.1.22.1"}`)},
		"DSP8011_2025.4/notes.json":                              {Data: []byte(`x`)},
	}
	s := newServiceWith(t, newHost(t), Config{Schemas: archive})
	file, _ := get(t, s, "/redfish/v1/JsonSchemas/ComputerSystem.v1_27_0")
	at := file["Location"].([]any)[0].(map[string]any)
	if file["Schema"] != "#ComputerSystem.v1_27_0.ComputerSystem" || at["PublicationUri"] != "http://redfish.dmtf.org/schemas/v1/ComputerSystem.v1_27_0.json" {
		t.Errorf("schema file %v", file)
	}
	uri, _ := at["Uri"].(string)
	if w := call(t, s, "reader", "GET", uri, ""); w.Code != 200 || !strings.Contains(w.Body.String(), "#ComputerSystem.v1_27_0") || w.Header().Get("Content-Type") != "application/json;charset=utf-8" {
		t.Errorf("%s", shape("GET", uri, "", w))
	}
	if w := call(t, s, "", "GET", uri, ""); w.Code != 401 {
		t.Errorf("without login %s", shape("GET", uri, "", w))
	}
	if w := call(t, s, "admin", "GET", resource.SchemaStore+"ComputerSystem_v1.xml", ""); w.Code != 200 || w.Header().Get("Content-Type") != "application/xml;charset=utf-8" {
		t.Errorf("%s", shape("GET", "CSDL", "", w))
	}
	for _, name := range []string{"openapi.yaml", "notes.json", "..%2fnotes.json", "Chassis.v1_28_0.json"} {
		if w := call(t, s, "admin", "GET", resource.SchemaStore+name, ""); w.Code != 404 {
			t.Errorf("%s", shape("GET", name, "", w))
		}
	}
	other, _ := get(t, s, "/redfish/v1/JsonSchemas/Chassis.v1_28_0")
	if at := other["Location"].([]any)[0].(map[string]any); at["Uri"] != nil || at["PublicationUri"] == nil {
		t.Errorf("a schema that is not in the archive is at %v", at)
	}
}

func TestSchemasWithoutArchiveLinkToDMTF(t *testing.T) {
	s := newService(t, newHost(t))
	all, _ := get(t, s, "/redfish/v1/JsonSchemas")
	if n := len(all["Members"].([]any)); n != len(s.tree.Schemas) || n < 20 {
		t.Errorf("%d schemas, %d types are served", n, len(s.tree.Schemas))
	}
	if w := call(t, s, "admin", "GET", resource.SchemaStore+"ComputerSystem.v1_27_0.json", ""); w.Code != 404 {
		t.Errorf("%s", shape("GET", "schema", "", w))
	}
}

func TestArchiveWithoutSchemasIsRejected(t *testing.T) {
	for _, files := range []fstest.MapFS{{}, {"a/b.json": {}}, {"json-schema/readme.txt": {}}, {"csdl/ComputerSystem_v1.xml": {}}} {
		if _, err := New(Config{Rack: rack{newHost(t)}, Schemas: files}); err == nil || !strings.Contains(err.Error(), "Schemas") {
			t.Errorf("New with %v: %v", files, err)
		}
	}
}

func TestDMTFArchiveHasEverySchema(t *testing.T) {
	z, err := zip.OpenReader(prerequisites.Need(t, "DMTF archive"))
	must(t, err)
	defer z.Close()
	s := newServiceWith(t, newHost(t), Config{Schemas: z})
	for _, schema := range s.tree.Schemas {
		if strings.HasPrefix(schema, "Volume") { // SNIA's: DSP8010 has only a part of them
			continue
		}
		if !s.tree.Library.Has(schema + ".json") {
			t.Errorf("%s is not in the archive", schema)
		}
	}
	if !slices.Contains(s.tree.Library.Names(), "Base.1.22.1.json") {
		t.Error("the archive's registries are not found")
	}
	if w := call(t, s, "admin", "GET", resource.SchemaStore+"Chassis.v1_28_0.json", "", "Accept-Encoding", "gzip"); w.Code != 200 || w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("GET = %d %v", w.Code, w.Header())
	}
}
