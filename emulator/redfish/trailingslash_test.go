package redfish

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// A GET of a URI with a slash at its end shows URIs with a slash, and one without shows
// URIs without.
func TestTrailingSlashAsRequested(t *testing.T) {
	s, _ := newPresentedService(t, dialect.Presentation{TrailingSlashAsRequested: true})
	for _, tt := range []struct{ uri, systems, target string }{
		{sys, sys, sys + "/Actions/ComputerSystem.Reset"}, {sys + "/", sys + "/", sys + "/Actions/ComputerSystem.Reset/"},
	} {
		body, _ := get(t, s, tt.uri)
		target := body["Actions"].(map[string]any)["#ComputerSystem.Reset"].(map[string]any)["target"]
		if body["@odata.id"] != tt.systems || target != tt.target {
			t.Errorf("GET %s shows @odata.id %v and target %v, want %s and %s", tt.uri, body["@odata.id"], target, tt.systems, tt.target)
		}
	}
	expanded, _ := get(t, s, "/redfish/v1/Systems/?$expand=.")
	member := expanded["Members"].([]any)[0].(map[string]any)
	if bios := member["Bios"].(map[string]any)["@odata.id"].(string); !strings.HasSuffix(bios, "/Bios/") {
		t.Errorf("a member that is expanded links to %s", bios)
	}
	bios, _ := get(t, s, sys+"/Bios")
	registries, _ := get(t, s, "/redfish/v1/Registries/"+bios["AttributeRegistry"].(string)+"/")
	if file := registries["Location"].([]any)[0].(map[string]any)["Uri"].(string); strings.HasSuffix(file, "/") {
		t.Errorf("the URI of a file is %s", file)
	}
	with, without := call(t, s, "admin", "GET", sys+"/", ""), call(t, s, "admin", "GET", sys, "")
	if with.Header().Get("ETag") != without.Header().Get("ETag") {
		t.Errorf("ETags %s and %s of one resource", with.Header().Get("ETag"), without.Header().Get("ETag"))
	}
}

func TestPropertyRulesMatchAndConvert(t *testing.T) {
	s, h := newPresentedService(t, dialect.Presentation{Transforms: []dialect.Transform{{
		ResourceType: "ComputerSystem", Set: []dialect.PropertyRule{
			{Path: "Oem/Acme/Bus", From: "/redfish/v1/Chassis/{chassis}/PCIeDevices/1/PCIeFunctions/0#VendorId", Number: true},
			{Path: "Oem/Acme/None", From: "Name", Number: true},
			{Path: "Oem/Acme/Second", From: "Boot/BootSourceOverrideEnabled", Match: "^.(.*)$"},
			{Path: "Oem/Acme/Nothing", From: "Boot/BootSourceOverrideEnabled", Match: "^x(.*)$"},
		},
	}}})
	body, _ := get(t, s, sys)
	acme := body["Oem"].(map[string]any)["Acme"].(map[string]any)
	if len(h.Machine().Profile.Cards) == 0 {
		t.Fatal("the server has no cards")
	}
	if n, ok := acme["Bus"].(float64); !ok || n <= 0 {
		t.Errorf("Bus is %v, want a number", acme["Bus"])
	}
	if acme["None"] != nil || acme["Second"] != "isabled" || acme["Nothing"] != "" {
		t.Errorf("Oem %v", acme)
	}
}

// A resource exists only with its RequiredProperty, and its collection shows no others.
func TestRequiredPropertyFiltersMembers(t *testing.T) {
	h := newHostOf(t, "hpe-dl380-gen11")
	const cards = "/redfish/v1/Chassis/{chassis}/PCIeDevices"
	h.d.OEM = dialect.OEM{Resources: []dialect.Resource{
		{URI: "/redfish/v1/Slots", Type: "AcmeSlotCollection.AcmeSlotCollection", BasedOn: cards},
		{URI: "/redfish/v1/Slots/{card}", Type: "AcmeSlot.v1_0_0.AcmeSlot", BasedOn: cards + "/{card}", RequiredProperty: "Slot"},
	}}
	must(t, h.d.Validate())
	s := newService(t, h)
	slots, _ := get(t, s, "/redfish/v1/Slots")
	want := 0
	for _, c := range h.Machine().Profile.Cards {
		code := 404
		if c.SlotType != "" {
			want, code = want+1, 200
		}
		if w := call(t, s, "admin", "GET", "/redfish/v1/Slots/"+c.ID, ""); w.Code != code {
			t.Errorf("card %s in %q: %d, want %d", c.ID, c.Slot, w.Code, code)
		}
	}
	if all := slots["Members"].([]any); len(all) != want || slots["Members@odata.count"] != float64(want) || want == len(h.Machine().Profile.Cards) {
		t.Errorf("the collection has %v, want %d of %d", slots, want, len(h.Machine().Profile.Cards))
	}
}
