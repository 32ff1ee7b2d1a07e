package redfish

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// sink is a ResponseWriter that discards everything.
type sink struct{ h http.Header }

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(int)             {}

// BenchmarkGet measures reading a ComputerSystem against a handler that writes
// the same bytes and does nothing else.
func BenchmarkGet(b *testing.B) {
	h := newHost(b)
	s := newService(b, h)
	token, _ := logIn(b, s, "admin")
	same := call(b, s, "admin", "GET", sys, "")
	type header struct {
		name   string
		values []string
	}
	var headers []header
	for name, values := range same.Header() {
		headers = append(headers, header{name, values})
	}
	body := same.Body.Bytes()
	bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, h := range headers {
			w.Header()[h.name] = h.values
		}
		w.WriteHeader(http.StatusOK)
		w.Write(body)
	})
	for _, bb := range []struct {
		name    string
		handler http.Handler
		sign    func(*http.Request)
	}{
		{"bare", bare, func(r *http.Request) { r.Header.Set("X-Auth-Token", token) }},
		{"session", s, func(r *http.Request) { r.Header.Set("X-Auth-Token", token) }},
		{"basic", s, func(r *http.Request) { r.SetBasicAuth("admin", accounts[0].Password) }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := httptest.NewRequest("GET", sys, nil)
			bb.sign(r)
			b.ReportAllocs()
			for b.Loop() {
				bb.handler.ServeHTTP(&sink{h: make(http.Header, 10)}, r)
			}
		})
	}
	for _, bb := range []struct {
		name    string
		handler http.Handler
	}{{"tcp-bare", bare}, {"tcp-session", s}} {
		b.Run(bb.name, func(b *testing.B) {
			server := httptest.NewServer(bb.handler)
			defer server.Close()
			r, err := http.NewRequest("GET", server.URL+sys, nil)
			must(b, err)
			r.Header.Set("X-Auth-Token", token)
			r.Header.Set("Accept-Encoding", "identity")
			for b.Loop() {
				w, err := server.Client().Do(r)
				must(b, err)
				w.Body.Close()
			}
		})
	}
}

// BenchmarkRender measures one rendering of a ComputerSystem, in the standard's form
// and in that of each vendor.
func BenchmarkRender(b *testing.B) {
	bench := func(name string, s *Service, h *host) {
		at := resource.TakeSnapshot(h)
		m := s.tree.Find(&url.URL{Path: "/redfish/v1/Systems/" + h.d.SystemID})
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.renderer.Render(m, at)
			}
		})
	}
	h := newHost(b)
	bench("generic", newService(b, h), h)
	for _, v := range vendors {
		s, h := newVendorHost(b, v.record, v.profiles[0])
		bench(v.profiles[0], s, h)
	}
}
