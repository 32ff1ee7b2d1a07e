package redfish

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func managerNetworkRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Managers/{manager}/NetworkProtocol", schema: "ManagerNetworkProtocol.v1_12_0",
			shows: PartIdentity | PartNetwork, read: networkProtocol, patch: &networkProtocolPatch},
		{uri: "/redfish/v1/Managers/{manager}/EthernetInterfaces", schema: "EthernetInterfaceCollection",
			name: "Ethernet Interfaces", of: "managernic"},
		{uri: "/redfish/v1/Managers/{manager}/EthernetInterfaces/{managernic}", schema: "EthernetInterface.v1_12_4",
			shows: PartIdentity | PartNetwork, read: managerNIC, patch: &managerNICPatch},
	}
}

// managerNICID is the last segment of the address of the BMC's interface.
const managerNICID = "1"

// services are the services of a BMC, as ManagerNetworkProtocol spells them.
var services = []struct {
	name string
	of   func(*bmc.Network) *bmc.Service
}{
	{"HTTPS", func(n *bmc.Network) *bmc.Service { return &n.HTTPS }},
	{"HTTP", func(n *bmc.Network) *bmc.Service { return &n.HTTP }},
	{"SSH", func(n *bmc.Network) *bmc.Service { return &n.SSH }},
	{"IPMI", func(n *bmc.Network) *bmc.Service { return &n.IPMI }},
	{"KVMIP", func(n *bmc.Network) *bmc.Service { return &n.KVM }},
	{"VirtualMedia", func(n *bmc.Network) *bmc.Service { return &n.Media }},
	{"SNMP", func(n *bmc.Network) *bmc.Service { return &n.SNMP }},
	{"SSDP", func(n *bmc.Network) *bmc.Service { return &n.SSDP }},
	{"NTP", func(n *bmc.Network) *bmc.Service { return &n.NTP }},
}

func networkProtocol(v view) object {
	n := v.b.Network()
	o := object{
		"Name": "Manager Network Protocol", "Status": status("Enabled"), "HostName": v.bmcName(n), "FQDN": v.bmcFQDN(n),
	}
	for _, s := range services {
		is := s.of(&n)
		o[s.name] = object{"ProtocolEnabled": is.On, "Port": int(is.Port)}
	}
	o["HTTPS"].(object)["Certificates"] = ref(v.web())
	o["NTP"].(object)["NTPServers"] = append([]string{}, n.TimeServers...)
	return o
}

// bmcName is the BMC's host name: that of the machine with something behind it,
// unless it has another one.
func (v view) bmcName(n bmc.Network) string {
	if n.HostName != "" {
		return n.HostName
	}
	return v.m.Identity.Name + "-bmc"
}

func (v view) bmcFQDN(n bmc.Network) string {
	if n.Domain == "" {
		return v.bmcName(n)
	}
	return v.bmcName(n) + "." + n.Domain
}

var networkProtocolPatch = patch{
	inputs: networkInputs(),
	apply: func(ctx context.Context, c operation) (reply, error) {
		n := c.view.b.Network()
		for _, s := range services {
			is := s.of(&n)
			is.On = value(c.set, s.name+"/ProtocolEnabled", is.On)
			is.Port = uint16(value(c.set, s.name+"/Port", int64(is.Port)))
		}
		if servers, ok := c.set["NTP/NTPServers"].([]any); ok {
			n.TimeServers = nonEmpty(servers)
		}
		return reply{}, c.setNetwork(ctx, n)
	},
}

func networkInputs() []input {
	var all []input
	for _, s := range services {
		in := input{name: s.name, kind: group, of: []input{
			{name: "ProtocolEnabled", kind: boolean}, {name: "Port", kind: integer, min: 1, max: 65535},
		}}
		if s.name == "NTP" {
			in.of = append(in.of, input{name: "NTPServers", kind: array, max: 4, of: []input{{kind: text, form: isHost}}})
		}
		all = append(all, in)
	}
	return all
}

// nonEmpty are the texts of an array but for empty ones.
func nonEmpty(all []any) []string {
	var out []string
	for _, x := range all {
		if s, ok := x.(string); ok && s != "" {
			out = append(out, s)
		}
	}
	return out
}

// isHost says whether a text is a host name or an address; empty is none.
func isHost(s string) bool {
	_, err := netip.ParseAddr(s)
	return s == "" || err == nil || len(s) <= 253 && domainName.MatchString(s)
}

var domainName = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)

