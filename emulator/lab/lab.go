// Package lab is a running rack: it gives every BMC an address, every machine
// its deadlines and its disks, stores what must survive, and answers what the
// services ask of a host. The models below it are stepped and know none of
// this. It does not know what a disk or an image holds, and runs nothing on a
// machine: who wires it does, told by events.
package lab

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/lab/journal"
	"github.com/metalab-dev/metalab/emulator/lab/mishap"
	"github.com/metalab-dev/metalab/emulator/lab/outbound"
	"github.com/metalab-dev/metalab/emulator/lab/rack"
	"github.com/metalab-dev/metalab/emulator/lab/ssdp"
	"github.com/metalab-dev/metalab/emulator/lab/store"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish"
)

// Config says what lab to open and how.
type Config struct {
	// Dir holds all that the lab must still know when it is opened again.
	Dir string
	// Rack is what the lab shall be. Nil takes what is in Dir, or one default
	// host where nothing is.
	Rack *rack.Lab
	// Clock is the lab's time. It must not be behind LastTime(Dir); who made
	// it runs it.
	Clock *clock.Clock
	// Profiles holds profiles/NAME.yaml for every profile that the rack names.
	// Nil takes those of Models(Dir): its own, and the built-in ones.
	Profiles fs.FS
	// Fsync makes what was answered survive a power cut of the computer that
	// the lab runs on, not only the death of the lab.
	Fsync bool
	// Listen says where the BMCs are:
	// "" is as the rack says: where that leaves it open, it gives each its own
	// loopback address from 127.64.0.1 up, at port 443 where that is allowed,
	// else at 8443 or the next free one;
	// "lo:PORT" the same at that port, or any free one if PORT is 0;
	// "ADDRESS:FIRSTPORT" gives each its own port of that address, from
	// FIRSTPORT up, or from any if that is 0.
	// What was chosen is kept for the next time.
	Listen string
	// Media says how the BMCs fetch virtual media. Those that verify
	// certificates trust the lab's authority, and the system's: RootCAs, if not
	// nil, are instead of these.
	Media outbound.Config
	// Events, if not nil, is told what happens to machines while Serve runs:
	// of one host in order, of several at once. It may call the host. While it
	// has not returned, the host's next event waits, and nothing else does.
	Events func(h *Host, ev machine.Event)
	// Schemas, if not nil, holds DMTF's files for the BMCs to serve: an unpacked
	// DSP8010 archive (a zip.Reader, say), with or without DSP8011's registries.
	Schemas fs.FS
	// HTTP2 lets clients speak it, which BMCs seldom do.
	HTTP2 bool
	// SSDP is the network device on which clients can search for the BMCs
	// (DSP0266, "Discovery"): "lo" for this computer alone; "" for nowhere.
	SSDP string
	// Traps is the UDP port of this computer to which alerts of BMCs go; 0 is
	// that of SNMP traps.
	Traps uint16
	// Journal bounds what the lab remembers of what happened.
	Journal journal.Config
	Log     *slog.Logger // nil: none
}

// Lab is a rack that is open. It is safe for concurrent use.
type Lab struct {
	dir     string
	rack    rack.Lab
	clock   *clock.Clock
	log     *slog.Logger
	store   *store.Store
	held    *os.File
	ca      *authority
	fetcher *outbound.Fetcher

	listeners  []net.Listener
	doors      doors        // of TCP: the web services
	sockets    []*datagrams // shared ones
	mail       doors        // of UDP: IPMI
	http2      bool
	ssdp       *ssdp.Responder // nil: nobody can search
	searchable bool
	conns      conns
	plain      *plain           // connections without TLS
	service    *redfish.Service // the right answers
	stale      *redfish.Service // those of before
	ipmi       *ipmi.Service
	poster     *outbound.Poster // of events
	trapper    *outbound.Trapper
	errands    errands
	journal    *journal.Journal
	meter      meter
	faults     faults
	quirks     quirks

	hosts  []*Host // by index
	byName map[string]*Host

	machines schedule // deadlines of machines, and of BMCs what somebody waits for: they hurry the clock
	bmcs     schedule // all those of BMCs, which do not
	ticks    chan chan struct{}
	stopped  chan struct{} // closed when Serve no longer takes ticks
	delivery delivery
	carrying sync.WaitGroup // work of jobs that no model does

	unserved func() // ends that a lab which is not served holds the clock
	closing  sync.Once
}

