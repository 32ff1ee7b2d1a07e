package redfish

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// requiredOnCreate has the properties that DMTF's schemas require of a new member, by the
// type of the collections that take a POST (DSP8010, requiredOnCreate).
var requiredOnCreate = map[string][]string{
	"CertificateCollection":            {"CertificateString", "CertificateType"},
	"EventDestinationCollection":       {"Destination", "Protocol"},
	"JobCollection":                    {},
	"ManagerAccountCollection":         {"Password", "RoleId", "UserName"},
	"MetricReportDefinitionCollection": {},
	"RoleCollection":                   {"RoleId"},
	"SessionCollection":                {"Password", "UserName"},
	"SignatureCollection":              {"SignatureString", "SignatureType", "SignatureTypeRegistry"},
	"VolumeCollection":                 {},
}

// requiredOfNew returns the properties without which a POST to a collection is refused.
func requiredOfNew(inputs []resource.Input) []string {
	out := []string{}
	for _, i := range inputs {
		if i.Required {
			out = append(out, i.Name)
		}
	}
	slices.Sort(out)
	return out
}

// Every collection that takes a POST requires what its schema requires. It may require
// more where this service cannot do without, as a Job its Payload.
func TestCollectionsRequireWhatTheirSchemasRequire(t *testing.T) {
	types := map[string]bool{}
	for _, row := range newService(t, newHost(t)).tree.Rows {
		if row.Create == nil {
			continue
		}
		types[row.Schema] = true
		want, known := requiredOnCreate[row.Schema]
		if !known {
			t.Errorf("%s: requiredOnCreate lacks %s", row.URI, row.Schema)
		}
		got := requiredOfNew(row.Create.Inputs)
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("%s requires %v, want %s too", row.URI, got, name)
			}
		}
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(requiredOnCreate)), slices.Sorted(maps.Keys(types))); d != "" {
		t.Errorf("collections that take a POST (-requiredOnCreate +tree):\n%s", d)
	}
}

func TestRequiredOnCreateIsTheSchemas(t *testing.T) {
	tree, schemas := newService(t, newHost(t)).tree, dmtf(t)
	for collection, want := range requiredOnCreate {
		name := strings.TrimSuffix(collection, "Collection")
		i := slices.IndexFunc(tree.Schemas, func(s string) bool { return resource.TypeName(s) == name })
		if i < 0 {
			t.Errorf("no schema of %s", name)
			continue
		}
		raw, err := schemas.read(schemaFolder + tree.Schemas[i] + ".json")
		must(t, err)
		var file struct {
			Definitions map[string]struct {
				RequiredOnCreate []string `json:"requiredOnCreate"`
			} `json:"definitions"`
		}
		must(t, json.Unmarshal(raw, &file))
		got := append([]string{}, file.Definitions[name].RequiredOnCreate...)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-requiredOnCreate +schema):\n%s", tree.Schemas[i], d)
		}
	}
}

// A POST that lacks a required property is refused by its name, by the BMCs of all
// dialects. The exceptions are the defaults that a record has.
func TestEveryDialectRequiresPropertiesOnCreate(t *testing.T) {
	whole := map[string]map[string]any{
		"/redfish/v1/EventService/Subscriptions": {"Destination": "https://a.test/", "Protocol": "Redfish"},
		"/redfish/v1/SessionService/Sessions":    {"UserName": "admin", "Password": "wrong"},
		"/redfish/v1/AccountService/Accounts":    {"UserName": "joe", "Password": "joes-Pa55word", "RoleId": "Operator"},
		"/redfish/v1/AccountService/Roles":       {"RoleId": "Guest", "AssignedPrivileges": []string{"Login"}},
	}
	tried := map[string]int{}
	for _, v := range vendors {
		s, _ := newVendorHost(t, v.record, v.profiles[0])
		for uri, body := range whole {
			kind := s.tree.Find(&url.URL{Path: uri}).Schema
			for _, missing := range requiredOnCreate[kind] {
				part := maps.Clone(body)
				delete(part, missing)
				sent, err := json.Marshal(part)
				must(t, err)
				w := call(t, s, "admin", http.MethodPost, uri, string(sent))
				said := w.Body.String()
				named := strings.Contains(said, missing) && (strings.Contains(said, "PropertyMissing") || strings.Contains(said, "CreateFailedMissingReqProperties"))
				switch {
				case w.Code == http.StatusMethodNotAllowed || w.Code == http.StatusNotFound: // the vendor has it otherwise
				case hasDefault(v.record, kind, missing):
					tried["default"]++
					if named {
						t.Errorf("%s: a default that is missed: %s", v.record.Name, shape(http.MethodPost, uri, string(sent), w))
					}
				default:
					tried[kind]++
					if w.Code != http.StatusBadRequest || !named {
						t.Errorf("%s: without %s: %s", v.record.Name, missing, shape(http.MethodPost, uri, string(sent), w))
					}
				}
			}
		}
	}
	for _, kind := range []string{"EventDestinationCollection", "SessionCollection", "ManagerAccountCollection", "default"} {
		if tried[kind] == 0 {
			t.Errorf("nothing was tried of %s: %v", kind, tried)
		}
	}
}

// hasDefault reports whether a dialect gives a property of a new member a default.
func hasDefault(r *dialect.Record, kind, name string) bool {
	return slices.ContainsFunc(r.Presentation.InputAliases, func(g dialect.InputAlias) bool {
		return g.ResourceType == kind && g.Path == name && g.Default != nil && (g.Method == "" || g.Method == http.MethodPost)
	})
}
