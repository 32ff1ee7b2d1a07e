package manager

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	testclock "k8s.io/utils/clock/testing"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/inband"
)

// listen serves h as the servers for agents and BMCs are, with a shorter limit for a
// request, and returns the address.
func listen(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := (&Set{cfg: Config{Log: logr.Discard()}}).server(h)
	if srv.ReadTimeout <= 0 || srv.ReadTimeout > 5*time.Minute || srv.ReadHeaderTimeout <= 0 || srv.IdleTimeout <= 0 {
		t.Fatalf("the server waits %v for a request, %v for its headers, %v for the next: want limits", srv.ReadTimeout, srv.ReadHeaderTimeout, srv.IdleTimeout)
	}
	srv.ReadTimeout = 100 * time.Millisecond
	s := httptest.NewUnstartedServer(nil)
	s.Config = srv
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestAgentThatSendsABodySlowlyIsCut(t *testing.T) {
	agents, err := inband.New(inband.Config{Key: make(inband.Key, inband.KeySize), URL: "https://192.0.2.1", Clock: testclock.NewFakePassiveClock(now)})
	if err != nil {
		t.Fatal(err)
	}
	b := inband.Boot{Host: "h", ID: "b"}
	agents.Expect(b, "")
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{RawSubjectPublicKeyInfo: []byte("key")}}}
		agents.ServeHTTP(w, r)
	})
	cut(t, listen(t, slow), fmt.Sprintf("POST %s HTTP/1.1\r\nHost: c\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\n{", job.LeasePath, agents.Media(b).Token))
}

// cut sends the beginning of a request, and expects that the server answers 408 and ends
// the connection.
func cut(t *testing.T, address, request string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, request)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestTimeout || !resp.Close {
		t.Errorf("%.40q, and no more = %s, close %t, want 408 and the connection's end", request, resp.Status, resp.Close)
	}
}

// The limit is for the request: a BMC that fetches a large image slowly is not cut.
func TestSlowDownloadIsNotCut(t *testing.T) {
	image := bytes.Repeat([]byte("x"), 8<<20) // more than sockets buffer
	address := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(image))
	}))
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: c\r\n\r\n")
	from := bufio.NewReader(c)
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // each takes the limit, which is real time
		cut(t, address, "POST / HTTP/1.1\r\nHost: c\r\nContent-Length: 1000\r\n\r\n{")
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || n != int64(len(image)) {
		t.Errorf("%d bytes, %v, want %d", n, err, len(image))
	}
}
