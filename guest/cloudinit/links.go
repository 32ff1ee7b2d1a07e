package cloudinit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// link is an interface between all formats of network data and netplan's. Values are as they were
// given where netplan has them so.
type link struct {
	name     string
	kind     string // type of the command; "" for a port of a bridge that has none of its own
	mac      any
	mtu      any
	acceptRA any // bool, or nil
	match    any // of netplan, in place of the MAC address
	subnets  []subnet
	vlanID   any
	vlanLink any
	bond     any   // the bond whose member it is
	isBond   bool  // it has members
	ports    []any // of a bridge
	params   dict  // of bonds and bridges, by their name
}

// maxLinks bounds the interfaces of a server.
const maxLinks = 1024

// parameter is a parameter of a bond or bridge, or one that is called as an attribute.
type parameter struct {
	key   string
	value any
}

// parametersOf returns the parameters of a command that have an effect, and names the others: a bond
// gives its own to each member.
func (a *links) parametersOf(c dict, kind string) (out []parameter, err error) {
	v, has := c["params"]
	params, ok := v.(dict)
	if has && !ok {
		return nil, errors.New("params: it is no mapping")
	}
	for _, k := range slices.Sorted(maps.Keys(params)) {
		_, ofBond := bondParameters[strings.ReplaceAll(k, "_", "-")]
		_, ofBridge := bridgeParameters[k]
		if ofBond || ofBridge || attributes[k] {
			out = append(out, parameter{k, params[k]})
		}
		if params[k] != nil && !attributes[k] && (kind == "bond" && !ofBond || kind == "bridge" && !ofBridge) {
			a.r.ignore("%s of %s is not applied: cloud-init's netplan has no such parameter", k, pyText(c["name"]))
		}
	}
	return out, nil
}

// attributes are the parameters that are attributes of a link: cloud-init has both in one mapping.
var attributes = map[string]bool{"type": true, "mac_address": true, "mtu": true, "accept-ra": true, "match": true, "bond-master": true, "bridge_ports": true}

// set sets parameters.
func (l *link) set(params []parameter) error {
	for _, p := range params {
		switch p.key {
		case "type":
			l.kind, _ = p.value.(string)
		case "mac_address":
			l.mac = p.value
		case "mtu":
			l.mtu = p.value
		case "accept-ra":
			l.acceptRA = p.value
		case "match":
			l.match = p.value
		case "bond-master":
			l.bond = p.value
		case "bridge_ports":
			ports, ok := p.value.([]any)
			if !ok {
				return errors.New("params.bridge_ports: it is no list")
			}
			l.ports = ports
		default:
			l.params[p.key] = p.value
		}
	}
	return nil
}

// links are the interfaces of a configuration of version 1 and the name servers of all of them.
type links struct {
	byName          map[string]*link
	servers, search []any
	ofNames         []string // interfaces that name servers are for
	r               *losses
}

// version1 are commands of version 1, and how a message names each by its number.
type version1 struct {
	all  []any
	name func(int) string
}

// required are the keys without which cloud-init leaves a command out.
var required = map[string][]string{
	"physical": {"name"}, "loopback": {"name"}, "infiniband": {"name"}, "vlan": {"name", "vlan_id", "vlan_link"},
	"bond": {"name", "bond_interfaces", "params"}, "bridge": {"name", "bridge_interfaces"}, "nameserver": {"address"}, "route": {"destination"},
}

// linksOf reads the commands of version 1 (cloud-init, "Networking config Version 1"), as
// network_state.parse_config_v1 of cloud-init 22.4.2 does. An error is one that loses all of them there.
func linksOf(in version1, r *losses) (*links, error) {
	all := &links{byName: map[string]*link{}, r: r}
	for i, v := range in.all {
		at := in.name(i)
		c, ok := v.(dict)
		if !ok {
			return nil, fmt.Errorf("%s: it is no mapping", at)
		}
		kind, _ := c["type"].(string)
		keys, known := required[kind]
		if !known {
			return nil, fmt.Errorf("%s: type %s: give one of %s", at, pyText(c["type"]), strings.Join(slices.Sorted(maps.Keys(required)), ", "))
		}
		if missing := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { _, has := c[k]; return has }); len(missing) > 0 {
			r.ignore("%s of the network data, a %s, is not applied: there is no %s", at, kind, strings.Join(missing, " and no "))
			continue
		}
		if err := all.command(kind, c); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
	}
	for _, name := range all.ofNames {
		if all.byName[name] == nil {
			return nil, fmt.Errorf("a name server is for the interface %s, which there is not", name)
		}
		r.ignore("the name servers of %s alone are not applied: cloud-init's netplan has those of a subnet and those of all", name)
	}
	return all, nil
}

