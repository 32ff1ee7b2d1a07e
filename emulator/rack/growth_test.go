package rack

import (
	"context"
	"crypto/tls"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/fixtures"
)

// BenchmarkGrowth measures what a rack costs as it grows: the start until the BMCs
// answer over TLS (all of them up to 10,000, a sample beyond), and the memory when
// idle and after every resource of every BMC was read once.
func BenchmarkGrowth(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				grow(b, n, func() *Rack { return bench(b, n) })
			}
		})
	}
}

// BenchmarkMixed measures what a thousand BMCs of all dialects cost and, in the same
// run, a thousand of the generic dialect.
func BenchmarkMixed(b *testing.B) {
	const hosts = 1000
	for _, of := range []struct {
		name       string
		definition rackfile.Lab
	}{{"generic", rackfile.Default(hosts)}, {"mixed", mixed(b, hosts)}} {
		b.Run(of.name, func(b *testing.B) {
			for b.Loop() {
				grow(b, hosts, func() *Rack { return benchRack(b, of.definition) })
			}
		})
	}
}

// BenchmarkStart measures how long it takes until a thousand BMCs of all dialects,
// and one and ten thousand of the generic dialect, have answered over TLS, without
// the rest of BenchmarkMixed and BenchmarkGrowth. The clients use the same
// processors: the floor is what as many clients take with one bare handler and one
// certificate (of-floor: its time divided by ours).
func BenchmarkStart(b *testing.B) {
	for _, of := range []struct {
		name       string
		definition rackfile.Lab
	}{{"generic/1000", rackfile.Default(1000)}, {"mixed/1000", mixed(b, 1000)}, {"generic/10000", rackfile.Default(10_000)}} {
		b.Run(of.name, func(b *testing.B) {
			var took, worked, floor, floorWorked time.Duration
			for b.Loop() {
				runtime.GC()
				start, before := clock.Wall(), busy()
				l := benchRack(b, of.definition)
				hello(b, l, len(l.Hosts()))
				took, worked = took+clock.Wall().Sub(start), worked+busy()-before
				at, name := bare(b, l)
				start, before = clock.Wall(), busy()
				greet(b, slices.Repeat([]string{at}, len(l.Hosts())), &tls.Config{RootCAs: l.CAs(), ServerName: name})
				floor, floorWorked = floor+clock.Wall().Sub(start), floorWorked+busy()-before
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(took.Seconds()/float64(b.N), "s/all")
			b.ReportMetric(worked.Seconds()/float64(b.N), "cpu-s/all")
			b.ReportMetric(floor.Seconds()/float64(b.N), "s/floor")
			b.ReportMetric(floorWorked.Seconds()/float64(b.N), "cpu-s/floor")
			b.ReportMetric(floor.Seconds()/took.Seconds(), "of-floor")
		})
	}
}

// bare starts a handler that does nothing, with the certificate of the rack's first
// BMC. It returns its address and the name in the certificate.
func bare(b *testing.B, l *Rack) (at, name string) {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{
		TLSConfig: l.tls.Config(),
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }),
	}
	b.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.ServeTLS(elsewhere{ln, l}, "", "") }() // returns when it is closed
	return ln.Addr().String(), l.Hosts()[0].Address().Addr().String()
}

