package resource

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

func managerNetworkRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Managers/{manager}/NetworkProtocol", Schema: "ManagerNetworkProtocol.v1_12_0",
			DependsOn: partIdentity | partNetwork, Read: networkProtocol, Patch: &networkProtocolPatch},
		{URI: "/redfish/v1/Managers/{manager}/EthernetInterfaces", Schema: "EthernetInterfaceCollection",
			collectionName: "Ethernet Interfaces", memberVariable: "managernic"},
		{URI: "/redfish/v1/Managers/{manager}/EthernetInterfaces/{managernic}", Schema: "EthernetInterface.v1_12_4",
			DependsOn: partIdentity | partNetwork, Read: managerNIC, Patch: &managerNICPatch},
	}
}

// ManagerNICID is the ID of the BMC's EthernetInterface.
const ManagerNICID = "1"

// networkServices maps the services of a BMC to properties of
// ManagerNetworkProtocol.
var networkServices = []struct {
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

func networkProtocol(v View) Object {
	n := v.BMC.Network()
	o := Object{
		"Name": "Manager Network Protocol", "Status": status("Enabled"), "HostName": v.bmcHostName(n), "FQDN": v.bmcFQDN(n),
	}
	for _, s := range networkServices {
		is := s.of(&n)
		o[s.name] = Object{"ProtocolEnabled": is.On, "Port": int(is.Port)}
	}
	o["HTTPS"].(Object)["Certificates"] = Ref(v.httpsCertificates())
	o["NTP"].(Object)["NTPServers"] = append([]string{}, n.TimeServers...)
	return o
}

// bmcHostName returns the BMC's host name; by default the name of the machine
// with "-bmc" appended.
func (v View) bmcHostName(n bmc.Network) string {
	if n.HostName != "" {
		return n.HostName
	}
	return v.Machine.Identity.Name + "-bmc"
}

func (v View) bmcFQDN(n bmc.Network) string {
	if n.Domain == "" {
		return v.bmcHostName(n)
	}
	return v.bmcHostName(n) + "." + n.Domain
}

var networkProtocolPatch = Patch{
	Inputs: networkInputs(),
	Apply: func(ctx context.Context, c Call) (Result, error) {
		n := c.View.BMC.Network()
		for _, s := range networkServices {
			is := s.of(&n)
			is.On = Value(c.Values, s.name+"/ProtocolEnabled", is.On)
			is.Port = uint16(Value(c.Values, s.name+"/Port", int64(is.Port)))
		}
		if servers, ok := c.Values["NTP/NTPServers"].([]any); ok {
			n.TimeServers = nonEmpty(servers)
		}
		return Result{}, c.setNetwork(ctx, n)
	},
}

func networkInputs() []Input {
	var all []Input
	for _, s := range networkServices {
		in := Input{Name: s.name, Kind: Group, Of: []Input{
			{Name: "ProtocolEnabled", Kind: Boolean}, {Name: "Port", Kind: Integer, Min: 1, Max: 65535},
		}}
		if s.name == "NTP" {
			in.Of = append(in.Of, Input{Name: "NTPServers", Kind: Array, Max: 4, Of: []Input{{Kind: Text, form: isHost}}})
		}
		all = append(all, in)
	}
	return all
}

// nonEmpty returns the strings of an array that are not empty.
func nonEmpty(all []any) []string {
	var out []string
	for _, x := range all {
		if s, ok := x.(string); ok && s != "" {
			out = append(out, s)
		}
	}
	return out
}

// isHost reports whether a string is a host name, an IP address or empty.
func isHost(s string) bool {
	_, err := netip.ParseAddr(s)
	return s == "" || err == nil || len(s) <= 253 && domainName.MatchString(s)
}

var domainName = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)

// setNetwork applies the BMC's network settings, or rejects the property that
// causes a conflict of addresses or ports.
func (c Call) setNetwork(ctx context.Context, n bmc.Network) error {
	_, err := c.Host.ApplyBMC(ctx, bmc.SetNetwork{Network: n})
	switch {
	case errors.Is(err, bmc.ErrAddress):
		m := message.PropertyValueError.With("IPv4StaticAddresses").About("#/IPv4StaticAddresses/0/Address")
		if !n.DHCP && n.Static == nil {
			m = message.PropertyValueConflict.With("DHCPEnabled", "IPv4StaticAddresses").About("#/DHCPv4/DHCPEnabled")
		}
		m.Resolution += " " + err.Error() + "."
		return Reject(http.StatusBadRequest, m)
	case errors.Is(err, bmc.ErrPort):
		name := "HTTPS"
		for _, s := range networkServices { // whose port the client has set
			if _, ok := c.Values[s.name+"/Port"]; ok {
				name = s.name
				break
			}
		}
		m := message.PropertyValueError.With("Port").About("#/" + name + "/Port")
		m.Resolution += " " + err.Error() + "."
		return Reject(http.StatusBadRequest, m)
	}
	return err
}

