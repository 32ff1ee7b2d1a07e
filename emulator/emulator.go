// Package emulator gives Go tests a rack of servers whose BMCs answer Redfish,
// as net/http/httptest gives them a web server:
//
//	func TestMyProvisioner(t *testing.T) {
//		lab := emulator.Start(t, emulator.Rack{Hosts: 3})
//		host := lab.Host(0)
//		client := gofish.ClientConfig{Endpoint: host.Endpoint, Username: host.Username, Password: host.Password, HTTPClient: lab.Client}
//		…
//		lab.Advance(2 * time.Minute) // the servers' time: POST takes no time of yours
//		if host.PowerState() != "On" { … }
//	}
//
// The BMCs listen on loopback, over TLS, with certificates that lab.Client
// trusts. Their time stands until Advance, so a test that waits for nothing
// waits for nothing; Rack.Hurry lets it run as fast as there is work instead,
// for code under test that polls with a clock of its own. All identities, and
// all chance, come from Rack.Seed: a test that failed fails again.
//
// Things go wrong by rules (Fail), and what clients did can be asked (Requests):
//
//	mend := lab.Fail(emulator.Fault{BMC: "node-1", Path: "/redfish/v1/Systems/**", Status: 503, Count: 2})
//	…
//	mend()
//	if n := len(lab.Requests(emulator.Query{Host: "node-1", Method: "PATCH"})); n != 1 { … }
//
// This package owns the short way to all that, and nothing else: what it starts
// is emulator/lab.
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
	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/lab/journal"
	"github.com/metalab-dev/metalab/emulator/lab/rack"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// Fault is a rule of what goes wrong.
type Fault = fault.Rule

// Query asks the journal.
type Query = journal.Query

// Entry is what the journal has of a request, or of something that happened.
type Entry = journal.Entry

// Source is what a server tries to boot from.
type Source = machine.Source

// Origin is when the time of a rack begins, unless its directory holds a later
// one: far from real time, so that nobody mistakes one for the other.
var Origin = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)

// Rack says what to start. The zero value is one server.
type Rack struct {
	Hosts   int    // 0 is 1
	Profile string // model of the servers; "" is "generic"
	Seed    uint64 // 0 is 1
	// Definition is a rack as a file defines it (YAML, kind: Lab), for racks of
	// several models, accounts, timings or faults. Hosts, Profile and Seed must
	// not be set beside it.
	Definition string
	// Hurry lets time run as fast as there is work. Advance then only adds to
	// it.
	Hurry bool
	// Boot says which system is on a source that a server tries, "" that none
	// is. Nil finds one on every disk and every inserted medium.
	Boot func(h *Host, s Source) string
	// Dir keeps the servers for another start. "" is a new directory that is
	// removed in the end.
	Dir string
}

// Lab is a rack that runs. It is safe for concurrent use.
type Lab struct {
	// Client trusts the BMCs. It follows no redirects to elsewhere and keeps
	// connections.
	Client *http.Client

	lab    *lab.Lab
	clock  *clock.Clock
	hosts  []*Host
	byLab  map[*lab.Host]*Host
	boot   func(h *Host, s Source) string
	close  func() error
	closed sync.Once
	err    error
}

// Host is one server with its BMC.
type Host struct {
	Name     string
	Endpoint string // URL of the BMC, without a path: https://127.64.0.1:40123
	Username string // of an administrator
	Password string

	host *lab.Host
}

// Start starts a rack that runs until the test ends. What is wrong with r fails
// the test.
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
			t.Logf("the rack's seed is %d", l.lab.Rack().Seed)
		}
	})
	return l
}

// Open starts a rack outside of a test. The caller closes it.
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
	origin, err := lab.LastTime(r.Dir)
	if err != nil {
		return nil, err
	}
	if origin.IsZero() {
		origin = Origin
	}
	l := &Lab{clock: clock.NewVirtual(origin), byLab: map[*lab.Host]*Host{}, boot: r.Boot}
	if r.Hurry {
		l.clock = clock.NewJumping(origin)
	}
	c := lab.Config{Dir: r.Dir, Rack: &def, Clock: l.clock, Events: l.event}
	if def.Listen == rack.Loopback || def.Listen == "" {
		c.Listen = "lo:0" // any port: other tests run beside this one
	}
	if l.lab, err = lab.Open(ctx, c); err != nil {
		return nil, err
	}
	for _, h := range l.lab.Hosts() {
		own := &Host{Name: h.Name(), Endpoint: h.URL(), host: h}
		if a, ok := h.Admin(); ok {
			own.Username, own.Password = a.Name, a.Password
		}
		l.hosts, l.byLab[h] = append(l.hosts, own), own
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: l.lab.CAs(), MinVersion: tls.VersionTLS12}}
	l.Client = &http.Client{Transport: transport}

	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	var served error
	all.Go(func() { _ = l.clock.Run(running) }) // it ends with its context
	all.Go(func() { served = l.lab.Serve(running) })
	l.close = func() error {
		transport.CloseIdleConnections()
		cancel()
		all.Wait()
		return errors.Join(served, l.lab.Close(), remove())
	}
	return l, nil
}

