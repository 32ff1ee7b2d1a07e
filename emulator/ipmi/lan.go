package ipmi

import (
	"bytes"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

var lanCommands = []command{
	{fn: wire.Transport, cmd: 0x01, name: "Set LAN Configuration Parameters", needs: wire.Administrator, least: 2, most: -1, acts: true, run: setLAN},
	{fn: wire.Transport, cmd: 0x02, name: "Get LAN Configuration Parameters", needs: wire.Operator, least: 4, most: 4, run: getLAN},
	{fn: wire.Transport, cmd: 0x03, name: "Suspend BMC ARPs", needs: wire.Administrator, least: 2, most: 2, run: suspendARP},
	{fn: wire.Transport, cmd: 0x04, name: "Get IP/UDP/RMCP Statistics", needs: wire.User, least: 2, most: 2, run: statistics},
}

// lanScratch is what is remembered of the LAN channel.
type lanScratch struct {
	progress progress
	// destination is that of number 0, which is not kept, by parameter.
	destination map[byte][]byte
	traffic     traffic
}

// lanParameter is a parameter of the LAN channel (table 23-4). Data is without
// the selectors.
type lanParameter struct {
	size  int  // bytes; -1: set sees to it
	sets  int  // how many there are of it; 0: there is one, without a selector
	block bool // a block selector follows that of the set: there is one block
	read  func(x *exchange, set byte) []byte
	write func(x *exchange, set byte, data []byte) error // nil: read-only
}

// lanParameters are all of them.
var lanParameters = func() map[byte]*lanParameter {
	all := maps.Clone(lanV4)
	maps.Copy(all, lanRMCP)
	maps.Copy(all, lanV6)
	return all
}()

// selectors are how many bytes come before the data.
func (p *lanParameter) selectors() int {
	switch {
	case p.block:
		return 2
	case p.sets > 0:
		return 1
	}
	return 0
}

// setLAN is §23.1. What is set holds at once.
func setLAN(x *exchange) error {
	if !x.lan(x.data[0]) {
		return BadField
	}
	data := x.data[2:]
	if x.data[1] == inProgress {
		return x.side.lan.progress.set(data)
	}
	p := lanParameters[x.data[1]]
	switch {
	case p == nil:
		return noParameter
	case p.write == nil:
		return readOnly
	}
	n, set := p.selectors(), byte(0)
	if len(data) < n || p.size >= 0 && len(data) != n+p.size {
		return BadLength
	}
	if n > 0 {
		set = data[0]
	}
	if int(set) >= max(p.sets, 1) || n > 1 && data[1] != 0 {
		return OutOfRange
	}
	if bytes.Equal(data[n:], p.read(x, set)) {
		return nil // a client that writes back what it has read changes nothing
	}
	return p.write(x, set, data[n:])
}

// getLAN is §23.2.
func getLAN(x *exchange) error {
	if !x.lan(x.data[0] &^ onlyRevision) {
		return BadField
	}
	p, set, block := lanParameters[x.data[1]], x.data[2], x.data[3]
	if p == nil && x.data[1] != inProgress {
		return noParameter
	}
	x.put(revision)
	switch {
	case x.data[0]&onlyRevision != 0:
		return nil
	case p == nil:
		x.put(byte(x.side.lan.progress))
		return nil
	}
	n := p.selectors()
	if n > 0 {
		if int(set) >= p.sets {
			return OutOfRange
		}
		x.put(set)
	}
	if n > 1 {
		if block != 0 {
			return OutOfRange
		}
		x.put(block)
	}
	x.put(p.read(x, set)...)
	return nil
}

// fixed is a parameter that nobody can write.
func fixed(b ...byte) *lanParameter {
	return &lanParameter{size: len(b), read: func(*exchange, byte) []byte { return b }}
}

// kept is a parameter that nothing else depends on. valid may be nil.
func kept(n byte, valid func(b []byte) bool, begin ...byte) *lanParameter {
	return &lanParameter{
		size: len(begin),
		read: func(x *exchange, set byte) []byte {
			if b := x.bmc().Channel.Read(lanTable, n, set); b != nil {
				return b
			}
			return begin
		},
		write: func(x *exchange, set byte, data []byte) error {
			if valid != nil && !valid(data) {
				return BadField
			}
			_, err := x.tell(bmc.Write{Written: bmc.Written{Table: lanTable, Param: n, Set: set, Data: data}})
			return err
		},
	}
}

// atMost says whether the only byte has a value of at most that.
func atMost(most byte) func(b []byte) bool { return func(b []byte) bool { return b[0] <= most } }

// setNetwork sets the BMC's network.
func (x *exchange) setNetwork(n bmc.Network) error {
	_, err := x.tell(bmc.SetNetwork{Network: n})
	return err
}

// address is the BMC's own; zeros when it has none.
func (x *exchange) address() netip.Addr {
	n, place := x.bmc().Network(), x.bmc().Place
	switch {
	case n.Static != nil:
		return n.Static.Addr
	case place != nil && place.Addr.Is4():
		return place.Addr
	}
	return netip.IPv4Unspecified()
}

func hostPort(addr netip.Addr, port uint16) string { return netip.AddrPortFrom(addr, port).String() }

// v4 are the bytes of an IPv4 address; zeros for what is none.
func v4(text string) []byte {
	addr, err := netip.ParseAddr(text)
	if err != nil || !addr.Is4() {
		return make([]byte, net.IPv4len)
	}
	return addr.AsSlice()
}

// mac are the bytes of a MAC address.
func mac(text string) []byte {
	b, err := net.ParseMAC(text)
	if err != nil {
		return make([]byte, 6)
	}
	return b
}

// dhcpMask is that of what DHCP gives, which is an address of loopback.
const dhcpMask = "255.0.0.0"

// setStatic changes what was set by hand of the IPv4 address. Where that comes
// from DHCP there is nothing to change.
func (x *exchange) setStatic(change func(s *bmc.IPv4)) error {
	n := x.bmc().Network()
	if n.Static == nil {
		return WrongState
	}
	s := *n.Static
	n.Static = &s
	change(&s)
	return x.setNetwork(n)
}

// setAddress sets the address. The BMC can be reached where it was as well, or
// who sets it could not go on; and it has an address that is no use here in
// name.
func setAddress(x *exchange, _ byte, data []byte) error {
	addr := netip.AddrFrom4([4]byte(data))
	if addr.IsUnspecified() || addr.IsMulticast() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return BadField
	}
	err := x.setStatic(func(s *bmc.IPv4) { s.Addr, s.Reach = addr, bmc.Beside })
	if errors.Is(err, bmc.ErrAddress) {
		err = x.setStatic(func(s *bmc.IPv4) { s.Addr, s.Reach = addr, bmc.InName })
	}
	return err
}

