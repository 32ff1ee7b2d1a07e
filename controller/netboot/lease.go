package netboot

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"time"
)

// Mode is the kind of DHCP service.
type Mode string

// The modes.
const (
	Full  Mode = ""      // gives addresses and boot files
	Proxy Mode = "proxy" // gives boot files only, beside another DHCP server
)

// Network configures DHCP on a provisioning network.
type Network struct {
	Mode   Mode
	Server netip.Addr    // address of this server, for DHCP and TFTP
	Pool   netip.Prefix  // addresses to give, in mode Full
	Router netip.Addr    // optional
	DNS    []netip.Addr  // optional
	Lease  time.Duration // lease time of an address; 0 means an hour
}

const (
	defaultLease = time.Hour
	largestPool  = 1 << 20 // addresses
)

func (n *Network) validate() error {
	switch {
	case !n.Server.Is4():
		return fmt.Errorf("Net.Server %s: want an IPv4 address", n.Server)
	case n.Mode != Full && n.Mode != Proxy:
		return fmt.Errorf("Net.Mode %q: use %q or %q", n.Mode, Full, Proxy)
	case n.Mode == Full && (!n.Pool.IsValid() || !n.Pool.Addr().Is4() || n.Pool.Bits() > 30):
		return fmt.Errorf("Net.Pool %s: want an IPv4 prefix of /30 or more addresses", n.Pool)
	}
	return nil
}

func (n *Network) lease() time.Duration {
	if n.Lease == 0 {
		return defaultLease
	}
	return n.Lease
}

// leases holds the addresses in use. The address is derived from a hash of the MAC
// address, so that a client gets the same one after a restart of the controller, unless
// another client with the same hash was first.
type leases struct {
	net       Network
	addresses map[string]netip.Addr // by MAC address
	taken     map[netip.Addr]string // the MAC address; "" for addresses that are never given
}

func newLeases(n Network) leases {
	l := leases{net: n, addresses: map[string]netip.Addr{}, taken: map[netip.Addr]string{}}
	for _, a := range append([]netip.Addr{n.Server, n.Router}, n.DNS...) {
		l.taken[a] = ""
	}
	return l
}

var errPoolEmpty = errors.New("all addresses of the pool are in use")

// give returns the address of a MAC address, and reserves one at the first call.
func (l *leases) give(mac string) (netip.Addr, error) {
	if a, ok := l.addresses[mac]; ok {
		return a, nil
	}
	pool := l.net.Pool.Masked()
	hosts := min(uint32(1)<<(32-pool.Bits())-2, largestPool) // without the network and broadcast addresses
	h := fnv.New32a()
	h.Write([]byte(mac))
	at := h.Sum32() % hosts
	for i := range hosts {
		a := add(pool.Addr(), 1+(at+i)%hosts)
		if _, taken := l.taken[a]; !taken {
			l.addresses[mac], l.taken[a] = a, mac
			return a, nil
		}
	}
	return netip.Addr{}, errPoolEmpty
}

func add(a netip.Addr, n uint32) netip.Addr {
	b := a.As4()
	sum := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	sum += n
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// decline marks the address of a MAC address as used by another machine (RFC 2131, §3.1).
func (l *leases) decline(mac string) {
	if a, ok := l.addresses[mac]; ok {
		delete(l.addresses, mac)
		l.taken[a] = ""
	}
}

func (l *leases) drop(mac string) {
	if a, ok := l.addresses[mac]; ok {
		delete(l.addresses, mac)
		delete(l.taken, a)
	}
}
