package cloudinit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// physicalTypes are the types of links that are NICs (cloud-init 22.4.2,
// sources.helpers.openstack). One of any other type is taken for one, too.
var physicalTypes = []string{
	"bgpovs", "bridge", "cascading", "dvs", "ethernet", "hw_veb", "hyperv", "ovs", "phy", "tap", "vhostuser", "vif",
}

// networkTypes are the types of networks, with that of the subnet of version 1 that they are.
var networkTypes = map[string]string{
	"ipv4_dhcp": "dhcp4", "ipv6_dhcp": "dhcp6", "ipv4": "static", "static": "static", "ipv6": "static6", "static6": "static6",
	"ipv6_slaac": "ipv6_slaac", "ipv6_dhcpv6-stateless": "ipv6_dhcpv6-stateless", "ipv6_dhcpv6-stateful": "ipv6_dhcpv6-stateful",
}

// networkKeys are the keys of a network that a subnet takes.
var networkKeys = []string{
	"type", "address", "netmask", "broadcast", "metric", "gateway", "pointopoint", "scope", "dns_nameservers", "dns_search", "routes",
}

// openStack translates network_data.json (OpenStack Nova, schema "network_data.json") to commands
// of version 1, as convert_net_json of cloud-init 22.4.2 does.
type openStack struct {
	nics     map[string]string
	networks map[string][]dict // by their link
	names    map[string]any    // of links, by their ID: nil where the kernel's is meant and not known
	commands []any
	later    []func() error // what needs the names of all links
	bonds    int
	r        *losses
}

func ofOpenStack(doc any, nics map[string]string, r *losses) (out version1, err error) {
	in, ok := doc.(dict)
	if !ok {
		return out, errors.New("network_data.json: it is no mapping")
	}
	for _, k := range slices.Sorted(maps.Keys(in)) {
		if k != "links" && k != "networks" && k != "services" {
			r.ignore("%s of network_data.json is not applied: it has links, networks and services", k)
		}
	}
	o := openStack{nics: nics, networks: map[string][]dict{}, names: map[string]any{}, r: r}
	links, err := listAt(in, "links")
	if err != nil {
		return out, err
	}
	if err := o.readNetworks(in, len(links) > 0); err != nil {
		return out, err
	}
	for i, v := range links {
		if err := o.link(v); err != nil {
			return out, fmt.Errorf("links[%d]: %w", i, err)
		}
	}
	for _, do := range o.later {
		if err := do(); err != nil {
			return out, err
		}
	}
	services, err := listAt(in, "services")
	if err != nil {
		return out, err
	}
	for i, v := range services {
		s, ok := v.(dict)
		if !ok {
			return out, fmt.Errorf("services[%d]: it is no mapping", i)
		}
		if s["type"] != "dns" {
			r.ignore("services[%d] of the network data has the type %s: cloud-init takes it for a name server", i, pyText(s["type"]))
		}
		s = maps.Clone(s)
		s["type"] = "nameserver"
		o.commands = append(o.commands, s)
	}
	for _, id := range slices.Sorted(maps.Keys(o.networks)) {
		if _, has := o.names[id]; !has {
			for _, n := range o.networks[id] {
				r.ignore("the network %s is not applied: there is no link %s", nameOf(n), pyText(n["link"]))
			}
		}
	}
	return version1{o.commands, func(i int) string {
		if i < len(links) {
			return fmt.Sprintf("links[%d]", i)
		}
		return fmt.Sprintf("services[%d]", i-len(links))
	}}, nil
}

// nameOf returns the ID of a network or link for a message.
func nameOf(d dict) string { return cmp.Or(textAt(d, "id"), textAt(d, "name"), "without an id") }

func textAt(d dict, key string) string {
	if v, has := d[key]; has && v != nil {
		return pyText(v)
	}
	return ""
}

// idOf returns the key of an ID: equal IDs have the same. A list or mapping is none.
func idOf(v any) (string, bool) {
	if isCollection(v) {
		return "", false
	}
	if n, ok := numeric(v); ok {
		return fmt.Sprintf("n%g", n), true
	}
	if v == nil {
		return "nil", true
	}
	return "s" + pyText(v), true
}

// readNetworks sorts the networks by their links. Without links cloud-init does not look at them.
func (o *openStack) readNetworks(in dict, needed bool) error {
	networks, err := listAt(in, "networks")
	if err != nil {
		if !needed {
			return nil
		}
		return err
	}
	for i, v := range networks {
		n, ok := v.(dict)
		link, has := n["link"]
		if !has || !ok {
			if !needed {
				continue
			}
			return fmt.Errorf("networks[%d]: there is no link", i)
		}
		if id, ok := idOf(link); ok {
			o.networks[id] = append(o.networks[id], n)
		}
	}
	return nil
}

