package redfish

import (
	"encoding/json"
	"encoding/xml"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// forgotten is a message that some versions of Base lack although older ones have it;
// their errata add it again.
const forgotten = "PropertyValueOutOfRange"

func TestMessagesMatchDMTFRegistries(t *testing.T) {
	type registry struct {
		Prefix   string `json:"RegistryPrefix"`
		Version  string `json:"RegistryVersion"`
		Messages map[string]struct {
			Args       int              `json:"NumberOfArgs"`
			Severity   message.Severity `json:"MessageSeverity"`
			Deprecated string           `json:"VersionDeprecated"`
		}
	}
	read := func(name string) registry {
		raw, err := dmtf(t).read("data/registries/" + name + ".json")
		must(t, err)
		var r registry
		must(t, json.Unmarshal(raw, &r))
		return r
	}
	for _, ours := range message.Registries {
		newest := read(ours.Prefix + "." + ours.Version)
		if newest.Prefix != ours.Prefix || newest.Version != ours.Version {
			t.Errorf("%s.%s is %s.%s", ours.Prefix, ours.Version, newest.Prefix, newest.Version)
		}
		known := map[string]bool{}
		for _, e := range ours.Entries {
			d, args := e.Definition()
			known[d.Key] = true
			want, ok := newest.Messages[d.Key]
			if !ok || args != want.Args || d.Severity != want.Severity {
				t.Errorf("%s.%s: %d arguments, %s; the registry says %d, %s (known: %t)", ours.Prefix, d.Key, args, d.Severity, want.Args, want.Severity, ok)
			}
		}
		for key, m := range newest.Messages {
			if ours.Complete && !known[key] && m.Deprecated == "" {
				t.Errorf("%s.%s is missing", ours.Prefix, key)
			}
		}
	}
	// The older versions of a registry show which one added each message.
	for name := range dmtf(t).files {
		file, version, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".json"), ".")
		i := slices.IndexFunc(message.Registries, func(r message.Contents) bool { return r.Prefix == file })
		if i < 0 || !strings.HasPrefix(name, "data/registries/") {
			continue
		}
		minor, err := strconv.Atoi(strings.Split(version, ".")[1])
		must(t, err)
		raw, err := dmtf(t).read(name)
		must(t, err)
		var has struct{ Messages map[string]any }
		must(t, json.Unmarshal(raw, &has))
		for _, e := range message.Registries[i].Entries {
			d, _ := e.Definition()
			if _, ok := has.Messages[d.Key]; ok && d.Since > minor {
				t.Errorf("%s.%s is in %s already, not since 1.%d", file, d.Key, version, d.Since)
			} else if !ok && d.Since < minor && d.Key != forgotten {
				t.Errorf("%s.%s is not yet in %s, but since 1.%d", file, d.Key, version, d.Since)
			}
		}
	}
}

func TestMetadataRefersToExistingSchemas(t *testing.T) {
	w := call(t, newService(t, newHost(t)), "", "GET", "/redfish/v1/$metadata", "")
	var doc struct {
		References []struct {
			URI      string `xml:"Uri,attr"`
			Includes []struct {
				Namespace string `xml:",attr"`
			} `xml:"Include"`
		} `xml:"Reference"`
		Container struct {
			Extends string `xml:",attr"`
		} `xml:"DataServices>Schema>EntityContainer"`
	}
	must(t, xml.Unmarshal(w.Body.Bytes(), &doc))
	included := map[string]bool{}
	b := dmtf(t)
	for _, r := range doc.References {
		csdl, err := b.read("data/csdl/" + path.Base(r.URI))
		if err != nil {
			t.Errorf("%s: %v", r.URI, err)
			continue
		}
		for _, i := range r.Includes {
			included[i.Namespace] = true
			if !strings.Contains(string(csdl), `Namespace="`+i.Namespace+`"`) {
				t.Errorf("%s has no namespace %s", r.URI, i.Namespace)
			}
		}
	}
	for _, r := range resource.Rows() {
		if r.Schema != "" && !included[r.Schema] {
			t.Errorf("no reference to %s; there are %q", r.Schema, slices.Sorted(maps.Keys(included)))
		}
	}
	if doc.Container.Extends != "ServiceRoot.v1_0_0.ServiceContainer" || !included["ServiceRoot.v1_0_0"] {
		t.Errorf("EntityContainer extends %q", doc.Container.Extends)
	}
}

func TestServiceDocumentListsRootLinks(t *testing.T) {
	s := newService(t, newHost(t))
	var doc struct {
		Context string `json:"@odata.context"`
		Value   []struct{ Name, Kind, URL string }
	}
	must(t, json.Unmarshal(call(t, s, "", "GET", "/redfish/v1/odata", "").Body.Bytes(), &doc))
	var got []string
	for _, v := range doc.Value {
		got = append(got, v.URL)
	}
	root, _ := get(t, s, "/redfish/v1/")
	want := []string{"/redfish/v1/"}
	for _, name := range slices.Sorted(maps.Keys(root)) {
		child, _ := root[name].(map[string]any)
		if link, ok := child["@odata.id"].(string); ok {
			want = append(want, link)
		}
	}
	want = append(want, sessions)
	if diff := cmp.Diff(want, got); diff != "" || doc.Context != "/redfish/v1/$metadata" {
		t.Errorf("@odata.context %s; addresses (-want +got):\n%s", doc.Context, diff)
	}
}

// TestProtocolFeaturesSupportedAreTrue shows statement A16.
func TestProtocolFeaturesSupportedAreTrue(t *testing.T) {
	s := newService(t, newHost(t))
	root, _ := get(t, s, "/redfish/v1/")
	features := root["ProtocolFeaturesSupported"].(map[string]any)
	for option, feature := range map[string]any{
		"$top=1": features["TopSkipQuery"], "$skip=0": features["TopSkipQuery"], "$filter=Name%20eq%20'x'": features["FilterQuery"], "$select=Name": features["SelectQuery"],
		"$expand=.": features["ExpandQuery"].(map[string]any)["NoLinks"],
	} {
		if w := call(t, s, "admin", "GET", "/redfish/v1/Systems?"+option, ""); (w.Code == 200) != feature.(bool) || !feature.(bool) && w.Code != 501 {
			t.Errorf("?%s = %d, but the root says %v", option, w.Code, feature)
		}
	}
}
