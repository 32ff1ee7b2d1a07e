package rack

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Listen says at which addresses the BMCs are. "loopback" gives each BMC an address of
// its own on 127/8, at port 443 if the process may open it, else at 8443 or the next
// free port, and IPMI at 623, else at 6230 or the next free one; "loopback:PORT" is
// the same with both at that port. "ADDRESS" or "ADDRESS:FIRSTPORT" gives each BMC one
// port of that address for both, counted up from 8443 or FIRSTPORT.
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
	switch {
	case err != nil || at.Port() == 0 || at.Addr().Zone() != "":
		return Place{}, fmt.Errorf("%q: use loopback, an IP address that this computer has, or ADDRESS:FIRSTPORT such as 192.0.2.7:9000", string(l))
	case at.Addr().IsUnspecified() || at.Addr().IsMulticast():
		return Place{}, fmt.Errorf("%q: name one IP address, at which clients find the BMCs", string(l))
	}
	return Place{Addr: at.Addr().Unmap(), Port: at.Port()}, nil
}
