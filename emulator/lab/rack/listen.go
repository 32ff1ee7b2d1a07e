package rack

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Listen says where the BMCs are: "loopback" gives each an address of its own
// that only this computer reaches, at the standard port where that is allowed;
// "loopback:PORT" the same at that port; "ADDRESS" or "ADDRESS:FIRSTPORT" gives
// each a port of that address, in a row.
type Listen string

// Loopback is the default.
const Loopback Listen = "loopback"

// firstPort is where the BMCs' ports begin at an address that is named alone.
const firstPort = 8443

// Place is where the BMCs are.
type Place struct {
	Addr netip.Addr // that they share; invalid when each has its own on loopback
	Port uint16     // of all, or of the first; 0 leaves it open
}

// Parse says what is meant.
func (l Listen) Parse() (Place, error) {
	port, own := strings.CutPrefix(string(l), string(Loopback)+":")
	switch {
	case l == "", l == Loopback:
		return Place{}, nil
	case own:
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
