package ilo

import "github.com/metalab-dev/metalab/emulator/dialect"

const managerNIC = manager + "/EthernetInterfaces/1"

// Names of stored values: whether the BMC registers its name with name servers. No name
// server learns of it.
const (
	storedWINS = "WINSRegistration"
	storedDDNS = "DDNSRegistration"
)

// nicTransform returns the vendor's object in the manager's EthernetInterface: it repeats
// settings of the standard, and has a few more [V docs, EthernetInterface, Oem.Hpe;
// NVIDIA/libredfish, tests/mockups/hpe].
func nicTransform(g generation) transform {
	at := g.oemPath
	return transform{ResourceType: "EthernetInterface", URI: managerNIC, Set: []propertyRule{
		g.oemType("iLOEthernetNetworkInterface"),
		{Path: at("ConfigurationSettings"), Value: "Current"}, {Path: at("InterfaceType"), Value: "Dedicated"},
		{Path: at("NICEnabled"), From: "InterfaceEnabled"}, {Path: at("NICSupportsIPv6"), Value: true},
		{Path: at("HostName"), From: "HostName"},
		{Path: at("DomainName"), From: "FQDN", Match: `^[^.]*\.(.*)$`},
		{Path: at("DHCPv4/Enabled"), From: "DHCPv4/DHCPEnabled"}, {Path: at("DHCPv4/UseDNSServers"), From: "DHCPv4/UseDNSServers"},
		{Path: at("DHCPv4/UseDomainName"), From: "DHCPv4/UseDomainName"}, {Path: at("DHCPv4/UseGateway"), From: "DHCPv4/UseGateway"},
		{Path: at("DHCPv4/UseNTPServers"), From: "DHCPv4/UseNTPServers"},
		{Path: at("DHCPv6/StatefulModeEnabled"), From: "DHCPv6/OperatingMode", Map: dict{"Disabled": false}, Value: true},
		{Path: at("DHCPv6/StatelessModeEnabled"), From: "DHCPv6/OperatingMode", Map: dict{"Disabled": false}, Value: true},
		{Path: at("DHCPv6/UseDNSServers"), From: "DHCPv6/UseDNSServers"}, {Path: at("DHCPv6/UseDomainName"), From: "DHCPv6/UseDomainName"},
		{Path: at("DHCPv6/UseNTPServers"), From: "DHCPv6/UseNTPServers"}, {Path: at("DHCPv6/UseRapidCommit"), From: "DHCPv6/UseRapidCommit"},
		{Path: at("IPv4/DNSServers"), From: "StaticNameServers"},
		{Path: at("IPv4/WINSRegistration"), Value: true}, {Path: at("IPv4/WINSRegistration"), From: "=" + storedWINS},
		{Path: at("IPv4/DDNSRegistration"), Value: true}, {Path: at("IPv4/DDNSRegistration"), From: "=" + storedDDNS},
	}}
}

// nicWrites are the vendor's properties of the manager's EthernetInterface that clients
// write: those for which the standard has no property of the same meaning [V docs; V
// community.general, ilo_redfish_utils.py].
func nicWrites(g generation) []dialect.WritableProperty {
	of := func(path string, t dialect.ParameterType, does ...dialect.Effect) dialect.WritableProperty {
		return dialect.WritableProperty{ResourceType: "EthernetInterface", URI: managerNIC, Path: g.oemPath(path), Type: t, Effects: does}
	}
	set := func(body dict) dialect.Effect {
		return dialect.Effect{Requests: []dialect.StandardRequest{patch(managerNIC, body)}}
	}
	return []dialect.WritableProperty{
		of("HostName", dialect.StringParameter, set(dict{"HostName": "$"})),
		of("DomainName", dialect.StringParameter, dialect.Effect{Hook: writeDomain}),
		of("DHCPv4/Enabled", dialect.BooleanParameter, set(dict{"DHCPv4": dict{"DHCPEnabled": "$"}})),
		of("DHCPv4/UseDNSServers", dialect.BooleanParameter, set(dict{"DHCPv4": dict{"UseDNSServers": "$"}})),
		of("DHCPv4/UseDomainName", dialect.BooleanParameter, set(dict{"DHCPv4": dict{"UseDomainName": "$"}})),
		of("DHCPv4/UseNTPServers", dialect.BooleanParameter, set(dict{"DHCPv4": dict{"UseNTPServers": "$"}})),
		of("DHCPv4/UseGateway", dialect.BooleanParameter, set(dict{"DHCPv4": dict{"UseGateway": "$"}})),
		of("DHCPv6/UseDNSServers", dialect.BooleanParameter, set(dict{"DHCPv6": dict{"UseDNSServers": "$"}})),
		of("DHCPv6/UseDomainName", dialect.BooleanParameter, set(dict{"DHCPv6": dict{"UseDomainName": "$"}})),
		of("DHCPv6/UseNTPServers", dialect.BooleanParameter, set(dict{"DHCPv6": dict{"UseNTPServers": "$"}})),
		of("DHCPv6/UseRapidCommit", dialect.BooleanParameter, set(dict{"DHCPv6": dict{"UseRapidCommit": "$"}})),
		of("IPv4/DNSServers", dialect.ArrayParameter, set(dict{"StaticNameServers": "$"})),
		of("IPv4/WINSRegistration", dialect.BooleanParameter, dialect.Effect{Store: dict{storedWINS: "$"}}),
		of("IPv4/DDNSRegistration", dialect.BooleanParameter, dialect.Effect{Store: dict{storedDDNS: "$"}}),
	}
}

// writeDomain sets the domain of the BMC, which the standard has in FQDN alone.
func writeDomain(c dialect.ActionCall) (dialect.Effect, error) {
	host, _ := c.Standard(c.URI)["HostName"].(string)
	domain := ""
	for _, vendor := range []string{"Hpe", "Hp"} {
		oem, _ := c.Body["Oem"].(dict)
		sent, _ := oem[vendor].(dict)
		if d, ok := sent["DomainName"].(string); ok {
			domain = d
		}
	}
	if domain != "" {
		host += "." + domain
	}
	return dialect.Effect{Requests: []dialect.StandardRequest{patch(c.URI, dict{"FQDN": host})}}, nil
}
