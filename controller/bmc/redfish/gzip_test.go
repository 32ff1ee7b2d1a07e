package redfish_test

import (
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// packing compresses the response of h whatever Accept-Encoding says.
func packing(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		plain := httptest.NewRecorder()
		h(plain, r)
		for name, values := range plain.Header() {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Del("Content-Length")
		w.WriteHeader(plain.Code)
		z := gzip.NewWriter(w)
		_, _ = plain.Body.WriteTo(z)
		_ = z.Close()
	}
}

func TestGzipResponses(t *testing.T) {
	s := newServer(t)
	var asked string
	system := s.show(s.computerSystem)
	s.route("GET "+systemPath, packing(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Accept-Encoding")
		system(w, r)
	}))
	if _, err := open(t, s.config(systemPath)); err != nil {
		t.Fatalf("Open() error = %v", err)
	}
	if want := "identity, gzip;q=0.5"; asked != want {
		t.Errorf("Accept-Encoding %q, want %q", asked, want)
	}

	s.route("GET /redfish/v1/", packing(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 9<<20)) // 9 KB on the wire
	}))
	if _, err := open(t, s.config("")); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("Open() of 9 MiB in 9 KiB: error = %v, want that it is too large", err)
	}
	s.route("GET /redfish/v1/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write([]byte(`{"plain":"in truth"}`))
	})
	if _, err := open(t, s.config("")); err == nil || !strings.Contains(err.Error(), "gzip") {
		t.Errorf("Open() of what is not packed as it says: error = %v, want that of gzip", err)
	}
}
