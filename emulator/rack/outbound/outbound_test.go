package outbound

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// images serves the responses that a fetch may get.
func images(t *testing.T) http.Handler {
	// send ignores errors: most of these responses make the client leave.
	send := func(w http.ResponseWriter, s string) { _, _ = io.WriteString(w, s) }
	mux := http.NewServeMux()
	mux.HandleFunc("/a.iso", func(w http.ResponseWriter, _ *http.Request) { send(w, "image") })
	mux.HandleFunc("/empty.iso", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/auth.iso", func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != "user" || p != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		send(w, "private")
	})
	mux.HandleFunc("/large.iso", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "101")
		send(w, strings.Repeat("x", 101))
	})
	mux.HandleFunc("/endless.iso", func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 10)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/short.iso", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "50")
		send(w, "not fifty")
	})
	mux.HandleFunc("/stalls.iso", func(w http.ResponseWriter, r *http.Request) {
		send(w, "half")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/silent.iso", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/gzip.iso", func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "" {
			t.Errorf("Accept-Encoding = %q, want none", got)
		}
		w.Header().Set("Content-Encoding", "gzip")
		send(w, "as it is")
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.FormValue("to"), http.StatusFound)
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "ftp://u:secret@h/x", http.StatusFound)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	return mux
}

func TestFetch(t *testing.T) {
	srv := httptest.NewServer(images(t))
	defer srv.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	withPassword := strings.Replace(srv.URL, "http://", "http://user:secret@", 1)
	wrongPassword := strings.Replace(srv.URL, "http://", "http://user:guess@", 1)
	patient, hasty := New(Config{MaxSize: 100, Redirects: 3}), New(Config{Stall: 50 * time.Millisecond})
	tests := []struct {
		name string
		in   Image
		want string // content, or a part of the error
		ok   bool
	}{
		{"plain", Image{URL: srv.URL + "/a.iso"}, "image", true},
		{"empty", Image{URL: srv.URL + "/empty.iso"}, "", true},
		{"not unpacked", Image{URL: srv.URL + "/gzip.iso"}, "as it is", true},
		{"basic auth", Image{URL: srv.URL + "/auth.iso", User: "user", Password: "secret"}, "private", true},
		{"auth in the URL", Image{URL: withPassword + "/auth.iso"}, "private", true},
		{"redirected", Image{URL: srv.URL + "/moved?to=/a.iso"}, "image", true},
		{"auth after a redirect", Image{URL: srv.URL + "/moved?to=/auth.iso", User: "user", Password: "secret"}, "private", true},
		{"unauthorized", Image{URL: wrongPassword + "/auth.iso"}, "http://127.0.0.1:", false},
		{"missing, and the query is a secret", Image{URL: srv.URL + "/b.iso?token=secret"}, "/b.iso: ", false},
		{"unauthorized, why", Image{URL: srv.URL + "/auth.iso"}, "the server answered 401 Unauthorized", false},
		{"missing", Image{URL: srv.URL + "/b.iso"}, "the server answered 404 Not Found", false},
		{"too large by Content-Length", Image{URL: srv.URL + "/large.iso"}, "larger than 100 bytes", false},
		{"too large without Content-Length", Image{URL: srv.URL + "/endless.iso"}, "larger than 100 bytes", false},
		{"cut short", Image{URL: srv.URL + "/short.iso"}, "unexpected EOF", false},
		{"stalls", Image{URL: srv.URL + "/stalls.iso"}, "no progress for 50ms", false},
		{"silent", Image{URL: srv.URL + "/silent.iso"}, "no progress for 50ms", false},
		{"endless redirects", Image{URL: srv.URL + "/loop"}, "more than 3 redirects", false},
		{"redirected to a file", Image{URL: srv.URL + "/moved?to=file:///etc/passwd"}, "only http and https", false},
		{"redirect shows no password", Image{URL: srv.URL + "/away"}, "redirected to ftp://h/x", false},
		{"another scheme", Image{URL: "nfs://server/a.iso"}, "only http and https", false},
		{"no host", Image{URL: "http:///a.iso"}, "only http and https", false},
		{"no URL", Image{URL: "http://user:secret@host:port"}, "the image's URL is invalid", false},
		{"connection refused", Image{URL: "http://" + gone.Addr().String() + "/a.iso"}, "connection refused", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			f := patient
			if strings.Contains(tt.want, "no progress") {
				f = hasty
			}
			n, err := f.Fetch(t.Context(), tt.in, &b)
			if !tt.ok {
				if !errors.Is(err, bmc.ErrMedia) || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("Fetch(%s) = %v, want %v with %q", tt.in.URL, err, bmc.ErrMedia, tt.want)
				}
				if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "guess") {
					t.Errorf("Fetch(%s) = %v: shows the password", tt.in.URL, err)
				}
				return
			}
			if err != nil || b.String() != tt.want || n != int64(len(tt.want)) {
				t.Errorf("Fetch(%s) = %d, %v, %q, want %q", tt.in.URL, n, err, b.String(), tt.want)
			}
		})
	}
}

