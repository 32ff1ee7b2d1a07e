package ilo_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The links of the system to OEM resources lead to resources, with the devices of the
// model.
func TestSystemLinksToDevices(t *testing.T) {
	for profile, want := range map[string][]string{
		"hpe-dl380-gen10": {"PCIDevices", "PCISlots", "USBDevices", "NetworkAdapters", "SmartStorage", "EthernetInterfaces"},
		"hpe-dl380-gen11": {"PCIDevices", "PCISlots", "USBDevices", "EthernetInterfaces"},
		"hpe-dl380-gen12": {"PCIDevices", "PCISlots", "USBDevices", "EthernetInterfaces"},
	} {
		b := serve(t, profile)
		links, _ := b.get(system, "Oem/Hpe/Links").(map[string]any)
		if len(links) != len(want) {
			t.Errorf("%s has the links %v, want %v", profile, links, want)
		}
		for _, name := range want {
			at, _ := links[name].(map[string]any)["@odata.id"].(string)
			if at == "" {
				t.Errorf("%s has no link %s", profile, name)
				continue
			}
			members, _ := b.get(at, "Members").([]any)
			if len(members) == 0 && name != "USBDevices" && name != "SmartStorage" {
				t.Errorf("%s: %s has no members", profile, at)
			}
			for _, m := range members {
				uri := m.(map[string]any)["@odata.id"].(string)
				if id := b.get(uri, "Id"); !strings.HasSuffix(uri, fmt.Sprint("/", id)) {
					t.Errorf("%s: %s has the Id %v", profile, uri, id)
				}
			}
		}
		slot := b.get(system+"/PCISlots", "Members/0/@odata.id").(string)
		b.shows(map[string]any{
			system + "/PCIDevices/1#DeviceType": "NIC", system + "/PCIDevices/1#ClassCode": 2, system + "/PCIDevices/1#VendorID": 0x14e4,
			slot + "#LinkLanes": "x8", slot + "#Status/OperationalStatus/0/Status": "InUse",
		})
	}
	b := serve(t, "hpe-dl380-gen10")
	mac := b.get(system+"/EthernetInterfaces/1", "MACAddress")
	if is := b.get(system+"/BaseNetworkAdapters/1", "PhysicalPorts/0/MacAddress"); is != mac {
		t.Errorf("the first port has the address %v, want %v", is, mac)
	}
}

// Links have slashes as the request has one [V docs, ilo5_changelog: "Trailing slashes on
// URIs"].
func TestLinksEndInSlashAsRequested(t *testing.T) {
	for _, profile := range []string{"hpe-dl360-gen10", "hpe-dl360-gen11", "hpe-dl360-gen12"} {
		b := serve(t, profile)
		b.shows(map[string]any{
			"/redfish/v1/#Managers/@odata.id": "/redfish/v1/Managers/", "/redfish/v1#Managers/@odata.id": "/redfish/v1/Managers",
			"/redfish/v1/Managers/#Members/0/@odata.id":             "/redfish/v1/Managers/1/",
			"/redfish/v1/Managers/1/#Actions/#Manager.Reset/target": "/redfish/v1/Managers/1/Actions/Manager.Reset/",
		})
	}
}

// The manager's NIC has the properties of DHCPv6, and those of the vendor's that clients
// write [V docs; community.general, ilo_redfish_utils.py].
func TestManagerNICIsConfigured(t *testing.T) {
	const nic, clock = "/redfish/v1/Managers/1/EthernetInterfaces/1", "/redfish/v1/Managers/1/DateTime"
	for _, profile := range []string{"hpe-dl360-gen10", "hpe-dl360-gen11", "hpe-dl360-gen12"} {
		b := serve(t, profile)
		for _, body := range []string{
			`{"DHCPv4":{"UseNTPServers":false,"UseDomainName":false}}`, `{"DHCPv6":{"UseNTPServers":false,"UseDomainName":false}}`,
			`{"Oem":{"Hpe":{"DomainName":"example.org"}}}`, `{"Oem":{"Hpe":{"IPv4":{"DNSServers":["192.0.2.1","192.0.2.2"]}}}}`,
			`{"Oem":{"Hpe":{"IPv4":{"WINSRegistration":false}}}}`,
		} {
			if a := b.call(http.MethodPatch, nic, body); a.status != http.StatusOK {
				t.Errorf("PATCH %s %s = %d %s", nic, body, a.status, a.text)
			}
		}
		b.shows(map[string]any{
			nic + "#DHCPv6/UseNTPServers": false, nic + "#DHCPv6/UseDNSServers": true, nic + "#DHCPv6/UseRapidCommit": false,
			nic + "#Oem/Hpe/DHCPv6/UseDomainName": false, nic + "#Oem/Hpe/DomainName": "example.org",
			nic + "#FQDN":                          fmt.Sprint(b.get(nic, "HostName"), ".example.org"),
			nic + "#Oem/Hpe/IPv4/DNSServers":       "[192.0.2.1 192.0.2.2]",
			nic + "#Oem/Hpe/IPv4/WINSRegistration": false,
		})
		for _, body := range []string{`{"StaticNTPServers":["192.0.2.3","0.0.0.0"]}`, `{"TimeZone":{"Index":24}}`} {
			if a := b.call(http.MethodPatch, clock, body); a.status != http.StatusOK {
				t.Errorf("PATCH %s %s = %d %s", clock, body, a.status, a.text)
			}
		}
		b.shows(map[string]any{
			clock + "#TimeZone/Index": 24, clock + "#TimeZone/UtcOffset": "+05:30", clock + "#StaticNTPServers": "[192.0.2.3 0.0.0.0]",
		})
		if now, _ := b.get("/redfish/v1/Managers/1", "DateTime").(string); !strings.HasSuffix(now, "+05:30") {
			t.Errorf("the clock shows %s, want the offset +05:30", now)
		}
		if a := b.call(http.MethodPatch, clock, `{"TimeZone":{"Index":99}}`); a.status != http.StatusBadRequest {
			t.Errorf("a time zone that does not exist = %d %s", a.status, a.text)
		}
	}
}
