package redfish

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

func TestRegistryVersionsPerDialect(t *testing.T) {
	h := hostOf(t, func(p *dialect.Protocol) { p.Registries = map[string]string{"Base": "1.8.4"} })
	s := newServiceWith(t, h, Config{Schemas: fstest.MapFS{
		"a/json-schema/Chassis.v1_28_0.json": {Data: []byte(`{}`)}, "registries/Base.1.8.4.json": {Data: []byte(`{"Id":"Base.1.8.4"}`)},
	}})
	all := asked(t, s, "admin", "/redfish/v1/Registries", "$expand=.")["Members"].([]any)
	spoken := map[string]resource.Object{}
	for _, m := range all {
		file := m.(resource.Object)
		spoken[file["Registry"].(string)] = file
	}
	for _, r := range message.Registries {
		if name := message.Versions(h.d.Protocol.Registries).Name(r.Registry); spoken[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	at := func(name string) resource.Object { return spoken[name]["Location"].([]any)[0].(resource.Object) }
	if got := at("Base.1.8"); got["PublicationUri"] != "https://redfish.dmtf.org/registries/Base.1.8.4.json" {
		t.Errorf("Base is at %v", got)
	}
	if w := call(t, s, "admin", "GET", at("Base.1.8")["Uri"].(string), ""); !strings.Contains(w.Body.String(), "Base.1.8.4") {
		t.Errorf("%s", shape("GET", "Base", "", w))
	}
	if got := at("TaskEvent.1.0"); got["Uri"] != nil {
		t.Errorf("TaskEvent, which the archive lacks, is at %v", got)
	}
}

func TestEveryLocalRegistryIsServed(t *testing.T) {
	s := newService(t, newHost(t))
	local := 0
	for _, m := range asked(t, s, "admin", "/redfish/v1/Registries", "$expand=.")["Members"].([]any) {
		uri, ok := m.(resource.Object)["Location"].([]any)[0].(resource.Object)["Uri"].(string)
		if !ok {
			continue
		}
		local++
		w := call(t, s, "admin", "GET", uri, "")
		var doc struct {
			Type string `json:"@odata.type"`
			ID   string `json:"Id"`
		}
		must(t, json.Unmarshal(w.Body.Bytes(), &doc))
		if id := m.(resource.Object)["Id"]; w.Code != 200 || doc.ID != id {
			t.Errorf("%s; want %v", shape("GET", uri, "", w), id)
		}
		newSchemas(t).check(t, uri, strings.TrimPrefix(doc.Type[:strings.LastIndexByte(doc.Type, '.')], "#"), w.Body.Bytes())
	}
	if local < 2 { // at least the privilege registry and the attribute registry
		t.Errorf("%d registries are served by the service itself", local)
	}
}

func TestPrivilegeRegistryEqualsDMTF(t *testing.T) {
	raw, err := dmtf(t).read("data/registries/" + resource.PrivilegesID + ".json")
	must(t, err)
	theirs := resource.Decode(raw)["Mappings"].([]any)
	ours := resource.Decode(resource.Encode(resource.PrivilegeMapping(resource.View{})))["Mappings"].([]any)
	entity := func(m any) string { return m.(resource.Object)["Entity"].(string) }
	byEntity := func(a, b any) int { return strings.Compare(entity(a), entity(b)) }
	slices.SortFunc(theirs, byEntity)
	for _, m := range theirs { // DMTF lists fewer privileges for HEAD
		if entity(m) == "ManagerAccount" || entity(m) == "Session" {
			o := m.(resource.Object)["OperationMap"].(resource.Object)
			o["HEAD"] = o["GET"]
		}
	}
	if diff := cmp.Diff(resource.Map(theirs, entity), resource.Map(ours, entity)); diff != "" {
		t.Fatalf("entities (-DMTF +ours):\n%s", diff)
	}
	for i := range theirs {
		if diff := cmp.Diff(theirs[i].(resource.Object)["OperationMap"], ours[i].(resource.Object)["OperationMap"]); diff != "" {
			t.Errorf("%s (-DMTF +ours):\n%s", entity(theirs[i]), diff)
		}
	}
}
