package redfish

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// bundle is DMTF's schemas and registries (DSP8010 and DSP8011 2025.4), which
// are not part of this repository.
type bundle struct {
	files map[string]*zip.File
	// absent has the definitions that schemas refer to and the bundle lacks, by file.
	absent map[string]map[string]any
}

var openBundle = sync.OnceValues(func() (*bundle, error) {
	if raced {
		return nil, fmt.Errorf("bodies are not checked under the race detector: %w", fs.ErrNotExist)
	}
	name, err := prerequisites.Find("DMTF archive")
	if err != nil {
		return nil, err
	}
	z, err := zip.OpenReader(name)
	if err != nil {
		return nil, err
	}
	b := &bundle{files: map[string]*zip.File{}, absent: map[string]map[string]any{}}
	for _, f := range z.File {
		b.files[f.Name] = f
	}
	return b, nil
})

// dmtf returns the bundle, and skips the test when there is none or the race detector is on.
func dmtf(t testing.TB) *bundle {
	t.Helper()
	if raced {
		t.Skip("checks of bodies take ten minutes with the race detector, which finds nothing in them")
	}
	prerequisites.Need(t, "DMTF archive")
	b, err := openBundle()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bundle) read(name string) ([]byte, error) {
	f, ok := b.files[name]
	if !ok {
		return nil, fmt.Errorf("no %s in the bundle", name)
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Load implements jsonschema.URLLoader. It reads the files of redfish.dmtf.org from the
// bundle.
func (b *bundle) Load(address string) (any, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host != "redfish.dmtf.org" {
		return nil, fmt.Errorf("schema %s: not DMTF's", address)
	}
	name := path.Base(u.Path)
	raw, err := b.read(schemaFolder + name)
	if err != nil { // a schema of a type that this service does not have
		return map[string]any{"definitions": b.absent[name]}, nil
	}
	file, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return nil, err
	}
	b.narrow(file, name == "LogEntry.json") // the collections of log entries hold complete entries
	b.note(file)
	return file, nil
}

// note records a definition that the bundle lacks.
func (b *bundle) note(schema any) {
	switch x := schema.(type) {
	case []any:
		for _, y := range x {
			b.note(y)
		}
	case map[string]any:
		to, _ := x["$ref"].(string)
		if file, definition, ok := strings.Cut(to, "#/definitions/"); ok && file != "" && b.files[schemaFolder+path.Base(file)] == nil {
			name := path.Base(file)
			if b.absent[name] == nil {
				b.absent[name] = map[string]any{}
			}
			b.absent[name][definition] = true
		}
		for _, y := range x {
			b.note(y)
		}
	}
}

const schemaFolder = "data/json-schema-latest/"

// narrow removes the alternatives of a schema that this service does not use: a complete
// resource in the place of a link, unless complete is set, and the versions of a type
// other than the newest, which the bundle has.
func (b *bundle) narrow(schema any, complete bool) {
	switch x := schema.(type) {
	case []any:
		for _, y := range x {
			b.narrow(y, complete)
		}
	case map[string]any:
		var links, known []any
		ways, _ := x["anyOf"].([]any)
		for _, w := range ways {
			to, _ := w.(map[string]any)["$ref"].(string)
			file, _, _ := strings.Cut(to, "#")
			switch {
			case strings.HasSuffix(to, "#/definitions/idRef"):
				links = append(links, w)
			case file == "" || b.files[schemaFolder+path.Base(file)] != nil:
				known = append(known, w)
			}
		}
		switch {
		case len(known) > 0 && known[0].(map[string]any)["$ref"] == nil: // the schema of a collection
			x["anyOf"] = append(links, known...)
		case len(links) > 0 && complete:
			x["anyOf"] = append(links, known...)
		case len(known) > 0 && strings.Contains(fmt.Sprint(known[0]), "/Redundancy.v"):
			x["anyOf"] = append(links, known...) // an object inside its resource
		case len(links) > 0:
			x["anyOf"] = links
		case len(known) > 0:
			x["anyOf"] = known
		}
		for _, y := range x {
			b.narrow(y, complete)
		}
	}
}

// schemaSet checks bodies against DMTF's schemas.
type schemaSet struct {
	b        *bundle
	compiler *jsonschema.Compiler
	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema
}

var theSchemas = sync.OnceValue(func() *schemaSet {
	b, _ := openBundle()
	c := jsonschema.NewCompiler()
	c.UseLoader(b)
	c.AssertFormat()
	return &schemaSet{b: b, compiler: c, compiled: map[string]*jsonschema.Schema{}}
})

func newSchemas(t testing.TB) *schemaSet {
	t.Helper()
	dmtf(t)
	return theSchemas()
}

// check validates a body against a schema: "ComputerSystem.v1_27_0".
func (s *schemaSet) check(t testing.TB, what, schema string, body []byte) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.compiled[schema]
	if c == nil {
		var err error
		if c, err = s.compiler.Compile(resource.JSONSchema(schema)); err != nil {
			t.Fatalf("schema %s: %v", schema, err)
		}
		s.compiled[schema] = c
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
	if err != nil {
		t.Errorf("%s: not JSON: %v\n%s", what, err, body)
		return
	}
	if err := c.Validate(value); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// uris returns the URI patterns that DMTF gives a type.
func (s *schemaSet) uris(t testing.TB, name string) []string {
	t.Helper()
	raw, err := s.b.read(schemaFolder + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Definitions map[string]struct {
			URIs []string `json:"uris"`
		} `json:"definitions"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Definitions[name].URIs
}

// enum returns the values of an enumeration of a schema.
func (s *schemaSet) enum(t testing.TB, schema, name string) []string {
	t.Helper()
	raw, err := s.b.read(schemaFolder + schema + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Definitions map[string]struct {
			Enum []string `json:"enum"`
		} `json:"definitions"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Definitions[name].Enum
}
