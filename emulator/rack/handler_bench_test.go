package rack

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
)

// sink is a ResponseWriter that discards the body.
type sink struct {
	h      http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

// BenchmarkHandler measures the rack's work for a request, without net/http and the
// network. Every PATCH changes something.
func BenchmarkHandler(b *testing.B) {
	l := benchAt(b, rackfile.Default(64), 1)
	request := func(method string) (all []*http.Request) {
		for _, h := range l.Hosts() { // many hosts: a processor's cache does not hold one
			local := context.WithValue(b.Context(), http.LocalAddrContextKey, net.TCPAddrFromAddrPort(h.Address()))
			r := httptest.NewRequestWithContext(local, method, systemURI, nil)
			r.Header.Set("X-Auth-Token", login(b, h))
			r.Header.Set("Content-Type", "application/json")
			all = append(all, r)
		}
		return all
	}
	b.Run("get", func(b *testing.B) {
		all := request(http.MethodGet)
		defer working(b)()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			w := sink{h: make(http.Header, 10)}
			if l.ServeHTTP(&w, all[i%len(all)]); w.status != http.StatusOK {
				b.Fatal(w.status)
			}
		}
	})
	b.Run("patch", func(b *testing.B) {
		var bodies [2]string
		for i, target := range []string{"Pxe", "Cd"} {
			bodies[i] = fmt.Sprintf(`{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":%q}}`, target)
		}
		all := request(http.MethodPatch)
		defer working(b)()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			r, body := all[i%len(all)], bodies[i/len(all)%2]
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			w := sink{h: make(http.Header, 10)}
			if l.ServeHTTP(&w, r); w.status != http.StatusOK {
				b.Fatal(w.status)
			}
		}
	})
}

// working reports the processor time of an operation. Other programs add to the
// elapsed time, not to this.
func working(b *testing.B) (done func()) {
	before := busy()
	return func() { b.ReportMetric(float64((busy()-before).Nanoseconds())/float64(b.N), "cpu-ns/op") }
}
