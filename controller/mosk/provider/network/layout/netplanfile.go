package layout

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// NeedsFile reports whether a configuration reaches its server as a file for netplan, not as network
// data: one with bridges. Network data have bridges of a hypervisor alone, whose links cloud-init
// takes for NICs.
func NeedsFile(config []byte) bool {
	var in netplan
	return yaml.Unmarshal(config, &in) == nil && len(in.Bridges) > 0
}

// bridgeParameters are the parameters that netplan 0.106 has for bridges (netplan-yaml(5)); true
// means one for each interface.
var bridgeParameters = map[string]bool{
	"ageing-time": false, "aging-time": false, "forward-delay": false, "hello-time": false, "max-age": false, "priority": false, "stp": false,
	"path-cost": true, "port-priority": true,
}

// checkFile returns what netplan would refuse in its file, at the server's first boot.
func (n netplan) checkFile() error {
	master := map[string]string{} // bond or bridge of an interface
	for _, kind := range []struct {
		name    string
		devices map[string]netplanDevice
		check   func(string, netplanDevice) error
	}{
		{"ethernets", n.Ethernets, func(_ string, d netplanDevice) error { return ethernet(n, d, map[string]any{}) }},
		{"bonds", n.Bonds, n.checkBond}, {"bridges", n.Bridges, n.checkBridge},
		{"vlans", n.VLANs, func(_ string, d netplanDevice) error { return vlan(n, d, map[string]any{}) }},
	} {
		for _, name := range slices.Sorted(maps.Keys(kind.devices)) {
			d := kind.devices[name]
			err := d.misplaced(kind.name)
			if err == nil {
				err = kind.check(name, d)
			}
			if err == nil {
				_, err = networksOf(name, d)
			}
			for i, member := range d.Interfaces {
				if other := master[member]; other != "" && err == nil {
					err = fmt.Errorf("interfaces[%d]: %s is an interface of %s already", i, member, other)
				}
				master[member] = kind.name + "." + name
			}
			if err == nil && n.standsOn(name, name, map[string]bool{}) {
				err = fmt.Errorf("it stands on itself: its link or interfaces lead to it again")
			}
			if err != nil {
				return fmt.Errorf("%s.%s: %w", kind.name, name, err)
			}
		}
	}
	return nil
}

// checkMembers refuses interfaces that are not there.
func (n netplan) checkMembers(d netplanDevice) error {
	for i, name := range d.Interfaces {
		if !n.has(name) {
			return fmt.Errorf("interfaces[%d]: there is no interface %q", i, name)
		}
	}
	return nil
}

func (n netplan) checkBond(_ string, d netplanDevice) error {
	if err := n.checkMembers(d); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(d.Parameters)) {
		if bondFields[name] == "" && noBondFields[name] == "" {
			known := slices.Sorted(maps.Keys(bondFields))
			return fmt.Errorf("parameters.%s: there is no such parameter: give one of %s", name, strings.Join(known, ", "))
		}
		if primary := fmt.Sprint(d.Parameters[name]); name == "primary" && !slices.Contains(d.Interfaces, primary) {
			return fmt.Errorf("parameters.primary: %s: name one of the bond's interfaces", primary)
		}
	}
	return nil
}

func (n netplan) checkBridge(_ string, d netplanDevice) error {
	if err := n.checkMembers(d); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(d.Parameters)) {
		each, known := bridgeParameters[name]
		if !known {
			return fmt.Errorf("parameters.%s: there is no such parameter: give one of %s", name, strings.Join(slices.Sorted(maps.Keys(bridgeParameters)), ", "))
		}
		of, isMap := d.Parameters[name].(map[string]any)
		if each != isMap {
			return fmt.Errorf("parameters.%s: give %s", name, map[bool]string{true: "a number for each interface: {INTERFACE: NUMBER}", false: "one value"}[each])
		}
		for _, member := range slices.Sorted(maps.Keys(of)) {
			if !slices.Contains(d.Interfaces, member) {
				return fmt.Errorf("parameters.%s.%s: name one of the bridge's interfaces", name, member)
			}
		}
		if _, isBool := d.Parameters[name].(bool); name == "stp" && !isBool {
			return fmt.Errorf("parameters.stp: give true or false")
		}
	}
	return nil
}

// standsOn reports whether an interface leads to another by links and interfaces. seen has those that
// were looked at.
func (n netplan) standsOn(from, to string, seen map[string]bool) bool {
	for _, all := range []map[string]netplanDevice{n.Bonds, n.Bridges, n.VLANs} {
		d := all[from]
		for _, below := range append(slices.Clone(d.Interfaces), d.Link) {
			if below == "" || seen[below] {
				continue
			}
			seen[below] = true
			if below == to || n.standsOn(below, to, seen) {
				return true
			}
		}
	}
	return false
}