// Sources of the address (parameter 4).
const (
	byHand = 1
	byDHCP = 2
)

// setSource sets where the address comes from. One that DHCP gave stays when it
// is by hand from now on.
func setSource(x *exchange, _ byte, data []byte) error {
	n := x.bmc().Network()
	switch data[0] {
	case byHand:
		s := bmc.IPv4{Addr: x.address(), Mask: dhcpMask, Reach: bmc.Beside}
		if n.Static != nil {
			s = *n.Static
			s.Reach = bmc.Beside
			if n.Static.Reach == bmc.InName {
				s.Reach = bmc.InName
			}
		}
		n.DHCP, n.Static = false, &s
	case byDHCP:
		n.DHCP, n.Static = true, nil
	default:
		return BadField
	}
	return x.setNetwork(n)
}

// isMask says whether bytes are the mask of a network: ones, then zeros.
func isMask(b []byte) bool {
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	return n != 0 && n|(n-1) == ^uint32(0)
}

const (
	// destinations is how many alerts can be sent to, beside number 0, which is
	// not kept.
	destinations = 4
	// authKinds are the types that sessions of IPMI 1.5 can have: none, MD2,
	// MD5 and the password as it is.
	authKinds = 1<<0 | 1<<1 | 1<<2 | 1<<4
)

