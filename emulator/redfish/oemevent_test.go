package redfish

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// TestOEMChangesRaiseResourceChanged changes vendors' properties, in standard resources and
// in OEM resources. Each resource whose ETag is another afterwards has an event
// ResourceChanged.
func TestOEMChangesRaiseResourceChanged(t *testing.T) {
	for _, tt := range []struct {
		profile, method, uri, body string
		origin                     string // resource that has changed
	}{
		{"gigabyte-r282", "POST", "/redfish/v1/Managers/Self/Actions/Oem/AMIVirtualMedia.EnableRMedia", `{"RMediaState":"Disable"}`, "/redfish/v1/Managers/Self"},
		{"hpe-dl380-gen11", "PATCH", "/redfish/v1/Managers/1/EthernetInterfaces/1", `{"Oem":{"Hpe":{"IPv4":{"WINSRegistration":false}}}}`, "/redfish/v1/Managers/1/EthernetInterfaces/1"},
		{"hpe-dl380-gen11", "PATCH", "/redfish/v1/Managers/1/DateTime", `{"TimeZone":{"Index":24}}`, "/redfish/v1/Managers/1/DateTime"},
		{"hpe-dl380-gen10", "PATCH", "/redfish/v1/systems/1/smartstorageconfig/settings", `{"DataGuard":"Permissive"}`, "/redfish/v1/systems/1/smartstorageconfig"},
		{"dell-r650", "PATCH", "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/iDRAC.Embedded.1", `{"Attributes":{"SNMP.1.AgentEnable":"Disabled"}}`,
			"/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/iDRAC.Embedded.1"},
		{"dell-r650", "PATCH", "/redfish/v1/Managers/iDRAC.Embedded.1/NetworkProtocol", `{"IPMI":{"ProtocolEnabled":false}}`,
			"/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/iDRAC.Embedded.1"}, // IPMILan.1.Enable follows it
		{"supermicro-1029u", "PATCH", "/redfish/v1/Managers/1/VM1/CfgCD", `{"Host":"images.test"}`, "/redfish/v1/Managers/1/VM1/CfgCD"},
		{"fujitsu-rx2540-m7", "PATCH", "/redfish/v1/Systems/0/Oem/Fsas/BootConfig", `{"BootDevice":"Pxe","NextBootOnlyEnabled":false}`, "/redfish/v1/Systems/0/Oem/Fsas/BootConfig"},
	} {
		var m model
		for _, is := range everyModel() {
			if is.profile == tt.profile {
				m = is
			}
		}
		s, h := newVendorHost(t, m.record, m.profile)
		_, id := subscribeTo(t, s, `{"Destination":"https://events.test/","Protocol":"Redfish","Context":"c","RegistryPrefixes":["ResourceEvent"]}`)
		posted(t, h, id)
		before := bodiesOf(t, s)
		if w := call(t, s, "admin", tt.method, tt.uri, tt.body, "If-Match", "*"); w.Code >= 300 {
			t.Errorf("%s", shape(tt.method, tt.uri, tt.body, w))
			continue
		}
		changed := map[string]bool{}
		for _, r := range posted(t, h, id) {
			if strings.HasSuffix(fmt.Sprint(r["MessageId"]), ".ResourceChanged") {
				changed[strings.TrimSuffix(r["OriginOfCondition"].(map[string]any)["@odata.id"].(string), "/")] = true
			}
		}
		if !changed[tt.origin] {
			t.Errorf("%s %s %s raises no event of %s: %v", tt.method, tt.uri, tt.body, tt.origin, changed)
		}
		for uri, now := range bodiesOf(t, s) {
			of, _ := now["@odata.type"].(string)
			if uri = strings.TrimSuffix(uri, "/"); of == "" || strings.HasSuffix(of, "Collection") || strings.Contains(of, "#LogEntry.") || uri == "/redfish/v1" {
				continue
			}
			was := before[uri]
			if was == nil {
				was = before[uri+"/"]
			}
			if was != nil && now["@odata.etag"] != "" && was["@odata.etag"] != now["@odata.etag"] && !changed[uri] {
				t.Errorf("%s %s %s changes %s, without an event:\n%s\n%s", tt.method, tt.uri, tt.body, uri, resource.Encode(was), resource.Encode(now))
			}
		}
	}
}
