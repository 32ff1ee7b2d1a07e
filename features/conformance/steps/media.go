package steps

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// media serves images of zeros to the BMC, and takes its events.
type media struct {
	plain, secure *httptest.Server
	mu            sync.Mutex
	requests      map[string][]conformance.MediaRequest
	events        chan []byte
	firmware      []byte // content of bios.bin
}

func newMedia(t testing.TB) *media {
	m := &media{requests: map[string][]conformance.MediaRequest{}, events: make(chan []byte, 100)}
	m.plain, m.secure = httptest.NewServer(http.HandlerFunc(m.serve)), httptest.NewTLSServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.plain.Close)
	t.Cleanup(m.secure.Close)
	return m
}

const maxEvent = 1 << 20

// firmwareName is the image of the BIOS that the generic server has.
const firmwareName = "bios.bin"

// firmwareOf returns the image of a version of the generic server's BIOS.
func firmwareOf(version string) ([]byte, error) {
	var b bytes.Buffer
	_, err := firmware.BuildImage(&b, firmware.Image{
		Kind: "bios", Vendor: "Metalab", Model: "Generic Server G1", Version: version, Lowest: "2.0.0", Released: "2025-03-14",
	}, strings.NewReader(strings.Repeat("payload ", 1000)))
	return b.Bytes(), err
}

func (m *media) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxEvent))
		if err != nil {
			return
		}
		select {
		case m.events <- body:
		default: // nobody reads
		}
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	const size = 64 << 10
	m.mu.Lock()
	m.requests[name] = append(m.requests[name], conformance.MediaRequest{
		Time: time.Now(), Method: r.Method, Range: r.Header.Get("Range"), UserAgent: r.UserAgent(), Bytes: size,
	})
	m.mu.Unlock()
	if name == firmwareName {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(m.firmware))
		return
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(strings.Repeat("\x00", size)))
}

// URL is of conformance.MediaServer.
func (m *media) URL(scheme, name string) (string, error) {
	if scheme == "https" {
		return m.secure.URL + "/" + name, nil
	}
	return m.plain.URL + "/" + name, nil
}

// Requests is of conformance.MediaServer.
func (m *media) Requests(name string) []conformance.MediaRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests[name])
}

// Events is of conformance.MediaServer.
func (m *media) Events(context.Context) (string, <-chan []byte, error) {
	for {
		select {
		case <-m.events: // the event belongs to an earlier scenario
			continue
		default:
		}
		return m.plain.URL + "/events", m.events, nil
	}
}

// forget removes the requests of earlier scenarios.
func (m *media) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.requests)
}

// Discover is conformance.DHCPListener: a server that boots from the network is
// heard.
func (e *emulated) Discover(ctx context.Context, macs []net.HardwareAddr) (net.HardwareAddr, error) {
	for {
		err := e.boots(ctx, func(s machine.Source) bool { return s.Kind == machine.Pxe })
		if err == nil {
			return macs[0], nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// provisioner is a conformance.Provisioner that fails in a step, or in none. Then it leaves
// the server on, unless off is set.
type provisioner struct {
	server *emulated
	fails  conformance.Step
	off    bool
}

// Provision is of conformance.Provisioner.
func (p provisioner) Provision(ctx context.Context, _ string) (conformance.Step, error) {
	switch {
	case p.fails != "":
		return p.fails, errStep
	case p.off:
		return "", nil
	}
	h := p.server.lab.First()
	if h.Machine().Power == machine.PowerOn {
		return "", nil
	}
	return conformance.Boot, h.Power(ctx, "On")
}
