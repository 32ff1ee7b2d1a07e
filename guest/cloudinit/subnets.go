package cloudinit

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// subnet is a subnet of an interface.
type subnet struct {
	kind            string // static, static6, dhcp4, ...
	address         string // with its length, of a static one
	gateway         any
	servers, search []any
	mtu             any
	ipv6            bool
	routes          []dict // of netplan
}

// dynamic6 are the types of subnets whose addresses come from IPv6's DHCP or router advertisements.
var dynamic6 = map[string]bool{"dhcp6": true, "ipv6_slaac": true, "ipv6_dhcpv6-stateless": true, "ipv6_dhcpv6-stateful": true}

// isStatic reports whether netplan has the addresses, routes and name servers of a subnet.
func (s subnet) isStatic() bool { return s.kind == "static" || s.kind == "static6" }

// subnetOf reads a subnet of version 1. An error is one for which cloud-init loses all network data.
func subnetOf(v any) (s subnet, err error) {
	d, ok := v.(dict)
	if !ok {
		return s, errors.New("it is no mapping")
	}
	if s.kind, ok = d["type"].(string); !ok || s.kind == "" {
		return s, errors.New("there is no type")
	}
	if s.isStatic() {
		host, bits, err := addressAt(d, "address", "ip_address")
		if err != nil {
			return s, err
		}
		// An address that is called ip_address is checked, and not taken.
		if !truthy(d["address"]) {
			host = "None"
		}
		s.address = fmt.Sprintf("%s/%d", host, bits)
	}
	s.ipv6 = strings.HasSuffix(s.kind, "6") || dynamic6[s.kind] || strings.Contains(s.address, ":")
	if truthy(d["gateway"]) {
		s.gateway = d["gateway"]
	}
	if truthy(d["mtu"]) {
		s.mtu = d["mtu"]
	}
	if s.servers, err = wordsAt(d, "dns_nameservers"); err != nil {
		return s, err
	}
	if s.search, err = wordsAt(d, "dns_search"); err != nil {
		return s, err
	}
	routes, err := listAt(d, "routes")
	if err != nil {
		return s, err
	}
	for i, v := range routes {
		route, ok := v.(dict)
		if !ok {
			return s, fmt.Errorf("routes[%d]: it is no mapping", i)
		}
		out, err := routeOf(route)
		if err != nil {
			return s, fmt.Errorf("routes[%d]: %w", i, err)
		}
		s.routes = append(s.routes, out)
	}
	return s, nil
}

// wordsAt returns the list at a key, or the words of a text.
func wordsAt(d dict, key string) (out []any, err error) {
	v := d[key]
	if !truthy(v) {
		return nil, nil
	}
	if l, ok := v.([]any); ok {
		return l, nil
	}
	s, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("%s: it is no list", key)
	}
	for word := range strings.FieldsSeq(s) {
		out = append(out, word)
	}
	return out, nil
}

// routeOf returns a route as netplan has it.
func routeOf(in dict) (dict, error) {
	d := dict{}
	for k, v := range in {
		if v != nil && v != "" {
			d[k] = v
		}
	}
	if to, has := d["destination"]; has {
		d["network"] = to
		delete(d, "destination")
	}
	host, bits, err := addressAt(d, "network")
	if err != nil {
		return nil, err
	}
	out := dict{"to": fmt.Sprintf("%s/%d", host, bits), "via": d["gateway"]}
	if metric, has := d["metric"]; has {
		out["metric"] = metric
		if truthy(metric) {
			if out["metric"], err = wholeOf(metric); err != nil {
				return nil, fmt.Errorf("metric: %w", err)
			}
		}
	}
	return out, nil
}

// addressAt returns the address at the first of keys that has one, without its length, and the
// length: that of the address, prefix, or netmask; without them 24, and 64 of IPv6.
func addressAt(d dict, keys ...string) (host string, bits int, err error) {
	at := keys[0]
	for _, k := range keys {
		if truthy(d[k]) {
			at = k
			break
		}
	}
	if !truthy(d[at]) {
		return "", 0, fmt.Errorf("there is no %s", at)
	}
	text := pyText(d[at])
	host, length, hasLength := strings.Cut(text, "/")
	a, err := netip.ParseAddr(host)
	if err != nil {
		return "", 0, fmt.Errorf("%s: %q is no address", at, text)
	}
	switch {
	case hasLength:
		if a.Is6() && strings.Trim(length, "0123456789") != "" {
			return "", 0, fmt.Errorf("%s: %q has no length", at, text)
		}
		bits, err = lengthOf(length, a)
	case truthy(d["prefix"]):
		var n int64
		if n, err = wholeOf(d["prefix"]); err == nil && a.Is4() && (n < 0 || n > 32) {
			err = fmt.Errorf("%d is more than 32", n)
		}
		bits = int(n)
	case truthy(d["netmask"]):
		bits, err = lengthOf(pyText(d["netmask"]), a)
	case a.Is6():
		bits = 64
	default:
		bits = 24
	}
	if err != nil {
		return "", 0, fmt.Errorf("%s %s: its length: %w", at, text, err)
	}
	return host, bits, nil
}

// lengthOf returns the length of a mask of an address's family: a number, a mask, or of IPv4 the
// inverse of one.
func lengthOf(mask string, a netip.Addr) (int, error) {
	most := 32
	if a.Is6() {
		most = 128
	}
	if mask != "" && strings.Trim(mask, "0123456789") == "" {
		n, err := strconv.Atoi(mask)
		if err != nil || n > most {
			return 0, fmt.Errorf("%s is more than %d", mask, most)
		}
		return n, nil
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || m.Zone() != "" {
		return 0, fmt.Errorf("%q is no netmask", mask)
	}
	if m.IsUnspecified() && (a.Is6() || m.Is4()) {
		return 0, nil
	}
	if m.Is4() == a.Is4() {
		b := m.AsSlice()
		if n, ok := ones(b); ok {
			return n, nil
		}
		for i := range b {
			b[i] = ^b[i]
		}
		if n, ok := ones(b); ok && a.Is4() {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%q is no netmask", mask)
}

// ones counts the bits of a mask, which must stand before all others.
func ones(mask []byte) (n int, ok bool) {
	ended := false
	for _, b := range mask {
		for i := 7; i >= 0; i-- {
			one := b>>i&1 == 1
			if one && ended {
				return 0, false
			}
			if one {
				n++
			}
			ended = ended || !one
		}
	}
	return n, true
}
