package redfish

import (
	"encoding/json"
	"io"
	"maps"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// operations is an OperationMap of the privilege registry.
type operations map[string][]struct{ Privilege []resource.Privilege }

// needs returns the privileges that an OperationMap requires.
func (o operations) needs(t *testing.T, what string) resource.Privileges {
	t.Helper()
	to := func(method string) []resource.Privilege {
		var out []resource.Privilege
		for _, alternative := range o[method] {
			if len(alternative.Privilege) != 1 {
				t.Errorf("%s of %s needs %s together, which the table cannot say", method, what, alternative.Privilege)
			}
			out = append(out, alternative.Privilege...)
		}
		return out
	}
	if _, ok := o["PUT"]; ok && !cmp.Equal(to("PUT"), to("PATCH")) {
		t.Errorf("PUT of %s needs %s, PATCH %s", what, to("PUT"), to("PATCH"))
	}
	return resource.Privileges{Get: to("GET"), Patch: to("PATCH"), Post: to("POST"), Delete: to("DELETE")}
}

// privilegeRegistry is DMTF's registry, the source of the table of privileges.
type privilegeRegistry struct {
	Mappings []struct {
		Entity       string
		OperationMap operations
		Subordinate  []override `json:"SubordinateOverrides"`
		Property     []override `json:"PropertyOverrides"`
		URI          []override `json:"ResourceURIOverrides"`
	}
}

type override struct {
	Targets      []string
	OperationMap operations
}

func readPrivileges(t *testing.T) privilegeRegistry {
	t.Helper()
	raw, err := dmtf(t).read("data/registries/Redfish_1.8.0_PrivilegeRegistry.json")
	must(t, err)
	var r privilegeRegistry
	must(t, json.Unmarshal(raw, &r))
	return r
}

var unexported = cmp.AllowUnexported(resource.Privileges{})

func TestPrivilegesMatchRegistry(t *testing.T) {
	known := map[string]bool{}
	overrides := 0
	for _, m := range readPrivileges(t).Mappings {
		known[m.Entity] = true
		want := m.OperationMap.needs(t, m.Entity)
		if len(m.Property) > 0 {
			want.Properties = map[string][]resource.Privilege{}
		}
		for _, o := range m.Property {
			for _, target := range o.Targets {
				want.Properties[target] = o.OperationMap.needs(t, m.Entity+"."+target).Patch
			}
			if len(o.OperationMap) != 1 {
				t.Errorf("%s: a property override of more than PATCH: %v", m.Entity, o)
			}
		}
		got, err := resource.EntityPrivileges(m.Entity, []string{"ServiceRoot"})
		if diff := cmp.Diff(want, got, unexported); err != nil || diff != "" {
			t.Errorf("%s: %v (-registry +table):\n%s", m.Entity, err, diff)
		}
		for _, o := range m.Subordinate {
			overrides++
			under, want := want, want
			of := o.OperationMap.needs(t, m.Entity)
			for _, op := range [][2]*[]resource.Privilege{{&under.Get, &of.Get}, {&under.Patch, &of.Patch}, {&under.Post, &of.Post}, {&under.Delete, &of.Delete}} {
				if *op[1] != nil {
					*op[0] = *op[1]
				}
			}
			above := []string{"ServiceRoot"}
			for _, target := range o.Targets {
				above = append(above, target, "Other")
			}
			places := []struct {
				above []string
				want  resource.Privileges
			}{{above, under}, {above[:len(above)-2], want}} // for all targets, and for all but the last
			if len(o.Targets) > 1 { // in another order
				places = append(places, struct {
					above []string
					want  resource.Privileges
				}{slices.Concat(above[3:], above[1:2]), want})
			}
			for _, place := range places {
				got, err := resource.EntityPrivileges(m.Entity, place.above)
				if diff := cmp.Diff(place.want, got, unexported); err != nil || diff != "" {
					t.Errorf("%s below %s: %v (-registry +table):\n%s", m.Entity, place.above, err, diff)
				}
			}
		}
		if len(m.URI) > 0 {
			t.Errorf("%s: resource URI overrides, of which the table knows none", m.Entity)
		}
	}
	for _, m := range resource.Mappings {
		for _, name := range strings.Fields(m.Entities) {
			if !known[name] {
				t.Errorf("the registry has no %s", name)
			}
		}
	}
	for _, o := range resource.SubordinateOverrides {
		overrides -= len(strings.Fields(o.Entities))
	}
	if overrides != 0 {
		t.Errorf("the registry has %d subordinate overrides more than the table", overrides)
	}
	for name := range resource.Properties {
		if !known[name] {
			t.Errorf("the registry has no %s", name)
		}
	}
}

func TestEveryResourceRequiresItsEntityPrivileges(t *testing.T) {
	all := resource.Rows()
	must(t, resource.AssignPrivileges(all))
	registry := map[string]resource.Privileges{}
	for _, m := range readPrivileges(t).Mappings {
		registry[m.Entity] = m.OperationMap.needs(t, m.Entity)
	}
	placed := map[string]bool{}
	for _, r := range all {
		if r.Schema == "" {
			continue
		}
		name := resource.TypeName(r.Schema)
		bare, ok := registry[name]
		if !ok {
			t.Errorf("%s: the registry has no %s", r.URI, name)
			continue
		}
		got := r.Privileges
		got.Properties = nil
		if !cmp.Equal(bare, got, unexported) {
			placed[name] = true
		}
	}
	t.Logf("overridden by their place: %s", slices.Sorted(maps.Keys(placed)))
	tests := []struct{ uri, method, want string }{
		{"/redfish/v1/Systems/{system}", "PATCH", "ConfigureComponents"},
		{resource.AccountsURI + "/{account}", "DELETE", "ConfigureUsers"},
		{"/redfish/v1/SessionService/Sessions/{session}", "GET", "ConfigureManager ConfigureSelf"},
		{"/redfish/v1/Systems/{system}/VirtualMedia/{slot}", "POST", "ConfigureManager"},
	}
	for _, tt := range tests {
		i := slices.IndexFunc(all, func(r resource.Row) bool { return r.URI == tt.uri })
		if got := strings.Join(resource.Texts(all[i].Privileges.ForMethod(tt.method)), " "); got != tt.want {
			t.Errorf("%s of %s needs %s, want %s", tt.method, tt.uri, got, tt.want)
		}
	}
}

// watchedBody is the body of a request that knows whether it was read.
type watchedBody struct{ read bool }

// Read implements io.Reader.
func (b *watchedBody) Read([]byte) (int, error) {
	b.read = true
	return 0, io.ErrUnexpectedEOF
}

// Every write is refused before its body is read: with 401 when it has no credentials or
// wrong ones, and with 403 when the account lacks the privilege.
func TestWriteWithoutRightsIsRefusedWithoutItsBody(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	var targets [][2]string
	for _, uri := range walk(t, s, nil) {
		for _, method := range []string{"POST", "PATCH", "PUT", "DELETE"} {
			targets = append(targets, [2]string{method, uri})
		}
		if m := s.tree.Find(&url.URL{Path: uri}); m == nil || m.Raw != nil {
			continue
		}
		body, _ := get(t, s, uri)
		_, actions := links(body)
		for _, target := range actions {
			targets = append(targets, [2]string{"POST", target})
		}
	}
	refused := map[int]int{}
	for _, x := range targets {
		method, uri := x[0], x[1]
		for header, want := range map[string]int{"": 401, "X-Auth-Token: 00112233445566778899aabbccddeeff": 401, "Authorization: Basic YWRtaW46d3Jvbmc=": 401, "reader": 403} {
			if uri == sessions && method == "POST" {
				continue // logs in
			}
			body := new(watchedBody)
			r := httptest.NewRequest(method, "https://bmc.test"+uri, body)
			r.ContentLength = 100
			if name, content, ok := strings.Cut(header, ": "); ok {
				r.Header.Set(name, content)
			} else if header != "" {
				r.SetBasicAuth("reader", "read-secret-3")
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			switch {
			case w.Code == want:
				refused[want]++
				if body.read || w.Header().Get("Connection") != "close" { // net/http would read it
					t.Errorf("%s with %q: the body is read before the response", shape(method, uri, "", w), header)
				}
			case want == 401:
				t.Errorf("%s with %q, want %d", shape(method, uri, "", w), header, want)
			}
		}
	}
	if refused[401] < 1000 || refused[403] < 100 {
		t.Errorf("%v writes were refused of %d, want all without credentials, and most of a reader", refused, len(targets))
	}
}