// setNetwork sets the network, or says which property is in the way.
func (c operation) setNetwork(ctx context.Context, n bmc.Network) error {
	_, err := c.host.ApplyBMC(ctx, bmc.SetNetwork{Network: n})
	switch {
	case errors.Is(err, bmc.ErrAddress):
		m := message.PropertyValueError.With("IPv4StaticAddresses").About("#/IPv4StaticAddresses/0/Address")
		if !n.DHCP && n.Static == nil {
			m = message.PropertyValueConflict.With("DHCPEnabled", "IPv4StaticAddresses").About("#/DHCPv4/DHCPEnabled")
		}
		m.Resolution += " " + err.Error() + "."
		return decline(http.StatusBadRequest, m)
	case errors.Is(err, bmc.ErrPort):
		name := "HTTPS"
		for _, s := range services { // that the client has set a port of
			if _, ok := c.set[s.name+"/Port"]; ok {
				name = s.name
				break
			}
		}
		m := message.PropertyValueError.With("Port").About("#/" + name + "/Port")
		m.Resolution += " " + err.Error() + "."
		return decline(http.StatusBadRequest, m)
	}
	return err
}

func managerNIC(v view) object {
	n := v.b.Network()
	o := object{
		"Name": "Manager Ethernet Interface", "EthernetInterfaceType": "Physical", "InterfaceEnabled": true, "LinkStatus": "LinkUp",
		"Status": status("Enabled"), "MACAddress": v.m.Identity.BMCMAC(), "PermanentMACAddress": v.m.Identity.BMCMAC(),
		"SpeedMbps": 1000, "FullDuplex": true, "AutoNeg": true, "MTUSize": 1500,
		"HostName": v.bmcName(n), "FQDN": v.bmcFQDN(n),
		"DHCPv4": object{
			"DHCPEnabled": n.DHCP, "UseDNSServers": n.Use.DNS, "UseNTPServers": n.Use.NTP, "UseDomainName": n.Use.Domain, "UseGateway": n.Use.Gateway,
		},
		"NameServers": append([]string{}, n.NameServers...), "StaticNameServers": append([]string{}, n.NameServers...),
		"VLAN":        object{"VLANEnable": n.VLAN.On, "VLANId": n.VLAN.ID, "VLANPriority": n.VLAN.Priority},
		"IPv6Enabled": n.V6.On, "MaxIPv6StaticAddresses": maxV6,
		"DHCPv6":                     object{"OperatingMode": or(n.V6.DHCP, "Disabled")},
		"StatelessAddressAutoConfig": object{"IPv6AutoConfigEnabled": n.V6.Auto},
		"Links":                      object{"Chassis": ref(v.chassis())},
	}
	inForce, static := []object{}, []object{}
	if s := n.Static; s != nil {
		static = append(static, v4(s.Addr, s.Mask, s.Gateway))
		at := v4(s.Addr, s.Mask, s.Gateway)
		at["AddressOrigin"] = "Static"
		inForce = append(inForce, at)
	}
	if p := v.b.NetworkDefaults; p != nil && n.DHCP && (n.Static == nil || n.Static.Addr != p.Addr) {
		at := v4(p.Addr, "255.0.0.0", "")
		at["AddressOrigin"] = "DHCP"
		inForce = append(inForce, at)
	}
	o["IPv4Addresses"], o["IPv4StaticAddresses"] = inForce, static
	v6, v6Static, gateways := []object{}, []object{}, []object{}
	for _, a := range n.V6.Static {
		v6Static = append(v6Static, object{"Address": a.Addr.String(), "PrefixLength": a.Prefix})
		if n.V6.On {
			v6 = append(v6, object{"Address": a.Addr.String(), "PrefixLength": a.Prefix, "AddressOrigin": "Static", "AddressState": "Preferred"})
		}
	}
	for _, g := range n.V6.Gateways {
		gateways = append(gateways, object{"Address": g})
	}
	o["IPv6Addresses"], o["IPv6StaticAddresses"], o["IPv6StaticDefaultGateways"] = v6, v6Static, gateways
	if len(n.V6.Gateways) > 0 && n.V6.On {
		o["IPv6DefaultGateway"] = n.V6.Gateways[0]
	}
	return o
}

// maxV6 is how many IPv6 addresses can be set by hand.
const maxV6 = 4

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func v4(addr netip.Addr, mask, gateway string) object {
	o := object{"Address": addr.String(), "SubnetMask": nil, "Gateway": nil}
	if mask != "" {
		o["SubnetMask"] = mask
	}
	if gateway != "" {
		o["Gateway"] = gateway
	}
	return o
}

func isV4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func isV6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

// isMask says whether a text is the mask of a network: ones, then zeros.
func isMask(s string) bool {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return false
	}
	b := a.As4()
	bits := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	return bits != 0 && bits|(bits-1) == ^uint32(0)
}

