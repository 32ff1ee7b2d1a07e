package command

import (
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// setNetwork stores the BMC's network settings.
func (x *Request) setNetwork(n bmc.Network) error {
	_, err := x.applyBMC(bmc.SetNetwork{Network: n})
	return err
}

// address returns the BMC's own IPv4 address; zeros when it has none.
func (x *Request) address() netip.Addr {
	n, place := x.bmc().Network(), x.bmc().NetworkDefaults
	switch {
	case n.Static != nil:
		return n.Static.Addr
	case place != nil && place.Addr.Is4():
		return place.Addr
	}
	return netip.IPv4Unspecified()
}

func hostPort(addr netip.Addr, port uint16) string { return netip.AddrPortFrom(addr, port).String() }

// v4 returns the bytes of an IPv4 address; zeros when text is not one.
func v4(text string) []byte {
	addr, err := netip.ParseAddr(text)
	if err != nil || !addr.Is4() {
		return make([]byte, net.IPv4len)
	}
	return addr.AsSlice()
}

// mac returns the bytes of a MAC address.
func mac(text string) []byte {
	b, err := net.ParseMAC(text)
	if err != nil {
		return make([]byte, 6)
	}
	return b
}

// dhcpMask is the mask that DHCP assigns: its addresses are loopback's.
const dhcpMask = "255.0.0.0"

// setStatic changes the static IPv4 settings. With DHCP there is nothing to
// change.
func (x *Request) setStatic(change func(s *bmc.IPv4)) error {
	n := x.bmc().Network()
	if n.Static == nil {
		return NotSupportedInState
	}
	s := *n.Static
	n.Static = &s
	change(&s)
	return x.setNetwork(n)
}

// setAddress sets the IP address. The BMC stays reachable at its old address
// too, since otherwise the client would be cut off; an address that the rack
// cannot bind exists in name only.
func setAddress(x *Request, _ byte, data []byte) error {
	addr := netip.AddrFrom4([4]byte(data))
	if addr.IsUnspecified() || addr.IsMulticast() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return InvalidDataField
	}
	err := x.setStatic(func(s *bmc.IPv4) { s.Addr, s.Reach = addr, bmc.AtBothAddresses })
	if errors.Is(err, bmc.ErrAddress) {
		err = x.setStatic(func(s *bmc.IPv4) { s.Addr, s.Reach = addr, bmc.AtDefaultAddress })
	}
	return err
}

// IP address sources (parameter 4).
const (
	addressStatic = 1
	addressDHCP   = 2
)

// setAddressSource sets the IP address source. An address from DHCP stays when
// the source becomes static.
func setAddressSource(x *Request, _ byte, data []byte) error {
	n := x.bmc().Network()
	switch data[0] {
	case addressStatic:
		s := bmc.IPv4{Addr: x.address(), Mask: dhcpMask, Reach: bmc.AtBothAddresses}
		if n.Static != nil {
			s = *n.Static
			s.Reach = bmc.AtBothAddresses
			if n.Static.Reach == bmc.AtDefaultAddress {
				s.Reach = bmc.AtDefaultAddress
			}
		}
		n.DHCP, n.Static = false, &s
	case addressDHCP:
		n.DHCP, n.Static = true, nil
	default:
		return InvalidDataField
	}
	return x.setNetwork(n)
}

// isMask reports whether bytes are a subnet mask: ones, then zeros.
func isMask(b []byte) bool {
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	return n != 0 && n|(n-1) == ^uint32(0)
}

const (
	// destinations is the number of alert destinations besides destination 0,
	// which is volatile.
	destinations = 4
	// authTypes are the authentication types that IPMI 1.5 sessions can have:
	// none, MD2, MD5 and straight password.
	authTypes = 1<<0 | 1<<1 | 1<<2 | 1<<4
)

