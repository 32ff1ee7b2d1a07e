package lab

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/lab/rack"
)

const systemURI = "/redfish/v1/Systems/1"

// bench opens and serves a lab until the benchmark ends.
func bench(b *testing.B, hosts int) *Lab {
	b.Helper()
	return benchRack(b, rack.Default(hosts))
}

func benchRack(b *testing.B, r rack.Lab) *Lab {
	b.Helper()
	time := clock.NewScaled(origin, 60) // as labctl's is by itself
	l, err := Open(b.Context(), Config{Dir: b.TempDir(), Rack: &r, Clock: time, Listen: "lo:0"})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = time.Run(ctx) })
	running.Go(func() { _ = l.Serve(ctx) })
	b.Cleanup(func() {
		stop()
		running.Wait()
		_ = l.Close()
	})
	return l
}

// login opens a session and returns its token.
func login(b *testing.B, h *Host) string {
	b.Helper()
	a, _ := h.Admin()
	if _, err := h.ApplyBMC(b.Context(), bmc.OpenSession{Account: a, Token: "token-of-the-benchmark", From: "127.0.0.1"}); err != nil {
		b.Fatal(err)
	}
	return "token-of-the-benchmark"
}

// wire is one connection of a client that does as little as it can.
type wire struct {
	net.Conn
	in    *bufio.Reader
	asked int // requests
}

func dial(addr string, roots *tls.Config) (*wire, error) {
	var c net.Conn
	var err error
	if roots == nil {
		c, err = net.Dial("tcp", addr)
	} else {
		c, err = tls.Dial("tcp", addr, roots)
	}
	if err != nil {
		return nil, err
	}
	return &wire{Conn: c, in: bufio.NewReaderSize(c, 16<<10)}, nil
}

// ask sends a request and reads its answer.
func (w *wire) ask(request []byte) (status, length int, err error) {
	w.asked++
	if _, err := w.Write(request); err != nil {
		return 0, 0, err
	}
	for first := true; ; first = false {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return 0, 0, err
		}
		if first {
			status, _ = strconv.Atoi(string(line[9:12]))
		}
		if len(line) <= 2 {
			break
		}
		if v, ok := bytes.CutPrefix(bytes.ToLower(line), []byte("content-length: ")); ok {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(v)))
		}
	}
	_, err = io.CopyN(io.Discard, w.in, int64(length))
	return status, length, err
}

// load sends n requests over the connections and returns how long that took;
// request is the i-th over its connection.
func load(b *testing.B, over []*wire, n int, request func(i int) []byte) time.Duration {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	start := clock.Wall()
	for _, w := range over {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				status, _, err := w.ask(request(w.asked))
				if err != nil || status != http.StatusOK {
					b.Errorf("request %d: %d, %v", i, status, err)
					return
				}
			}
		})
	}
	all.Wait()
	return clock.Wall().Sub(start)
}

// elsewhere is a listener whose connections seem to be to the first BMC.
type elsewhere struct {
	net.Listener
	lab *Lab
}

// Accept implements net.Listener.
func (l elsewhere) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return elsewhereConn{&bmcConn{TCPConn: c.(*net.TCPConn), of: &l.lab.conns}, net.TCPAddrFromAddrPort(l.lab.hosts[0].Address())}, nil
}

type elsewhereConn struct {
	*bmcConn
	addr net.Addr
}

// LocalAddr implements net.Conn.
func (c elsewhereConn) LocalAddr() net.Addr { return c.addr }

// NetConn is the connection below.
func (c elsewhereConn) NetConn() net.Conn { return c.bmcConn }

// BenchmarkFloor compares the service with a bare net/http handler that writes
// the same bytes with the same headers, in turns within one run: of-floor is
// how many requests the service answers for each that the handler does. Where
// other programs have most of the processors, of-floor/cpu tells more: the work
// of the handler, its clients and the kernel for it, per that of the service.
func BenchmarkFloor(b *testing.B) {
	l := bench(b, 1000)
	h := l.Hosts()[0]
	at := h.Address().String()
	token := login(b, h)
	get := []byte("GET " + systemURI + " HTTP/1.1\r\nHost: " + at + "\r\nX-Auth-Token: " + token + "\r\n\r\n")
	patches := [2][]byte{}
	for i := range patches {
		body := fmt.Sprintf(`{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":%q}}`, []string{"Pxe", "Cd"}[i])
		patches[i] = fmt.Appendf(nil, "PATCH %s HTTP/1.1\r\nHost: %s\r\nX-Auth-Token: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			systemURI, at, token, len(body), body)
	}

	// What the service says is what the floor says.
	roots := &tls.Config{RootCAs: l.CAs(), MinVersion: tls.VersionTLS12}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: roots, DisableCompression: true}}
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "https://"+at+systemURI, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", token)
	same, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	body, err := io.ReadAll(same.Body)
	if err != nil || same.StatusCode != http.StatusOK {
		b.Fatal(same.Status, err)
	}
	same.Body.Close()
	floor := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		for name, values := range same.Header {
			if name != "Date" {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(body)
	})
	httpFloor := httptest.NewServer(floor)
	defer httpFloor.Close()
	// BMCs have no plain HTTP: its connections are as if they were to the first.
	httpOurs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := l.server(b.Context())
	defer server.Close()
	go func() { _ = server.Serve(elsewhere{httpOurs, l}) }() // until it is closed
	tlsFloor := httptest.NewUnstartedServer(floor)
	tlsFloor.TLS = l.tlsConfig()
	tlsFloor.StartTLS()
	defer tlsFloor.Close()
	anyName := roots.Clone()
	anyName.ServerName = h.Address().Addr().String()

	for _, bb := range []struct {
		name        string
		floor, ours string // "" of ours: each connection to a BMC of its own
		tls         *tls.Config
		request     func(i int) []byte
	}{
		{"get/http", httpFloor.Listener.Addr().String(), httpOurs.Addr().String(), nil, func(int) []byte { return get }},
		{"get/tls", tlsFloor.Listener.Addr().String(), at, anyName, func(int) []byte { return get }},
		{"patch/tls", tlsFloor.Listener.Addr().String(), "", anyName, func(i int) []byte { return patches[i%2] }}, // each changes something
	} {
		for _, conns := range []int{16, 64} {
			b.Run(fmt.Sprintf("%s/%d", bb.name, conns), func(b *testing.B) {
				config := bb.tls
				if strings.HasPrefix(bb.name, "get/tls") || config != nil {
					config = bb.tls.Clone()
					config.InsecureSkipVerify = bb.tls != nil // the floor's name is another one; the handshake is not measured
				}
				for _, h := range l.Hosts()[:conns] { // anew: sessions end that nobody has used for half a minute
					login(b, h)
				}
				var sides [2][]*wire
				for side, addr := range []string{bb.floor, bb.ours} {
					for i := range conns {
						to := addr
						if to == "" {
							to = l.Hosts()[i].Address().String()
						}
						w, err := dial(to, config)
						if err != nil {
							b.Fatal(err)
						}
						defer w.Close()
						sides[side] = append(sides[side], w)
					}
				}
				const part = 2000
				var took, worked [2]time.Duration
				for range 2 { // to warm up
					load(b, sides[0], part/4, bb.request)
					load(b, sides[1], part/4, bb.request)
				}
				rounds := 0
				for b.Loop() {
					for side := range sides {
						before := busy()
						took[side] += load(b, sides[side], part, bb.request)
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
}
