package rackfile

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Listen says at which addresses the BMCs are. "loopback" gives each BMC an address of
// its own on 127/8, at port 443 if the process may open it, else at 8443 or the next
// free port, and IPMI at 623, else at 6230 or the next free one; "loopback:PORT" is
// the same with both at that port. "ADDRESS" or "ADDRESS:FIRSTPORT" gives each BMC one
// port of that address for both, counted up from 8443 or FIRSTPORT. ADDRESS may be the name of
// a network interface, such as eth0 in a container whose address nobody knows beforehand: its
// first IPv4 address, else its first IPv6 address.
type Listen string

// Loopback is the default.
const Loopback Listen = "loopback" // each BMC has an address of its own in 127.0.0.0/8

// firstPort is the port of the first BMC at an address without a port.
const firstPort = 8443

// Place is a parsed Listen.
type Place struct {
	Addr netip.Addr // address that all BMCs share; invalid when each has one on loopback
	Port uint16     // port of all BMCs, or of the first; 0 leaves it open
}

// Parse parses a Listen.
func (l Listen) Parse() (Place, error) {
	port, loopback := strings.CutPrefix(string(l), string(Loopback)+":")
	switch {
	case l == "", l == Loopback:
		return Place{}, nil
	case loopback:
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return Place{}, fmt.Errorf("%q: the port must be from 1 to 65535", string(l))
		}
		return Place{Port: uint16(n)}, nil
	}
	at, err := netip.ParseAddrPort(string(l))
	if err != nil {
		var addr netip.Addr
		addr, err = netip.ParseAddr(string(l))
		at = netip.AddrPortFrom(addr, firstPort)
	}
	if err != nil {
		at, err = ofInterface(string(l))
	}
	switch {
	case err != nil || at.Port() == 0 || at.Addr().Zone() != "":
		return Place{}, fmt.Errorf("%q: use loopback, an IP address that this computer has or the name of its network interface, or one of them with the first port such as 192.0.2.7:9000", string(l))
	case at.Addr().IsUnspecified() || at.Addr().IsMulticast():
		return Place{}, fmt.Errorf("%q: name one IP address, at which clients find the BMCs", string(l))
	}
	return Place{Addr: at.Addr().Unmap(), Port: at.Port()}, nil
}

// ofInterface returns the address of a network interface and the first port.
func ofInterface(spec string) (netip.AddrPort, error) {
	name, port, found := strings.Cut(spec, ":")
	n, err := strconv.ParseUint(port, 10, 16)
	if found && err != nil {
		return netip.AddrPort{}, err
	}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return netip.AddrPort{}, err
	}
	all, err := i.Addrs()
	if err != nil {
		return netip.AddrPort{}, err
	}
	var v4, v6 netip.Addr
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		switch addr := p.Addr(); {
		case err != nil, addr.IsLinkLocalUnicast():
		case addr.Is4() && !v4.IsValid():
			v4 = addr
		case addr.Is6() && !v6.IsValid():
			v6 = addr
		}
	}
	addr := v4
	if !v4.IsValid() {
		addr = v6
	}
	if !addr.IsValid() {
		return netip.AddrPort{}, fmt.Errorf("the network interface %s has no address", name)
	}
	if !found {
		n = firstPort
	}
	return netip.AddrPortFrom(addr, uint16(n)), nil
}
