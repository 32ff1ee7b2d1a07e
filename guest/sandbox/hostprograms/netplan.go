package hostprograms

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// netplanDirs have netplan's files; of those with one name, that of the last one counts (netplan(5)).
var netplanDirs = []string{"/lib/netplan", "/etc/netplan", "/run/netplan"}

// configurationError is the exit code of apply after a mistake (sysexits(3), EX_CONFIG).
const configurationError = 78

// netplan is netplan(8). The server has no network of its own: apply and generate check the files as
// netplan 0.106 does, and the addresses in them are the server's.
func netplan(c *Call) int {
	o, err := parse(c.Args, map[string]string{"-h": "help", "--help": "help", "--debug": "debug"}, false)
	switch {
	case err != nil:
		return c.complain("netplan: %v", err)
	case o.has("help"), len(o.words) == 0:
		c.print("usage: /usr/sbin/netplan  [-h] [--debug]  ...\nof its commands are apply and generate done here\n")
		return 0
	case o.words[0] != "apply" && o.words[0] != "generate":
		return c.complain("netplan: of its commands are apply and generate done here, not '%s'", o.words[0])
	case len(o.words) > 1:
		return c.complain("netplan: error: unrecognized arguments: %s", strings.Join(o.words[1:], " "))
	case !c.mayChange():
		return c.complain("netplan: %s: you must be root", o.words[0])
	}
	if err := c.checkNetplan(); err != nil {
		c.complain("%v", err)
		if o.words[0] == "apply" {
			return configurationError
		}
		return 1
	}
	return 0
}

// checkNetplan returns the first mistake of netplan's files.
func (c *Call) checkNetplan() error {
	n := &netplanCheck{kinds: map[string]string{}, masters: map[string]string{}}
	last := slices.Clone(netplanDirs)
	slices.Reverse(last)
	for _, name := range c.configFiles(".yaml", last...) {
		n.file, n.text = name, c.text(name)
		if err := n.read(); err != nil {
			return err
		}
	}
	for _, later := range n.later { // interfaces of all files are known
		if err := later(); err != nil {
			return err
		}
	}
	return nil
}

// netplanCheck reads files.
type netplanCheck struct {
	file, text string            // the present one
	kinds      map[string]string // of interfaces, by their names: "ethernets"
	masters    map[string]string // "bond x" of an interface
	later      []func() error
}

// The sections of network, and the keys of interfaces of all kinds and of each kind (netplan-yaml(5)).
var (
	netplanSections = strings.Fields("ethernets bonds bridges vlans wifis modems tunnels vrfs nm-devices openvswitch")
	netplanCommon   = strings.Fields("accept-ra activation-mode addresses critical dhcp4 dhcp4-overrides dhcp6 dhcp6-overrides dhcp-identifier gateway4 gateway6 ignore-carrier " +
		"ipv6-address-generation ipv6-address-token ipv6-mtu ipv6-privacy link-local macaddress mtu nameservers neigh-suppress networkmanager openvswitch optional optional-addresses renderer routes routing-policy")
	netplanKeys = map[string][]string{
		"ethernets": strings.Fields("auth match set-name wakeonlan link virtual-function-count embedded-switch-mode delay-virtual-functions-rebind infiniband-mode emit-lldp " +
			"receive-checksum-offload transmit-checksum-offload tcp-segmentation-offload tcp6-segmentation-offload generic-segmentation-offload generic-receive-offload large-receive-offload"),
		"bonds": {"interfaces", "parameters"}, "bridges": {"interfaces", "parameters"}, "vlans": {"id", "link"},
	}
	netplanBooleans = strings.Fields("y yes true on n no false off")
)

// wrong is a mistake in the form of netplan: with its place, the line, and a mark below it.
func (n *netplanCheck) wrong(at *yaml.Node, format string, args ...any) error {
	lines := strings.Split(n.text, "\n")
	line := ""
	if at.Line <= len(lines) {
		line = lines[at.Line-1]
	}
	return fmt.Errorf("%s:%d:%d: Error in network definition: %s\n%s\n%s^", n.file, at.Line, at.Column, fmt.Sprintf(format, args...), line, strings.Repeat(" ", at.Column-1))
}

