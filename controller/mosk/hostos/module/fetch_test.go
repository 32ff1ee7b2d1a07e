package module

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// through returns a client whose requests go through a proxy.
func through(t *testing.T, proxy http.HandlerFunc) *http.Client {
	t.Helper()
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{Proxy: http.ProxyURL(at), TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func forbid(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }

// statement H3: the message about an archive that cannot be fetched, with a proxy and without.
func TestFetchErrors(t *testing.T) {
	missing := httptest.NewServer(http.NotFoundHandler())
	defer missing.Close()
	direct := &http.Client{Transport: &http.Transport{}}
	defer direct.CloseIdleConnections()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	const prefix = "failed to perform request to fetch the module archive: "
	for _, tt := range []struct {
		name   string
		client *http.Client
		url    string
		want   string
	}{
		{"proxy refuses HTTP", through(t, forbid), "http://repo.example/a.tgz", `Get "http://repo.example/a.tgz": Forbidden`},
		{"proxy refuses HTTPS", through(t, forbid), "https://repo.example/a.tgz", `Get "https://repo.example/a.tgz": Forbidden`},
		{"no such file", direct, missing.URL + "/a.tgz", `Get "` + missing.URL + `/a.tgz": Not Found`},
		{"no server", direct, gone.URL + "/a.tgz", `Get "` + gone.URL + `/a.tgz": dial tcp `},
		{"password in the URL", direct, strings.Replace(missing.URL, "://", "://jane:hunter2@", 1), `Get "` + strings.Replace(missing.URL, "://", "://jane:xxxxx@", 1) + `": Not Found`},
		{"file", direct, "file:///etc/passwd", `Get "file:///etc/passwd": use a URL of HTTP or HTTPS`},
		{"no host", direct, "http:///a", `Get "http:///a": use a URL of HTTP or HTTPS`},
	} {
		if _, err := Fetch(t.Context(), tt.client, tt.url); err == nil || !strings.HasPrefix(err.Error(), prefix+tt.want) {
			t.Errorf("%s: Fetch error = %v, want %s%s", tt.name, err, prefix, tt.want)
		}
	}
}

func TestFetchEndsWithItsContextAndItsLimit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/endless" {
			block := make([]byte, 1<<20)
			for {
				if _, err := w.Write(block); err != nil {
					close(served)
					return
				}
			}
		}
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	}))
	defer slow.Close()
	client := &http.Client{Transport: &http.Transport{}}
	if _, err := Fetch(t.Context(), client, slow.URL+"/endless"); err == nil || !strings.HasSuffix(err.Error(), "the archive has more than 64 MiB") {
		t.Errorf("Fetch of an endless archive: %v", err)
	}
	<-served // the connection was closed
	if _, err := Fetch(ctx, client, slow.URL+"/slow"); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("Fetch from a server that stops: %v", err)
	}
}

func TestFetchReturnsTheArchive(t *testing.T) {
	archive := sample(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(archive) }))
	defer s.Close()
	got, err := Fetch(t.Context(), s.Client(), s.URL)
	if err != nil || Sum(got) != Sum(archive) {
		t.Errorf("Fetch = %d bytes, %v, want %d", len(got), err, len(archive))
	}
}
