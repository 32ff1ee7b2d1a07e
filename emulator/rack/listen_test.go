package rack_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

func TestEachBMCHasItsAddress(t *testing.T) {
	l := racktest.Start(t, rack.Config{Rack: hosts(3)})
	pem, err := os.ReadFile(l.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	for i, h := range l.Hosts() {
		if want := fmt.Sprintf("127.64.0.%d", i+1); h.Address().Addr().String() != want {
			t.Errorf("%s is at %v, want %s", h.Name(), h.Address(), want)
		}
		c, err := tls.Dial("tcp", h.Address().String(), &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
		if err != nil {
			t.Fatal(err)
		}
		cert := c.ConnectionState().PeerCertificates[0]
		c.Close()
		if len(cert.IPAddresses) != 1 || cert.IPAddresses[0].String() != h.Address().Addr().String() {
			t.Errorf("%s has a certificate for %v", h.Name(), cert.IPAddresses)
		}
		if now := clock.Wall(); now.Before(cert.NotBefore.Add(time.Hour)) || now.AddDate(1, 0, 0).After(cert.NotAfter) {
			t.Errorf("%s has a certificate from %v to %v", h.Name(), cert.NotBefore, cert.NotAfter)
		}
		if _, got := call(t, l, h, "GET", systemPath, ""); got["UUID"] != h.Machine().Identity.UUID {
			t.Errorf("at %v there is %v, want %s", h.Address(), got["UUID"], h.Machine().Identity.UUID)
		}
	}
	for _, nobody := range []string{"127.64.0.4", "127.64.0.0", "127.0.0.1", "127.64.1.1", "127.63.0.1"} {
		at := net.JoinHostPort(nobody, fmt.Sprint(l.First().Address().Port()))
		c, err := net.Dial("tcp", at)
		if err == nil {
			_, err = c.Read(make([]byte, 1))
			c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "reset by peer") && !strings.Contains(err.Error(), "refused") {
			t.Errorf("connection to %s, which is no BMC = %v, want a reset", at, err)
		}
	}
}

func TestListenAddressGivesEachBMCAPort(t *testing.T) {
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir, Rack: hosts(3), Listen: "127.0.0.1:0"})
	first := l.First().Address()
	for i, h := range l.Hosts() {
		if got, want := h.Address().String(), fmt.Sprintf("127.0.0.1:%d", int(first.Port())+i); got != want {
			t.Errorf("%s is at %s, want %s", h.Name(), got, want)
		}
		if _, got := call(t, l, h, "GET", systemPath, ""); got["UUID"] != h.Machine().Identity.UUID {
			t.Errorf("at %v there is %v, want %s", h.Address(), got["UUID"], h.Machine().Identity.UUID)
		}
	}
	l.Stop()
	l = racktest.Start(t, rack.Config{Dir: dir, Listen: "127.0.0.1:0"})
	if got := l.First().Address(); got != first {
		t.Errorf("Address() after a restart = %v, want %v", got, first)
	}
	_, err := rack.Open(t.Context(), rack.Config{
		Dir: t.TempDir(), Rack: hosts(2), Clock: l.Clock(), Listen: fmt.Sprintf("127.0.0.1:%d", first.Port()-1),
	})
	if err == nil || !strings.Contains(err.Error(), "2 ports in a row for the BMCs") {
		t.Errorf("Open() where a port is taken = %v, want an error that says so", err)
	}
}

// A rack does not start when the ports that its clients know are taken.
func TestOpenRefusesATakenPort(t *testing.T) {
	busy, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	port := busy.Addr().(*net.TCPAddr).Port
	_, err = rack.Open(t.Context(), rack.Config{Dir: t.TempDir(), Clock: clock.NewVirtual(racktest.Origin), Listen: fmt.Sprintf("lo:%d", port)})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d for the BMCs", port)) ||
		!strings.Contains(err.Error(), "--listen 127.0.0.1:9000") {
		t.Errorf("Open() = %v, want an error that names the port and the way out", err)
	}
}

// By default a rack takes the standard port or the next free one, and keeps it.
func TestDefaultPortStaysAfterRestart(t *testing.T) {
	open := func(dir string) *rack.Rack {
		t.Helper()
		l, err := rack.Open(t.Context(), rack.Config{Dir: dir, Clock: clock.NewVirtual(racktest.Origin)})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	dir := t.TempDir()
	a := open(dir)
	b := open(t.TempDir())
	at := a.Hosts()[0].Address()
	if p := at.Port(); p != 443 && (p < 8443 || p >= 8543) {
		t.Errorf("first rack is at port %d, want 443 or from 8443 up", p)
	}
	if p := b.Hosts()[0].Address().Port(); p == at.Port() || p < 8443 || p >= 8543 {
		t.Errorf("second rack is at port %d, want another one from 8443 up", p)
	}
	b.Close()
	a.Close()
	c := open(dir)
	defer c.Close()
	if got := c.Hosts()[0].Address(); got != at {
		t.Errorf("after a restart the rack is at %v, want %v", got, at)
	}
}