func managerNIC(v View) Object {
	n := v.BMC.Network()
	o := Object{
		"Name": "Manager Ethernet Interface", "EthernetInterfaceType": "Physical", "InterfaceEnabled": true, "LinkStatus": "LinkUp",
		"Status": status("Enabled"), "MACAddress": v.Machine.Identity.BMCMAC(), "PermanentMACAddress": v.Machine.Identity.BMCMAC(),
		"SpeedMbps": 1000, "FullDuplex": true, "AutoNeg": true, "MTUSize": 1500,
		"HostName": v.bmcHostName(n), "FQDN": v.bmcFQDN(n),
		"DHCPv4": Object{
			"DHCPEnabled": n.DHCP, "UseDNSServers": n.Use.DNS, "UseNTPServers": n.Use.NTP, "UseDomainName": n.Use.Domain, "UseGateway": n.Use.Gateway,
		},
		"NameServers": append([]string{}, n.NameServers...), "StaticNameServers": append([]string{}, n.NameServers...),
		"VLAN":        Object{"VLANEnable": n.VLAN.On, "VLANId": n.VLAN.ID, "VLANPriority": n.VLAN.Priority},
		"IPv6Enabled": n.V6.On, "MaxIPv6StaticAddresses": maxIPv6Addresses,
		"DHCPv6": Object{
			"OperatingMode": or(n.V6.DHCP, "Disabled"), "UseDNSServers": n.V6.Use.DNS, "UseNTPServers": n.V6.Use.NTP,
			"UseDomainName": n.V6.Use.Domain, "UseRapidCommit": n.V6.Use.RapidCommit,
		},
		"StatelessAddressAutoConfig": Object{"IPv6AutoConfigEnabled": n.V6.Auto},
		"Links":                      Object{"Chassis": Ref(v.chassis())},
	}
	inForce, static := []Object{}, []Object{}
	if s := n.Static; s != nil {
		static = append(static, ipv4Object(s.Addr, s.Mask, s.Gateway))
		at := ipv4Object(s.Addr, s.Mask, s.Gateway)
		at["AddressOrigin"] = "Static"
		inForce = append(inForce, at)
	}
	if p := v.BMC.NetworkDefaults; p != nil && n.DHCP && (n.Static == nil || n.Static.Addr != p.Addr) {
		at := ipv4Object(p.Addr, "255.0.0.0", "")
		at["AddressOrigin"] = "DHCP"
		inForce = append(inForce, at)
	}
	o["IPv4Addresses"], o["IPv4StaticAddresses"] = inForce, static
	v6, v6Static, gateways := []Object{}, []Object{}, []Object{}
	for _, a := range n.V6.Static {
		v6Static = append(v6Static, Object{"Address": a.Addr.String(), "PrefixLength": a.Prefix})
		if n.V6.On {
			v6 = append(v6, Object{"Address": a.Addr.String(), "PrefixLength": a.Prefix, "AddressOrigin": "Static", "AddressState": "Preferred"})
		}
	}
	for _, g := range n.V6.Gateways {
		gateways = append(gateways, Object{"Address": g})
	}
	o["IPv6Addresses"], o["IPv6StaticAddresses"], o["IPv6StaticDefaultGateways"] = v6, v6Static, gateways
	if len(n.V6.Gateways) > 0 && n.V6.On {
		o["IPv6DefaultGateway"] = n.V6.Gateways[0]
	}
	return o
}

// maxIPv6Addresses is MaxIPv6StaticAddresses, the greatest number of static IPv6
// addresses.
const maxIPv6Addresses = 4

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func ipv4Object(addr netip.Addr, mask, gateway string) Object {
	o := Object{"Address": addr.String(), "SubnetMask": nil, "Gateway": nil}
	if mask != "" {
		o["SubnetMask"] = mask
	}
	if gateway != "" {
		o["Gateway"] = gateway
	}
	return o
}

func isIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

// isMask reports whether a string is an IPv4 subnet mask: ones, then zeros.
func isMask(s string) bool {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return false
	}
	b := a.As4()
	bits := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	return bits != 0 && bits|(bits-1) == ^uint32(0)
}

