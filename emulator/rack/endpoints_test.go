package rack_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) uint16 {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return uint16(ln.Addr().(*net.TCPAddr).Port)
}

// refused reports whether connections to an address fail.
func refused(t *testing.T, at netip.AddrPort) bool {
	t.Helper()
	c, err := net.Dial("tcp", at.String())
	if err == nil {
		_, err = c.Read(make([]byte, 1))
		c.Close()
	}
	return err != nil && (strings.Contains(err.Error(), "reset by peer") || strings.Contains(err.Error(), "refused"))
}

func patched(t *testing.T, l *racktest.Rack, h *rack.Host, path, body string, want int) {
	t.Helper()
	resp, err := attempt(t, l, h, "PATCH", path, body)
	if err != nil || resp.StatusCode != want {
		t.Fatalf("PATCH %s %s = %v, %v, want %d", path, body, resp, err, want)
	}
}

const (
	protocolsPath = managerPath + "/NetworkProtocol"
	nicPath       = managerPath + "/EthernetInterfaces/1"
)

// A BMC whose port was changed answers at the new port and no longer at the old one,
// and can move back. The rack's other BMCs are not affected.
func TestPatchOfHTTPSPortMovesTheBMC(t *testing.T) {
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir, Rack: hosts(3)})
	h := l.Hosts()[1]
	planned, port := h.Address(), freePort(t)
	for range 2 {
		patched(t, l, h, protocolsPath, fmt.Sprintf(`{"HTTPS":{"Port":%d}}`, port), 200)
		if at := h.Address(); at != netip.AddrPortFrom(planned.Addr(), port) || !refused(t, planned) {
			t.Errorf("the BMC says it is at %v, and is at %v still: %t", at, planned, !refused(t, planned))
		}
		if _, got := call(t, l, h, "GET", systemPath, ""); got["UUID"] != h.Machine().Identity.UUID {
			t.Errorf("at the new port there is %v", got)
		}
		l.Stop()
		l = racktest.Start(t, rack.Config{Dir: dir})
		h = l.Hosts()[1]
		other := l.Hosts()[2]
		if code, _ := call(t, l, h, "GET", systemPath, ""); code != 200 || h.Address().Port() != port {
			t.Errorf("after a restart at %v: %d", h.Address(), code)
		}
		if code, _ := call(t, l, other, "GET", systemPath, ""); code != 200 {
			t.Errorf("another BMC: %d", code)
		}
		patched(t, l, h, protocolsPath, fmt.Sprintf(`{"HTTPS":{"Port":%d}}`, planned.Port()), 200)
		if code, _ := call(t, l, h, "GET", systemPath, ""); code != 200 || h.Address() != planned || !refused(t, netip.AddrPortFrom(planned.Addr(), port)) {
			t.Errorf("back at %v: %d", h.Address(), code)
		}
	}
	busy, err := net.Listen("tcp", netip.AddrPortFrom(planned.Addr(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	patched(t, l, h, protocolsPath, fmt.Sprintf(`{"HTTPS":{"Port":%d}}`, busy.Addr().(*net.TCPAddr).Port), 400)
	if h.Address() != planned {
		t.Errorf("after a refusal the BMC is at %v", h.Address())
	}
}

// A BMC answers at its new address, through the shared socket, and no longer at the
// old one.
func TestPatchOfIPv4AddressMovesTheBMC(t *testing.T) {
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir, Rack: hosts(3)})
	h := l.First()
	planned := h.Address()
	for body, want := range map[string]string{
		`{"IPv4StaticAddresses":[{"Address":"127.64.0.2"}]}`:   "another BMC's",
		`{"IPv4StaticAddresses":[{"Address":"127.0.0.1"}]}`:    "the computer's",
		`{"IPv4StaticAddresses":[{"Address":"192.0.2.1"}]}`:    "of another network",
		`{"IPv4StaticAddresses":[{"Address":"127.99.0.255"}]}`: "a broadcast's",
	} {
		resp, err := attempt(t, l, h, "PATCH", nicPath, body)
		if err != nil || resp.StatusCode != 400 {
			t.Errorf("%s, which is %s: %v, %v, want 400", body, want, resp, err)
		}
	}
	patched(t, l, h, nicPath, `{"IPv4StaticAddresses":[{"Address":"127.99.7.5","SubnetMask":"255.0.0.0"}],"DHCPv4":{"DHCPEnabled":false}}`, 200)
	moved := netip.AddrPortFrom(netip.MustParseAddr("127.99.7.5"), planned.Port())
	for range 2 {
		if code, got := call(t, l, h, "GET", systemPath, ""); code != 200 || got["UUID"] != h.Machine().Identity.UUID || h.Address() != moved || !refused(t, planned) {
			t.Errorf("at %v: %d", h.Address(), code)
		}
		l.Stop()
		l = racktest.Start(t, rack.Config{Dir: dir})
		h = l.First()
	}
	resp, err := attempt(t, l, l.Hosts()[1], "PATCH", nicPath, `{"IPv4StaticAddresses":[{"Address":"127.99.7.5"}]}`)
	if err != nil || resp.StatusCode != 400 {
		t.Errorf("an address that another BMC has: %v, %v", resp, err)
	}
	// A reset to defaults moves it back.
	if _, err := h.ApplyBMC(t.Context(), bmc.ResetToDefaults{Type: bmc.ResetAll}); err != nil {
		t.Fatal(err)
	}
	l.Advance(62e9)
	if code, _ := call(t, l, h, "GET", systemPath, ""); code != 200 || h.Address() != planned || !refused(t, moved) {
		t.Errorf("after a reset to defaults at %v: %d", h.Address(), code)
	}
}