// link translates a link with its networks.
func (o *openStack) link(v any) error {
	l, ok := v.(dict)
	if !ok {
		return errors.New("it is no mapping")
	}
	for _, k := range []string{"id", "type"} {
		if _, has := l[k]; !has {
			return fmt.Errorf("there is no %s", k)
		}
	}
	id, ok := idOf(l["id"])
	if !ok {
		return errors.New("id: it is no text")
	}
	c := dict{}
	for _, k := range []string{"name", "type", "mac_address", "params", "mtu"} {
		if v, has := l[k]; has {
			c[k] = v
		}
	}
	var mac any
	if v := l["ethernet_mac_address"]; truthy(v) {
		s, ok := v.(string)
		if !ok {
			return errors.New("ethernet_mac_address: it is no text")
		}
		mac = strings.ToLower(s)
	}
	if err := o.subnets(id, c); err != nil {
		return err
	}
	o.commands = append(o.commands, c)
	switch l["type"] {
	case "bond":
		return o.bond(id, l, c, mac)
	case "vlan":
		return o.vlan(id, l, c)
	}
	if t, isText := l["type"].(string); l["type"] != nil && (!isText || !slices.Contains(physicalTypes, t)) {
		o.r.ignore("the link %s has the type %s, which cloud-init takes for a NIC", nameOf(l), pyText(l["type"]))
	} else if t == "bridge" && slices.ContainsFunc(slices.Collect(maps.Keys(l)), func(k string) bool { return strings.HasPrefix(k, "bridge_") }) {
		o.r.ignore("the link %s is no bridge of the server: cloud-init takes the type for a NIC", nameOf(l))
	}
	c["type"], c["mac_address"] = "physical", mac
	name := o.kernelName(l, mac)
	o.names[id] = name
	if _, named := c["name"]; named {
		return nil
	}
	o.later = append(o.later, func() error {
		switch {
		case mac == nil:
			return fmt.Errorf("the link %s has neither name nor ethernet_mac_address", nameOf(l))
		case name == nil:
			return fmt.Errorf("the link %s: the server has no NIC with the MAC address %s", nameOf(l), mac)
		}
		c["name"] = name
		return nil
	})
	return nil
}

// kernelName returns the name of a link that is a NIC: its own, else that of the kernel for the
// MAC address.
func (o *openStack) kernelName(l dict, mac any) any {
	if name := l["name"]; truthy(name) {
		return name
	}
	if mac == nil {
		return nil
	}
	if o.nics == nil {
		return pyText(l["id"]) // the server is not known
	}
	if name := o.nics[mac.(string)]; name != "" {
		return name
	}
	return nil
}

// bond translates a bond. Its name is bond0, bond1, ..., whatever its ID and name.
func (o *openStack) bond(id string, l, c dict, mac any) error {
	name := fmt.Sprintf("bond%d", o.bonds)
	o.bonds++
	params := dict{}
	for k, v := range l {
		if strings.HasPrefix(k, "bond") && k != "bond_links" {
			params[k] = v
		}
	}
	if mac != nil {
		c["mac_address"] = mac
	}
	members, ok := l["bond_links"].([]any)
	if !ok {
		return errors.New("bond_links: it is no list")
	}
	c["params"], c["name"], o.names[id] = params, name, name
	o.later = append(o.later, func() error {
		names := []any{}
		for _, m := range members {
			name, err := o.nameOfLink(m)
			if err != nil {
				return fmt.Errorf("the link %s: bond_links: %w", nameOf(l), err)
			}
			names = append(names, name)
		}
		c["bond_interfaces"] = names
		return nil
	})
	return nil
}

// vlan translates a VLAN. Its name is that of its link, a point and the number.
func (o *openStack) vlan(id string, l, c dict) error {
	for _, k := range []string{"vlan_link", "vlan_id", "vlan_mac_address"} {
		if _, has := l[k]; !has {
			return fmt.Errorf("there is no %s", k)
		}
	}
	number := pyText(l["vlan_id"])
	c["vlan_id"], c["mac_address"] = l["vlan_id"], l["vlan_mac_address"]
	// A VLAN on this one has the link's ID in its name: cloud-init puts names in place of IDs once.
	o.names[id] = pyText(l["vlan_link"]) + "." + number
	o.later = append(o.later, func() error {
		name, err := o.nameOfLink(l["vlan_link"])
		if err != nil {
			return fmt.Errorf("the link %s: vlan_link: %w", nameOf(l), err)
		}
		c["vlan_link"], c["name"] = name, name+"."+number
		return nil
	})
	return nil
}

func (o *openStack) nameOfLink(id any) (string, error) {
	key, ok := idOf(id)
	name, has := o.names[key]
	if !ok || !has {
		return "", fmt.Errorf("there is no link %s", pyText(id))
	}
	return pyText(name), nil
}

// subnets translates the networks of a link.
func (o *openStack) subnets(id string, c dict) error {
	subnets := []any{}
	for _, n := range o.networks[id] {
		kind, has := n["type"]
		if !has {
			return fmt.Errorf("its network %s has no type", nameOf(n))
		}
		s := dict{}
		for _, k := range networkKeys {
			if v, has := n[k]; has {
				s[k] = v
			}
		}
		name, _ := kind.(string)
		if to, known := networkTypes[name]; known {
			s["type"] = to
		}
		switch name {
		case "ipv4", "static":
			s["address"] = n["ip_address"]
		case "ipv6", "static6":
			s["address"], c["accept-ra"] = n["ip_address"], false
		case "ipv6_dhcp", "ipv6_dhcpv6-stateful":
			c["accept-ra"] = true
		}
		if truthy(n["services"]) {
			o.r.ignore("the services of the network %s are not applied: cloud-init reads those of the whole document, and dns_nameservers of a network", nameOf(n))
		}
		o.routeServices(n)
		subnets = append(subnets, s)
	}
	c["subnets"] = subnets
	return nil
}

// routeServices names the services of routes, which nothing reads.
func (o *openStack) routeServices(n dict) {
	routes, _ := n["routes"].([]any)
	for i, v := range routes {
		if route, ok := v.(dict); ok && truthy(route["services"]) {
			o.r.ignore("the services of routes[%d] of the network %s are not applied: cloud-init reads those of the whole document", i, nameOf(n))
		}
	}
}
