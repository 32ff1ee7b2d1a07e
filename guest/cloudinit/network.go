package cloudinit

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// netplanFile is where cloud-init writes the network's configuration for netplan.
const netplanFile = "etc/netplan/50-cloud-init.yaml"

// network writes the network's configuration: NoCloud's as it is, which is netplan's
// format, and OpenStack's network_data.json in that format.
func network(i Instance, root Root, r *Result) {
	if len(i.NetworkData) == 0 {
		return
	}
	var out []byte
	var err error
	if i.Source == NoCloud {
		out, err = netplanOfNoCloud(i.NetworkData)
	} else {
		out, err = netplanOfOpenStack(i.NetworkData)
	}
	if err != nil {
		r.ignore("the network data are not applied: %v", err)
		return
	}
	root.write(netplanFile, 0o600, string(out))
}

// netplanOfNoCloud returns network-config of version 2, below its key network or not
// (cloud-init, "Networking config Version 2").
func netplanOfNoCloud(data []byte) ([]byte, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if inner, ok := doc["network"].(map[string]any); ok {
		doc = inner
	}
	if fmt.Sprint(doc["version"]) != "2" {
		return nil, fmt.Errorf("version %v: only version 2 is read", doc["version"])
	}
	return yaml.Marshal(map[string]any{"network": doc})
}

// networkData is network_data.json (OpenStack Nova, "network_data.json" schema).
type networkData struct {
	Links []struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		MAC      string   `json:"ethernet_mac_address"`
		MTU      int      `json:"mtu"`
		VLANID   int      `json:"vlan_id"`
		VLANLink string   `json:"vlan_link"`
		VLANMAC  string   `json:"vlan_mac_address"`
		Bond     []string `json:"bond_links"`
		BondMode any      `json:"bond_mode"`
	} `json:"links"`
	Networks []struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Link    string `json:"link"`
		Address string `json:"ip_address"`
		Netmask string `json:"netmask"`
		Gateway string `json:"gateway"`
		Routes  []struct {
			Network string `json:"network"`
			Netmask string `json:"netmask"`
			Gateway string `json:"gateway"`
		} `json:"routes"`
		DNS      []string  `json:"dns_nameservers"`
		Services []service `json:"services"`
	} `json:"networks"`
	Services []service `json:"services"`
}

type service struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

// device is a device of netplan.
type device struct {
	Match       map[string]string `yaml:"match,omitempty"`
	SetName     string            `yaml:"set-name,omitempty"`
	MTU         int               `yaml:"mtu,omitempty"`
	ID          int               `yaml:"id,omitempty"`
	Link        string            `yaml:"link,omitempty"`
	MAC         string            `yaml:"macaddress,omitempty"`
	Interfaces  []string          `yaml:"interfaces,omitempty"`
	Parameters  map[string]string `yaml:"parameters,omitempty"`
	DHCP4       bool              `yaml:"dhcp4,omitempty"`
	DHCP6       bool              `yaml:"dhcp6,omitempty"`
	Addresses   []string          `yaml:"addresses,omitempty"`
	Nameservers *nameservers      `yaml:"nameservers,omitempty"`
	Routes      []route           `yaml:"routes,omitempty"`
}

type nameservers struct {
	Addresses []string `yaml:"addresses"`
}

type route struct {
	To  string `yaml:"to"`
	Via string `yaml:"via"`
}

// netplanOfOpenStack translates network_data.json.
func netplanOfOpenStack(data []byte) ([]byte, error) {
	var in networkData
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("network_data.json: %w", err)
	}
	kinds := map[string]map[string]*device{"ethernets": {}, "bonds": {}, "vlans": {}}
	devices := map[string]*device{}
	for _, l := range in.Links {
		kind, d := "ethernets", &device{MTU: l.MTU}
		switch l.Type {
		case "vlan":
			kind, d.ID, d.Link, d.MAC = "vlans", l.VLANID, l.VLANLink, l.VLANMAC
		case "bond":
			kind, d.Interfaces, d.MAC = "bonds", l.Bond, l.MAC
			if l.BondMode != nil {
				d.Parameters = map[string]string{"mode": fmt.Sprint(l.BondMode)}
			}
		default:
			if l.MAC != "" {
				d.Match, d.SetName = map[string]string{"macaddress": strings.ToLower(l.MAC)}, l.ID
			}
		}
		if l.ID == "" {
			return nil, fmt.Errorf("network_data.json: a link has no id")
		}
		kinds[kind][l.ID], devices[l.ID] = d, d
	}
	for _, n := range in.Networks {
		d := devices[n.Link]
		if d == nil {
			return nil, fmt.Errorf("network_data.json: network %s: there is no link %q", n.ID, n.Link)
		}
		switch n.Type {
		case "ipv4_dhcp":
			d.DHCP4 = true
		case "ipv6_dhcp", "ipv6_dhcpv6-stateful", "ipv6_dhcpv6-stateless":
			d.DHCP6 = true
		case "ipv4", "ipv6":
			p, err := prefix(n.Address, n.Netmask)
			if err != nil {
				return nil, fmt.Errorf("network_data.json: network %s: %w", n.ID, err)
			}
			d.Addresses = append(d.Addresses, p)
		}
		if n.Gateway != "" {
			d.Routes = append(d.Routes, route{To: "default", Via: n.Gateway})
		}
		for _, x := range n.Routes {
			p, err := prefix(x.Network, x.Netmask)
			if err != nil {
				return nil, fmt.Errorf("network_data.json: network %s: a route: %w", n.ID, err)
			}
			d.Routes = append(d.Routes, route{To: p, Via: x.Gateway})
		}
		for _, a := range append(n.DNS, addresses(n.Services)...) {
			d.addServer(a)
		}
		for _, a := range addresses(in.Services) {
			d.addServer(a)
		}
	}
	doc := map[string]any{"version": 2}
	for kind, all := range kinds {
		if len(all) > 0 {
			doc[kind] = all
		}
	}
	return yaml.Marshal(map[string]any{"network": doc})
}

func (d *device) addServer(a string) {
	if d.Nameservers == nil {
		d.Nameservers = &nameservers{}
	}
	d.Nameservers.Addresses = append(d.Nameservers.Addresses, a)
}

// addresses returns the name servers of a list of services.
func addresses(services []service) (out []string) {
	for _, s := range services {
		if s.Type == "dns" {
			out = append(out, s.Address)
		}
	}
	return out
}

// prefix returns an address with its prefix length. The mask is an address
// ("255.255.255.0"), a length, or part of the address.
func prefix(address, mask string) (string, error) {
	if strings.Contains(address, "/") {
		p, err := netip.ParsePrefix(address)
		return p.String(), err
	}
	a, err := netip.ParseAddr(address)
	if err != nil {
		return "", err
	}
	if bits, err := strconv.Atoi(mask); err == nil {
		mask = "/" + mask
		if bits > a.BitLen() || bits < 0 {
			return "", fmt.Errorf("netmask %q", mask)
		}
		return address + mask, nil
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || m.BitLen() != a.BitLen() {
		return "", fmt.Errorf("netmask %q of %s", mask, address)
	}
	bits, ended := 0, false
	for _, b := range m.AsSlice() {
		for i := 7; i >= 0; i-- {
			one := b>>i&1 == 1
			if one && ended {
				return "", fmt.Errorf("netmask %q is not contiguous", mask)
			}
			if one {
				bits++
			}
			ended = ended || !one
		}
	}
	return fmt.Sprintf("%s/%d", address, bits), nil
}