// meta is what the store knows of the lab itself.
type meta struct {
	Rack   rack.Lab `json:"rack"`
	Listen string   `json:"listen"`
	Port   uint16   `json:"port"`           // of the first BMC
	IPMI   uint16   `json:"ipmi,omitempty"` // its port of IPMI
}

const metaKey = "rack"

// Open opens the lab in c.Dir or makes it. It refuses a lab that is another one
// than c.Rack asks for, and one that is open already (HeldError). The BMCs have
// their addresses from then on; Serve answers there. Until it does, the lab
// holds the clock: what is due must not be run past.
func Open(ctx context.Context, c Config) (*Lab, error) {
	switch {
	case c.Dir == "":
		return nil, errors.New("lab: Config.Dir: must not be empty")
	case c.Clock == nil:
		return nil, errors.New("lab: Config.Clock: must not be nil")
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	if c.Dir = dir; c.Profiles == nil {
		c.Profiles = Models(dir)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	l := &Lab{
		dir: c.Dir, clock: c.Clock, http2: c.HTTP2, searchable: c.SSDP != "", log: c.Log, byName: map[string]*Host{},
		ticks: make(chan chan struct{}), stopped: make(chan struct{}),
	}
	l.machines.clock, l.bmcs.clock, l.bmcs.lazy = c.Clock, c.Clock, true
	l.delivery = delivery{clock: c.Clock, tell: c.Events, queues: map[*Host][]machine.Event{}}
	l.poster = outbound.NewPoster(outbound.PostConfig{Clock: c.Clock, RootCAs: c.Media.RootCAs})
	l.trapper = outbound.NewTrapper(outbound.TrapConfig{Clock: c.Clock, Port: c.Traps, Log: l.log})
	l.errands.clock = c.Clock
	l.journal = journal.New(c.Journal)
	l.unserved = c.Clock.Enter()
	if err := l.open(ctx, c); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return l, nil
}

func (l *Lab) open(ctx context.Context, c Config) (err error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if l.held, err = hold(ctx, c.Dir); err != nil {
		return err
	}
	if l.store, err = store.Open(store.Config{Dir: c.Dir, Fsync: c.Fsync}); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if now, last := l.clock.Now(), l.store.Last(); now.Before(last) {
		return fmt.Errorf("lab: the clock says %v, but in %s it was %v already: start the clock at LastTime or later",
			now, c.Dir, last)
	}
	known, faults, err := l.loadRack(c.Rack)
	if err != nil {
		return err
	}
	if l.ca, err = openAuthority(c.Dir, l.rack.Name); err != nil {
		return err
	}
	if l.fetcher, err = l.newFetcher(c.Media); err != nil {
		return err
	}
	if c.Listen == "" {
		if c.Listen, err = listenAs(l.rack.Listen); err != nil {
			return err
		}
	}
	if known.Listen != c.Listen {
		known.Port, known.IPMI = 0, 0
	}
	if l.listeners, l.doors.plan, err = listen(ctx, c.Listen, known.Port, l.rack.Len()); err != nil {
		return err
	}
	l.doors.wanted, l.doors.listen = webDoors, l.listenWeb
	if l.sockets, l.mail.plan, err = listenMail(ctx, l.doors.plan, c.Listen, known.IPMI); err != nil {
		return err
	}
	l.mail.wanted, l.mail.listen = mailDoors, listenDatagrams
	if err := l.makeHosts(c.Profiles); err != nil {
		return err
	}
	now := meta{Rack: l.rack, Listen: c.Listen, Port: l.doors.plan.first, IPMI: l.mail.plan.first}
	if err := l.store.Save(l.clock.Now(), store.Put{Kind: store.Meta, Key: metaKey, Value: now}); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if err := l.openFaults(faults); err != nil {
		return err
	}
	if err := l.resume(); err != nil {
		return err
	}
	rc := redfish.Config{Rack: l, Log: l.log, Enter: l.clock.Begin, Leave: l.clock.End, Journal: l.told, Whole: inWhole, Clock: l.clock, Schemas: c.Schemas}
	if l.service, err = redfish.New(rc); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	rc.Rack = staleRack{l}
	if l.stale, err = redfish.New(rc); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	ic := ipmi.Config{
		Rack: l, Log: l.log, Enter: l.clock.Enter, Journal: l.commanded, Clock: l.clock, DatagramFault: l.strays, CommandFault: l.troubles,
		WatchConsole: l.watch, SendTrap: l.alert, TrapAcknowledged: l.alerted, AfterFunc: l.errands.later,
	}
	if l.ipmi, err = ipmi.New(ic); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	l.faults.server = mishap.Server{Next: l.service, Stale: l.stale, Ended: l.faults.ended}
	l.plain = newPlain(l.listeners[0].Addr())
	for _, ln := range l.listeners {
		ln.(*bmcListener).admit = l.admit
	}
	for _, h := range l.hosts {
		if v := h.BMC(); v.Net != nil {
			for _, d := range l.allDoors() {
				if err := d.set(h.index, v); err != nil {
					l.log.Error("BMC cannot be where it was", "host", h.Name(), "err", err)
				}
			}
		}
	}
	if c.SSDP != "" {
		if l.ssdp, err = ssdp.New(ctx, ssdp.Config{Device: c.SSDP, Services: l.discoverable, Log: l.log}); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
	}
	return nil
}

// loadRack takes the rack from the store, or makes it as asked. It tells whether
// other faults are asked for than before.
func (l *Lab) loadRack(asked *rack.Lab) (known meta, faults bool, err error) {
	found, err := l.store.Load(store.Meta, metaKey, &known)
	if err != nil {
		return meta{}, false, fmt.Errorf("lab: %w", err)
	}
	if asked != nil {
		if err := asked.Validate(); err != nil {
			return meta{}, false, fmt.Errorf("lab: %w", err)
		}
	}
	if found {
		if asked != nil {
			if diff := rack.Diff(known.Rack, *asked); len(diff) > 0 {
				return meta{}, false, fmt.Errorf("lab: %s holds another lab than asked: %s", l.dir, strings.Join(diff, "; "))
			}
			faults = known.Rack.Adopt(*asked)
		}
		l.rack = known.Rack
		return known, faults, nil
	}
	l.rack = rack.Default(1)
	if asked != nil {
		l.rack = *asked
	}
	l.rack.Accounts = append([]rack.Account(nil), l.rack.Accounts...)
	for i := range l.rack.Accounts {
		if a := &l.rack.Accounts[i]; a.Password == "" {
			a.Password = rand.Text()[:16] // 80 bits; IPMI takes at most 20 bytes
		}
	}
	return meta{Rack: l.rack}, true, nil
}

// makeHosts makes the hosts of the rack, each as it was stored.
func (l *Lab) makeHosts(profiles fs.FS) error {
	if err := l.openQuirks(); err != nil {
		return err
	}
	models, err := loadModels(profiles, &l.rack)
	if err != nil {
		return err
	}
	stored := map[string]*hostState{}
	err = l.store.Each(store.Hosts, func(key string, value []byte) error {
		name, part, ok := strings.Cut(key, "/")
		if !ok {
			return fmt.Errorf("was stored by an older release: start it with that, or remove %s", l.dir)
		}
		st := stored[name]
		if st == nil {
			st = new(hostState)
			stored[name] = st
		}
		return st.load(part, value)
	})
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	for _, r := range l.rack.Each() {
		h, err := newHost(l, r, models[keyOf(r)], accounts(l.rack.Accounts, &models[keyOf(r)].record.BMC.Accounts), stored[r.Name])
		if err != nil {
			return fmt.Errorf("lab: %s: %w", r.Name, err)
		}
		l.hosts = append(l.hosts, h)
		l.byName[r.Name] = h
	}
	return nil
}

// accounts are those of a rack, at the IDs that a BMC has for them.
func accounts(of []rack.Account, spec *bmc.AccountSpec) []bmc.Account {
	var out []bmc.Account
	id := 0
	for _, a := range of {
		for id++; slices.Contains(spec.Reserved, fmt.Sprint(id)); id++ {
		}
		out = append(out, bmc.Account{
			ID: fmt.Sprint(id), Name: a.Name, Password: a.Password, Role: bmc.Role(a.Role), Enabled: true,
		})
	}
	return out
}

// resume brings what was under way when the lab was last closed or killed to
// where it can go on: images that had not arrived are lost, and who runs things
// on machines is told again what it shall look at or run.
func (l *Lab) resume() error {
	var kept []store.Image
	var updates []store.Image
	for _, h := range l.hosts {
		slots, images, err := h.resume()
		if err != nil {
			return err
		}
		kept, updates = append(kept, slots...), append(updates, images...)
	}
	if err := errors.Join(l.store.KeepMedia(kept), l.store.KeepUpdates(updates)); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return nil
}

// Close closes a lab that Serve does not serve any longer.
func (l *Lab) Close() error {
	var err error
	l.closing.Do(func() {
		for _, h := range l.hosts {
			h.abandon()
		}
		l.carrying.Wait()
		l.faults.mu.Lock()
		err = l.saveFaults()
		l.faults.mu.Unlock()
		err = errors.Join(err, l.store.Save(l.clock.Now()), l.release())
	})
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return nil
}

// release gives back what open has taken, as far as it came.
func (l *Lab) release() error {
	l.unserved()
	err := errors.Join(l.doors.close(), l.mail.close())
	for _, sock := range l.sockets {
		if e := sock.Close(); !errors.Is(e, net.ErrClosed) { // by Serve, if it ran
			err = errors.Join(err, e)
		}
	}
	for _, ln := range l.listeners {
		if e := ln.Close(); !errors.Is(e, net.ErrClosed) { // by Serve, if it ran
			err = errors.Join(err, e)
		}
	}
	if l.ssdp != nil {
		if e := l.ssdp.Close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	if l.store != nil {
		err = errors.Join(err, l.store.Close())
	}
	if l.held != nil {
		err = errors.Join(err, l.held.Close())
	}
	return err
}

// LastTime is the lab's time when it was last saved in dir: a clock for that lab
// must not start earlier. It is zero where there is no lab yet.
func LastTime(dir string) (time.Time, error) {
	held, pid, err := isHeld(dir)
	if err != nil {
		return time.Time{}, err
	}
	if held {
		return time.Time{}, &HeldError{Dir: dir, PID: pid}
	}
	at, err := store.LastTime(dir)
	if err != nil {
		return time.Time{}, fmt.Errorf("lab: %w", err)
	}
	return at, nil
}

// Dir is the directory that the lab is in, as an absolute path.
func (l *Lab) Dir() string { return l.dir }

// Rack is what the lab consists of, with the passwords of its accounts.
func (l *Lab) Rack() rack.Lab { return l.rack }

// Clock is the lab's time.
func (l *Lab) Clock() *clock.Clock { return l.clock }

// CAFile is the certificate, in PEM, of the authority that signs for the BMCs.
func (l *Lab) CAFile() string { return filepath.Join(l.dir, caCert) }

// CAs holds that certificate.
func (l *Lab) CAs() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(l.ca.cert)
	return pool
}

// Hosts are all hosts in the order of the rack.
func (l *Lab) Hosts() []*Host { return append([]*Host(nil), l.hosts...) }

// Host is the host of that name.
func (l *Lab) Host(name string) (*Host, bool) {
	h, ok := l.byName[name]
	return h, ok
}

// At implements redfish.Rack.
func (l *Lab) At(local netip.AddrPort) (redfish.Host, bool) {
	x, ok := l.doors.find(local)
	if !ok {
		return nil, false
	}
	return l.hosts[x.host], true
}