// each calls a function with the keys and values of a mapping.
func (n *netplanCheck) each(of *yaml.Node, f func(key, value *yaml.Node) error) error {
	if of.Kind == yaml.AliasNode {
		return n.wrong(of, "aliases are not supported")
	}
	if of.Kind != yaml.MappingNode {
		return n.wrong(of, "expected mapping (check indentation)")
	}
	for i := 0; i+1 < len(of.Content); i += 2 {
		if err := f(of.Content[i], of.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (n *netplanCheck) read() error {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(n.text), &doc); err != nil {
		return fmt.Errorf("%s: Invalid YAML: %s", n.file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return nil
	}
	return n.each(doc.Content[0], func(key, network *yaml.Node) error {
		if key.Value != "network" {
			return n.wrong(key, "unknown key '%s'", key.Value)
		}
		return n.each(network, n.section)
	})
}

// section reads a key of network.
func (n *netplanCheck) section(key, value *yaml.Node) error {
	switch kind := key.Value; {
	case kind == "version" && value.Value != "2":
		return n.wrong(value, "Only version 2 is supported")
	case kind == "renderer" && value.Value != "networkd" && value.Value != "NetworkManager":
		return n.wrong(value, "unknown renderer '%s'", value.Value)
	case kind == "version", kind == "renderer":
		return nil
	case !slices.Contains(netplanSections, kind):
		return n.wrong(key, "unknown key '%s'", kind)
	case kind == "openvswitch":
		return nil
	default:
		return n.each(value, func(name, device *yaml.Node) error {
			if before := n.kinds[name.Value]; before != "" && before != kind {
				return n.wrong(name, "Updated definition '%s' changes device type", name.Value)
			}
			n.kinds[name.Value] = kind
			return n.device(kind, name.Value, device)
		})
	}
}

// device reads an interface.
func (n *netplanCheck) device(kind, name string, device *yaml.Node) error {
	keys, known := netplanKeys[kind]
	has := map[string]bool{}
	err := n.each(device, func(key, value *yaml.Node) error {
		has[key.Value] = true
		switch {
		case !known: // a kind that emulated servers do not have
			return nil
		case !slices.Contains(keys, key.Value) && !slices.Contains(netplanCommon, key.Value):
			return n.wrong(key, "unknown key '%s'", key.Value)
		}
		switch key.Value {
		case "dhcp4", "dhcp6":
			if !slices.Contains(netplanBooleans, strings.ToLower(value.Value)) {
				return n.wrong(value, "invalid boolean value '%s'", value.Value)
			}
		case "mtu":
			if _, err := strconv.ParseUint(value.Value, 10, 32); err != nil {
				return n.wrong(value, "invalid unsigned int value '%s'", value.Value)
			}
		case "id":
			if id, err := strconv.ParseUint(value.Value, 10, 32); err != nil {
				return n.wrong(value, "invalid unsigned int value '%s'", value.Value)
			} else if id > 4094 {
				return n.wrong(device, "%s: invalid id '%s' (allowed values are 0 to 4094)", name, value.Value)
			}
		case "addresses":
			return n.addresses(value)
		case "interfaces":
			return n.members(strings.TrimSuffix(kind, "s"), name, value)
		case "link":
			n.refers(name, value)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case kind == "vlans" && !has["link"]:
		return n.wrong(device, "%s: missing 'link' property", name)
	case kind == "vlans" && !has["id"]:
		return n.wrong(device, "%s: missing 'id' property", name)
	case kind == "ethernets" && has["set-name"] && !has["match"]:
		return n.wrong(device, "%s: 'set-name:' requires 'match:' properties", name)
	}
	return nil
}

func (n *netplanCheck) addresses(list *yaml.Node) error {
	if list.Kind != yaml.SequenceNode {
		return n.wrong(list, "expected sequence")
	}
	for _, a := range list.Content {
		text := a.Value
		if a.Kind == yaml.MappingNode && len(a.Content) > 0 {
			text = a.Content[0].Value // with options
		}
		address, bits, ok := strings.Cut(text, "/")
		if !ok {
			return n.wrong(list, "address '%s' is missing /prefixlength", text)
		}
		at, err := netip.ParseAddr(address)
		if err != nil || at.Zone() != "" {
			return n.wrong(list, "malformed address '%s', must be X.X.X.X/NN or X:X:X:X:X:X:X:X/NN", text)
		}
		if length, err := strconv.Atoi(bits); err != nil || length <= 0 || length > at.BitLen() {
			return n.wrong(list, "invalid prefix length in address '%s'", text)
		}
	}
	return nil
}

// members reads the interfaces of a bond or bridge. An interface has one of them.
func (n *netplanCheck) members(kind, name string, list *yaml.Node) error {
	if list.Kind != yaml.SequenceNode {
		return n.wrong(list, "expected sequence")
	}
	for _, m := range list.Content {
		if other := n.masters[m.Value]; other != "" && other != kind+" "+name {
			return n.wrong(list, "%s: interface '%s' is already assigned to %s", name, m.Value, other)
		}
		n.masters[m.Value] = kind + " " + name
		n.refers(name, m)
	}
	return nil
}

// refers remembers that an interface needs another, which may be in a later file.
func (n *netplanCheck) refers(name string, to *yaml.Node) {
	here := &netplanCheck{file: n.file, text: n.text}
	n.later = append(n.later, func() error {
		if n.kinds[to.Value] == "" {
			return here.wrong(to, "%s: interface '%s' is not defined", name, to.Value)
		}
		return nil
	})
}
