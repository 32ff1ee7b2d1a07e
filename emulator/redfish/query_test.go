package redfish

import (
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// hostOf returns a host with a changed dialect.Protocol.
func hostOf(t testing.TB, change func(p *dialect.Protocol)) *host {
	h := newHost(t)
	change(&h.d.Protocol)
	must(t, h.d.Validate())
	return h
}

// asked reads a URI with query parameters.
func asked(t testing.TB, s *Service, who as, uri, query string) map[string]any {
	t.Helper()
	path := uri + "?" + strings.NewReplacer(" ", "%20").Replace(query)
	w := call(t, s, who, "GET", path, "")
	if w.Code != 200 {
		t.Fatalf("%s", shape("GET", path, "", w))
	}
	return resource.Decode(w.Body.Bytes())
}

// TestPagesAddUpToCollection shows statement A11.
func TestPagesAddUpToCollection(t *testing.T) {
	for _, page := range []int{0, 1, 3, 100} {
		h := hostOf(t, func(p *dialect.Protocol) { p.PageSize = page })
		s := newService(t, h)
		roles := "/redfish/v1/AccountService/Accounts"
		for _, query := range []string{"", "$top=1", "$top=2&$expand=.", "$filter=Enabled eq true", "$filter=not (RoleId eq 'ReadOnly')&$top=1"} {
			want := slices.DeleteFunc([]string{"1", "2", "3", "4"}, func(id string) bool {
				return strings.Contains(query, "Enabled") && id == "4" || strings.Contains(query, "RoleId") && id == "3"
			})
			var got []string
			next := roles + "?" + strings.ReplaceAll(query, " ", "%20")
			for range 10 {
				w := call(t, s, "admin", "GET", next, "")
				if w.Code != 200 {
					t.Fatalf("%s", shape("GET", next, "", w))
				}
				o := resource.Decode(w.Body.Bytes())
				if count := o["Members@odata.count"]; count != odataCount(len(want)) {
					t.Errorf("page of %d, %s: count = %v, want %d", page, next, count, len(want))
				}
				for _, m := range o["Members"].([]any) {
					uri := m.(map[string]any)["@odata.id"].(string)
					got = append(got, uri[strings.LastIndexByte(uri, '/')+1:])
				}
				link, more := o["Members@odata.nextLink"].(string)
				if !more {
					break
				}
				next = link
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("page of %d, ?%s: members (-want +got):\n%s", page, query, diff)
			}
		}
	}
}

// TestEveryPageHasTheVendorsForm shows that the pages after the first have the URIs and the
// properties of the vendor, too (A11).
func TestEveryPageHasTheVendorsForm(t *testing.T) {
	s, h := newPresentedService(t, dialect.Presentation{
		URIMappings: []dialect.URIMapping{{From: "/redfish/v1/AccountService/Roles", To: "/redfish/v1/Acme/Roles"}},
		Transforms:  []dialect.Transform{{ResourceType: "RoleCollection", Set: []dialect.PropertyRule{{Path: "Name", Value: "Roles of Acme"}}}},
	})
	h.d.Protocol.PageSize = 1
	for _, query := range []string{"", "$skip=1", "$top=1&$skip=2", "$expand=.&$skip=1"} {
		o := asked(t, s, "admin", "/redfish/v1/Acme/Roles", query)
		member := o["Members"].([]any)[0].(map[string]any)["@odata.id"].(string)
		if o["Name"] != "Roles of Acme" || o["@odata.id"] != "/redfish/v1/Acme/Roles" || !strings.HasPrefix(member, "/redfish/v1/Acme/Roles/") {
			t.Errorf("?%s: %v %v has the member %s", query, o["@odata.id"], o["Name"], member)
		}
	}
}

func TestCollectionETagCoversAllMembers(t *testing.T) {
	unpaged := newService(t, newHost(t))
	inPages := newService(t, hostOf(t, func(p *dialect.Protocol) { p.PageSize = 1 }))
	uri := "/redfish/v1/AccountService/Roles"
	want := call(t, unpaged, "admin", "GET", uri, "").Header().Get("ETag")
	for _, query := range []string{"", "?$skip=1", "?$top=1&$skip=2"} {
		o := resource.Decode(call(t, inPages, "admin", "GET", uri+query, "").Body.Bytes())
		if o["@odata.etag"] != want {
			t.Errorf("%s%s: @odata.etag %v, want %s", uri, query, o["@odata.etag"], want)
		}
	}
}

// TestExpandEqualsSeparateReads shows statement A12.
func TestExpandEqualsSeparateReads(t *testing.T) {
	s := newService(t, newHost(t))
	for _, tt := range []struct {
		uri, query string
		at         []string // path of the expanded resource in the body
		of         string
	}{
		{"/redfish/v1/Systems", "$expand=.", []string{"Members", "0"}, sys},
		{"/redfish/v1/Systems", "$expand=.($levels=2)", []string{"Members", "0", "Storage"}, sys + "/Storage"},
		{"/redfish/v1/Systems", "$expand=*($levels=2)", []string{"Members", "0", "Links", "Chassis", "0"}, "/redfish/v1/Chassis/1"},
		{sys, "$expand=~", []string{"Links", "ManagedBy", "0"}, "/redfish/v1/Managers/1"},
		{sys, "$expand=~&$select=Links", []string{"Links", "ManagedBy", "0"}, "/redfish/v1/Managers/1"},
		{"/redfish/v1/Systems", "only", nil, sys},
		{"/redfish/v1/", "$expand=.", []string{"Systems"}, "/redfish/v1/Systems"},
	} {
		o := asked(t, s, "admin", tt.uri, tt.query)
		found := any(o)
		for _, segment := range tt.at {
			if all, isArray := found.([]any); isArray {
				found = all[segment[0]-'0']
				continue
			}
			var ok bool
			if found, ok = found.(map[string]any)[segment]; !ok {
				t.Fatalf("%s?%s has no %v", tt.uri, tt.query, tt.at)
			}
		}
		want, _ := get(t, s, tt.of)
		if strings.Contains(tt.query, "levels") && strings.HasSuffix(tt.of, "Systems/1") {
			continue
		}
		if diff := cmp.Diff(resource.Decode(resource.Encode(want)), found); diff != "" {
			t.Errorf("%s?%s at %v is not %s (-want +got):\n%s", tt.uri, tt.query, tt.at, tt.of, diff)
		}
	}
}

func TestQueriesRespectPrivileges(t *testing.T) {
	s := newService(t, newHost(t))
	accounts := asked(t, s, "reader", "/redfish/v1/AccountService/Accounts", "$expand=.")["Members"].([]any)
	for i, m := range accounts {
		_, name := m.(map[string]any)["UserName"]
		if readable := i == 2; name != readable {
			t.Errorf("a reader sees the account %d: %t", i+1, name)
		}
	}
	for query, want := range map[string]int{"$filter=UserName eq 'admin'": 0, "$filter=UserName ne 'admin'": 1, "$filter=Nothing eq null": 1} {
		if got := asked(t, s, "reader", "/redfish/v1/AccountService/Accounts", query)["Members@odata.count"]; got != odataCount(want) {
			t.Errorf("a reader finds %v accounts by %s, want %d", got, query, want)
		}
	}
	for _, who := range []as{"", "reader"} {
		_, shown := asked(t, s, who, "/redfish/v1/", "$expand=*")["Systems"].(map[string]any)["Members"]
		if shown != (who != "") {
			t.Errorf("%q sees the systems below the root: %t", who, shown)
		}
	}
}

// TestQueryResponsesHaveETags shows statements A4 and A6.
func TestQueryResponsesHaveETags(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	plain := call(t, s, "admin", "GET", sys, "").Header().Get("ETag")
	for query, same := range map[string]bool{"?$select=Boot": true, "?excerpt": true, "?unknown": true, "?$expand=.": false} {
		w := call(t, s, "admin", "GET", sys+query, "")
		tag := w.Header().Get("ETag")
		if (tag == plain) != same || tag == "" {
			t.Errorf("GET %s: ETag %s; that of the resource is %s", query, tag, plain)
		}
		if again := call(t, s, "admin", "GET", sys+query, "", "If-None-Match", tag); again.Code != 304 {
			t.Errorf("unchanged, but %s", shape("GET", sys+query, "", again))
		}
		head := call(t, s, "admin", "HEAD", sys+query, "")
		if diff := cmp.Diff(w.Header(), head.Header()); diff != "" || head.Body.Len() > 0 {
			t.Errorf("HEAD %s differs from GET:\n%s", query, diff)
		}
	}
	if w := call(t, s, "admin", "PATCH", sys, `{"Boot":{"BootSourceOverrideTarget":"Pxe"}}`, "If-Match", call(t, s, "admin", "GET", sys+"?$select=Boot", "").Header().Get("ETag")); w.Code != 200 {
		t.Errorf("the ETag of a part does not serve: %s", shape("PATCH", sys, "", w))
	}
}

// TestUnsupportedQueryReturns501 shows statements A12 and A15.
func TestUnsupportedQueryReturns501(t *testing.T) {
	for _, tt := range []struct {
		queries dialect.Queries
		query   string
		status  int
	}{
		{dialect.Queries{}, "$top=1", 501}, {dialect.Queries{}, "only=x", 200}, {dialect.Queries{}, "excerpt", 200},
		{dialect.Queries{Unknown: dialect.BadRequest}, "$top=1", 400}, {dialect.Queries{Unknown: dialect.Ignored}, "$top=x&$y", 200},
		{dialect.Queries{TopSkip: true, Unknown: dialect.Ignored}, "$top=x&$y", 400},
		{dialect.Queries{ExpandRest: true}, "$expand=.", 200}, {dialect.Queries{ExpandRest: true}, "$expand=*", 501}, {dialect.Queries{ExpandRest: true}, "$expand=.($levels=1)", 501},
		{dialect.Queries{ExpandRest: true, MaxLevels: 1}, "$expand=.($levels=2)", 400},
	} {
		h := hostOf(t, func(p *dialect.Protocol) { p.Queries = tt.queries })
		if w := call(t, newService(t, h), "admin", "GET", "/redfish/v1/Systems?"+tt.query, ""); w.Code != tt.status {
			t.Errorf("%+v: %s; want %d", tt.queries, shape("GET", tt.query, "", w), tt.status)
		}
	}
}

// TestProtocolFeaturesSupportedPerDialect shows statement A16.
func TestProtocolFeaturesSupportedPerDialect(t *testing.T) {
	of := func(change func(p *dialect.Protocol)) map[string]any {
		root, _ := get(t, newService(t, hostOf(t, change)), "/redfish/v1/")
		return root["ProtocolFeaturesSupported"].(map[string]any)
	}
	none := of(func(p *dialect.Protocol) { p.Queries = dialect.Queries{} })
	_, levels := none["ExpandQuery"].(map[string]any)["MaxLevels"]
	_, filters := none["FilterQueryCompoundOperations"]
	if none["TopSkipQuery"] != false || levels || filters {
		t.Errorf("of no queries it says %v", none)
	}
	lie := of(func(p *dialect.Protocol) { p.Queries, p.AdvertisedQueries = dialect.Queries{}, &dialect.AllQueries })
	if lie["TopSkipQuery"] != true || lie["ExpandQuery"].(map[string]any)["MaxLevels"] != 6.0 {
		t.Errorf("claiming all it says %v", lie)
	}
}

func TestEveryResourceSupportsEveryQuery(t *testing.T) {
	h := newHost(t)
	states[len(states)-1].make(t, h)
	s := newService(t, h)
	for _, uri := range walk(t, s, nil) {
		for _, query := range []string{"$expand=*($levels=6)", "$expand=.($levels=6)", "$select=Name", "excerpt", "$select=Name&$expand=~"} {
			w := call(t, s, "admin", "GET", uri+"?"+query, "")
			if w.Code != 200 && (w.Code != 507 || !strings.Contains(query, "levels")) {
				t.Errorf("%s", shape("GET", uri+"?"+query, "", w))
			} else if o := resource.Decode(w.Body.Bytes()); w.Code == 200 && (o["@odata.id"] != uri || o["@odata.etag"] == nil || o["@odata.type"] == nil) {
				t.Errorf("%s?%s lacks what every resource has: %v", uri, query, o)
			}
		}
	}
}

func FuzzQuery(f *testing.F) {
	for _, q := range []string{
		"$top=1&$skip=1", "$filter=Status/State%20eq%20'Enabled'", "$expand=*($levels=3)&$select=Id,Members/Name", "only", "excerpt&$expand=.",
		"$filter=CreatedTime%20lt%202026-03-01T11:00:00Z", "%24=&%zz", "$expand=~($levels=0)",
	} {
		f.Add(q)
	}
	h := newHost(f)
	s := newService(f, h)
	f.Fuzz(func(t *testing.T, query string) {
		for _, uri := range []string{"/redfish/v1/", "/redfish/v1/AccountService/Accounts", sys, "/redfish/v1/$metadata"} {
			r := httptest.NewRequest("GET", uri, nil)
			r.URL = &url.URL{Path: uri, RawQuery: query}
			r.SetBasicAuth(accounts[0].Name, accounts[0].Password)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			switch {
			case w.Code >= 500 && w.Code != 501 && w.Code != 507:
				t.Fatalf("%s", shape("GET", uri+"?"+query, "", w))
			case w.Code >= 400:
				errorOf(t, w)
			}
		}
	})
}

// odataCount returns a number in the type that decoding JSON gives.
func odataCount(n int) any { return resource.Decode(resource.Encode(resource.Object{"n": n}))["n"] }
