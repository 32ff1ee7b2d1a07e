package module

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseMetadata(t *testing.T) {
	got, err := ParseMetadata([]byte(`
name: sysctl
version: 1.2.7-dev
description: Sets parameters of the kernel
docURL: https://docs.example.org/sysctl
playbook: playbooks/main.yaml
valuesJsonSchema: schema.json
deprecates:
- version: 1.1.0
- {name: kernel_parameters, version: 2.0.0}
supportedDistributions: [ubuntu/jammy, debian/bookworm]
addedByALaterVersion: {a: 1}
`))
	want := Metadata{
		Name: "sysctl", Version: "1.2.7-dev", Description: "Sets parameters of the kernel", DocURL: "https://docs.example.org/sysctl",
		Playbook: "playbooks/main.yaml", Schema: "schema.json",
		Deprecates:             []Deprecation{{"sysctl", "1.1.0"}, {"kernel_parameters", "2.0.0"}},
		SupportedDistributions: []string{"ubuntu/jammy", "debian/bookworm"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("ParseMetadata error = %v (-want +got):\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"a: [":                            "metadata.yaml: yaml:",
		"- name: a":                       "metadata.yaml: yaml:",
		"name: ../a":                      `name "../a": use up to 63 letters`,
		"name: -a":                        `name "-a"`,
		"name: a\nversion: 1.0":           `version "1.0": use a version of Semantic Versioning`,
		"version: v1.0.0":                 `version "v1.0.0"`,
		"playbook: /etc/a.yaml":           `playbook "/etc/a.yaml": name a file by its path in the archive`,
		"playbook: a/../../b":             `playbook "a/../../b"`,
		"name: a":                         `playbook ""`,
		"valuesJsonSchema: ../s":          `valuesJsonSchema "../s"`,
		"deprecates: [{name: b}]":         `deprecates[0].version ""`,
		"supportedDistributions: [jammy]": `supportedDistributions[0] "jammy": use a form like ubuntu/jammy`,
		"name: a\nversion: 1.0.0\ndeprecates: [{version: 1.0.0}]": "deprecates[0]: a module cannot deprecate its version 1.0.0 itself",
	} {
		if _, err := ParseMetadata([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseMetadata(%q) error = %v, want %q", text, err, want)
		}
	}
}

func TestCompareOrdersVersionsByNumber(t *testing.T) {
	sorted := []string{"", "1.0", "0.9.0", "1.2.7-dev", "1.2.7-dev.2", "1.2.7-dev.10", "1.2.7", "1.9.0", "1.10.0", "2.0.0+a", "2.0.0+b"}
	got := slices.SortedFunc(slices.Values([]string{sorted[8], sorted[2], sorted[10], sorted[0], sorted[5], sorted[6], sorted[4], sorted[3], sorted[1], sorted[7], sorted[9]}), Compare)
	if diff := cmp.Diff(sorted, got); diff != "" {
		t.Errorf("sorted by Compare (-want +got):\n%s", diff)
	}
}

// statements H2 and H5: the digest is checked before anything is parsed, then name and
// version.
func TestLoadExpected(t *testing.T) {
	archive := sample(t)
	good := Expected{"sample", "1.0.0", Sum(archive)}
	if m, err := LoadExpected(archive, good); err != nil || m.SHA256 != good.SHA256 || m.Playbook != "main.yaml" {
		t.Errorf("LoadExpected = %+v, %v", m, err)
	}
	for _, tt := range []struct {
		archive []byte
		want    Expected
		err     string
	}{
		{archive, Expected{"sample", "1.0.0", "abc"}, "hashes are not the same: got '" + good.SHA256 + "' want 'abc'"},
		{[]byte("no archive"), good, "hashes are not the same: got '" + Sum([]byte("no archive")) + "' want '" + good.SHA256 + "'"},
		{archive, Expected{"simple", "1.0.0", good.SHA256}, "the archive has module sample 1.0.0, not simple 1.0.0"},
		{archive, Expected{"sample", "1.0.1", good.SHA256}, "the archive has module sample 1.0.0, not sample 1.0.1"},
	} {
		if _, err := LoadExpected(tt.archive, tt.want); err == nil || !strings.HasPrefix(err.Error(), tt.err) {
			t.Errorf("LoadExpected(%+v) error = %v, want %q", tt.want, err, tt.err)
		}
	}
}

const sysctlSchema = `{
	"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false, "required": ["filename"],
	"properties": {
		"filename": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 8},
		"mode": {"enum": ["strict", "lax"]},
		"state": {"const": "present"},
		"level": {"$ref": "#/definitions/level"},
		"on": {"type": "boolean"},
		"options": {"type": "object", "additionalProperties": {"oneOf": [{"type": "string"}, {"type": "integer"}]}},
		"list": {"type": "array", "minItems": 1}
	},
	"definitions": {"level": {"type": "integer", "minimum": 1, "maximum": 9}}
}`

// statement H14: the text of the error, and that it has no values.
func TestValidate(t *testing.T) {
	s, err := ParseSchema([]byte(sysctlSchema))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		values string
		want   []string // nil: valid
	}{
		{`{"filename":"a","mode":"lax","state":"present","level":3,"on":true,"options":{"a":1,"b":"2"},"list":[1]}`, nil},
		{`{}`, []string{`values: missing required "filename"`}},
		{`{"filename":"a","z":1,"y":2}`, []string{`values: unknown "y", "z": the schema does not allow it`}},
		{`{"filename":5}`, []string{`values.filename: is of type number, must be string`}},
		{`{"filename":"Hunter2-hunter2"}`, []string{`values.filename: must have at most 8 characters`, `values.filename: must match "^[a-z]+$"`}},
		{`{"filename":"a","mode":"hunter2"}`, []string{`values.mode: must be one of "strict", "lax"`}},
		{`{"filename":"a","state":"hunter2"}`, []string{`values.state: must be "present"`}},
		{`{"filename":"a","level":0}`, []string{`values.level: must be at least 1`}},
		{`{"filename":"a","level":10}`, []string{`values.level: must be at most 9`}},
		{`{"filename":"a","level":1.5}`, []string{`values.level: is of type number, must be integer`}},
		{`{"filename":"a","options":{"a":true}}`, []string{`values.options.a: is of type boolean, must be integer`, `values.options.a: is of type boolean, must be string`}},
		{`{"filename":"a","list":[]}`, []string{`values.list: must have at least 1 items`}},
	} {
		var values map[string]any
		if err := json.Unmarshal([]byte(tt.values), &values); err != nil {
			t.Fatal(err)
		}
		err := s.Validate(values)
		var bad *ValuesError
		if errors.As(err, &bad) != (tt.want != nil) {
			t.Errorf("Validate(%s) error = %v", tt.values, err)
			continue
		}
		if tt.want == nil {
			continue
		}
		if diff := cmp.Diff(tt.want, bad.Violations); diff != "" {
			t.Errorf("Validate(%s) (-want +got):\n%s", tt.values, diff)
		}
		if text := err.Error(); !strings.HasPrefix(text, "schema validation failed: values") || strings.Contains(strings.ToLower(text), "hunter2") {
			t.Errorf("Validate(%s) error = %q: want it without the value", tt.values, text)
		}
	}
}

func TestSchemasThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{`:               "is not JSON",
		`{"type":"text"}`: "is not a JSON Schema of draft-07",
		`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`: "use http://json-schema.org/draft-07/schema#",
		`{"$ref":"http://192.0.2.1/schema.json"}`:                    "a schema cannot refer to another document",
		`{"$ref":"file:///etc/passwd"}`:                              "a schema cannot refer to another document",
		`{"pattern":"("}`:                                            "is not a JSON Schema of draft-07",
	} {
		if _, err := ParseSchema([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseSchema(%s) error = %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{`{}`, `true`, `{"$schema":"https://json-schema.org/draft-07/schema#"}`, `{"$schema":"http://json-schema.org/draft-07/schema"}`} {
		if _, err := ParseSchema([]byte(text)); err != nil {
			t.Errorf("ParseSchema(%s) error = %v", text, err)
		}
	}
}

// statement H19: the Secret wins, and its texts have the types of the schema.
func TestMergeOfSecretValues(t *testing.T) {
	s, err := ParseSchema([]byte(sysctlSchema))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{"filename": "plain", "mode": "lax"}
	secret := map[string][]byte{"filename": []byte("42"), "level": []byte("7"), "on": []byte("true"), "list": []byte("[1]"), "other": []byte("5"), "state": []byte("{}")}
	before := maps.Clone(values)
	got := s.Merge(values, secret)
	want := map[string]any{"filename": "42", "mode": "lax", "level": json.RawMessage("7"), "on": json.RawMessage("true"), "list": "[1]", "other": "5", "state": "{}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Merge (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, values); diff != "" {
		t.Errorf("Merge changed its argument (-before +after):\n%s", diff)
	}
	if got := s.Merge(nil, map[string][]byte{"level": []byte("seven")}); got["level"] != "seven" {
		t.Errorf("a text that is no number = %v", got)
	}
	if got := (*Schema)(nil).Merge(nil, map[string][]byte{"level": []byte("7")}); got["level"] != "7" {
		t.Errorf("a text without a schema = %v", got)
	}
}

// The same files give the same archive, whatever else the file system has.
func TestBuildIsReproducible(t *testing.T) {
	files := fstest.MapFS{
		"metadata.yaml": {Data: []byte(goodMetadata)}, "main.yaml": {Data: []byte("- hosts: all\n")},
		"templates/b.j2": {Data: []byte("b")}, "templates/a.j2": {Data: []byte("a")},
	}
	first, m, err := Build(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		f.Mode, f.ModTime = 0o755, time.Now()
	}
	second, _, err := Build(files)
	if err != nil || Sum(first) != Sum(second) || m.SHA256 != Sum(first) {
		t.Errorf("two builds: %s, %s, %s, %v", Sum(first), Sum(second), m.SHA256, err)
	}
	if m.FileName() != "sample-1.0.0.tgz" {
		t.Errorf("FileName = %s", m.FileName())
	}
	var headers []string
	a, err := Read(strings.NewReader(string(first)))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range a.entries {
		headers = append(headers, e.name+" "+e.mode.String())
	}
	want := []string{"main.yaml -rw-------", "metadata.yaml -rw-------", "templates -rwxr-xr-x", "templates/a.j2 -rw-------", "templates/b.j2 -rw-------"}
	if diff := cmp.Diff(want, headers); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	// A golden: gzip of another release of Go may change it, and then every list of modules.
	if got, want := Sum(first), goldenSum; got != want {
		t.Errorf("SHA-256 of the archive = %s, want %s", got, want)
	}
	delete(files, "main.yaml")
	if _, _, err := Build(files); err == nil || !strings.Contains(err.Error(), "playbook: archive has no file main.yaml") {
		t.Errorf("Build without a playbook: %v", err)
	}
}

const goldenSum = "23f469dd1b57a9d68d8d73e2c5a3372a41dedf23a1e61f27763ecd4f17f5c4ef"

func TestIndex(t *testing.T) {
	text := `apiVersion: kaas.mirantis.com/v1alpha1
kind: HostOSConfigurationModules
metadata:
  name: mcc-modules
spec:
  modules:
    - name: ntp
      version: 1.10.0
      sha256sum: aa
    - name: ntp
      version: 1.9.0
      sha256sum: bb
      url: http://repo/ntp-1.9.0.tgz
    - name: auditd
      version: 2.0.0
      sha256sum: cc
`
	x, err := ParseIndex([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	x.Put(Entry{Name: "ntp", Version: "1.10.0", SHA256: "dd"})
	x.Put(Entry{Name: "ntp", Version: "1.10.0-dev", SHA256: "ee"})
	got, err := x.Text()
	want := `apiVersion: kaas.mirantis.com/v1alpha1
kind: HostOSConfigurationModules
metadata:
  name: mcc-modules
spec:
  modules:
    - name: auditd
      version: 2.0.0
      sha256sum: cc
    - name: ntp
      version: 1.9.0
      sha256sum: bb
      url: http://repo/ntp-1.9.0.tgz
    - name: ntp
      version: 1.10.0-dev
      sha256sum: ee
    - name: ntp
      version: 1.10.0
      sha256sum: dd
`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("Text error = %v (-want +got):\n%s", err, diff)
	}
	for text, want := range map[string]string{
		strings.Replace(text, "metadata:", "status: {}\nmetadata:", 1): "field status not found",
		strings.Replace(text, "Modules\n", "Module\n", 1):              "must be kaas.mirantis.com/v1alpha1 HostOSConfigurationModules",
		strings.Replace(text, "1.9.0", "1.9", 1):                       `spec.modules[1]: "ntp" "1.9"`,
		text + "---\n" + text:                                          "more than one document",
	} {
		if _, err := ParseIndex([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseIndex error = %v, want %q", err, want)
		}
	}
}

// Violations of not, dependencies and the like name the mistake.
func TestViolationsNameTheirCause(t *testing.T) {
	s, err := ParseSchema([]byte(`{"type": "object",
		"not": {"required": ["file", "text"]},
		"dependencies": {"user": ["group", "home"], "tls": {"required": ["ca"]}},
		"properties": {
			"a/b": {"not": {"enum": ["x"]}},
			"old": false,
			"list": {"uniqueItems": true, "items": {"allOf": [{"not": {"const": "y"}}]}},
			"map": {"propertyNames": {"pattern": "^[a-z]+$"}, "minProperties": 1, "maxProperties": 2},
			"size": {"multipleOf": 4},
			"one": {"oneOf": [{"minimum": 1}, {"type": "integer"}, {"maximum": -5}]},
			"pair": {"items": [{}, {}], "additionalItems": false},
			"long": {"not": {"description": "` + strings.Repeat("é", 300) + `"}}
		}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		values string
		want   []string
	}{
		{`{"file":"a","text":"b"}`, []string{`values: must not match {"required":["file","text"]}`}},
		{`{"user":"hunter2"}`, []string{`values: with "user" also give "group", "home"`}},
		{`{"user":"a","home":"b"}`, []string{`values: with "user" also give "group"`}},
		{`{"tls":true}`, []string{`values: missing required "ca"`}},
		{`{"a/b":"x"}`, []string{`values.a/b: must not match {"enum":["x"]}`}},
		{`{"old":"hunter2"}`, []string{`values.old: must not be given`}},
		{`{"list":[1,2,1]}`, []string{`values.list: items 0 and 2 are the same`}},
		{`{"list":["y"]}`, []string{`values.list.0: must not match {"const":"y"}`}},
		{`{"map":{"B":1}}`, []string{`values.map: the name "B" is not allowed`}},
		{`{"map":{}}`, []string{`values.map: must have at least 1 fields`}},
		{`{"map":{"a":1,"b":2,"c":3}}`, []string{`values.map: must have at most 2 fields`}},
		{`{"size":5}`, []string{`values.size: must be a multiple of 4`}},
		{`{"one":3}`, []string{`values.one: must match exactly one alternative of oneOf, and matches the numbers 1 and 2`}},
		{`{"pair":[1,2,3]}`, []string{`values.pair: has 1 items more than the schema allows`}},
		{`{"long":1}`, []string{`values.long: must not match {"description":"` + strings.Repeat("é", 120) + "…"}},
	} {
		var values map[string]any
		if err := json.Unmarshal([]byte(tt.values), &values); err != nil {
			t.Fatal(err)
		}
		var bad *ValuesError
		if err := s.Validate(values); !errors.As(err, &bad) {
			t.Errorf("Validate(%s) error = %v", tt.values, err)
			continue
		}
		if diff := cmp.Diff(tt.want, bad.Violations); diff != "" {
			t.Errorf("Validate(%s) (-want +got):\n%s", tt.values, diff)
		}
	}
}
