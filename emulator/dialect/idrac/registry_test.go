package idrac

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// The registry describes each attribute that the groups of iDRAC 9 and 10 show, with the
// values that they take: dellemc.openmanage refuses others before it sends them.
func TestRegistryDescribesEveryAttribute(t *testing.T) {
	described := map[string]map[string]any{}
	for _, r := range attributeRegistry() {
		for _, p := range r.Set {
			if list, ok := p.Value.([]any); ok && p.Path == "RegistryEntries/Attributes" {
				for _, e := range list {
					entry, _ := e.(map[string]any)
					name, _ := entry["AttributeName"].(string)
					described[name] = entry
				}
			}
		}
	}
	for name, record := range map[string]dialect.Record{"idrac9-5": NineFive, "idrac9": Nine, "idrac10": Ten} {
		for _, r := range record.OEM.Resources {
			if !strings.HasPrefix(r.Type, "DellAttributes.") {
				continue
			}
			for _, p := range r.Set {
				attr, ok := strings.CutPrefix(p.Path, "Attributes/")
				if !ok {
					continue
				}
				entry := described[attr]
				if entry == nil {
					t.Errorf("%s: the registry does not describe %s", name, attr)
					continue
				}
				if got, want := entry["Readonly"] != true, slices.Contains(r.Writable, p.Path); want && !got {
					t.Errorf("%s: %s is writable, and Readonly in the registry", name, attr)
				}
				var takes []string
				values, _ := entry["Value"].([]any)
				for _, v := range values {
					shown, _ := v.(map[string]any)
					text, _ := shown["ValueDisplayName"].(string)
					takes = append(takes, text)
				}
				if want := r.AllowableValues[p.Path]; want != nil {
					if d := cmp.Diff(want, takes); d != "" {
						t.Errorf("%s: values of %s (-group +registry):\n%s", name, attr, d)
					}
				}
			}
		}
	}
}