var managerNICPatch = patch{
	inputs: []input{
		{name: "HostName", kind: text, form: isHostName},
		{name: "FQDN", kind: text, form: isHost},
		{name: "DHCPv4", kind: group, of: []input{
			{name: "DHCPEnabled", kind: boolean}, {name: "UseDNSServers", kind: boolean}, {name: "UseNTPServers", kind: boolean},
			{name: "UseDomainName", kind: boolean}, {name: "UseGateway", kind: boolean},
		}},
		{name: "IPv4StaticAddresses", kind: array, max: 1, of: []input{{kind: group, of: []input{
			{name: "Address", kind: text, required: true, form: isV4},
			{name: "SubnetMask", kind: text, nullable: true, form: isMask},
			{name: "Gateway", kind: text, nullable: true, form: isV4},
		}}}},
		{name: "StaticNameServers", kind: array, max: 4, of: []input{{kind: text, form: func(s string) bool { return s == "" || isV4(s) || isV6(s) }}}},
		{name: "VLAN", kind: group, of: []input{
			{name: "VLANEnable", kind: boolean}, {name: "VLANId", kind: integer, min: 1, max: 4094}, {name: "VLANPriority", kind: integer, max: 7},
		}},
		{name: "IPv6Enabled", kind: boolean},
		{name: "IPv6StaticAddresses", kind: array, max: maxV6, of: []input{{kind: group, of: []input{
			{name: "Address", kind: text, required: true, form: isV6}, {name: "PrefixLength", kind: integer, max: 128},
		}}}},
		{name: "IPv6StaticDefaultGateways", kind: array, max: maxV6, of: []input{{kind: group, of: []input{
			{name: "Address", kind: text, required: true, form: isV6},
		}}}},
		{name: "DHCPv6", kind: group, of: []input{{name: "OperatingMode", kind: text, values: oneOf("Disabled", "Enabled")}}},
		{name: "StatelessAddressAutoConfig", kind: group, of: []input{{name: "IPv6AutoConfigEnabled", kind: boolean}}},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		n := c.view.b.Network()
		set := c.set
		n.HostName = value(set, "HostName", n.HostName)
		if fqdn, ok := set["FQDN"].(string); ok {
			n.HostName, n.Domain, _ = strings.Cut(fqdn, ".")
		}
		n.DHCP = value(set, "DHCPv4/DHCPEnabled", n.DHCP)
		n.Use = bmc.DHCPUse{
			DNS: value(set, "DHCPv4/UseDNSServers", n.Use.DNS), NTP: value(set, "DHCPv4/UseNTPServers", n.Use.NTP),
			Domain: value(set, "DHCPv4/UseDomainName", n.Use.Domain), Gateway: value(set, "DHCPv4/UseGateway", n.Use.Gateway),
		}
		if all, ok := set["IPv4StaticAddresses"].([]any); ok {
			was := n.Static
			n.Static = nil
			for _, x := range all {
				if x, ok := x.(values); ok {
					addr, err := netip.ParseAddr(value(x, "Address", ""))
					if err != nil {
						return reply{}, err // its form was looked at
					}
					n.Static = &bmc.IPv4{Addr: addr, Mask: value(x, "SubnetMask", ""), Gateway: value(x, "Gateway", "")}
					if was != nil && was.Addr == addr {
						n.Static.Reach = was.Reach
					}
				}
			}
		}
		if all, ok := set["StaticNameServers"].([]any); ok {
			n.NameServers = nonEmpty(all)
		}
		n.VLAN = bmc.VLAN{
			On: value(set, "VLAN/VLANEnable", n.VLAN.On), ID: int(value(set, "VLAN/VLANId", int64(n.VLAN.ID))),
			Priority: int(value(set, "VLAN/VLANPriority", int64(n.VLAN.Priority))),
		}
		if err := setV6(&n.V6, set); err != nil {
			return reply{}, err
		}
		return reply{}, c.setNetwork(ctx, n)
	},
}

func setV6(n *bmc.IPv6, set values) error {
	n.On = value(set, "IPv6Enabled", n.On)
	n.Auto = value(set, "StatelessAddressAutoConfig/IPv6AutoConfigEnabled", n.Auto)
	n.DHCP = value(set, "DHCPv6/OperatingMode", n.DHCP)
	if all, ok := set["IPv6StaticAddresses"].([]any); ok {
		n.Static = nil
		for _, x := range all {
			if x, ok := x.(values); ok {
				addr, err := netip.ParseAddr(value(x, "Address", ""))
				if err != nil {
					return err // its form was looked at
				}
				n.Static = append(n.Static, bmc.IPv6Static{Addr: addr, Prefix: int(value(x, "PrefixLength", int64(64)))})
			}
		}
	}
	if all, ok := set["IPv6StaticDefaultGateways"].([]any); ok {
		n.Gateways = nil
		for _, x := range all {
			if x, ok := x.(values); ok {
				n.Gateways = append(n.Gateways, value(x, "Address", ""))
			}
		}
	}
	n.Gateways = slices.Clip(n.Gateways)
	return nil
}
