package main

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/controller/netboot"
)

func TestNetwork(t *testing.T) {
	ip, port := netip.MustParseAddr, netip.MustParseAddrPort
	for _, tt := range []struct {
		name, args string
		want       *manager.Network
	}{
		{name: "none"},
		{
			name: "full", args: "--dhcp=full --dhcp-pool=192.0.2.128/25 --dhcp-router=192.0.2.1 --dhcp-dns=192.0.2.2,192.0.2.3 --dhcp-interface=eth1",
			want: &manager.Network{
				Network: netboot.Network{
					Server: ip("192.0.2.5"), Pool: netip.MustParsePrefix("192.0.2.128/25"), Router: ip("192.0.2.1"),
					DNS: []netip.Addr{ip("192.0.2.2"), ip("192.0.2.3")},
				},
				Ports: netboot.Ports{DHCP: port("0.0.0.0:67"), TFTP: port("192.0.2.5:69"), Device: "eth1"},
			},
		},
		{
			name: "beside another", args: "--dhcp=proxy --listen=192.0.2.6",
			want: &manager.Network{
				Network: netboot.Network{Mode: netboot.Proxy, Server: ip("192.0.2.5")},
				Ports:   netboot.Ports{DHCP: port("0.0.0.0:67"), Proxy: port("0.0.0.0:4011"), TFTP: port("192.0.2.6:69")},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, err := parse(t, append(strings.Fields(tt.args), "--provisioning-address=192.0.2.5")...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, o.network, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{})); diff != "" {
				t.Errorf("lab-controller %s: network (-want +got):\n%s", tt.args, diff)
			}
		})
	}
}

func TestInvalidNetworkFlagsNameTheFix(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--dhcp=on", "--dhcp on: use full, proxy or off"},
		{"--dhcp=full", "--dhcp-pool is missing"},
		{"--dhcp=full --dhcp-pool=192.0.2.0/31", "use a prefix of IPv4"},
		{"--dhcp=full --dhcp-pool=2001:db8::/64", "use a prefix of IPv4"},
		{"--dhcp=full --dhcp-pool=192.0.2.0/24 --dhcp-router=gw", `--dhcp-router "gw": use an address`},
		{"--dhcp=full --dhcp-pool=192.0.2.0/24 --dhcp-dns=::1", `--dhcp-dns "::1": use an address`},
		{"--dhcp=proxy --dhcp-pool=192.0.2.0/24", "a proxy gives no addresses"},
		{"--dhcp-pool=192.0.2.0/24", "need --dhcp full or proxy"},
		{"--dhcp-dns=192.0.2.1", "need --dhcp full or proxy"},
		{"--dhcp=proxy --provisioning-address=2001:db8::1", "DHCP needs one of IPv4"},
	} {
		args := append([]string{"--provisioning-address=192.0.2.5"}, strings.Fields(tt.args)...)
		if _, err := parse(t, args...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("lab-controller %s: %v, want %q in it", tt.args, err, tt.want)
		}
	}
}