// lanV4 are the parameters of IPMI 1.5.
var lanV4 = map[byte]*lanParameter{
	1: fixed(authKinds),
	2: {size: 5, read: func(x *exchange, _ byte) []byte {
		if b := x.bmc().Channel.AuthTypes; b != nil {
			return b
		}
		return make([]byte, 5)
	}, write: func(x *exchange, _ byte, data []byte) error {
		if slices.ContainsFunc(data, func(b byte) bool { return b&^authKinds != 0 }) {
			return BadField
		}
		c := *x.bmc().Channel
		c.AuthTypes = slices.Clone(data)
		_, err := x.tell(bmc.SetChannel{Channel: c})
		return err
	}},
	3: {size: 4, read: func(x *exchange, _ byte) []byte { return x.address().AsSlice() }, write: setAddress},
	4: {size: 1, read: func(x *exchange, _ byte) []byte {
		if x.bmc().Network().Static != nil {
			return []byte{byHand}
		}
		return []byte{byDHCP}
	}, write: setSource},
	5: {size: 6, read: func(x *exchange, _ byte) []byte { return mac(x.machine().Identity.BMCMAC()) }},
	6: {size: 4, read: func(x *exchange, _ byte) []byte {
		if s := x.bmc().Network().Static; s != nil {
			return v4(s.Mask)
		}
		return v4(dhcpMask)
	}, write: func(x *exchange, _ byte, data []byte) error {
		if !isMask(data) {
			return BadField
		}
		mask := netip.AddrFrom4([4]byte(data)).String()
		return x.setStatic(func(s *bmc.IPv4) { s.Mask = mask })
	}},
	7: kept(7, nil, 0x40, 0x40, 0x10),
	8: {size: 2, read: func(x *exchange, _ byte) []byte {
		port := x.bmc().Network().IPMI.Port
		return []byte{byte(port), byte(port >> 8)}
	}},
	10: kept(10, atMost(3), 0x02),
	11: kept(11, nil, 0x03), // 2 s
	12: {size: 4, read: func(x *exchange, _ byte) []byte {
		if s := x.bmc().Network().Static; s != nil {
			return v4(s.Gateway)
		}
		return v4("")
	}, write: func(x *exchange, _ byte, data []byte) error {
		addr, gateway := netip.AddrFrom4([4]byte(data)), ""
		if !addr.IsUnspecified() {
			gateway = addr.String()
		}
		return x.setStatic(func(s *bmc.IPv4) { s.Gateway = gateway })
	}},
	13: kept(13, nil, 0, 0, 0, 0, 0, 0),
	14: kept(14, nil, 0, 0, 0, 0),
	15: kept(15, nil, 0, 0, 0, 0, 0, 0),
	16: kept(16, nil, 'p', 'u', 'b', 'l', 'i', 'c', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
	17: fixed(destinations),
	18: destination(18, func(b []byte) bool {
		const acknowledged = 0x80
		return len(b) == 3 && b[0]&^acknowledged == 0 && b[2] <= 7 // a PET trap, and up to so many retries
	}, 0, 3, 0),
	19: destination(19, func(b []byte) bool {
		const v4Size, v6Size = 12, 17
		return len(b) == v4Size && b[0] == 0 && b[1] <= 1 || len(b) == v6Size && b[0] == 1<<4
	}, make([]byte, 12)...),
}

// destination is a parameter of which each destination has its own.
func destination(n byte, valid func(b []byte) bool, begin ...byte) *lanParameter {
	p := kept(n, valid, begin...)
	always := *p
	p.size, p.sets = -1, destinations+1
	p.read = func(x *exchange, set byte) []byte {
		if b, ok := x.side.lan.destination[n]; ok && set == 0 {
			return b
		}
		return always.read(x, set)
	}
	p.write = func(x *exchange, set byte, data []byte) error {
		switch {
		case set != 0:
			return always.write(x, set, data)
		case !valid(data):
			return BadField
		case x.side.lan.destination == nil:
			x.side.lan.destination = map[byte][]byte{}
		}
		x.side.lan.destination[n] = slices.Clone(data)
		return nil
	}
	return p
}

// lanRMCP are the parameters of IPMI 2.0.
var lanRMCP = map[byte]*lanParameter{
	20: {size: 2, read: func(x *exchange, _ byte) []byte {
		v := x.bmc().Network().VLAN
		switch {
		case v.On:
			return []byte{byte(v.ID), vlanOn | byte(v.ID>>8)}
		case v.ID == lowestVLAN:
			return []byte{0, 0}
		}
		return []byte{byte(v.ID), byte(v.ID >> 8)}
	}, write: func(x *exchange, _ byte, data []byte) error {
		const highest = 4094
		n, id := x.bmc().Network(), int(data[0])|int(data[1]&0x0f)<<8
		n.VLAN.On = data[1]&vlanOn != 0
		if data[1]&0x70 != 0 || id > highest || n.VLAN.On && id < lowestVLAN {
			return BadField
		}
		n.VLAN.ID = max(id, lowestVLAN)
		return x.setNetwork(n)
	}},
	21: {size: 1, read: func(x *exchange, _ byte) []byte { return []byte{byte(x.bmc().Network().VLAN.Priority)} },
		write: func(x *exchange, _ byte, data []byte) error {
			if data[0] > 7 {
				return BadField
			}
			n := x.bmc().Network()
			n.VLAN.Priority = int(data[0])
			return x.setNetwork(n)
		}},
	22: {size: 1, read: func(x *exchange, _ byte) []byte { return []byte{byte(len(suiteEntries(x.host)))} }},
	23: {size: -1, read: func(x *exchange, _ byte) []byte { return append([]byte{0}, suiteEntries(x.host)...) }},
	24: {size: 9, read: func(x *exchange, _ byte) []byte {
		return append([]byte{0}, suiteLimits(x.host, x.bmc().Channel.Suites)...)
	}, write: func(x *exchange, _ byte, data []byte) error {
		c := *x.bmc().Channel
		c.Suites = slices.Clone(data[1:])
		wrong := func(b byte) bool { return b&0x0f > byte(wire.OEMPrivilege) || b>>4 > byte(wire.OEMPrivilege) }
		if slices.ContainsFunc(c.Suites, wrong) {
			return BadField
		}
		_, err := x.tell(bmc.SetChannel{Channel: c})
		return err
	}},
	25: destination(25, func(b []byte) bool {
		return len(b) == 3 && (b[0] == 0 || b[0] == 1<<4)
	}, 0, 0, 0),
	26: {size: 6, read: readLockout, write: setLockout},
}

const (
	vlanOn     = 0x80
	lowestVLAN = 1 // that there can be
)

// suiteEntries are the suites that can be enabled, in the order of their
// numbers.
func suiteEntries(h Host) []byte { return slices.Sorted(slices.Values(h.Dialect().IPMI.Suites)) }

// nibble is where the limit of a suite is; -1: it has none of its own.
// ipmitool takes the limits to be in the order of the suites' numbers, from 0
// to 14; the last of the 16 is that of suite 17.
func nibble(id byte) int {
	const sha256, last = 17, 15
	switch {
	case id < last:
		return int(id)
	case id == sha256:
		return last
	}
	return -1
}

// suiteLimit is the limit of a suite; limits may be nil.
func suiteLimit(limits []byte, id byte) wire.Privilege {
	at := nibble(id)
	if limits == nil || at < 0 {
		return wire.OEMPrivilege
	}
	return wire.Privilege(limits[at/2] >> (at % 2 * 4) & 0x0f)
}

// suiteLimits are all limits, as parameter 24 has them; set is nil when nobody
// has set them.
func suiteLimits(h Host, set []byte) []byte {
	if set != nil {
		return set
	}
	b := make([]byte, 8)
	for _, id := range h.Dialect().IPMI.Suites {
		if at := nibble(id); at >= 0 {
			b[at/2] |= byte(wire.Administrator) << (at % 2 * 4)
		}
	}
	return b
}

// lockoutUnit is that of the times of parameter 26.
const lockoutUnit = 10 * time.Second

// readLockout tells the policy for wrong passwords, which is Redfish's, too.
func readLockout(x *exchange, _ byte) []byte {
	p, c := x.bmc().Policy, x.bmc().Channel
	units := func(d time.Duration) []byte {
		n := min((d+lockoutUnit-1)/lockoutUnit, 0xffff)
		return []byte{byte(n), byte(n >> 8)}
	}
	b := []byte{0, byte(min(p.LockAfter, 0xff))}
	if c.Audit {
		b[0] = 1
	}
	if p.LockForever {
		return append(b, 0, 0, 0, 0)
	}
	return append(append(b, units(p.ForgetAfter)...), units(p.LockFor)...)
}

func setLockout(x *exchange, _ byte, data []byte) error {
	if data[0] > 1 {
		return BadField
	}
	p, c := *x.bmc().Policy, *x.bmc().Channel
	p.LockAfter = int(data[1])
	p.ForgetAfter = time.Duration(le16(data[2:])) * lockoutUnit
	p.LockFor = time.Duration(le16(data[4:])) * lockoutUnit
	p.LockForever = p.LockFor == 0 && p.LockAfter > 0
	if _, err := x.tell(bmc.SetPolicy{Policy: p}); err != nil {
		return err
	}
	if on := data[0] == 1; on != c.Audit {
		c.Audit = on
		_, err := x.tell(bmc.SetChannel{Channel: c})
		return err
	}
	return nil
}

// suspendARP is §23.3. Loopback knows no ARP: all there is to it is the answer,
// which depends on the watchdog.
func suspendARP(x *exchange) error {
	if !x.lan(x.data[0]) || x.data[1] > 3 {
		return BadField
	}
	occurring := lanParameters[10].read(x, 0)[0]
	if !x.machine().Watchdog.Until.IsZero() {
		occurring &^= x.data[1]
	}
	x.put(occurring)
	return nil
}

// traffic counts datagrams of one BMC. Each count stays at its highest.
type traffic struct{ received, valid, sent uint16 }

func count(n *uint16) {
	if *n < 0xffff {
		*n++
	}
}

// statistics is §23.4. A BMC here sees no packet that the network has spoilt.
func statistics(x *exchange) error {
	if !x.lan(x.data[0]) || x.data[1] > 1 {
		return BadField
	}
	t := &x.side.lan.traffic
	if x.data[1] == 1 {
		*t = traffic{}
	}
	for _, n := range []uint16{t.received, 0, 0, 0, t.sent, t.received, t.valid, 0, 0} {
		x.put16(n)
	}
	return nil
}
