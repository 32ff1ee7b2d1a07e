package cloudinit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bondParameters and bridgeParameters are the parameters that netplan has, by those of version 1
// (cloud-init 22.4.2, network_state.NET_CONFIG_TO_V2).
var (
	bondParameters = map[string]string{
		"bond-ad-select": "ad-select", "bond-arp-interval": "arp-interval", "bond-arp-ip-target": "arp-ip-target",
		"bond-arp-validate": "arp-validate", "bond-downdelay": "down-delay", "bond-fail-over-mac": "fail-over-mac-policy",
		"bond-lacp-rate": "lacp-rate", "bond-miimon": "mii-monitor-interval", "bond-min-links": "min-links", "bond-mode": "mode",
		"bond-num-grat-arp": "gratuitous-arp", "bond-primary": "primary", "bond-primary-reselect": "primary-reselect-policy",
		"bond-updelay": "up-delay", "bond-xmit-hash-policy": "transmit-hash-policy",
	}
	bridgeParameters = map[string]string{
		"bridge_ageing": "ageing-time", "bridge_bridgeprio": "priority", "bridge_fd": "forward-delay", "bridge_hello": "hello-time",
		"bridge_maxage": "max-age", "bridge_pathcost": "path-cost", "bridge_portprio": "port-priority", "bridge_stp": "stp",
	}
)

// sections are the mappings of netplan that interfaces stand in, by their type. Interfaces of other
// types are in none.
var sections = map[string]string{"physical": "ethernets", "bond": "bonds", "bridge": "bridges", "vlan": "vlans"}

