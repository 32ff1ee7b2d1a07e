// Package emulator gives Go tests a rack of servers whose BMCs answer Redfish,
// as net/http/httptest gives them a web server:
//
//	func TestMyProvisioner(t *testing.T) {
//		rack := emulator.Start(t, emulator.Rack{Hosts: 3})
//		host := rack.Host(0)
//		client := gofish.ClientConfig{Endpoint: host.Endpoint, Username: host.Username, Password: host.Password, HTTPClient: rack.Client}
//		…
//		rack.Advance(2 * time.Minute) // the servers' time: POST takes no real time
//		if host.PowerState() != "On" { … }
//	}
//
// The BMCs listen on loopback, over TLS, with certificates that rack.Client trusts.
// Their time stands still until Advance moves it. With Rack.FastForward it jumps
// from one deadline to the next by itself instead, for code under test that polls
// with a clock of its own. All identities and all random choices come from
// Rack.Seed: a test that failed fails again.
//
// Fail adds a fault rule, and Requests lists what clients have asked:
//
//	remove := rack.Fail(emulator.Fault{BMC: "node-1", Path: "/redfish/v1/Systems/**", Status: 503, Count: 2})
//	…
//	remove()
//	if n := len(rack.Requests(emulator.Query{Host: "node-1", Method: "PATCH"})); n != 1 { … }
//
// This package is a façade for tests. It starts emulator/rack and has no behaviour of
// its own.
package emulator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
)

// Fault is a fault rule: what goes wrong, where and when.
type Fault = fault.Rule

// Query selects entries of the journal.
type Query = journal.Query

// Entry is a journal entry: a request, or an event of a server.
type Entry = journal.Entry

// Source is a boot source that a server tries.
type Source = machine.Source

// Origin is the time at which a rack begins, unless its directory holds a later
// one. It is far from real time, so that nobody mistakes one for the other.
var Origin = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)

// Rack describes the rack to start. The zero value is one server.
type Rack struct {
	Hosts   int    // 0 means 1
	Profile string // server model; "" means "generic"
	Seed    uint64 // 0 means 1
	// Definition is a rack file (YAML, kind: Lab), for racks with several models,
	// accounts, timings or faults. Hosts, Profile and Seed must not be set with it.
	Definition string
	// FastForward lets time jump to the next deadline whenever nothing is in
	// flight. Advance then only adds to it.
	FastForward bool
	// Boot returns the name of the system on a source that a server tries to boot,
	// or "" when the source is not bootable. Nil finds a system on every disk and
	// on every inserted medium.
	Boot func(h *Host, s Source) string
	// Dir is the directory of the rack. Another start with it brings the servers
	// back. "" means a new directory that Close removes.
	Dir string
}

// Lab is a running rack. It is safe for concurrent use.
type Lab struct {
	// Client trusts the certificates of the BMCs, and only those.
	Client *http.Client

	rack   *rack.Rack
	clock  *clock.Clock
	hosts  []*Host
	byHost map[*rack.Host]*Host
	boot   func(h *Host, s Source) string
	close  func() error
	closed sync.Once
	err    error
}

// Host is one server and its BMC.
type Host struct {
	Name     string
	Endpoint string // URL of the BMC, without a path: https://127.64.0.1:40123
	Username string // user name of an administrator
	Password string

	host *rack.Host
}

// Start starts a rack that runs until the test ends. An error in r fails the test.
func Start(t testing.TB, r Rack) *Lab {
	t.Helper()
	l, err := Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the rack's seed is %d", l.rack.Definition().Seed)
		}
	})
	return l
}

// Open starts a rack outside of a test. The caller must close it.
func Open(ctx context.Context, r Rack) (_ *Lab, err error) {
	def, err := r.definition()
	if err != nil {
		return nil, err
	}
	remove := func() error { return nil }
	if r.Dir == "" {
		if r.Dir, err = os.MkdirTemp("", "metalab-"); err != nil {
			return nil, fmt.Errorf("emulator: %w", err)
		}
		remove = func() error { return os.RemoveAll(r.Dir) }
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, remove())
		}
	}()
	origin, err := rack.LastTime(r.Dir)
	if err != nil {
		return nil, err
	}
	if origin.IsZero() {
		origin = Origin
	}
	l := &Lab{clock: clock.NewVirtual(origin), byHost: map[*rack.Host]*Host{}, boot: r.Boot}
	if r.FastForward {
		l.clock = clock.NewJumping(origin)
	}
	c := rack.Config{Dir: r.Dir, Rack: &def, Clock: l.clock, Events: l.event}
	if def.Listen == rackfile.Loopback || def.Listen == "" {
		c.Listen = "lo:0" // any port: other tests run at the same time
	}
	if l.rack, err = rack.Open(ctx, c); err != nil {
		return nil, err
	}
	for _, h := range l.rack.Hosts() {
		host := &Host{Name: h.Name(), Endpoint: h.URL(), host: h}
		if a, ok := h.Admin(); ok {
			host.Username, host.Password = a.Name, a.Password
		}
		l.hosts, l.byHost[h] = append(l.hosts, host), host
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: l.rack.CAs(), MinVersion: tls.VersionTLS12}}
	l.Client = &http.Client{Transport: transport}

	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	var served error
	all.Go(func() { _ = l.clock.Run(running) }) // returns when its context ends
	all.Go(func() { served = l.rack.Serve(running) })
	l.close = func() error {
		transport.CloseIdleConnections()
		cancel()
		all.Wait()
		return errors.Join(served, l.rack.Close(), remove())
	}
	return l, nil
}

