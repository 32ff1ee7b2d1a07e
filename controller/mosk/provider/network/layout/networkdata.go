package layout

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// netplan is the part of netplan(5) that a template may use: what OpenStack's network data can
// express, and bridges.
type netplan struct {
	Version   int                      `json:"version"`
	Renderer  string                   `json:"renderer,omitempty"`
	Ethernets map[string]netplanDevice `json:"ethernets,omitempty"`
	Bonds     map[string]netplanDevice `json:"bonds,omitempty"`
	VLANs     map[string]netplanDevice `json:"vlans,omitempty"`
	Bridges   map[string]netplanDevice `json:"bridges,omitempty"` // see NeedsFile
}

// has reports whether there is an interface of this name for others to stand on.
func (n netplan) has(name string) bool {
	for _, all := range []map[string]netplanDevice{n.Ethernets, n.Bonds, n.VLANs, n.Bridges} {
		if _, has := all[name]; has {
			return true
		}
	}
	return false
}

type netplanDevice struct {
	Match struct {
		MAC string `json:"macaddress,omitempty"`
	} `json:"match,omitempty"`
	SetName     string         `json:"set-name,omitempty"`
	MAC         string         `json:"macaddress,omitempty"`
	MTU         int            `json:"mtu,omitempty"`
	DHCP4       bool           `json:"dhcp4,omitempty"`
	DHCP6       bool           `json:"dhcp6,omitempty"`
	Optional    bool           `json:"optional,omitempty"`
	Addresses   []string       `json:"addresses,omitempty"`
	Gateway4    string         `json:"gateway4,omitempty"`
	Gateway6    string         `json:"gateway6,omitempty"`
	Nameservers nameservers    `json:"nameservers,omitempty"`
	Routes      []route        `json:"routes,omitempty"`
	ID          int            `json:"id,omitempty"`
	Link        string         `json:"link,omitempty"`
	Interfaces  []string       `json:"interfaces,omitempty"`
	Parameters  map[string]any `json:"parameters,omitempty"`
}

type nameservers struct {
	Addresses []string `json:"addresses,omitempty"`
	Search    []string `json:"search,omitempty"`
}

type route struct {
	To  string `json:"to"`
	Via string `json:"via"`
}

// document is OpenStack's network_data.json.
type document struct {
	Links    []map[string]any `json:"links"`
	Networks []map[string]any `json:"networks"`
	Services []map[string]any `json:"services"`
}

