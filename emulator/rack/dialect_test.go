package rack_test

import (
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/fixtures"
)

// acme returns files as a user might write them: a model, and the dialect of its
// BMC.
func acme(t *testing.T, dialect string) fstest.MapFS {
	t.Helper()
	b, err := fs.ReadFile(fixtures.Profiles, "profiles/generic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{
		"profiles/generic.yaml": {Data: []byte(strings.Replace(string(b), "dialect: generic", "dialect: acme", 1))},
		"dialects/acme.yaml":    {Data: []byte(dialect)},
	}
}

func TestDialectFileMakesAVendor(t *testing.T) {
	l := racktest.Start(t, rack.Config{Profiles: acme(t, `
name: acme
base: generic
quirks: [vmedia-strict-payload]
vendor: Acme
systemID: Self
bmc: {slots: [{id: CD1, name: Virtual CD, types: [CD]}]}
presentation:
  uriMappings: [{from: "/redfish/v1/Systems/{system}/VirtualMedia", to: "/redfish/v1/Managers/{manager}/VirtualMedia"}]
  transforms: [{resourceType: ComputerSystem, set: [{path: Oem/Acme/Mode, value: Normal}]}]
  hidden: [/redfish/v1/TelemetryService]
`)})
	h := l.Hosts()[0]
	get := func(path string) map[string]any {
		status, o := call(t, l, h, http.MethodGet, path, "")
		if status != http.StatusOK {
			t.Fatalf("GET %s = %d %v", path, status, o)
		}
		return o
	}
	if root := get("/redfish/v1"); root["Vendor"] != "Acme" {
		t.Errorf("the vendor is %v", root["Vendor"])
	}
	oem, _ := get("/redfish/v1/Systems/Self")["Oem"].(map[string]any)
	if of, _ := oem["Acme"].(map[string]any); of["Mode"] != "Normal" {
		t.Errorf("Oem = %v", oem)
	}
	if status, _ := call(t, l, h, http.MethodGet, "/redfish/v1/TelemetryService", ""); status != http.StatusNotFound {
		t.Errorf("what is shut answers %d", status)
	}
	slot := "/redfish/v1/Managers/1/VirtualMedia/CD1"
	get(slot)
	status, o := call(t, l, h, http.MethodPost, slot+"/Actions/VirtualMedia.InsertMedia", `{"Image": "http://127.0.0.1:9/x.iso", "Inserted": true}`)
	if status != http.StatusBadRequest {
		t.Errorf("the quirk lets it pass: %d %v", status, o)
	}
	// A server whose dialect is a file works like any other.
	status, o = call(t, l, h, http.MethodPost, "/redfish/v1/Systems/Self/Actions/ComputerSystem.Reset", `{"ResetType": "On"}`)
	if status != http.StatusNoContent || get("/redfish/v1/Systems/Self")["PowerState"] == "Off" {
		t.Errorf("reset = %d %v", status, o)
	}
}

func TestDialectFileErrorsNameTheField(t *testing.T) {
	for want, text := range map[string]string{
		"dialects/acme.yaml:3: vendr: there is no such field": "name: acme\nbase: generic\nvendr: Acme\n",
		`name: "other": must be acme`:                         "name: other\nbase: generic\n",
		`base: "none": there is no such dialect`:              "name: acme\nbase: none\n",
	} {
		_, err := rack.Open(t.Context(), rack.Config{Dir: t.TempDir(), Clock: clock.NewVirtual(racktest.Origin), Listen: "lo:0", Profiles: acme(t, text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open() = %v, want an error with %q", err, want)
		}
	}
	of := acme(t, "name: acme\nbase: generic\n")
	of["dialects/generic.yaml"] = &fstest.MapFile{Data: []byte("name: generic\nbase: generic\n")}
	of["profiles/generic.yaml"].Data = []byte(strings.Replace(string(of["profiles/generic.yaml"].Data), "dialect: acme", "dialect: generic", 1))
	_, err := rack.Open(t.Context(), rack.Config{Dir: t.TempDir(), Clock: clock.NewVirtual(racktest.Origin), Listen: "lo:0", Profiles: of})
	if err == nil || !strings.Contains(err.Error(), "there is a built-in dialect of that name") {
		t.Errorf("a file in place of a built-in dialect: %v", err)
	}
}