func (r *Rack) definition() (rackfile.Lab, error) {
	if r.Definition != "" {
		if r.Hosts != 0 || r.Profile != "" || r.Seed != 0 {
			return rackfile.Lab{}, errors.New("emulator: Rack.Definition: set hosts, profile and seed in it, not in Rack.Hosts, Rack.Profile and Rack.Seed")
		}
		const name = "Rack.Definition"
		return rackfile.Parse(name, []byte(r.Definition), func(l *rackfile.Lab) error { return rack.CheckNames(rack.Models(r.Dir), l) })
	}
	if r.Hosts < 0 {
		return rackfile.Lab{}, fmt.Errorf("emulator: Rack.Hosts: %d: must not be negative", r.Hosts)
	}
	def := rackfile.Default(max(r.Hosts, 1))
	if r.Profile != "" {
		def.Hosts[0].Profile = r.Profile
	}
	if r.Seed != 0 {
		def.Seed = r.Seed
	}
	return def, nil
}

// Close stops the rack. Further calls do nothing.
func (l *Lab) Close() error {
	l.closed.Do(func() { l.err = l.close() })
	return l.err
}

// Hosts returns all servers.
func (l *Lab) Hosts() []*Host { return append([]*Host(nil), l.hosts...) }

// Host returns the i-th server, counted from 0.
func (l *Lab) Host(i int) *Host { return l.hosts[i] }

// Named returns the server with a name, or nil when there is none.
func (l *Lab) Named(name string) *Host {
	h, ok := l.rack.Host(name)
	if !ok {
		return nil
	}
	return l.byHost[h]
}

// CAFile returns the file with the certificate, in PEM, of the authority that signs
// for the BMCs, for clients in other processes.
func (l *Lab) CAFile() string { return l.rack.CAFile() }

// Now returns the rack's time.
func (l *Lab) Now() time.Time { return l.clock.Now() }

// Advance moves the rack's time forward by d. It returns when everything that was
// due until then is done.
func (l *Lab) Advance(d time.Duration) {
	if err := l.clock.Walk(context.Background(), d); err != nil {
		panic(err) // the context does not end
	}
}

// Waiting returns how many responses a fault delays now. They are sent when time
// goes on: a test waits until its request is one of them and then calls Advance.
func (l *Lab) Waiting() int { return l.rack.Waiting() }

// Fail adds a fault rule that applies until remove is called. It panics when the rule
// is invalid, because the rule is part of the test.
func (l *Lab) Fail(f Fault) (remove func()) {
	f, err := l.rack.AddFault(f)
	if err != nil {
		panic(err)
	}
	return sync.OnceFunc(func() {
		if err := l.rack.RemoveFault(f.ID); err != nil && !errors.Is(err, fault.ErrUnknown) {
			panic(err)
		}
	})
}

// Faults lists the fault rules with their hits.
func (l *Lab) Faults() []fault.Listed { return l.rack.Faults() }

// Requests returns the requests that BMCs have answered, oldest first.
func (l *Lab) Requests(q Query) []Entry {
	q.Kind = journal.Request
	return l.Journal(q)
}

// Journal returns entries of the journal, oldest first: requests, and events of the
// servers. It panics when the query is invalid, because it is part of the test.
func (l *Lab) Journal(q Query) []Entry {
	out, _, err := l.rack.Journal().Select(q)
	if err != nil {
		panic(err)
	}
	return out
}

// event answers the boot attempts of the servers.
func (l *Lab) event(h *rack.Host, ev machine.Event) {
	tried, ok := ev.(machine.BootAttempted)
	if !ok {
		return
	}
	boot := l.boot
	if boot == nil {
		boot = bootable
	}
	var answer machine.Command = machine.NotBootable{Boot: tried.Boot, Source: tried.Source}
	if name := boot(l.byHost[h], tried.Source); name != "" {
		answer = machine.Loaded{Boot: tried.Boot, Source: tried.Source, Name: name}
	}
	// This fails when the boot is over by now or the rack was closed.
	_ = h.Apply(context.Background(), answer)
}

// bootable finds a system on disks and on inserted media.
func bootable(h *Host, s Source) string {
	switch s.Kind {
	case machine.Hdd:
		return "disk"
	case machine.Cd, machine.Usb:
		for _, m := range h.host.BMC().Slots {
			if m.Inserted {
				return "media"
			}
		}
	}
	return ""
}

// PowerState returns the server's power state as Redfish spells it.
func (h *Host) PowerState() string { return string(h.host.Machine().Power) }

// Running returns the name of the system that runs on the server, or "" when none
// does.
func (h *Host) Running() string {
	if v := h.host.Machine(); v.Phase == machine.Running && v.OS != nil {
		return v.OS.Name
	}
	return ""
}

// Power resets the server as its front panel or its system would, without a request
// to the BMC. The reset is a ResetType of Redfish.
func (h *Host) Power(reset string) error { return h.host.Power(context.Background(), reset) }

// Lab returns the underlying host of package rack, for tests that need more than this
// package offers.
func (h *Host) Lab() *rack.Host { return h.host }