var managerNICPatch = Patch{
	Inputs: []Input{
		{Name: "HostName", Kind: Text, form: isHostName},
		{Name: "FQDN", Kind: Text, form: isHost},
		{Name: "DHCPv4", Kind: Group, Of: []Input{
			{Name: "DHCPEnabled", Kind: Boolean}, {Name: "UseDNSServers", Kind: Boolean}, {Name: "UseNTPServers", Kind: Boolean},
			{Name: "UseDomainName", Kind: Boolean}, {Name: "UseGateway", Kind: Boolean},
		}},
		{Name: "IPv4StaticAddresses", Kind: Array, Max: 1, Of: []Input{{Kind: Group, Of: []Input{
			{Name: "Address", Kind: Text, Required: true, form: isIPv4},
			{Name: "SubnetMask", Kind: Text, nullable: true, form: isMask},
			{Name: "Gateway", Kind: Text, nullable: true, form: isIPv4},
		}}}},
		{Name: "StaticNameServers", Kind: Array, Max: 4, Of: []Input{{Kind: Text, form: func(s string) bool { return s == "" || isIPv4(s) || isIPv6(s) }}}},
		{Name: "VLAN", Kind: Group, Of: []Input{
			{Name: "VLANEnable", Kind: Boolean}, {Name: "VLANId", Kind: Integer, Min: 1, Max: 4094}, {Name: "VLANPriority", Kind: Integer, Max: 7},
		}},
		{Name: "IPv6Enabled", Kind: Boolean},
		{Name: "IPv6StaticAddresses", Kind: Array, Max: maxIPv6Addresses, Of: []Input{{Kind: Group, Of: []Input{
			{Name: "Address", Kind: Text, Required: true, form: isIPv6}, {Name: "PrefixLength", Kind: Integer, Max: 128},
		}}}},
		{Name: "IPv6StaticDefaultGateways", Kind: Array, Max: maxIPv6Addresses, Of: []Input{{Kind: Group, Of: []Input{
			{Name: "Address", Kind: Text, Required: true, form: isIPv6},
		}}}},
		{Name: "DHCPv6", Kind: Group, Of: []Input{
			{Name: "OperatingMode", Kind: Text, Allowed: OneOf("Disabled", "Enabled")}, {Name: "UseDNSServers", Kind: Boolean},
			{Name: "UseNTPServers", Kind: Boolean}, {Name: "UseDomainName", Kind: Boolean}, {Name: "UseRapidCommit", Kind: Boolean},
		}},
		{Name: "StatelessAddressAutoConfig", Kind: Group, Of: []Input{{Name: "IPv6AutoConfigEnabled", Kind: Boolean}}},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		n := c.View.BMC.Network()
		set := c.Values
		n.HostName = Value(set, "HostName", n.HostName)
		if fqdn, ok := set["FQDN"].(string); ok {
			n.HostName, n.Domain, _ = strings.Cut(fqdn, ".")
		}
		n.DHCP = Value(set, "DHCPv4/DHCPEnabled", n.DHCP)
		n.Use = bmc.DHCPUse{
			DNS: Value(set, "DHCPv4/UseDNSServers", n.Use.DNS), NTP: Value(set, "DHCPv4/UseNTPServers", n.Use.NTP),
			Domain: Value(set, "DHCPv4/UseDomainName", n.Use.Domain), Gateway: Value(set, "DHCPv4/UseGateway", n.Use.Gateway),
		}
		if all, ok := set["IPv4StaticAddresses"].([]any); ok {
			was := n.Static
			n.Static = nil
			for _, x := range all {
				if x, ok := x.(Values); ok {
					addr, err := netip.ParseAddr(Value(x, "Address", ""))
					if err != nil {
						return Result{}, err // its form was looked at
					}
					n.Static = &bmc.IPv4{Addr: addr, Mask: Value(x, "SubnetMask", ""), Gateway: Value(x, "Gateway", "")}
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
			On: Value(set, "VLAN/VLANEnable", n.VLAN.On), ID: int(Value(set, "VLAN/VLANId", int64(n.VLAN.ID))),
			Priority: int(Value(set, "VLAN/VLANPriority", int64(n.VLAN.Priority))),
		}
		if err := patchIPv6(&n.V6, set); err != nil {
			return Result{}, err
		}
		return Result{}, c.setNetwork(ctx, n)
	},
}

// patchIPv6 applies a client's changes of the IPv6 settings.
func patchIPv6(n *bmc.IPv6, set Values) error {
	n.On = Value(set, "IPv6Enabled", n.On)
	n.Auto = Value(set, "StatelessAddressAutoConfig/IPv6AutoConfigEnabled", n.Auto)
	n.DHCP = Value(set, "DHCPv6/OperatingMode", n.DHCP)
	n.Use = bmc.DHCPv6Use{
		DNS: Value(set, "DHCPv6/UseDNSServers", n.Use.DNS), NTP: Value(set, "DHCPv6/UseNTPServers", n.Use.NTP),
		Domain: Value(set, "DHCPv6/UseDomainName", n.Use.Domain), RapidCommit: Value(set, "DHCPv6/UseRapidCommit", n.Use.RapidCommit),
	}
	if all, ok := set["IPv6StaticAddresses"].([]any); ok {
		n.Static = nil
		for _, x := range all {
			if x, ok := x.(Values); ok {
				addr, err := netip.ParseAddr(Value(x, "Address", ""))
				if err != nil {
					return err // its form was looked at
				}
				n.Static = append(n.Static, bmc.IPv6Static{Addr: addr, Prefix: int(Value(x, "PrefixLength", int64(64)))})
			}
		}
	}
	if all, ok := set["IPv6StaticDefaultGateways"].([]any); ok {
		n.Gateways = nil
		for _, x := range all {
			if x, ok := x.(Values); ok {
				n.Gateways = append(n.Gateways, Value(x, "Address", ""))
			}
		}
	}
	n.Gateways = slices.Clip(n.Gateways)
	return nil
}
