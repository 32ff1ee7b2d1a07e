package rack_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// TestListedPropertiesAreThoseThatPatchTakes sends each property of each resource that has
// @Redfish.WriteableProperties back as it is: PATCH answers those that are listed with
// anything but PropertyNotWritable and PropertyUnknown, and all others with one of them.
func TestListedPropertiesAreThoseThatPatchTakes(t *testing.T) {
	for _, of := range []string{"profile: generic", "profile: generic, quirks: [boot-readonly-use-settings]", "profile: raid", "profile: hpe-dl360-gen11", "profile: hpe-dl380-gen12"} {
		t.Run(of, func(t *testing.T) {
			r, err := rackfile.Parse("rack.yaml", []byte("kind: Lab\nhosts: [{count: 1, "+of+"}]\n"))
			if err != nil {
				t.Fatal(err)
			}
			l := racktest.Start(t, rack.Config{Rack: &r})
			listing, listed := 0, 0
			for _, uri := range walk(t, l) {
				_, body := call(t, l, l.First(), "GET", uri, "")
				if _, lists := body["@Redfish.WriteableProperties"]; !lists {
					continue
				}
				listing++
				check := func(path []string, value any, want bool) {
					for _, name := range slices.Backward(path) {
						value = map[string]any{name: value}
					}
					sent, err := json.Marshal(value)
					if err != nil {
						t.Fatal(err)
					}
					status, answer := call(t, l, l.First(), "PATCH", uri, string(sent))
					text, _ := json.Marshal(answer)
					refused := strings.Contains(string(text), "PropertyNotWritable") || strings.Contains(string(text), "PropertyUnknown")
					if refused == want && status != http.StatusPreconditionRequired {
						t.Errorf("%s lists %v: %v; PATCH %s = %d %s", uri, path, want, sent, status, text)
					}
					if want {
						listed++
					}
				}
				var look func(path []string, o map[string]any)
				look = func(path []string, o map[string]any) {
					names, _ := o["@Redfish.WriteableProperties"].([]any)
					for _, name := range slices.Sorted(maps.Keys(o)) {
						if strings.Contains(name, "@") || name == "Actions" || name == "Links" || name == "Oem" {
							continue
						}
						at := append(slices.Clone(path), name)
						below, group := o[name].(map[string]any)
						isListed := slices.Contains(names, any(name))
						if group && !isListed && below["@Redfish.WriteableProperties"] != nil {
							t.Errorf("%s does not list %v, which lists %v", uri, at, below["@Redfish.WriteableProperties"])
						}
						switch all, _ := o[name].([]any); {
						case isListed && group && below["@Redfish.WriteableProperties"] != nil:
							look(at, below)
						case isListed && len(all) > 0 && isObject(all[0]): // DSP0266, "PATCH on array properties": {} leaves an element as it is
							check(at, slices.Repeat([]any{map[string]any{}}, len(all)), true)
						default:
							check(at, o[name], isListed)
						}
					}
				}
				look(nil, body)
			}
			if listing == 0 || listed == 0 {
				t.Errorf("%d resources list %d properties, want some", listing, listed)
			}
		})
	}
}

func isObject(v any) bool { _, ok := v.(map[string]any); return ok }

// walk returns the URIs of all resources that a host's service links to.
func walk(t *testing.T, l *racktest.Rack) []string {
	t.Helper()
	read := map[string]bool{}
	todo := []string{"/redfish/v1/"}
	var follow func(value any)
	follow = func(value any) {
		switch x := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(x)) {
				if to, ok := x[name].(string); ok && name == "@odata.id" && strings.HasPrefix(to, "/redfish/v1/") && !strings.Contains(to, "#") {
					todo = append(todo, to)
				}
				follow(x[name])
			}
		case []any:
			for _, element := range x {
				follow(element)
			}
		}
	}
	for len(todo) > 0 {
		uri := todo[0]
		todo = todo[1:]
		if !read[uri] && !strings.HasSuffix(uri, "/SSE") {
			read[uri] = true
			_, body := call(t, l, l.First(), "GET", uri, "")
			follow(body)
		}
	}
	return slices.Sorted(maps.Keys(read))
}
