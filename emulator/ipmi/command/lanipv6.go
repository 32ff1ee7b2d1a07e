package command

import (
	"net"
	"net/netip"
	"slices"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

const (
	// staticV6Addresses is the number of static addresses, as in Redfish.
	staticV6Addresses = 4
	// dynamicV6Addresses is the number of addresses that the network could
	// assign.
	dynamicV6Addresses = 1
	dualStack          = 2 // IPv4 and IPv6 at the same time
)

// States of an IPv6 address (parameter 56).
const (
	addressActive   = 0
	addressDisabled = 1
)

// lanIPv6Parameters are the LAN parameters of IPv6. The rack's network assigns
// the BMC neither addresses nor routers.
var lanIPv6Parameters = map[byte]*lanParameter{
	50: readOnlyParameter(dualStack), // IPv4 is always on, and alerts go there
	51: {size: 1, read: func(x *Request, _ byte) []byte {
		if x.bmc().Network().V6.On {
			return []byte{dualStack}
		}
		return []byte{0}
	}, write: func(x *Request, _ byte, data []byte) error {
		if data[0] != 0 && data[0] != dualStack {
			return InvalidDataField
		}
		n := x.bmc().Network()
		n.V6.On = data[0] != 0
		return x.setNetwork(n)
	}},
	52: stored(52, nil, 0),
	53: stored(53, nil, 64),
	54: stored(54, func(b []byte) bool { return b[0] < 0x10 }, 0, 0, 0),
	55: readOnlyParameter(staticV6Addresses, dynamicV6Addresses, 3), // support for SLAAC and DHCPv6
	56: {size: 19, sets: staticV6Addresses, read: readStatic6, write: setStatic6},
	57: readOnlyParameter(1),
	58: {size: 16, sets: staticV6Addresses, block: true, read: duid},
	59: {size: 19, sets: dynamicV6Addresses, read: func(*Request, byte) []byte {
		b := make([]byte, 19)
		b[0], b[18] = 1, addressDisabled // SLAAC
		return b
	}},
	60: readOnlyParameter(1),
	61: {size: 16, sets: dynamicV6Addresses, block: true, read: duid},
	62: readOnlyParameter(0),
	64: {size: 1, read: func(x *Request, _ byte) []byte {
		b := staticRouter.read(x, 0)[0] & 1
		if x.bmc().Network().V6.Auto {
			b |= 2
		}
		return []byte{b}
	}, write: func(x *Request, _ byte, data []byte) error {
		if err := staticRouter.write(x, 0, data); err != nil {
			return err
		}
		n := x.bmc().Network()
		if on := data[0]&2 != 0; on != n.V6.Auto {
			n.V6.Auto = on
			return x.setNetwork(n)
		}
		return nil
	}},
	65: router(0),
	66: stored(66, nil, 0, 0, 0, 0, 0, 0),
	67: stored(67, atMost(128), 0),
	68: stored(68, nil, make([]byte, 16)...),
	69: router(1),
	70: stored(70, nil, 0, 0, 0, 0, 0, 0),
	71: stored(71, atMost(128), 0),
	72: stored(72, nil, make([]byte, 16)...),
	73: readOnlyParameter(0), // so parameters 74 to 78 do not exist
	79: readOnlyParameter(0), // nor does 80
}

// staticRouter is the static router bit of parameter 64, which is only stored.
var staticRouter = stored(64, atMost(3), 1)

// staticSlots returns the static addresses by set selector: each in its own
// slot, or in the first free one.
func staticSlots(all []bmc.IPv6Static) (out [staticV6Addresses]*bmc.IPv6Static) {
	var later []*bmc.IPv6Static
	for i := range all {
		if a := &all[i]; a.Slot >= 0 && a.Slot < staticV6Addresses && out[a.Slot] == nil {
			out[a.Slot] = a
		} else {
			later = append(later, a)
		}
	}
	for _, a := range later {
		if i := slices.Index(out[:], nil); i >= 0 {
			out[i] = a
		}
	}
	return out
}

func readStatic6(x *Request, set byte) []byte {
	const enabled = 0x80
	n := x.bmc().Network().V6
	a := staticSlots(n.Static)[set]
	if a == nil {
		return append(make([]byte, 18), addressDisabled)
	}
	b := append([]byte{enabled}, a.Addr.AsSlice()...)
	b = append(b, byte(a.Prefix))
	if !n.On {
		return append(b, addressDisabled)
	}
	return append(b, addressActive)
}

// setStatic6 sets a static address, or removes it: a disabled address is not
// stored.
func setStatic6(x *Request, set byte, data []byte) error {
	addr, prefix, on := netip.AddrFrom16([16]byte(data[1:17])), int(data[17]), data[0] == 0x80
	switch {
	case data[0]&0x7f != 0 || prefix > 128:
		return InvalidDataField
	case on && (addr.IsUnspecified() || addr.IsMulticast() || addr.Is4In6()):
		return InvalidDataField
	}
	n := x.bmc().Network()
	all := staticSlots(n.V6.Static)
	all[set] = nil
	if on {
		all[set] = &bmc.IPv6Static{Addr: addr, Prefix: prefix}
	}
	n.V6.Static = nil
	for i, a := range all {
		if a != nil {
			n.V6.Static = append(n.V6.Static, bmc.IPv6Static{Addr: a.Addr, Prefix: a.Prefix, Slot: i})
		}
	}
	return x.setNetwork(n)
}

// duid returns the BMC's DHCPv6 DUID, made from its MAC address (RFC 8415,
// §11.4).
func duid(x *Request, _ byte) []byte {
	const linkLayer, ethernet, size = 3, 1, 10
	b := append([]byte{size, 0, linkLayer, 0, ethernet}, mac(x.machine().Identity.BMCMAC())...)
	return append(b, make([]byte, 16-len(b))...)
}

// router returns the parameter of the i-th static router's address. The second
// exists only with the first.
func router(i int) *lanParameter {
	return &lanParameter{size: net.IPv6len, read: func(x *Request, _ byte) []byte {
		if all := x.bmc().Network().V6.Gateways; i < len(all) {
			if addr, err := netip.ParseAddr(all[i]); err == nil && addr.Is6() {
				return addr.AsSlice()
			}
		}
		return make([]byte, net.IPv6len)
	}, write: func(x *Request, _ byte, data []byte) error {
		n := x.bmc().Network()
		addr, all := netip.AddrFrom16([16]byte(data)), slices.Clone(n.V6.Gateways)
		switch {
		case addr.IsMulticast() || addr.Is4In6():
			return InvalidDataField
		case addr.IsUnspecified() && i >= len(all):
			return nil
		case addr.IsUnspecified():
			all = slices.Delete(all, i, i+1)
		case i < len(all):
			all[i] = addr.String()
		case i == len(all):
			all = append(all, addr.String())
		default:
			return NotSupportedInState
		}
		n.V6.Gateways = all
		return x.setNetwork(n)
	}}
}