func TestFetchErrorHasItsMediaFault(t *testing.T) {
	srv := httptest.NewServer(images(t))
	defer srv.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for in, want := range map[string]bmc.MediaFault{
		srv.URL + "/b.iso":                          bmc.Absent,
		srv.URL + "/auth.iso":                       bmc.Denied,
		"https" + srv.URL[len("http"):] + "/a.iso":  bmc.Protocol,
		"cifs://server/a.iso":                       bmc.Protocol,
		srv.URL + "/away":                           bmc.Protocol,
		"http://" + gone.Addr().String() + "/a.iso": bmc.Unreachable,
		"http://no-such-host.invalid/a.iso":         bmc.Unreachable,
		srv.URL + "/loop":                           "",
		srv.URL + "/short.iso":                      "",
	} {
		_, err := New(Config{}).Fetch(t.Context(), Image{URL: in}, io.Discard)
		var known *bmc.MediaError
		got := bmc.MediaFault("")
		if errors.As(err, &known) {
			got = known.Fault
		}
		if !errors.Is(err, bmc.ErrMedia) || got != want {
			t.Errorf("Fetch(%s) = %v: fault %q, want %q", in, err, got, want)
		}
	}
}

func TestFetchVerifiesTheServer(t *testing.T) {
	srv := httptest.NewUnstartedServer(images(t))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // the server logs clients that leave
	srv.StartTLS()
	defer srv.Close()
	pool := x509.NewCertPool()
	if _, err := New(Config{RootCAs: pool}).Fetch(t.Context(), Image{URL: srv.URL + "/a.iso"}, io.Discard); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("Fetch() from an unknown server = %v, want a refusal", err)
	}
	pool.AddCert(srv.Certificate())
	if n, err := New(Config{RootCAs: pool}).Fetch(t.Context(), Image{URL: srv.URL + "/a.iso"}, io.Discard); n != 5 || err != nil {
		t.Errorf("Fetch() = %d, %v, want 5", n, err)
	}
	if n, err := New(Config{RootCAs: x509.NewCertPool()}).Fetch(t.Context(), Image{URL: srv.URL + "/a.iso", Unverified: true}, io.Discard); n != 5 || err != nil {
		t.Errorf("Fetch() from a server that may be any = %d, %v, want 5", n, err)
	}
}

func TestFetchRefusesLargerImages(t *testing.T) {
	srv := httptest.NewServer(images(t))
	defer srv.Close()
	for most, ok := range map[int64]bool{4: false, 5: true, 0: true} {
		n, err := New(Config{}).Fetch(t.Context(), Image{URL: srv.URL + "/a.iso", MaxSize: most}, io.Discard)
		if ok != (err == nil) || ok && n != 5 || !ok && !strings.Contains(err.Error(), "larger than 4 bytes") {
			t.Errorf("Fetch() of at most %d bytes = %d, %v", most, n, err)
		}
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	srv := httptest.NewServer(images(t))
	defer srv.Close()
	why := errors.New("ejected")
	ctx, cancel := context.WithCancelCause(t.Context())
	pr, pw := io.Pipe()
	go func() {
		if _, err := pr.Read(make([]byte, 1)); err != nil { // the fetch has begun
			t.Error(err)
		}
		cancel(why)
		if _, err := io.Copy(io.Discard, pr); err != nil {
			t.Error(err)
		}
	}()
	_, err := New(Config{}).Fetch(ctx, Image{URL: srv.URL + "/stalls.iso"}, pw)
	pw.Close()
	if !errors.Is(err, why) || !errors.Is(err, bmc.ErrMedia) {
		t.Errorf("Fetch() = %v, want %v", err, why)
	}
}

type fullDisk struct{}

var errFull = errors.New("disk full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestFetchFailsWhenItsWriterFails(t *testing.T) {
	srv := httptest.NewServer(images(t))
	defer srv.Close()
	if _, err := New(Config{}).Fetch(t.Context(), Image{URL: srv.URL + "/a.iso"}, fullDisk{}); !errors.Is(err, errFull) {
		t.Errorf("Fetch() = %v, want %v", err, errFull)
	}
}
