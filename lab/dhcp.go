package lab

import (
	"errors"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalab-dev/metalab/agent/job"
)

// The network of the lab's DHCP server is in the range for tests of networks (RFC 2544),
// which no user's Subnet has.
var dhcpNetwork = netip.MustParsePrefix("198.18.0.0/15")

// dhcpNICs is the number of addresses of each server.
const dhcpNICs = 8

// obtainAddresses sets the addresses that NICs of a server obtain by DHCP: those whose
// configuration says so, or the first with a link when the system has no configuration,
// as cloud-init does ("Networking config", fallback). A server obtains the same
// addresses at each boot.
func obtainAddresses(netplan [][]byte, index int, nics []job.NIC) {
	dynamic := dhcpInterfaces(netplan)
	configured := len(netplan) > 0
	for i, n := range nics {
		if i >= dhcpNICs || !n.Carrier || configured && !slices.ContainsFunc(dynamic, func(d dhcpInterface) bool { return d.is(n) }) {
			continue
		}
		if at, ok := dhcpAddress(index, i); ok {
			nics[i].IP = at.String()
		}
		if !configured {
			return
		}
	}
}

// netplan returns the system's configuration of the network, where cloud-init writes it.
func (x *system) netplan() (out [][]byte, err error) {
	const dir = "etc/netplan"
	entries, err := x.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if path.Ext(e.Name) != ".yaml" {
			continue
		}
		text, err := x.ReadFile(path.Join(dir, e.Name))
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, err
}

// dhcpAddress returns the address of a NIC. ok is false beyond the network's end. The
// first addresses are the network's and the DHCP server's.
func dhcpAddress(host, nic int) (at netip.Addr, ok bool) {
	n := (host+1)*dhcpNICs + nic
	b := dhcpNetwork.Addr().As4()
	at = netip.AddrFrom4([4]byte{b[0], b[1] + byte(n>>16), byte(n >> 8), byte(n)})
	return at, n < 1<<17-1 && dhcpNetwork.Contains(at)
}

// dhcpInterface is an Ethernet interface of netplan that uses DHCP.
type dhcpInterface struct {
	id    string
	match struct {
		MAC  string `yaml:"macaddress"`
		Name string `yaml:"name"`
	}
}

// is reports whether the interface is a NIC (netplan-yaml(5), "match").
func (d dhcpInterface) is(n job.NIC) bool {
	switch {
	case d.match.MAC != "":
		return strings.EqualFold(d.match.MAC, n.MAC)
	case d.match.Name != "":
		return d.match.Name == n.Name
	}
	return d.id == n.Name
}

// dhcpInterfaces returns the Ethernet interfaces of netplan's files that use DHCP for
// IPv4.
func dhcpInterfaces(netplan [][]byte) (out []dhcpInterface) {
	for _, text := range netplan {
		var file struct {
			Network struct {
				Ethernets map[string]struct {
					Match yaml.Node `yaml:"match"`
					DHCP4 bool      `yaml:"dhcp4"`
				} `yaml:"ethernets"`
			} `yaml:"network"`
		}
		if yaml.Unmarshal(text, &file) != nil {
			continue // netplan does not apply it
		}
		for id, e := range file.Network.Ethernets {
			d := dhcpInterface{id: id}
			if e.DHCP4 && e.Match.Decode(&d.match) == nil {
				out = append(out, d)
			}
		}
	}
	return out
}