func TestProtocolEnabledOpensAndClosesThePort(t *testing.T) {
	l := racktest.Start(t, rack.Config{Rack: hosts(2)})
	h := l.First()
	at, port := h.Address(), freePort(t)
	plain := fmt.Sprintf("http://%s", netip.AddrPortFrom(at.Addr(), port))
	patched(t, l, h, protocolsPath, fmt.Sprintf(`{"HTTP":{"ProtocolEnabled":true,"Port":%d}}`, port), 200)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Get(plain + "/redfish/v1?x=1")
	if err != nil || resp.StatusCode != 301 || resp.Header.Get("Location") != "https://"+at.String()+"/redfish/v1?x=1" {
		t.Fatalf("GET over HTTP = %v, %v, want that it leads to HTTPS", resp, err)
	}
	resp.Body.Close()
	patched(t, l, h, protocolsPath, `{"HTTPS":{"ProtocolEnabled":false}}`, 200)
	if !refused(t, at) {
		t.Error("HTTPS is off and answers")
	}
	if resp, err := attempt(t, l, l.Hosts()[1], "GET", systemPath, ""); err != nil || resp.StatusCode != 200 {
		t.Errorf("another BMC: %v, %v", resp, err)
	}
	n := h.BMC().Network()
	n.HTTPS.On, n.HTTP.On = true, false
	if _, err := h.ApplyBMC(t.Context(), bmc.SetNetwork{Network: n}); err != nil {
		t.Fatal(err)
	}
	if resp, err := attempt(t, l, h, "GET", systemPath, ""); err != nil || resp.StatusCode != 200 || !refused(t, netip.AddrPortFrom(at.Addr(), port)) {
		t.Errorf("HTTPS is on again: %v, %v", resp, err)
	}
}

// When all BMCs share an address, only ports can change.
func TestSharedAddressCannotBeChanged(t *testing.T) {
	l := racktest.Start(t, rack.Config{Rack: hosts(2), Listen: "127.0.0.1:0"})
	h, other := l.Hosts()[0], l.Hosts()[1]
	n := h.BMC().Network()
	n.Static = &bmc.IPv4{Addr: netip.MustParseAddr("127.99.7.5")}
	if _, err := h.ApplyBMC(t.Context(), bmc.SetNetwork{Network: n}); !errors.Is(err, bmc.ErrAddress) {
		t.Errorf("another address: %v, want %v", err, bmc.ErrAddress)
	}
	n = h.BMC().Network()
	n.HTTPS.Port = other.Address().Port()
	if _, err := h.ApplyBMC(t.Context(), bmc.SetNetwork{Network: n}); !errors.Is(err, bmc.ErrPort) {
		t.Errorf("another's port: %v, want %v", err, bmc.ErrPort)
	}
	n.HTTPS.Port = freePort(t)
	if _, err := h.ApplyBMC(t.Context(), bmc.SetNetwork{Network: n}); err != nil {
		t.Fatal(err)
	}
	if resp, err := attempt(t, l, h, "GET", systemPath, ""); err != nil || resp.StatusCode != 200 {
		t.Errorf("at %v: %v, %v", h.Address(), resp, err)
	}
}