// netplan returns the configuration for netplan, as netplan.Renderer of cloud-init 22.4.2 makes it
// for netplan 0.106. An error is one for which cloud-init makes none.
func (a *links) netplan() (dict, error) {
	out := dict{"version": int64(2)}
	for _, name := range slices.Sorted(maps.Keys(a.byName)) {
		l := a.byName[name]
		section := sections[l.kind]
		if section == "" {
			continue
		}
		device, err := a.device(l)
		if err == nil {
			err = a.addresses(l, device)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		_, hasServers := device["nameservers"]
		_, hasAddresses := device["addresses"]
		if len(a.servers)+len(a.search) > 0 && hasAddresses && !hasServers {
			device["nameservers"] = dict{"addresses": listOf(a.servers), "search": listOf(a.search)}
		}
		if out[section] == nil {
			out[section] = dict{}
		}
		out[section].(dict)[name] = device
	}
	return out, nil
}

// listOf returns a list that is written as one when it is empty.
func listOf(l []any) []any { return append([]any{}, l...) }

// device returns the settings of an interface's type.
func (a *links) device(l *link) (dict, error) {
	out := dict{}
	mac, isText := l.mac.(string)
	if !isText && (l.kind == "bond" || l.kind == "bridge") && !truthy(l.mac) {
		isText = true // those without an address of their own
	}
	if l.mac != nil && !isText && (l.kind != "physical" || l.match == nil) {
		return nil, fmt.Errorf("its MAC address %s is no text: quote it", pyText(l.mac))
	}
	mac = strings.ToLower(mac)
	switch l.kind {
	case "physical":
		switch {
		case l.match != nil:
			out["match"], out["set-name"] = l.match, l.name
		case l.mac != nil:
			out["match"], out["set-name"] = dict{"macaddress": mac}, l.name
		}
		return out, nil
	case "vlan":
		out["id"], out["link"] = l.vlanID, l.vlanLink
		if l.mac != nil {
			out["macaddress"] = mac
		}
		return out, nil
	case "bond":
		a.members(l, out)
	case "bridge":
		if err := bridgeOf(l, out); err != nil {
			return nil, err
		}
	}
	if mac != "" {
		out["macaddress"] = mac
	}
	return out, nil
}

// members adds the members and parameters of a bond. A parameter may have hyphens or underlines;
// the former win.
func (a *links) members(l *link, out dict) {
	params := dict{}
	for _, prefix := range []string{"bond_", "bond-"} {
		for _, k := range slices.Sorted(maps.Keys(l.params)) {
			if name := bondParameters[strings.ReplaceAll(k, "_", "-")]; name != "" && strings.HasPrefix(k, prefix) && l.params[k] != nil {
				params[name] = l.params[k]
			}
		}
	}
	if len(params) > 0 {
		out["parameters"] = params
	}
	if !l.isBond {
		a.r.ignore("%s has no link of its own: cloud-init takes it for a bond", l.name)
		return
	}
	members := []any{}
	for _, name := range slices.Sorted(maps.Keys(a.byName)) {
		if a.byName[name].bond == l.name {
			members = append(members, name)
		}
	}
	if len(members) > 0 {
		out["interfaces"] = members
	}
}

// bridgeOf adds the ports and parameters of a bridge.
func bridgeOf(l *link, out dict) error {
	ports := listOf(l.ports)
	for _, p := range ports {
		if _, ok := p.(string); !ok {
			return fmt.Errorf("bridge_interfaces: %s is no text: quote it", pyText(p))
		}
	}
	slices.SortFunc(ports, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	out["interfaces"] = ports
	params := dict{}
	for k, name := range bridgeParameters {
		v := l.params[k]
		if v == nil {
			continue
		}
		if name == "path-cost" || name == "port-priority" {
			byPort, err := byPort(v)
			if err != nil {
				return fmt.Errorf("params.%s: %w", k, err)
			}
			v = byPort
		}
		params[name] = v
	}
	if len(params) > 0 {
		out["parameters"] = params
	}
	return nil
}

// byPort reads a list of "PORT NUMBER".
func byPort(v any) (dict, error) {
	list, ok := v.([]any)
	if !ok && v != "" {
		return nil, errors.New(`give a list of "PORT NUMBER"`)
	}
	out := dict{}
	for _, e := range list {
		s, _ := e.(string)
		f := strings.Fields(s)
		if len(f) != 2 {
			return nil, fmt.Errorf(`%s: give "PORT NUMBER"`, pyText(e))
		}
		n, err := wholeOf(f[1])
		if err != nil {
			return nil, err
		}
		out[f[0]] = n
	}
	return out, nil
}

// addresses adds the addresses, routes and name servers of an interface.
func (a *links) addresses(l *link, out dict) error {
	addresses, routes, servers, search := []any{}, []any{}, []any{}, []any{}
	for i, s := range l.subnets {
		switch {
		case s.kind == "dhcp":
			out["dhcp4"] = true
		case strings.HasPrefix(s.kind, "dhcp"):
			out[s.kind] = true
		case dynamic6[s.kind]:
			out["dhcp6"] = true
		}
		if !s.isStatic() {
			a.lost(l, i, s)
			continue
		}
		if s.gateway != nil {
			gateway, ok := s.gateway.(string)
			if !ok {
				return fmt.Errorf("subnets[%d]: gateway: %s is no text", i, pyText(s.gateway))
			}
			key := "gateway4"
			if strings.Contains(gateway, ":") {
				key = "gateway6"
			}
			if old, has := out[key]; has && old != gateway {
				a.r.ignore("the gateway %s of %s is not applied: %s comes after it", old, l.name, gateway)
			}
			out[key] = gateway
		}
		servers, search = append(servers, s.servers...), append(search, s.search...)
		if s.mtu != nil && s.ipv6 {
			out["ipv6-mtu"] = s.mtu
		} else if s.mtu != nil {
			out["mtu"] = s.mtu
		}
		for _, r := range s.routes {
			routes = append(routes, r)
		}
		addresses = append(addresses, s.address)
	}
	if l.mtu != nil {
		if of := out["mtu"]; truthy(of) && !same(of, l.mtu) {
			a.r.ignore("the MTU %#v of %s is not applied: that of its subnet is %#v", l.mtu, l.name, of)
		} else {
			out["mtu"] = l.mtu
		}
	}
	dns := dict{}
	for _, list := range []struct {
		in     dict
		key    string
		values []any
	}{{out, "addresses", addresses}, {out, "routes", routes}, {dns, "addresses", servers}, {dns, "search", search}} {
		if len(list.values) > 0 {
			list.in[list.key] = list.values
		}
	}
	if len(dns) > 0 {
		out["nameservers"] = dns
	}
	if l.acceptRA != nil {
		out["accept-ra"] = saysTrue(l.acceptRA)
	}
	return nil
}

// lost names what cloud-init leaves out of a subnet whose address is not given.
func (a *links) lost(l *link, i int, s subnet) {
	var lost []string
	for _, x := range []struct {
		what string
		has  bool
	}{{"gateway", s.gateway != nil}, {"routes", len(s.routes) > 0}, {"name servers", len(s.servers)+len(s.search) > 0}, {"MTU", s.mtu != nil}} {
		if x.has {
			lost = append(lost, x.what)
		}
	}
	if len(lost) > 0 {
		a.r.ignore("%s of subnets[%d] of %s, whose type is %s, are not applied: cloud-init's netplan has those of static subnets alone", strings.Join(lost, ", "), i, l.name, s.kind)
	}
	if s.kind != "manual" && !strings.HasPrefix(s.kind, "dhcp") && !dynamic6[s.kind] {
		a.r.ignore("subnets[%d] of %s is not applied: cloud-init's netplan has no type %s", i, l.name, s.kind)
	}
}