func (a *links) command(kind string, c dict) error {
	switch kind {
	case "nameserver":
		a.nameserver(c)
		return nil
	case "route":
		if _, err := routeOf(c); err != nil {
			return err
		}
		a.r.ignore("the route to %s is not applied: cloud-init's netplan has the routes of subnets alone", pyText(c["destination"]))
		return nil
	case "bridge":
		return a.bridge(c)
	}
	params, err := a.parametersOf(c, kind)
	if err != nil {
		return err
	}
	l, err := a.declare(kind, c, params)
	if err != nil {
		return err
	}
	switch kind {
	case "vlan":
		l.vlanID, l.vlanLink = c["vlan_id"], c["vlan_link"]
	case "bond":
		return a.bond(l, c, params)
	case "infiniband":
		a.r.ignore("the interface %s is not applied: cloud-init's netplan has no infiniband", l.name)
	case "loopback":
		if len(l.subnets) > 0 {
			a.r.ignore("the subnets of %s are not applied: cloud-init's netplan has no loopback", l.name)
		}
	}
	return nil
}

// link returns the interface of a name, which it creates if there is none.
func (a *links) link(name string) (*link, error) {
	l := a.byName[name]
	if l == nil {
		if len(a.byName) == maxLinks {
			return nil, limitError(fmt.Sprintf("there are more than %d interfaces", maxLinks))
		}
		l = &link{name: name, params: dict{}}
		a.byName[name] = l
	}
	return l, nil
}

// declare reads what all interfaces have.
func (a *links) declare(kind string, c dict, params []parameter) (*link, error) {
	if isCollection(c["name"]) {
		return nil, errors.New("name: it is no text")
	}
	l, err := a.link(pyText(c["name"]))
	if err != nil {
		return nil, err
	}
	if err := l.set(params); err != nil {
		return nil, err
	}
	l.kind, l.mac, l.mtu, l.acceptRA, l.subnets = kind, c["mac_address"], c["mtu"], nil, nil
	if v := c["accept-ra"]; v != nil {
		l.acceptRA = saysTrue(v)
	}
	if !truthy(c["subnets"]) {
		return l, nil
	}
	subnets, err := listAt(c, "subnets")
	if err != nil {
		return nil, err
	}
	for i, v := range subnets {
		s, err := subnetOf(v)
		if err != nil {
			return nil, fmt.Errorf("%s: subnets[%d]: %w", l.name, i, err)
		}
		l.subnets = append(l.subnets, s)
	}
	return l, nil
}

// bond reads a bond, whose parameters its members get as well. A member that there is not before
// it is taken for a bond until it is declared.
func (a *links) bond(l *link, c dict, params []parameter) error {
	if err := l.set(params); err != nil {
		return err
	}
	l.isBond = true
	members, err := listAt(c, "bond_interfaces")
	if err != nil {
		return err
	}
	for _, v := range members {
		if isCollection(v) {
			return errors.New("bond_interfaces: a name is no text")
		}
		_, declared := a.byName[pyText(v)]
		m, err := a.link(pyText(v))
		if err != nil {
			return err
		}
		if !declared {
			m.kind = "bond"
		}
		if m.bond != nil && m.bond != l.name {
			a.r.ignore("%s is no interface of %s: %s has it, too", m.name, pyText(m.bond), l.name)
		}
		m.bond = l.name
		if err := m.set(params); err != nil {
			return err
		}
	}
	return nil
}

// bridge reads a bridge.
func (a *links) bridge(c dict) error {
	ports, err := listAt(c, "bridge_interfaces")
	if err != nil {
		return err
	}
	for _, v := range ports {
		if isCollection(v) {
			return errors.New("bridge_interfaces: a name is no text")
		}
		if _, err := a.link(pyText(v)); err != nil {
			return err
		}
	}
	params, err := a.parametersOf(c, "bridge")
	if err != nil {
		return err
	}
	l, err := a.declare("bridge", c, params)
	if err != nil {
		return err
	}
	l.ports = ports
	if err := l.set(params); err != nil {
		return err
	}
	stp, has := l.params["bridge_stp"]
	if _, isBool := stp.(bool); !has || stp == nil || isBool {
		return nil
	}
	switch {
	case stp == "on", stp == "1", same(stp, int64(1)):
		l.params["bridge_stp"] = true
	case stp == "off", stp == "0", same(stp, int64(0)):
		l.params["bridge_stp"] = false
	default:
		return fmt.Errorf("%s: params.bridge_stp: %s is neither on nor off", l.name, pyText(stp))
	}
	return nil
}

// nameserver reads the name servers and search domains of all interfaces, or of one.
func (a *links) nameserver(c dict) {
	list := func(key string) []any {
		v, has := c[key]
		if l, ok := v.([]any); ok {
			return l
		}
		if !has {
			return nil
		}
		return []any{v}
	}
	if name, has := c["interface"]; has {
		a.ofNames = append(a.ofNames, pyText(name))
		return
	}
	a.servers, a.search = append(a.servers, list("address")...), append(a.search, list("search")...)
}
