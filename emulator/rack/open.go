package rack

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
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/integrity"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/outbound"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/space"
	"github.com/metalab-dev/metalab/emulator/rack/ssdp"
	"github.com/metalab-dev/metalab/emulator/rack/store"
	"github.com/metalab-dev/metalab/emulator/redfish"
)

// meta is what the store holds about the rack itself.
type meta struct {
	Rack   rackfile.Lab `json:"rack"`
	Listen string       `json:"listen"`
	Port   uint16       `json:"port"`           // HTTPS port of the first BMC
	IPMI   uint16       `json:"ipmi,omitempty"` // IPMI port of the first BMC
}

const metaKey = "rack"

// Open opens the rack in c.Dir, or makes one there. It refuses a rack that differs
// from c.Rack, and returns a HeldError when the rack is open already. The BMCs have
// their addresses when it returns; Serve answers at them. Until Serve runs, the rack
// holds the clock, so that time does not pass deadlines.
func Open(ctx context.Context, c Config) (*Rack, error) {
	switch {
	case c.Dir == "":
		return nil, errors.New("Config.Dir: must not be empty")
	case c.Clock == nil:
		return nil, errors.New("Config.Clock: must not be nil")
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	if c.Dir = dir; c.Profiles == nil {
		c.Profiles = Models(dir)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	l := &Rack{
		dir: c.Dir, clock: c.Clock, space: c.Space, searchable: c.SSDP != "", advertise: c.Advertise, bodyPace: c.BodyPace, log: c.Log, byName: map[string]*Host{},
		ticks: make(chan chan struct{}), stopped: make(chan struct{}),
	}
	l.tls = network.TLS{HTTP2: c.HTTP2, Host: func(i int) network.TLSHost { return l.hosts[i] }}
	l.machines.now, l.machines.after = c.Clock.Now, c.Clock.AfterFunc
	l.bmcs.now, l.bmcs.after, l.bmcs.lazy = c.Clock.Now, c.Clock.LazyFunc, true
	l.clients.now, l.clients.after, l.clients.lazy = c.Clock.ClientNow, c.Clock.ClientFunc, true
	l.delivery = eventDelivery{clock: c.Clock, handle: c.Events, queues: map[*Host][]machine.Event{}}
	l.poster = outbound.NewPoster(outbound.PostConfig{Clock: c.Clock, RootCAs: c.Media.RootCAs})
	l.trapper = outbound.NewTrapper(outbound.TrapConfig{Clock: c.Clock, Port: c.Traps, Log: l.log})
	l.background.clock = c.Clock
	c.Journal.Real = c.Clock.Real
	l.journal = journal.New(c.Journal)
	l.releaseClock = c.Clock.Enter()
	if err := l.open(ctx, c); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return l, nil
}

// open does the work of Open. When it fails, release gives back what it took.
func (l *Rack) open(ctx context.Context, c Config) (err error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	if l.lock, err = lockDir(ctx, c.Dir); err != nil {
		return err
	}
	if err := l.checkFiles(c.Files); err != nil {
		return err
	}
	if l.store, err = store.Open(store.Config{Dir: c.Dir, Fsync: c.Fsync, AcceptLoss: c.AcceptLoss, Log: l.log, Use: l.space.Use}); err != nil {
		return err
	}
	if now, last := l.clock.Now(), l.store.Last(); now.Before(last) {
		return fmt.Errorf("the clock is at %v, behind the time %[3]v of the lab in %[2]s: start the clock at LastTime or later",
			now, c.Dir, last)
	}
	if err := l.loadClientTime(); err != nil {
		return err
	}
	known, faults, err := l.loadRack(c.Rack)
	if err != nil {
		return err
	}
	if l.authority, err = network.OpenAuthority(c.Dir, l.definition.Name); err != nil {
		return err
	}
	if l.fetcher, err = l.newFetcher(c.Media); err != nil {
		return err
	}
	if c.Listen == "" {
		if c.Listen, err = listenSpec(l.definition.Listen); err != nil {
			return err
		}
	}
	if known.Listen != c.Listen {
		known.Port, known.IPMI = 0, 0
	}
	if err := l.listen(ctx, c.Listen, known); err != nil {
		return err
	}
	if err := l.makeHosts(c.Profiles); err != nil {
		return err
	}
	now := meta{Rack: l.definition, Listen: c.Listen, Port: l.webEndpoints.Plan().FirstPort(), IPMI: l.ipmiEndpoints.Plan().FirstPort()}
	if err := l.save(l.clock.Now(), store.Put{Kind: store.Meta, Key: metaKey, Value: now}); err != nil {
		return err
	}
	if err := l.openFaults(faults); err != nil {
		return err
	}
	if err := l.resume(); err != nil {
		return err
	}
	if err := l.makeServices(c.Schemas); err != nil {
		return err
	}
	for _, h := range l.hosts {
		if h.BMC().Net != nil {
			h.moveEndpoints()
		}
	}
	if c.SSDP != "" {
		if l.ssdp, err = ssdp.New(ctx, ssdp.Config{Device: c.SSDP, Services: l.discoverableServices, Log: l.log}); err != nil {
			return err
		}
	}
	return integrity.Seal(l.dir, fileRules, true)
}

// listen opens the listeners and sockets of the BMCs, and routes accepted
// connections to the hosts.
func (l *Rack) listen(ctx context.Context, spec string, known meta) error {
	listeners, plan, err := network.Listen(ctx, spec, known.Port, l.definition.Len(), l.definition.First())
	if err != nil {
		return err
	}
	l.listeners, l.webEndpoints = listeners, network.NewWebEndpoints(plan, l.admit)
	for _, ln := range l.listeners {
		ln.Admit = l.admit
	}
	l.plainConns = network.NewHandedListener(l.listeners[0].Addr())
	if l.ipmiSockets, plan, err = network.ListenIPMI(ctx, plan, spec, known.IPMI); err != nil {
		return err
	}
	l.ipmiEndpoints = network.NewIPMIEndpoints(plan)
	return nil
}

// listenSpec returns what a rack says about listening in the form of
// Config.Listen.
func listenSpec(l rackfile.Listen) (string, error) {
	p, err := l.Parse()
	switch {
	case err != nil:
		return "", fmt.Errorf("listen: %w", err)
	case p.Addr.IsValid():
		return netip.AddrPortFrom(p.Addr, p.Port).String(), nil
	case p.Port != 0:
		return fmt.Sprintf("%s:%d", network.Loopback, p.Port), nil
	}
	return "", nil
}

// makeServices makes the Redfish and IPMI services that answer for all BMCs.
func (l *Rack) makeServices(schemas fs.FS) (err error) {
	rc := redfish.Config{
		Rack: l, Log: l.log, OnRequestStart: l.clock.Begin, OnRequestEnd: l.clock.End, Journal: l.recordRequest,
		OnLongResponse: network.Coalesce, Clock: l.clock, Schemas: schemas,
	}
	if l.service, err = redfish.New(rc); err != nil {
		return err
	}
	rc.Rack = previousRack{l}
	if l.previousService, err = redfish.New(rc); err != nil {
		return err
	}
	l.ipmi, err = ipmi.New(ipmi.Config{
		Rack: l, Log: l.log, Enter: l.clock.Enter, Journal: l.recordCommand, Clock: l.clock, DatagramFault: l.datagramFault, CommandFault: l.commandFault,
		WatchConsole: l.watch, SendTrap: l.alert, TrapAcknowledged: l.acknowledgeAlert, AfterFunc: l.background.after,
	})
	if err != nil {
		return err
	}
	l.faultyHTTP = l.faults.HTTP(l.service, l.previousService, l.recordFaulted)
	return nil
}

// newFetcher returns the client that fetches images for the BMCs.
func (l *Rack) newFetcher(c outbound.Config) (*outbound.Fetcher, error) {
	if c.RootCAs == nil {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("the system's certificates: %w", err)
		}
		pool.AddCert(l.authority.Certificate())
		c.RootCAs = pool
	}
	return outbound.New(c), nil
}

// loadRack loads the rack from the store, or takes the one that is asked for. It
// reports whether the faults of the rack differ from those that were stored.
func (l *Rack) loadRack(asked *rackfile.Lab) (known meta, faults bool, err error) {
	found, err := l.store.Load(store.Meta, metaKey, &known)
	if err != nil {
		return meta{}, false, err
	}
	if asked != nil {
		if err := asked.Validate(); err != nil {
			return meta{}, false, err
		}
	}
	if found {
		if asked != nil {
			if diff := rackfile.Diff(known.Rack, *asked); len(diff) > 0 {
				return meta{}, false, fmt.Errorf("%s holds another lab than asked: %s", l.dir, strings.Join(diff, "; "))
			}
			faults = known.Rack.Adopt(*asked)
		}
		l.definition = known.Rack
		return known, faults, nil
	}
	l.definition = rackfile.Default(1)
	if asked != nil {
		l.definition = *asked
	}
	l.definition.Accounts = append([]rackfile.Account(nil), l.definition.Accounts...)
	for i := range l.definition.Accounts {
		if a := &l.definition.Accounts[i]; a.Password == "" {
			a.Password = rand.Text()[:16] // 80 bits; IPMI allows at most 20 bytes
		}
	}
	return meta{Rack: l.definition}, true, nil
}

// makeHosts makes the hosts of the rack from their stored states.
func (l *Rack) makeHosts(profiles fs.FS) error {
	if err := l.openQuirks(); err != nil {
		return err
	}
	models, err := loadModels(profiles, &l.definition)
	if err != nil {
		return err
	}
	stored := map[string]*hostState{}
	err = l.store.Each(store.Hosts, func(key string, value []byte) error {
		name, part, ok := strings.Cut(key, "/")
		if !ok {
			return fmt.Errorf("was stored by an older release: start it with that, or remove %s", l.dir)
		}
		if strings.HasPrefix(part, store.DiskPart+"/") { // the store's own
			return nil
		}
		st := stored[name]
		if st == nil {
			st = new(hostState)
			stored[name] = st
		}
		return st.load(part, value)
	})
	if err != nil {
		return err
	}
	for _, r := range l.definition.Each() {
		h, err := newHost(l, r, models[modelKeyOf(r)], stored[r.Name])
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		l.hosts = append(l.hosts, h)
		l.byName[r.Name] = h
	}
	return nil
}

// accounts returns the accounts of a rack with the IDs that a BMC gives them.
func accounts(of []rackfile.Account, spec *bmc.AccountSpec) []bmc.Account {
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

// resume takes up the hosts as the last close or kill of the rack left them. It drops
// images that had not arrived and ends tasks whose work has stopped. Config.Events gets
// the boot that each machine tries, or the system that it runs, once more, because its
// receiver has started anew, too.
func (l *Rack) resume() error {
	var media []store.Image
	var updates []store.Image
	for _, h := range l.hosts {
		slots, images, err := h.resume()
		if err != nil {
			return err
		}
		media, updates = append(media, slots...), append(updates, images...)
	}
	if err := errors.Join(l.store.KeepMedia(media), l.store.KeepUpdates(updates)); err != nil {
		return err
	}
	return nil
}

// Close closes a rack after Serve has returned.
func (l *Rack) Close() error {
	var err error
	l.closing.Do(func() {
		for _, h := range l.hosts {
			h.cancelWork()
		}
		l.tasks.Wait()
		if err = errors.Join(l.faults.Save(), l.save(l.clock.Now())); space.Full(err) {
			l.log.Warn("the time and the hits of faults are those of the last save", "err", err)
			err = nil
		}
		err = errors.Join(err, l.release())
	})
	if err != nil {
		return err
	}
	return nil
}

// release gives back what open has taken, even when open failed halfway.
func (l *Rack) release() error {
	l.releaseClock()
	var err error
	for _, e := range l.endpoints() {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
	}
	for _, sock := range l.ipmiSockets {
		if e := sock.Close(); !errors.Is(e, net.ErrClosed) { // Serve closes it
			err = errors.Join(err, e)
		}
	}
	for _, ln := range l.listeners {
		if e := ln.Close(); !errors.Is(e, net.ErrClosed) { // Serve closes it
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
	if l.unsealed && err == nil {
		if err = integrity.Seal(l.dir, l.files, false); space.Full(err) { // the old list is right, too
			l.log.Warn("the files of the lab are not listed", "err", err)
			err = nil
		}
	}
	if l.lock != nil {
		err = errors.Join(err, l.lock.Close())
	}
	return err
}

// LastTime returns the lab's time when the rack in dir was last saved. A clock for
// that rack must not start earlier. It is zero when dir holds no rack.
func LastTime(dir string) (time.Time, error) {
	held, pid, err := isLocked(dir)
	if err != nil {
		return time.Time{}, err
	}
	if held {
		return time.Time{}, &HeldError{Dir: dir, PID: pid}
	}
	return store.LastTime(dir)
}