// NetworkData translates a netplan configuration to OpenStack's network_data.json, which
// cloud-init reads on a config drive. A key that it cannot express is an error. Where NeedsFile
// reports true, the network data are empty, so that nothing is configured twice.
func NetworkData(config []byte) ([]byte, error) {
	var in netplan
	if err := yaml.UnmarshalStrict(config, &in); err != nil {
		return nil, fmt.Errorf("network data have no such setting: use ethernets, bonds, vlans and bridges with addresses, routes, name servers and MTU: %w", err)
	}
	out := document{Links: []map[string]any{}, Networks: []map[string]any{}, Services: []map[string]any{}}
	if len(in.Bridges) > 0 {
		if err := in.checkFile(); err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
	for _, kind := range []struct {
		name    string
		devices map[string]netplanDevice
		link    func(netplan, netplanDevice, map[string]any) error
	}{{"ethernets", in.Ethernets, ethernet}, {"bonds", in.Bonds, bond}, {"vlans", in.VLANs, vlan}} {
		for _, name := range slices.Sorted(maps.Keys(kind.devices)) {
			d := kind.devices[name]
			link := map[string]any{"id": name}
			if d.MTU != 0 {
				link["mtu"] = d.MTU
			}
			err := d.misplaced(kind.name)
			if err == nil {
				err = kind.link(in, d, link)
			}
			if err != nil {
				return nil, fmt.Errorf("%s.%s: %w", kind.name, name, err)
			}
			out.Links = append(out.Links, link)
			networks, err := networksOf(name, d)
			if err != nil {
				return nil, fmt.Errorf("%s.%s: %w", kind.name, name, err)
			}
			out.Networks = append(out.Networks, networks...)
		}
	}
	return json.Marshal(out)
}

// misplaced refuses the keys that netplan has for interfaces of another kind.
func (d netplanDevice) misplaced(kind string) error {
	for _, x := range []struct {
		key, of string // the kinds that have it
		has     bool
	}{
		{"match", "ethernets", d.Match.MAC != ""},
		{"set-name", "ethernets", d.SetName != ""},
		{"macaddress", "bonds vlans bridges", d.MAC != ""}, // network data change no NIC's own
		{"interfaces", "bonds bridges", d.Interfaces != nil},
		{"parameters", "bonds bridges", d.Parameters != nil},
		{"id", "vlans", d.ID != 0},
		{"link", "vlans", d.Link != ""},
	} {
		if x.has && !slices.Contains(strings.Fields(x.of), kind) {
			return fmt.Errorf("%s: only %s have it", x.key, strings.ReplaceAll(x.of, " ", " and "))
		}
	}
	return nil
}

func ethernet(_ netplan, d netplanDevice, link map[string]any) error {
	link["type"] = "phy"
	mac := d.Match.MAC
	if mac == "" {
		return fmt.Errorf(`match.macaddress: give the MAC address: {{mac N}}`)
	}
	link["ethernet_mac_address"] = strings.ToLower(mac)
	if d.SetName != "" {
		link["name"] = d.SetName // without it a server's cloud-init takes the kernel's
	}
	return nil
}

func vlan(in netplan, d netplanDevice, link map[string]any) error {
	if !in.has(d.Link) {
		return fmt.Errorf("link: there is no interface %q", d.Link)
	}
	link["type"], link["vlan_id"], link["vlan_link"] = "vlan", d.ID, d.Link
	link["vlan_mac_address"] = nil // cloud-init loses all network data without the key
	if d.MAC != "" {
		link["vlan_mac_address"] = strings.ToLower(d.MAC)
	}
	return nil
}

// mask returns the mask of a network as OpenStack has it: an address.
func mask(p netip.Prefix) string {
	ones := make([]byte, p.Addr().BitLen()/8)
	for i := range ones {
		ones[i] = 0xff
	}
	a, _ := netip.AddrFromSlice(ones) // ones has 4 or 16 bytes
	return netip.PrefixFrom(a, p.Bits()).Masked().Addr().String()
}

// networksOf returns the networks of an interface. The routes are those of the first address
// of their family.
func networksOf(id string, d netplanDevice) (out []map[string]any, err error) {
	dhcp := map[string]bool{"ipv4_dhcp": d.DHCP4, "ipv6_dhcp": d.DHCP6}
	for _, kind := range []string{"ipv4_dhcp", "ipv6_dhcp"} {
		if dhcp[kind] {
			out = append(out, map[string]any{"id": id + "-" + kind, "type": kind, "link": id})
		}
	}
	routes := slices.Clone(d.Routes)
	for _, g := range []string{d.Gateway4, d.Gateway6} {
		if g != "" {
			routes = append(routes, route{"default", g})
		}
	}
	for i, text := range d.Addresses {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("addresses[%d]: %q: give ADDRESS/LENGTH", i, text)
		}
		n := map[string]any{"id": fmt.Sprintf("%s-%d", id, i), "link": id, "type": "ipv4", "ip_address": p.Addr().String(), "netmask": mask(p)}
		if p.Addr().Is6() {
			n["type"] = "ipv6"
		}
		var rest []route
		var translated []map[string]any
		for _, r := range routes {
			via, err := netip.ParseAddr(r.Via)
			if err != nil {
				return nil, fmt.Errorf("routes: via %q: give an address", r.Via)
			}
			if via.Is4() != p.Addr().Is4() {
				rest = append(rest, r)
				continue
			}
			to := r.To
			if to == "default" {
				to = map[bool]string{true: "0.0.0.0/0", false: "::/0"}[via.Is4()]
			}
			target, err := netip.ParsePrefix(to)
			if err != nil {
				return nil, fmt.Errorf("routes: to %q: give default or ADDRESS/LENGTH", r.To)
			}
			translated = append(translated, map[string]any{"network": target.Masked().Addr().String(), "netmask": mask(target), "gateway": r.Via})
		}
		if routes = rest; translated != nil {
			n["routes"] = translated
		}
		if i == 0 && len(d.Nameservers.Addresses) > 0 {
			n["dns_nameservers"] = d.Nameservers.Addresses
		}
		if i == 0 && len(d.Nameservers.Search) > 0 {
			n["dns_search"] = d.Nameservers.Search
		}
		out = append(out, n)
	}
	if len(d.Addresses) == 0 && len(d.Nameservers.Addresses)+len(d.Nameservers.Search) > 0 {
		return nil, fmt.Errorf("nameservers: network data have those of an address alone: give one of addresses, or none")
	}
	if len(routes) > 0 {
		return nil, fmt.Errorf("routes: via %s: the interface has no address of its family", routes[0].Via)
	}
	return out, nil
}
