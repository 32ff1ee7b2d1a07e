package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// mediaServer serves one small bootable image under every name, by HTTP and HTTPS,
// and takes the events of subscriptions.
type mediaServer struct {
	image         []byte
	ip            net.IP
	plain, secure string // base URLs

	mu       sync.Mutex
	requests map[string][]conformance.MediaRequest
	events   chan []byte       // nil: nobody listens
	agent    http.Handler      // handler of boot media; nil: none
	system   *io.SectionReader // the provisioner's image; nil: none
}

// Bounds of a BMC's requests.
const (
	maxMediaNames    = 1000
	maxMediaRequests = 1000 // requests of one name
	maxEventBody     = 1 << 20
	maxEventsWaiting = 100
	eventsPath       = "events"
)

// serveMedia serves at an address of this computer until stop is called.
func serveMedia(address string) (m *mediaServer, stop func(), err error) {
	ip := net.ParseIP(strings.Trim(address, "[]"))
	if ip == nil || ip.IsUnspecified() {
		return nil, nil, usage.New(fmt.Errorf("--media %q is not the IP address of this computer that the BMC reaches", address))
	}
	m = &mediaServer{ip: ip, requests: map[string][]conformance.MediaRequest{}}
	if m.image, err = netboot.BuildISO(map[string][]byte{"/README": []byte("labctl conformance\n")}); err != nil {
		return nil, nil, err
	}
	certificate, err := certificateOf(ip)
	if err != nil {
		return nil, nil, err
	}
	plain, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
	if err != nil {
		return nil, nil, fmt.Errorf("--media: %w", err)
	}
	secure, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
	if err != nil {
		plain.Close()
		return nil, nil, fmt.Errorf("--media: %w", err)
	}
	m.plain, m.secure = "http://"+plain.Addr().String(), "https://"+secure.Addr().String()
	server := newMediaHTTP(m)
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(plain) }) // it returns when the server closes
	running.Go(func() {
		_ = server.Serve(tls.NewListener(secure, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}))
	})
	return m, func() {
		server.Close()
		running.Wait()
	}, nil
}

// newMediaHTTP returns the server of media or of jobs. Requests are small, and come whole
// within a minute; responses may be gigabytes.
func newMediaHTTP(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // a BMC that refuses a certificate is a check's result
	}
}

// certificateOf signs a certificate for an address with its own key, which no BMC
// trusts: VM-004 is about that.
func certificateOf(ip net.IP) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	// A BMC's clock may be off: TIME-001 is about that.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "labctl conformance"}, IPAddresses: []net.IP{ip},
		NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// ServeHTTP implements http.Handler.
func (m *mediaServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	agent, system := m.boots()
	switch {
	case agent != nil && strings.HasPrefix(r.URL.Path, agentPrefix+"/"):
		agent.ServeHTTP(w, r)
	case system != nil && name == imageName && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(system, 0, system.Size()))
	case r.Method == http.MethodPost && name == eventsPath:
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEventBody))
		if err != nil {
			http.Error(w, "the event has more than 1 MiB", http.StatusRequestEntityTooLarge)
			return
		}
		m.event(body)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		counted := &countingWriter{ResponseWriter: w}
		began := time.Now()
		http.ServeContent(counted, r, "", time.Time{}, bytes.NewReader(m.image))
		m.note(name, conformance.MediaRequest{Time: began, Method: r.Method, Range: r.Header.Get("Range"), UserAgent: r.UserAgent(), Bytes: counted.bytes})
	default:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "images are read only", http.StatusMethodNotAllowed)
	}
}

// serveAgent serves boot media below agentPrefix.
func (m *mediaServer) serveAgent(h http.Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.agent = h
}

// serveImage serves the provisioner's image as imageName.
func (m *mediaServer) serveImage(r io.ReaderAt, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.system = io.NewSectionReader(r, 0, size)
}

func (m *mediaServer) boots() (http.Handler, *io.SectionReader) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.agent, m.system
}

func (m *mediaServer) note(name string, q conformance.MediaRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if all, known := m.requests[name]; len(all) < maxMediaRequests && (known || len(m.requests) < maxMediaNames) {
		m.requests[name] = append(all, q)
	}
}

// event hands a body to the check that listens. More than it can take are dropped.
func (m *mediaServer) event(body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case m.events <- body:
	default:
	}
}

// countingWriter counts the bytes of a body.
type countingWriter struct {
	http.ResponseWriter
	bytes int64
}

// Write implements io.Writer.
func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// URL implements conformance.MediaServer.
func (m *mediaServer) URL(scheme, name string) (string, error) {
	switch scheme {
	case "http":
		return m.plain + "/" + name, nil
	case "https":
		return m.secure + "/" + name, nil
	}
	return "", fmt.Errorf("scheme %q is not one of http, https", scheme)
}

// Requests implements conformance.MediaServer.
func (m *mediaServer) Requests(name string) []conformance.MediaRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]conformance.MediaRequest(nil), m.requests[name]...)
}

// Events implements conformance.MediaServer.
func (m *mediaServer) Events(ctx context.Context) (string, <-chan []byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.events != nil {
		return "", nil, errors.New("another check listens to events")
	}
	bodies := make(chan []byte, maxEventsWaiting)
	m.events = bodies
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.events = nil
		close(bodies)
	})
	return m.plain + "/" + eventsPath, bodies, nil
}
