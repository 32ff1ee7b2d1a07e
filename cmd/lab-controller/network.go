package main

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/pflag"

	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/controller/netboot"
)

// networkFlags are the flags of the DHCP and TFTP services.
type networkFlags struct {
	dhcp, pool, router, device string
	dns                        []string
}

// dhcpOff is the mode without services.
const dhcpOff = "off"

// modes are those of --dhcp.
var modes = map[string]netboot.Mode{"full": netboot.Full, "proxy": netboot.Proxy}

func (n *networkFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&n.dhcp, "dhcp", dhcpOff, "DHCP for servers that boot by the network: full (gives addresses and boot files), proxy (gives boot files beside another DHCP server) or off")
	f.StringVar(&n.pool, "dhcp-pool", "", "addresses to give, like 192.0.2.128/25")
	f.StringVar(&n.router, "dhcp-router", "", "router to name with them")
	f.StringSliceVar(&n.dns, "dhcp-dns", nil, "name servers to name with them")
	f.StringVar(&n.device, "dhcp-interface", "", "network device of the servers (default: all)")
}

// network returns the configuration that the flags describe, nil when DHCP is off. Servers
// reach this process at the address reached; TFTP listens on the address listens.
func (n *networkFlags) network(reached, listens netip.Addr) (*manager.Network, error) {
	mode, on := modes[n.dhcp]
	switch {
	case !on && n.dhcp != dhcpOff:
		return nil, fmt.Errorf("--dhcp %s: use full, proxy or off", n.dhcp)
	case n.pool+n.router+n.device != "" && !on, len(n.dns) > 0 && !on:
		return nil, errors.New("--dhcp-pool, -router, -dns and -interface need --dhcp full or proxy")
	case !on:
		return nil, nil
	case !reached.Is4():
		return nil, fmt.Errorf("--dhcp %s: the provisioning address is %s: DHCP needs one of IPv4", n.dhcp, reached)
	case mode == netboot.Full && n.pool == "":
		return nil, errors.New("--dhcp-pool is missing: name the addresses to give")
	case mode == netboot.Proxy && n.pool+n.router != "":
		return nil, errors.New("--dhcp-pool and -router: a proxy gives no addresses")
	}
	out := &manager.Network{Network: netboot.Network{Mode: mode, Server: reached}, Ports: netboot.StandardPorts()}
	out.Ports.Device = n.device
	out.Ports.TFTP = netip.AddrPortFrom(listens, out.Ports.TFTP.Port())
	var err error
	if mode == netboot.Full {
		out.Ports.Proxy = netip.AddrPort{}
		if out.Pool, err = netip.ParsePrefix(n.pool); err != nil || !out.Pool.Addr().Is4() || out.Pool.Bits() > 30 {
			return nil, fmt.Errorf("--dhcp-pool %q: use a prefix of IPv4 with 4 addresses or more", n.pool)
		}
	}
	address := func(flag, s string) (netip.Addr, error) {
		a, err := netip.ParseAddr(s)
		if err != nil || !a.Is4() {
			return a, fmt.Errorf("--%s %q: use an address of IPv4", flag, s)
		}
		return a, nil
	}
	if n.router != "" {
		if out.Router, err = address("dhcp-router", n.router); err != nil {
			return nil, err
		}
	}
	for _, s := range n.dns {
		a, err := address("dhcp-dns", s)
		if err != nil {
			return nil, err
		}
		out.DNS = append(out.DNS, a)
	}
	return out, nil
}
