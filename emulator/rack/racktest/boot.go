package racktest

import (
	"bytes"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
)

// Boots lets servers boot the first source that they try, and records the sources.
// Its Answer is a rack.Config's Events.
type Boots struct {
	t       testing.TB
	mu      sync.Mutex
	sources []machine.SourceKind
}

// NewBoots returns a Boots that logs errors to t.
func NewBoots(t testing.TB) *Boots { return &Boots{t: t} }

// Answer reports a bootable system to a server that tries a boot source.
func (b *Boots) Answer(h *rack.Host, ev machine.Event) {
	try, ok := ev.(machine.BootAttempted)
	if !ok {
		return
	}
	b.mu.Lock()
	b.sources = append(b.sources, try.Source.Kind)
	b.mu.Unlock()
	if err := h.Apply(b.t.Context(), machine.Loaded{Boot: try.Boot, Source: try.Source, Name: "test"}); err != nil {
		b.t.Logf("boot: %v", err)
	}
}

// Sources returns the kinds of the sources that were booted, in order.
func (b *Boots) Sources() []machine.SourceKind {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.sources)
}

// ServeImages serves 64 KiB of zeros at every path until the test ends. It returns the
// base URLs by HTTP and HTTPS and the authority of the HTTPS certificate.
func ServeImages(t testing.TB) (plain, secure string, roots *x509.CertPool) {
	t.Helper()
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, r.URL.Path, time.Time{}, bytes.NewReader(make([]byte, 64<<10)))
	})
	overHTTP, overTLS := httptest.NewServer(serve), httptest.NewTLSServer(serve)
	t.Cleanup(overHTTP.Close)
	t.Cleanup(overTLS.Close)
	roots = x509.NewCertPool()
	roots.AddCert(overTLS.Certificate())
	return overHTTP.URL, overTLS.URL, roots
}
