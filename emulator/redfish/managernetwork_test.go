package redfish

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

const (
	protocols = mgr + "/NetworkProtocol"
	bmcNIC    = mgr + "/EthernetInterfaces/1"
)

// placed returns a host whose BMC has a Location.
func placed(t *testing.T) *host {
	t.Helper()
	h := newHost(t)
	h.bmc.SetNetworkDefaults(bmc.NetworkDefaults{Addr: netip.MustParseAddr("127.64.0.1"), HTTPS: 443, HTTP: 80})
	h.bmcChanged()
	return h
}

func TestNetworkProtocolsAreEnabledAndDisabled(t *testing.T) {
	h := placed(t)
	s := newService(t, h)
	body, _ := get(t, s, protocols)
	if https := body["HTTPS"].(map[string]any); https["ProtocolEnabled"] != true || https["Port"] != 443.0 || body["HostName"] != "node-0-bmc" {
		t.Errorf("protocols = %v", body)
	}
	for _, tt := range []struct {
		body   string
		status int
		text   string
	}{
		{`{"HTTPS":{"Port":8444},"IPMI":{"ProtocolEnabled":true}}`, 200, `"Port":8444,"ProtocolEnabled":true},"Host`},
		{`{"HTTPS":{"Port":0}}`, 400, "#/HTTPS/Port"},
		{`{"HTTPS":{"Port":65536}}`, 400, "#/HTTPS/Port"},
		{`{"HTTP":{"ProtocolEnabled":true,"Port":8444}}`, 400, "#/HTTP/Port"},
		{`{"HostName":"x"}`, 400, "PropertyNotWritable"},
		{`{"NTP":{"NTPServers":["0.pool.test","","192.0.2.1"],"ProtocolEnabled":true}}`, 200, `["0.pool.test","192.0.2.1"]`},
		{`{"NTP":{"NTPServers":["not a host"]}}`, 400, "#/NTP/NTPServers/0"},
	} {
		if w := call(t, s, "admin", "PATCH", protocols, tt.body); w.Code != tt.status || !strings.Contains(w.Body.String(), tt.text) {
			t.Errorf("%s; want %d %s", shape("PATCH", protocols, tt.body, w), tt.status, tt.text)
		}
	}
	if n := h.BMC().Network(); !n.IPMI.On || n.HTTPS.Port != 8444 {
		t.Errorf("network = %+v", n)
	}
	if w := call(t, s, "operator", "PATCH", protocols, `{"IPMI":{"ProtocolEnabled":false}}`); w.Code != 403 {
		t.Errorf("%s", shape("PATCH", protocols, "", w))
	}
	// A clock that NTP sets cannot be set by PATCH.
	if w := call(t, s, "admin", "PATCH", mgr, `{"DateTime":"2030-01-01T00:00:00Z"}`); w.Code != 409 || !strings.Contains(w.Body.String(), "#/DateTime") {
		t.Errorf("%s", shape("PATCH", mgr, "", w))
	}
}

func TestVirtualMediaProtocolDisabled(t *testing.T) {
	h := placed(t)
	s := newService(t, h)
	if w := call(t, s, "admin", "PATCH", protocols, `{"VirtualMedia":{"ProtocolEnabled":false}}`); w.Code != 200 {
		t.Fatalf("%s", shape("PATCH", protocols, "", w))
	}
	insert := sys + "/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
	w := call(t, s, "admin", "POST", insert, `{"Image":"http://images.test/a.iso"}`)
	if keys, _ := errorOf(t, w); keys[0] != "ServiceDisabled" {
		t.Errorf("%s", shape("POST", insert, "", w))
	}
}

func TestManagerEthernetInterfacePatch(t *testing.T) {
	h := placed(t)
	s := newService(t, h)
	body, _ := get(t, s, bmcNIC)
	v4 := body["IPv4Addresses"].([]any)[0].(map[string]any)
	if v4["Address"] != "127.64.0.1" || v4["AddressOrigin"] != "DHCP" || len(body["IPv4StaticAddresses"].([]any)) != 0 {
		t.Errorf("interface = %v", body)
	}
	for _, tt := range []struct {
		body   string
		status int
		text   string
	}{
		{`{"DHCPv4":{"DHCPEnabled":false}}`, 400, "#/DHCPv4/DHCPEnabled"}, // the interface would have no address
		{`{"IPv4StaticAddresses":[{"Address":"127.70.0.9","SubnetMask":"255.0.0.0","Gateway":"127.64.0.254"}],"DHCPv4":{"DHCPEnabled":false}}`, 200, `"AddressOrigin":"Static"`},
		{`{"IPv4StaticAddresses":[{"Address":"127.70.0.300"}]}`, 400, "#/IPv4StaticAddresses/0/Address"},
		{`{"IPv4StaticAddresses":[{"Address":"127.70.0.3","SubnetMask":"255.0.255.0"}]}`, 400, "#/IPv4StaticAddresses/0/SubnetMask"},
		{`{"IPv4StaticAddresses":[{"Address":"127.70.0.3"},{"Address":"127.70.0.4"}]}`, 400, "ArraySizeTooLong"},
		{`{"HostName":"bmc-7","StaticNameServers":["192.0.2.53","2001:db8::53"]}`, 200, `"StaticNameServers":["192.0.2.53","2001:db8::53"]`},
		{`{"FQDN":"bmc-8.example.test"}`, 200, `"FQDN":"bmc-8.example.test"`},
		{`{"VLAN":{"VLANEnable":true,"VLANId":42}}`, 200, `"VLANId":42`},
		{`{"VLAN":{"VLANId":4095}}`, 400, "#/VLAN/VLANId"},
		{`{"IPv6Enabled":true,"IPv6StaticAddresses":[{"Address":"2001:db8::7","PrefixLength":64}],"IPv6StaticDefaultGateways":[{"Address":"2001:db8::1"}]}`, 200, `"AddressState":"Preferred"`},
		{`{"IPv6StaticAddresses":[{"Address":"192.0.2.1"}]}`, 400, "#/IPv6StaticAddresses/0/Address"},
		{`{"MACAddress":"02:00:00:00:00:01"}`, 400, "PropertyNotWritable"},
	} {
		if w := call(t, s, "admin", "PATCH", bmcNIC, tt.body); w.Code != tt.status || !strings.Contains(w.Body.String(), tt.text) {
			t.Errorf("%s; want %d %s", shape("PATCH", bmcNIC, tt.body, w), tt.status, tt.text)
		}
	}
	if _, err := openBundle(); err == nil {
		walk(t, s, newSchemas(t))
	}
	if body, _ := get(t, s, protocols); body["FQDN"] != "bmc-8.example.test" {
		t.Errorf("FQDN = %v", body["FQDN"])
	}
}
