package redfish

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect/ilo"
	"github.com/metalab-dev/metalab/emulator/dialect/openbmc"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// TestResourcesListWriteableProperties shows that each resource that accepts PATCH lists
// properties that it has, where the dialect lists them, and that no other resource does.
func TestResourcesListWriteableProperties(t *testing.T) {
	generic := newService(t, newHost(t))
	listed := 0
	for _, uri := range []string{sys, "/redfish/v1/Managers/1", "/redfish/v1/Chassis/1", sys + "/Bios", "/redfish/v1/AccountService", "/redfish/v1/AccountService/Accounts/2", "/redfish/v1/Managers/1/NetworkProtocol", "/redfish/v1/SessionService", "/redfish/v1/Registries"} {
		w := call(t, generic, "admin", "GET", uri, "")
		body := decoded(t, w)
		names := resource.Elements(body[resource.WriteableProperties])
		if uri == sys && !slices.Contains(names, any("AssetTag")) {
			t.Errorf("%s lists %v", uri, names)
		}
		patched := strings.Contains(w.Header().Get("Allow"), "PATCH")
		if patched != (len(names) > 0) {
			t.Errorf("%s: Allow %q, and it lists %v", uri, w.Header().Get("Allow"), names)
		}
		for _, name := range names {
			listed++
			if _, there := body[fmt.Sprint(name)]; !there {
				t.Errorf("%s lists %v, which it does not have", uri, name)
			}
		}
	}
	if boot, _ := decoded(t, call(t, generic, "admin", "GET", sys, ""))["Boot"].(resource.Object); !slices.Contains(resource.Elements(boot[resource.WriteableProperties]), any("BootSourceOverrideTarget")) || listed == 0 {
		t.Errorf("Boot lists %v", boot[resource.WriteableProperties])
	}

	six, h := newVendorHost(t, &ilo.ILO6, "hpe-dl360-gen11")
	c := h.machine.View().Storage.Controllers()[0]
	drive := "/redfish/v1/Systems/1/Storage/" + c.ID + "/Drives/" + c.Drives[0].ID
	found := ""
	for uri := range strings.FieldsSeq(drive + " " + strings.TrimSuffix(drive, "/Drives/"+c.Drives[0].ID)) {
		for _, link := range driveLinks(t, six, uri) {
			if names := resource.Elements(decoded(t, call(t, six, "admin", "GET", link, ""))[resource.WriteableProperties]); len(names) > 0 {
				found = fmt.Sprint(names)
			}
		}
	}
	if !strings.Contains(found, "LocationIndicatorActive") {
		t.Errorf("a drive of iLO 6 lists %s", found)
	}
	for _, s := range []*Service{six, first(newVendorHost(t, &openbmc.Record, "openbmc-tiogapass"))} {
		systems := decoded(t, call(t, s, "admin", "GET", "/redfish/v1/Systems", ""))
		link, _ := resource.ValueAt(systems, "Members/0/@odata.id")
		if w := call(t, s, "admin", "GET", fmt.Sprint(link), ""); w.Code != 200 || strings.Contains(w.Body.String(), "WriteableProperties") {
			t.Errorf("%v = %d; it must list no writable properties", link, w.Code)
		}
	}
}

// driveLinks returns the drives of a storage resource, and the resource's URI.
func driveLinks(t *testing.T, s *Service, uri string) []string {
	out := []string{}
	w := call(t, s, "admin", "GET", uri, "")
	if w.Code != 200 {
		return out
	}
	out = append(out, uri)
	for _, link := range resource.Elements(decoded(t, w)["Drives"]) {
		if id, ok := link.(resource.Object)["@odata.id"].(string); ok {
			out = append(out, id)
		}
	}
	return out
}
