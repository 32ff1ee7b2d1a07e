package network

import (
	"net/netip"
	"testing"
)

// Address and Index are inverses for every BMC, and Index finds nothing elsewhere.
func TestPlanAddressAndIndexAreInverse(t *testing.T) {
	const maxHosts = 100_000 // rack.MaxHosts
	plans := []Plan{
		{loopbackAddresses: true, first: 8443, hosts: maxHosts},
		{loopbackAddresses: true, first: 8443, hosts: 300, skipped: 200},
		{addr: netip.MustParseAddr("127.0.0.1"), first: 9000, hosts: 1000},
		{addr: netip.MustParseAddr("::1"), first: 9000, hosts: 3},
	}
	for _, p := range plans {
		seen := map[netip.AddrPort]bool{}
		for i := range p.hosts {
			at := p.Address(i)
			if got, ok := p.Index(at); !ok || got != i || seen[at] {
				t.Fatalf("%+v: Index(%v) = %d, %v, want %d, and each address once", p, at, got, ok, i)
			}
			seen[at] = true
			if b := at.Addr().As16(); p.loopbackAddresses && (b[15] == 0 || b[15] == 255 || b[13] < 64 || b[13] > 127) {
				t.Fatalf("host %d has the address %v", i, at)
			}
		}
		for _, nobody := range []string{
			"127.64.0.0:8443", "127.64.0.255:8443", "127.64.0.1:8444", "127.63.255.254:8443", "126.64.0.1:8443", "[::1]:8443",
			"127.0.0.1:8999", "127.0.0.1:10000", "127.0.0.2:9000", "[::1]:9003", "127.71.255.254:8443", "[fe80::1%lo]:9000",
		} {
			if i, ok := p.Index(netip.MustParseAddrPort(nobody)); ok {
				t.Errorf("%+v: Index(%s) = %d, want none", p, nobody, i)
			}
		}
		if i, ok := p.Index(netip.AddrPort{}); ok {
			t.Errorf("%+v: Index() of no address = %d", p, i)
		}
	}
	if got, want := plans[1].Address(60), plans[0].Address(260); got != want {
		t.Errorf("Address(60) of the hosts from 200 on = %s, want that of host 260, %s", got, want)
	}
	if i, ok := plans[1].Index(plans[0].Address(199)); ok {
		t.Errorf("the hosts from 200 on have the address of host 199, at %d", i)
	}
	if got := plans[0].Address(0).String(); got != "127.64.0.1:8443" {
		t.Errorf("Address(0) = %s, want 127.64.0.1:8443", got)
	}
	if got, ok := plans[0].Index(netip.MustParseAddrPort("[::ffff:127.64.0.2]:8443")); !ok || got != 1 {
		t.Errorf("Index() of a mapped address = %d, %v, want 1", got, ok)
	}
}
