// Package network puts the BMCs of a rack on the network: it plans their
// addresses, opens the TCP listeners and UDP sockets that many BMCs share, keeps
// a table of the endpoints that users have moved, tracks open connections, and
// issues the TLS certificates that BMCs come with. It knows a BMC by its index
// in the rack, reads bmc.View for network settings, and knows neither hosts nor
// the services that answer.
package network

import "net/netip"

// hostsPerBlock is how many addresses of a /24 block BMCs get: .0 and .255 look
// like the block's network and broadcast addresses.
const hostsPerBlock = 254

// Plan assigns an address and a port to each BMC of a rack.
type Plan struct {
	loopbackAddresses bool       // each BMC has its own loopback address, and all have one port
	addr              netip.Addr // address of all BMCs when loopbackAddresses is false
	first             uint16     // port of all BMCs, or of the first one when they share addr
	hosts             int
	// skipped is how many loopback addresses belong to BMCs of other shards: a shard leaves
	// out those of the hosts before its own.
	skipped int
}

// Address returns the endpoint of the i-th BMC, counted from 0.
func (p Plan) Address(i int) netip.AddrPort {
	if !p.loopbackAddresses {
		return netip.AddrPortFrom(p.addr, p.first+uint16(i))
	}
	i += p.skipped
	block := i / hostsPerBlock
	a := netip.AddrFrom4([4]byte{127, byte(64 + block/256), byte(block % 256), byte(i%hostsPerBlock + 1)})
	return netip.AddrPortFrom(a, p.first)
}

// FirstPort returns the port of the first BMC.
func (p Plan) FirstPort() uint16 { return p.first }

// Index returns the BMC that the plan puts at an endpoint, and false when it
// puts none there.
func (p Plan) Index(at netip.AddrPort) (int, bool) {
	addr := at.Addr().Unmap()
	i := int(at.Port()) - int(p.first)
	if p.loopbackAddresses {
		if !addr.Is4() || i != 0 {
			return 0, false
		}
		b := addr.As4()
		i = (int(b[1])-64)*256*hostsPerBlock + int(b[2])*hostsPerBlock + int(b[3]) - 1 - p.skipped
	}
	if i < 0 || i >= p.hosts || p.Address(i) != netip.AddrPortFrom(addr, at.Port()) {
		return 0, false
	}
	return i, true
}
