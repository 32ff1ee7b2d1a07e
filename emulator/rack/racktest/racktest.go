// Package racktest runs a rack inside a Go test, with a temporary directory, any free
// port, a virtual clock, and an HTTP client that trusts its BMCs.
package racktest

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// Origin is the time at which the lab's time begins. It is far from real time, so that nobody
// mistakes one for the other.
var Origin = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)

// Rack is an open rack, which Start serves until its test ends.
type Rack struct {
	*rack.Rack
	// Client trusts the certificates of the rack's BMCs.
	Client *http.Client

	t     testing.TB
	clock *clock.Clock
	stop  func()
}

// Start opens and serves a rack. Where c leaves it open, it uses a temporary
// directory, any free port, and a clock that stands still until Advance. For a clock
// that jumps to the next deadline by itself, set Config.Clock to
// clock.NewJumping(Origin).
func Start(t testing.TB, c rack.Config) *Rack {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	if c.Listen == "" {
		c.Listen = "lo:0"
	}
	if c.Clock == nil {
		origin, err := rack.LastTime(c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if origin.IsZero() {
			origin = Origin
		}
		c.Clock = clock.NewVirtual(origin)
	}
	opened, err := rack.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	l := &Rack{Rack: opened, t: t, clock: c.Clock}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: l.CAs(), MinVersion: tls.VersionTLS12}}
	l.Client = &http.Client{Transport: transport}

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := l.clock.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("clock: %v", err)
		}
	})
	running.Go(func() {
		if err := l.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	l.stop = sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		cancel()
		running.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the rack's seed is %d", l.Definition().Seed)
		}
	})
	t.Cleanup(l.stop)
	return l
}

// Stop stops the rack before the end of its test, so that it can be started again in
// the same directory.
func (l *Rack) Stop() { l.stop() }

// Advance moves the lab's time forward by d. It stops at every deadline on the way
// until everything that was due there is done and all events are delivered. It
// returns when nothing is in flight.
func (l *Rack) Advance(d time.Duration) {
	l.t.Helper()
	if err := l.clock.Walk(l.t.Context(), d); err != nil {
		l.t.Fatalf("the rack does not settle: %v", err)
	}
}

// AwaitCommand returns when a BMC has executed an IPMI command, which it takes by the name
// in the journal: "Cold Reset". A client that does not wait for the response, such as
// `ipmitool mc reset cold`, may end before the BMC has the request. The test fails after
// patience.Limit.
func (l *Rack) AwaitCommand(name string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience.Limit())
	defer cancel()
	for {
		found, mark, err := l.Journal().Select(journal.Query{Method: "IPMI"})
		if slices.ContainsFunc(found, func(e journal.Entry) bool { return e.Path == name }) {
			return
		}
		if err == nil {
			err = l.Journal().Wait(ctx, mark)
		}
		if err != nil {
			l.t.Fatalf("no BMC has executed %s: %v", name, err)
		}
	}
}

// Settle returns when nothing is in flight in the rack.
func (l *Rack) Settle() {
	l.t.Helper()
	if err := l.clock.Settle(l.t.Context()); err != nil {
		l.t.Fatalf("the rack does not settle: %v", err)
	}
}

// First returns the first host of the rack.
func (l *Rack) First() *rack.Host { return l.Hosts()[0] }

// Credentials returns the user name and password of a host's administrator.
func (l *Rack) Credentials(h *rack.Host) (user, password string) {
	l.t.Helper()
	a, ok := h.Admin()
	if !ok {
		l.t.Fatalf("%s has no administrator", h.Name())
	}
	return a.Name, a.Password
}
