package lab

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// sink is a ResponseWriter that costs nothing.
type sink struct {
	h      http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

// BenchmarkHandler measures what the lab does for a request, without net/http
// and the network. Every PATCH changes something.
func BenchmarkHandler(b *testing.B) {
	l := bench(b, 64)
	h := l.Hosts()[0]
	token := login(b, h)
	local := context.WithValue(b.Context(), http.LocalAddrContextKey, net.TCPAddrFromAddrPort(h.Address()))
	request := func(method string) *http.Request {
		r := httptest.NewRequestWithContext(local, method, systemURI, nil)
		r.Header.Set("X-Auth-Token", token)
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	b.Run("get", func(b *testing.B) {
		r := request(http.MethodGet)
		defer working(b)()
		b.ReportAllocs()
		for b.Loop() {
			w := sink{h: make(http.Header, 10)}
			if l.ServeHTTP(&w, r); w.status != http.StatusOK {
				b.Fatal(w.status)
			}
		}
	})
	b.Run("patch", func(b *testing.B) {
		var bodies [2]string
		for i, target := range []string{"Pxe", "Cd"} {
			bodies[i] = fmt.Sprintf(`{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":%q}}`, target)
		}
		r := request(http.MethodPatch)
		defer working(b)()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(bodies[i%2])), int64(len(bodies[i%2]))
			w := sink{h: make(http.Header, 10)}
			if l.ServeHTTP(&w, r); w.status != http.StatusOK {
				b.Fatal(w.status)
			}
		}
	})
}

// working tells how long processors work for an operation of a benchmark: other
// programs do not add to that as they do to the time.
func working(b *testing.B) (done func()) {
	before := busy()
	return func() { b.ReportMetric(float64((busy()-before).Nanoseconds())/float64(b.N), "cpu-ns/op") }
}