// lanIPv4Parameters are the LAN parameters of IPMI 1.5.
var lanIPv4Parameters = map[byte]*lanParameter{
	1: readOnlyParameter(authTypes),
	2: {size: 5, read: func(x *Request, _ byte) []byte {
		if b := x.bmc().Channel.AuthTypes; b != nil {
			return b
		}
		return make([]byte, 5)
	}, write: func(x *Request, _ byte, data []byte) error {
		if slices.ContainsFunc(data, func(b byte) bool { return b&^authTypes != 0 }) {
			return InvalidDataField
		}
		c := *x.bmc().Channel
		c.AuthTypes = slices.Clone(data)
		_, err := x.applyBMC(bmc.SetChannel{Channel: c})
		return err
	}},
	3: {size: 4, read: func(x *Request, _ byte) []byte { return x.address().AsSlice() }, write: setAddress},
	4: {size: 1, read: func(x *Request, _ byte) []byte {
		if x.bmc().Network().Static != nil {
			return []byte{addressStatic}
		}
		return []byte{addressDHCP}
	}, write: setAddressSource},
	// "can be read only" (table 23-4): setLAN accepts the address that the BMC has, as
	// clients such as ipmi-config write back all that they have read.
	5: {size: 6, read: func(x *Request, _ byte) []byte { return mac(x.machine().Identity.BMCMAC()) },
		write: func(*Request, byte, []byte) error { return readOnly }},
	6: {size: 4, read: func(x *Request, _ byte) []byte {
		if s := x.bmc().Network().Static; s != nil {
			return v4(s.Mask)
		}
		return v4(dhcpMask)
	}, write: func(x *Request, _ byte, data []byte) error {
		if !isMask(data) {
			return InvalidDataField
		}
		mask := netip.AddrFrom4([4]byte(data)).String()
		return x.setStatic(func(s *bmc.IPv4) { s.Mask = mask })
	}},
	7: stored(7, nil, 0x40, 0x40, 0x10),
	8: {size: 2, read: func(x *Request, _ byte) []byte {
		port := x.bmc().Network().IPMI.Port
		return []byte{byte(port), byte(port >> 8)}
	}},
	10: stored(10, atMost(3), 0x02),
	11: stored(11, nil, 0x03), // 2 s
	12: {size: 4, read: func(x *Request, _ byte) []byte {
		if s := x.bmc().Network().Static; s != nil {
			return v4(s.Gateway)
		}
		return v4("")
	}, write: func(x *Request, _ byte, data []byte) error {
		addr, gateway := netip.AddrFrom4([4]byte(data)), ""
		if !addr.IsUnspecified() {
			gateway = addr.String()
		}
		return x.setStatic(func(s *bmc.IPv4) { s.Gateway = gateway })
	}},
	13: stored(13, nil, 0, 0, 0, 0, 0, 0),
	14: stored(14, nil, 0, 0, 0, 0),
	15: stored(15, nil, 0, 0, 0, 0, 0, 0),
	16: stored(16, nil, 'p', 'u', 'b', 'l', 'i', 'c', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
	17: readOnlyParameter(destinations),
	18: destination(18, func(b []byte) bool {
		const acknowledged = 0x80
		return len(b) == 3 && b[0]&^acknowledged == 0 && b[2] <= 7 // a PET trap with up to 7 retries
	}, 0, 3, 0),
	19: destination(19, func(b []byte) bool {
		const v4Size, v6Size = 12, 17
		return len(b) == v4Size && b[0] == 0 && b[1] <= 1 || len(b) == v6Size && b[0] == 1<<4
	}, make([]byte, 12)...),
}

// destination returns a parameter that each alert destination has a copy of.
func destination(n byte, valid func(b []byte) bool, begin ...byte) *lanParameter {
	p := stored(n, valid, begin...)
	always := *p
	p.size, p.sets = -1, destinations+1
	p.read = func(x *Request, set byte) []byte {
		if b, ok := x.State.lan.destination[n]; ok && set == 0 {
			return b
		}
		return always.read(x, set)
	}
	p.write = func(x *Request, set byte, data []byte) error {
		switch {
		case set != 0:
			return always.write(x, set, data)
		case !valid(data):
			return InvalidDataField
		case x.State.lan.destination == nil:
			x.State.lan.destination = map[byte][]byte{}
		}
		x.State.lan.destination[n] = slices.Clone(data)
		return nil
	}
	return p
}
