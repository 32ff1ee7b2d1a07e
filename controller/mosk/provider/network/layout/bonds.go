package layout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bondFields are the fields of network data that become the parameters of netplan's bonds
// (netplan-yaml(5)) on a server with cloud-init 22.4.2.
var bondFields = map[string]string{
	"ad-select": "bond_ad_select", "arp-interval": "bond_arp_interval", "arp-validate": "bond_arp_validate", "down-delay": "bond_downdelay",
	"fail-over-mac-policy": "bond_fail_over_mac", "gratuitous-arp": "bond_num_grat_arp", "gratuitious-arp": "bond_num_grat_arp", //nolint:misspell // netplan takes this spelling, too
	"lacp-rate": "bond_lacp_rate", "mii-monitor-interval": "bond_miimon", "min-links": "bond_min_links", "mode": "bond_mode",
	"primary": "bond_primary", "primary-reselect-policy": "bond_primary_reselect", "transmit-hash-policy": "bond_xmit_hash_policy",
	"up-delay": "bond_updelay",
}

// noBondFields are the parameters of netplan's bonds that no field of network data becomes, with the
// reason.
var noBondFields = map[string]string{
	"all-members-active": unknownToCloudInit, "all-slaves-active": unknownToCloudInit, "arp-all-targets": unknownToCloudInit,
	"learn-packet-interval": unknownToCloudInit, "packets-per-member": unknownToCloudInit, "packets-per-slave": unknownToCloudInit,
	"resend-igmp": unknownToCloudInit,
	// cloud-init writes arp-ip-target, for which netplan refuses the whole file.
	"arp-ip-targets": "Debian 12's cloud-init gives netplan a parameter that it does not know for it: leave it out",
}

const unknownToCloudInit = "network data have no field for it that Debian 12's cloud-init gives to netplan: leave it out"

func bond(in netplan, d netplanDevice, link map[string]any) error {
	link["type"], link["bond_links"] = "bond", append([]string{}, d.Interfaces...)
	for i, name := range d.Interfaces {
		if !in.has(name) {
			return fmt.Errorf("interfaces[%d]: there is no interface %q", i, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Parameters)) {
		field := bondFields[name]
		if field == "" {
			reason := noBondFields[name]
			if reason == "" {
				reason = "there is no such parameter: give one of " + strings.Join(slices.Sorted(maps.Keys(bondFields)), ", ")
			}
			return fmt.Errorf("parameters.%s: %s", name, reason)
		}
		v := d.Parameters[name]
		switch v.(type) {
		case nil, []any, map[string]any:
			return fmt.Errorf("parameters.%s: give a text or a number", name)
		}
		if name == "primary" {
			member, ok := in.Ethernets[fmt.Sprint(v)]
			if !ok || member.SetName == "" {
				return fmt.Errorf("parameters.primary: %v: name one of ethernets that has set-name: cloud-init knows it by that name", v)
			}
			v = member.SetName
		}
		if _, twice := link[field]; twice {
			return fmt.Errorf("parameters.%s: it is given twice", name)
		}
		link[field] = v
	}
	if d.MAC != "" {
		link["ethernet_mac_address"] = strings.ToLower(d.MAC)
	}
	return nil
}