func (r *Rack) definition() (rack.Lab, error) {
	if r.Definition != "" {
		if r.Hosts != 0 || r.Profile != "" || r.Seed != 0 {
			return rack.Lab{}, errors.New("emulator: Rack.Definition: say hosts, profile and seed there, not beside it")
		}
		return rack.Parse("Rack.Definition", []byte(r.Definition))
	}
	if r.Hosts < 0 {
		return rack.Lab{}, fmt.Errorf("emulator: Rack.Hosts: %d: must not be negative", r.Hosts)
	}
	def := rack.Default(max(r.Hosts, 1))
	if r.Profile != "" {
		def.Hosts[0].Profile = r.Profile
	}
	if r.Seed != 0 {
		def.Seed = r.Seed
	}
	return def, nil
}

// Close ends the rack. Doing it again does nothing.
func (l *Lab) Close() error {
	l.closed.Do(func() { l.err = l.close() })
	return l.err
}

// Hosts are all servers.
func (l *Lab) Hosts() []*Host { return append([]*Host(nil), l.hosts...) }

// Host is the i-th server, counted from 0.
func (l *Lab) Host(i int) *Host { return l.hosts[i] }

// Named is the server of that name; nil when there is none.
func (l *Lab) Named(name string) *Host {
	h, ok := l.lab.Host(name)
	if !ok {
		return nil
	}
	return l.byLab[h]
}

// CAFile is the certificate, in PEM, of the authority that signs for the BMCs,
// for clients in other processes.
func (l *Lab) CAFile() string { return l.lab.CAFile() }

// Now is the rack's time.
func (l *Lab) Now() time.Time { return l.clock.Now() }

// Advance moves the rack's time on by d, and returns when all that was due in
// between is done.
func (l *Lab) Advance(d time.Duration) {
	if err := l.clock.Walk(context.Background(), d); err != nil {
		panic(err) // the context does not end
	}
}

// Waiting is how many answers a fault delays now. They come when time goes on:
// a test that wants a delay to pass waits until its client is one of them, and
// then calls Advance.
func (l *Lab) Waiting() int { return l.lab.Waiting() }

// Fail lets something go wrong until mend is called. A rule that is wrong
// itself panics: it is part of the test.
func (l *Lab) Fail(f Fault) (mend func()) {
	f, err := l.lab.AddFault(f)
	if err != nil {
		panic(err)
	}
	return sync.OnceFunc(func() {
		if err := l.lab.RemoveFault(f.ID); err != nil && !errors.Is(err, fault.ErrUnknown) {
			panic(err)
		}
	})
}

// Faults lists the rules by which things go wrong, with how often they did.
func (l *Lab) Faults() []fault.Listed { return l.lab.Faults() }

// Requests are the requests that BMCs have answered, oldest first.
func (l *Lab) Requests(q Query) []Entry {
	q.Kind = journal.Request
	return l.Journal(q)
}

// Journal is what the rack remembers, oldest first: requests, and what happened
// to the servers. A query that is wrong panics: it is part of the test.
func (l *Lab) Journal(q Query) []Entry {
	out, _, err := l.lab.Journal().Select(q)
	if err != nil {
		panic(err)
	}
	return out
}

// event answers for what the servers try to boot.
func (l *Lab) event(h *lab.Host, ev machine.Event) {
	tried, ok := ev.(machine.BootAttempted)
	if !ok {
		return
	}
	boot := l.boot
	if boot == nil {
		boot = bootable
	}
	var answer machine.Command = machine.NotBootable{Boot: tried.Boot, Source: tried.Source}
	if name := boot(l.byLab[h], tried.Source); name != "" {
		answer = machine.Loaded{Boot: tried.Boot, Source: tried.Source, Name: name}
	}
	// The boot may be over by now, and the rack may have ended.
	_ = h.Apply(context.Background(), answer)
}

// bootable finds a system on disks and on media that are inserted.
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

// PowerState is the server's power as Redfish spells it.
func (h *Host) PowerState() string { return string(h.host.Machine().Power) }

// Running names the system that runs on the server; "" when none does.
func (h *Host) Running() string {
	if v := h.host.Machine(); v.Phase == machine.Running && v.OS != nil {
		return v.OS.Name
	}
	return ""
}

// Press resets the server as somebody who stands before it, or its system,
// would: no BMC is asked. reset is a ResetType of Redfish.
func (h *Host) Press(reset string) error { return h.host.Power(context.Background(), reset) }

// Lab is the server in full, for tests that need more than is here.
func (h *Host) Lab() *lab.Host { return h.host }