// mixed returns a rack with one built-in server model of each dialect, in equal
// parts.
func mixed(b *testing.B, hosts int) rackfile.Lab {
	b.Helper()
	files, err := fs.Glob(fixtures.Profiles, "profiles/*.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var groups []rackfile.Group
	seen := map[string]bool{}
	for _, file := range files {
		raw, err := fs.ReadFile(fixtures.Profiles, file)
		if err != nil {
			b.Fatal(err)
		}
		p, err := machine.ParseProfile("profile.yaml", raw)
		if err != nil {
			b.Fatal(err)
		}
		if p.Dialect != "generic" && !seen[p.Dialect] {
			seen[p.Dialect] = true
			groups = append(groups, rackfile.Group{Profile: p.Name, NamePrefix: p.Name})
		}
	}
	if len(seen) != len(dialects)-1 { // all but the generic one
		b.Fatalf("%d dialects have a server, want %d", len(seen), len(dialects)-1)
	}
	for i := range hosts {
		groups[i%len(groups)].Count++
	}
	r := rackfile.Default(0)
	r.Hosts = groups
	return r
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func grow(b *testing.B, n int, open func() *Rack) {
	before, start, worked := inUse(), clock.Wall(), busy()
	l := open()
	opened := clock.Wall().Sub(start)
	first := clock.Wall()
	hello(b, l, 1)
	firstTook := clock.Wall().Sub(first)
	hello(b, l, min(n, 10_000))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(opened.Seconds(), "s/open")
	b.ReportMetric((opened + firstTook).Seconds(), "s/first")
	b.ReportMetric(clock.Wall().Sub(start).Seconds(), "s/all")
	if now := busy(); now > 0 { // processor time of the process, with the clients
		b.ReportMetric((now - worked).Seconds(), "cpu-s/all")
	}
	goroutines := runtime.NumGoroutine()
	b.ReportMetric(float64(goroutines), "goroutines")
	b.ReportMetric(float64(inUse()-before)/float64(n), "B/host")
	if n > 10_000 {
		return
	}
	start = clock.Wall()
	read := walkAll(b, l)
	b.ReportMetric(float64(clock.Wall().Sub(start).Microseconds())/float64(read), "µs/first-GET")
	b.ReportMetric(float64(inUse()-before)/float64(n), "B/host-walked")
}

// hello reads the service root of some BMCs, each over its own connection.
func hello(b *testing.B, l *Rack, some int) {
	b.Helper()
	hosts := l.Hosts()
	addrs := make([]string, some)
	for i := range addrs {
		addrs[i] = hosts[i*len(hosts)/some].Address().String()
	}
	greet(b, addrs, &tls.Config{RootCAs: l.CAs()})
}

// greet reads the service root at each address.
func greet(b *testing.B, addrs []string, config *tls.Config) {
	b.Helper()
	// The clients use the same processors. They offer the key exchange that clients
	// of BMCs mostly use, not a post-quantum one.
	config.MinVersion, config.CurvePreferences = tls.VersionTLS12, []tls.CurveID{tls.X25519}
	todo := make(chan string, 64)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for at := range todo {
				w, err := dial(at, config)
				if err != nil {
					b.Error(err)
					continue
				}
				status, _, err := w.ask([]byte("GET /redfish/v1/ HTTP/1.1\r\nHost: bmc\r\n\r\n"))
				if err != nil || status != http.StatusOK {
					b.Errorf("%s: %d, %v", at, status, err)
				}
				w.Close()
			}
		})
	}
	for _, at := range addrs {
		todo <- at
	}
	close(todo)
	all.Wait()
}

// walkAll reads every resource of every BMC through the handler, following the links
// of the first BMC of each model. It returns the number of reads.
func walkAll(b *testing.B, l *Rack) int {
	b.Helper()
	read := 0
	get := func(h *Host, uri string) string {
		a, _ := h.Admin()
		r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, uri, nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.TCPAddrFromAddrPort(h.Address())))
		r.SetBasicAuth(a.Name, a.Password)
		w := httptest.NewRecorder()
		l.ServeHTTP(w, r)
		read++
		return w.Body.String()
	}
	walked := map[*machine.Profile][]string{}
	for _, h := range l.Hosts() {
		uris, known := walked[h.model.profile]
		if !known {
			walked[h.model.profile] = linkedFrom("/redfish/v1/", func(uri string) string { return get(h, uri) })
		}
		for _, uri := range uris {
			get(h, uri)
		}
	}
	return read
}

// linkedFrom returns all URIs that links lead to, directly or not.
func linkedFrom(root string, get func(uri string) string) (uris []string) {
	seen := map[string]bool{root: true}
	for todo := []string{root}; len(todo) > 0; todo = todo[1:] {
		uris = append(uris, todo[0])
		rest := get(todo[0])
		for {
			_, after, ok := strings.Cut(rest, `"@odata.id":"`)
			if !ok {
				break
			}
			link, tail, _ := strings.Cut(after, `"`)
			rest = tail
			link, _, _ = strings.Cut(link, "#")
			if !seen[link] {
				seen[link] = true
				todo = append(todo, link)
			}
		}
	}
	return uris
}
