package gateway_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/gateway"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// start serves a gateway, and returns its address.
func start(t *testing.T, l *racktest.Rack, find func(string) (gateway.Target, bool)) string {
	t.Helper()
	cert, err := l.Certificate(gateway.Name, netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{Find: find, Certificate: cert, RootCAs: l.CAs()})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := g.Serve(ctx, ln); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return ln.Addr().String()
}

// here finds the BMCs of a rack.
func here(l *racktest.Rack) func(string) (gateway.Target, bool) {
	return func(name string) (gateway.Target, bool) {
		h, ok := l.Host(name)
		if !ok {
			return gateway.Target{}, false
		}
		return gateway.Target{Address: h.Address().String()}, true
	}
}

// client returns a client whose connections all go to one address, with a server name unless
// it is "".
func client(t *testing.T, l *racktest.Rack, at, name string) *http.Client {
	t.Helper()
	tr := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, at)
		},
		TLSClientConfig: &tls.Config{RootCAs: l.CAs(), ServerName: name, MinVersion: tls.VersionTLS12},
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// serial returns the serial number of the server whose BMC answers.
func serial(t *testing.T, l *racktest.Rack, c *http.Client, base, forwarded string) (string, int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/redfish/v1/Systems/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(l.Credentials(l.First()))
	if forwarded != "" {
		r.Header.Set("Forwarded", forwarded)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var s struct{ SerialNumber string }
	_ = json.Unmarshal(b, &s) // other answers are texts
	return s.SerialNumber, resp.StatusCode
}

// A BMC answers by the server name of TLS, with its own certificate, and by the header
// Forwarded: at the gateway of its shard, and at that of another.
func TestGatewayReachesEachBMCByName(t *testing.T) {
	r := rackfile.Default(3)
	l := racktest.Start(t, rack.Config{Rack: &r})
	at := start(t, l, here(l))
	other := start(t, l, func(name string) (gateway.Target, bool) {
		_, ok := l.Host(name)
		return gateway.Target{Address: at, Peer: true}, ok
	})
	for _, gate := range []string{at, other} {
		for _, h := range l.Hosts() {
			want := h.Machine().Identity.Serial
			if got, status := serial(t, l, client(t, l, gate, h.Name()), "https://"+gate, ""); got != want {
				t.Errorf("by the server name %s: %d, serial %q, want %q", h.Name(), status, got, want)
			}
			for _, value := range []string{"host=" + h.Name(), `for=192.0.2.1;Host="` + h.Name() + `.racks.example.com:443"`, "host=" + h.Name() + ", host=nobody"} {
				if got, status := serial(t, l, client(t, l, gate, gateway.Name), "https://"+gate, value); got != want {
					t.Errorf("by Forwarded: %s: %d, serial %q, want %q", value, status, got, want)
				}
			}
		}
		if _, status := serial(t, l, client(t, l, gate, gateway.Name), "https://"+gate, "host=node-9"); status != http.StatusNotFound {
			t.Errorf("by Forwarded: host=node-9: %d, want 404", status)
		}
		if _, status := serial(t, l, client(t, l, gate, gateway.Name), "https://"+gate, ""); status != http.StatusMisdirectedRequest {
			t.Errorf("without a name: %d, want 421", status)
		}
	}
}

// Faults of connections show through the gateway as they do at the BMC.
func TestGatewayPassesOnWhatTheConnectionSuffers(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	at := start(t, l, here(l))
	if _, err := l.AddFault(fault.Rule{ID: "x", Offline: true}); err != nil {
		t.Fatal(err)
	}
	c := client(t, l, at, "node-0")
	if _, err := c.Get("https://" + at + "/redfish/v1/"); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("a BMC that is offline: %v, want a reset", err)
	}
	if err := l.RemoveFault("x"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.AddFault(fault.Rule{ID: "y", TLS: fault.Expired}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get("https://" + at + "/redfish/v1/"); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("a BMC with an expired certificate: %v", err)
	}
}

// A client that speaks no TLS is cut off, and does not keep others from the gateway.
func TestGatewayEndsConnectionsWithoutTLS(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	at := start(t, l, here(l))
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	silent, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if b, err := bufio.NewReader(conn).ReadByte(); err == nil {
		t.Errorf("the gateway sends %q", b)
	}
	if got, _ := serial(t, l, client(t, l, at, "node-0"), "https://"+at, ""); got != l.First().Machine().Identity.Serial {
		t.Errorf("serial %q", got)
	}
}
