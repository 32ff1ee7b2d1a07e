package lcm

import (
	"maps"
	"net/netip"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"
)

// netplanDir has the configuration of the network where cloud-init has written it
// (netplan(5)).
const netplanDir = "/etc/netplan"

// netplanKinds are the kinds of interfaces, those of hardware first.
var netplanKinds = []string{"ethernets", "bonds", "bridges", "vlans"}

// configuredAddresses returns the addresses that netplan's files give to interfaces, by
// kind and name. It is for a server whose kernel cannot be asked: addresses of DHCP are
// not there.
func (a *agent) configuredAddresses() (out []nicAddress) {
	names, err := a.System.ReadDir(netplanDir)
	if err != nil {
		return nil
	}
	for _, name := range names {
		text, err := a.System.ReadFile(path.Join(netplanDir, name))
		if err != nil {
			continue
		}
		var file struct {
			Network map[string]yaml.Node `yaml:"network"`
		}
		if yaml.Unmarshal(text, &file) != nil {
			continue // netplan does not apply it
		}
		for _, kind := range netplanKinds {
			var devices map[string]struct {
				SetName   string   `yaml:"set-name"`
				Addresses []string `yaml:"addresses"`
			}
			node := file.Network[kind]
			if node.Decode(&devices) != nil {
				continue
			}
			for _, id := range slices.Sorted(maps.Keys(devices)) {
				d := devices[id]
				for _, text := range d.Addresses {
					if p, err := netip.ParsePrefix(text); err == nil {
						out = append(out, nicAddress{orElse(d.SetName, id), p.Addr().Unmap()})
					}
				}
			}
		}
	}
	return out
}
