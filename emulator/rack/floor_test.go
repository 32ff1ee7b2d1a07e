package rack

import (
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
)

// BenchmarkFloor compares the service with a bare net/http handler (the floor) that
// writes the same bytes with the same headers, in turns within one run. of-floor is
// the number of requests that the service answers for each that the handler answers.
// When other programs use the processors, of-floor/cpu is more reliable: it compares
// the processor time of the handler, its clients and the kernel with that of the
// service.
//
// One rack has the generic dialect; the other has all others in equal parts, and
// each BMC is asked for its own system resource.
func BenchmarkFloor(b *testing.B) {
	if os.Getenv("GOGC") == "" { // as `labctl up` sets it; for the handler too
		defer debug.SetGCPercent(debug.SetGCPercent(500))
	}
	for _, of := range []struct {
		name       string
		definition rackfile.Lab
		get        []string // kinds of connections
	}{
		{"generic", rackfile.Default(1000), []string{"http", "tls"}},
		{"mixed", mixed(b, 1000), []string{"tls"}},
	} {
		b.Run(of.name, func(b *testing.B) {
			f := newFloor(b, benchAt(b, of.definition, 1)) // speed 1: idle sessions would time out
			for _, over := range of.get {
				f.race(b, "get/"+over, over == "tls", func(t *target, _ int) []byte { return t.get })
			}
			// Each PATCH changes something, and each connection is to another BMC.
			f.race(b, "patch/tls", true, func(t *target, i int) []byte { return t.patches[i%2] })
		})
	}
}

// floor is a rack, and a handler that answers with the same bytes as its BMCs.
type floor struct {
	rack    *Rack
	targets []*target // one for each connection
	answers map[string]*answer
	roots   *tls.Config

	plain, secure string // addresses of the handler
	ours          string // address of a listener without TLS for the first BMC
}

// target is a BMC and the requests to it.
type target struct {
	addr    string
	get     []byte
	patches [2][]byte
}

// changes are pairs of PATCH bodies for a system. Some vendors refuse the first
// pair.
var changes = [][2]string{
	{`{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}}`, `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Cd"}}`},
	{`{"AssetTag":"one"}`, `{"AssetTag":"two"}`},
	{`{"IndicatorLED":"Blinking"}`, `{"IndicatorLED":"Off"}`},
}

// answer is a BMC's response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

const mostConns = 64

func newFloor(b *testing.B, l *Rack) *floor {
	b.Helper()
	f := &floor{rack: l, answers: map[string]*answer{}, roots: &tls.Config{RootCAs: l.CAs(), MinVersion: tls.VersionTLS12}}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: f.roots, DisableCompression: true}}
	defer client.CloseIdleConnections()
	for i := range mostConns {
		h := l.Hosts()[i*len(l.Hosts())/mostConns]
		t := &target{addr: h.Address().String()}
		f.targets = append(f.targets, t)
		token := login(b, h)
		uri := "/redfish/v1/Systems/" + h.model.record.SystemID
		ask := func(method, body string) (raw []byte, ok bool) {
			headers := http.Header{"X-Auth-Token": {token}}
			if body != "" {
				headers.Set("Content-Type", "application/json")
				headers.Set("If-Match", "*") // some vendors require it
			}
			is := heard(b, client, method, "https://"+t.addr+uri, headers, body)
			f.answers[method+" "+t.addr] = is
			raw = fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", method, uri, t.addr, len(body))
			for name := range headers {
				raw = fmt.Appendf(raw, "%s: %s\r\n", name, headers.Get(name))
			}
			return fmt.Appendf(raw, "\r\n%s", body), is.status < http.StatusBadRequest
		}
		var ok bool
		if t.get, ok = ask(http.MethodGet, ""); !ok {
			b.Fatalf("%s: GET %s: %d", h.Name(), uri, f.answers["GET "+t.addr].status)
		}
		for _, body := range changes {
			for i := range body {
				if t.patches[i], ok = ask(http.MethodPatch, body[i]); !ok {
					break
				}
			}
			if ok {
				break
			}
		}
		if !ok {
			b.Fatalf("%s: PATCH %s: %s", h.Name(), uri, f.answers["PATCH "+t.addr].body)
		}
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		is := f.answers[r.Method+" "+r.Host]
		maps.Copy(w.Header(), is.header)
		w.WriteHeader(is.status)
		_, _ = w.Write(is.body)
	})
	plain := httptest.NewServer(handler)
	b.Cleanup(plain.Close)
	f.plain = plain.Listener.Addr().String()
	secure := httptest.NewUnstartedServer(handler)
	secure.TLS = l.tls.Config()
	secure.StartTLS()
	b.Cleanup(secure.Close)
	f.secure = secure.Listener.Addr().String()
	// The BMCs have no plain HTTP: connections to this listener count as connections
	// to the first BMC.
	ours, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := l.server(b.Context(), l)
	b.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(elsewhere{ours, l}) }() // returns when it is closed
	f.ours = ours.Addr().String()
	return f
}

// heard sends a request to a BMC and records the response.
func heard(b *testing.B, client *http.Client, method, url string, headers http.Header, body string) *answer {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header = headers
	is, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer is.Body.Close()
	content, err := io.ReadAll(is.Body)
	if err != nil {
		b.Fatal(method, url, err)
	}
	is.Header.Del("Date")
	return &answer{is.StatusCode, is.Header, content}
}

// race loads the floor and the rack in turns, over 16 and over 64 connections.
func (f *floor) race(b *testing.B, name string, secure bool, request func(t *target, i int) []byte) {
	for _, conns := range []int{16, 64} {
		b.Run(fmt.Sprintf("%s/%d", name, conns), func(b *testing.B) {
			var sides [2][]*wire
			for i := range conns {
				t := f.targets[i*mostConns/conns]
				addrs := [2]string{f.plain, f.ours}
				var config *tls.Config
				if secure {
					addrs = [2]string{f.secure, t.addr}
					config = f.roots.Clone()
					config.InsecureSkipVerify = true // the floor has another name; the handshake is not measured
				} else {
					t = f.targets[0]
				}
				for side, addr := range addrs {
					w, err := dial(addr, config)
					if err != nil {
						b.Fatal(err)
					}
					defer w.Close()
					w.request = func(i int) []byte { return request(t, i) }
					sides[side] = append(sides[side], w)
				}
			}
			const part = 2000
			var took, worked [2]time.Duration
			for range 2 { // to warm up
				load(b, sides[0], part/4)
				load(b, sides[1], part/4)
			}
			rounds := 0
			for b.Loop() {
				for side := range sides {
					before := busy()
					took[side] += load(b, sides[side], part)
					worked[side] += busy() - before
				}
				rounds++
			}
			per := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(rounds*part) }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(per(took[0]), "µs/floor")
			b.ReportMetric(per(took[1]), "µs/ours")
			b.ReportMetric(float64(took[0])/float64(took[1]), "of-floor")
			if worked[1] > 0 {
				b.ReportMetric(float64(worked[0])/float64(worked[1]), "of-floor/cpu")
			}
		})
	}
}

// elsewhere is a listener whose connections count as connections to the first BMC.
type elsewhere struct {
	net.Listener
	rack *Rack
}

// Accept implements net.Listener.
func (l elsewhere) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return elsewhereConn{l.rack.connections.Add(c.(*net.TCPConn), 0), net.TCPAddrFromAddrPort(l.rack.hosts[0].Address())}, nil
}

type elsewhereConn struct {
	*network.Conn
	addr net.Addr
}

// LocalAddr implements net.Conn.
func (c elsewhereConn) LocalAddr() net.Addr { return c.addr }

// NetConn is the connection below.
func (c elsewhereConn) NetConn() net.Conn { return c.Conn }
