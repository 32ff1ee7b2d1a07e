package bmc

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// poolIdle is the time after which a pool closes an unused client: several times
// the power poll of a host (60 s, B-121), so that a host in a stable state keeps
// its connection and a deleted one does not.
const poolIdle = 10 * time.Minute

// poolSweep is the interval between two searches for idle clients.
const poolSweep = poolIdle / 10

// errClosed is the error of a closed pool.
var errClosed = errors.New("bmc: the pool is closed")

// Pool holds one open Client per BMC and account. A login is slow and sessions are
// few (an iDRAC has 8), so a reconciler takes its clients from a Pool, with one
// Get per piece of work. The zero Pool has no drivers.
type Pool struct {
	Drivers map[string]Open // by Address.Driver; constant after the first Get
	Clock   clock.Clock     // nil means the real clock

	registries Registries // shared by all clients

	mu        sync.Mutex
	entries   map[poolKey]*poolEntry
	lastSweep time.Time // time of the last search for idle clients
	closed    bool
}

// poolKey holds the fields of a Config that identify a connection. The credentials
// are not among them: an entry outlives a change of password.
type poolKey struct {
	address  Address
	insecure bool
	rootCAs  *x509.CertPool
}

type poolEntry struct {
	opening     chan struct{} // one token while a client is being opened
	workarounds Workarounds   // shared by all clients of this BMC, one after another

	// Pool.mu guards the following.
	client      Client // nil if none is open
	credentials Credentials
	users       int       // number of running calls and Gets
	lastUsed    time.Time // end of the last call
}

// Get returns an open client for c. It opens one if there is none or if the
// credentials have changed. Close of the client does nothing, because the client
// is shared. The pool closes the client when the BMC refuses its credentials, when
// a Get has other credentials, and when it has been idle for poolIdle.
func (p *Pool) Get(ctx context.Context, c Config) (Client, error) {
	open, ok := p.Drivers[c.Address.Driver]
	if !ok {
		return nil, fmt.Errorf("bmc: no driver for %s: %w", c.Address.Scheme, ErrUnsupported)
	}
	key := poolKey{address: c.Address, insecure: c.Insecure, rootCAs: c.RootCAs}
	e, err := p.acquire(key)
	if err != nil {
		return nil, err
	}
	defer p.release(e)
	select {
	case e.opening <- struct{}{}:
		defer func() { <-e.opening }()
	case <-ctx.Done():
		return nil, fmt.Errorf("bmc: %s: %w", c.Address, ctx.Err())
	}

	if client := p.current(e, c.Credentials); client != nil {
		return &pooled{pool: p, entry: e, client: client}, nil
	}
	if c.Registries == nil {
		c.Registries = &p.registries
	}
	if c.Workarounds == nil {
		c.Workarounds = &e.workarounds
	}
	client, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	if !p.store(e, client, c.Credentials) {
		client.Close()
		return nil, errClosed
	}
	return &pooled{pool: p, entry: e, client: client}, nil
}

// Close closes all clients. Get fails afterwards.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	var clients []Client
	for _, e := range p.entries {
		if e.client != nil {
			clients = append(clients, e.client)
			e.client = nil
		}
	}
	p.entries = nil
	p.mu.Unlock()
	closeAll(clients)
}

func (p *Pool) now() time.Time {
	if p.Clock == nil {
		return clock.RealClock{}.Now()
	}
	return p.Clock.Now()
}

// acquire returns the entry of a key, creating it if necessary. It keeps the entry
// from eviction until release, and evicts idle entries.
func (p *Pool) acquire(key poolKey) (*poolEntry, error) {
	now := p.now()
	var idle []Client
	defer func() { closeAll(idle) }()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	// Not on every call: with a thousand BMCs the search would cost more than many
	// a call.
	if now.Sub(p.lastSweep) >= poolSweep {
		p.lastSweep = now
		idle = p.sweep(key, now)
	}
	e := p.entries[key]
	if e == nil {
		e = &poolEntry{opening: make(chan struct{}, 1)}
		if p.entries == nil {
			p.entries = make(map[poolKey]*poolEntry)
		}
		p.entries[key] = e
	}
	e.users++
	return e, nil
}

// sweep removes idle entries, except that of the key but, and returns their
// clients for closing.
func (p *Pool) sweep(but poolKey, now time.Time) (idle []Client) {
	for k, e := range p.entries {
		if k == but || e.users > 0 || now.Sub(e.lastUsed) < poolIdle {
			continue
		}
		if e.client != nil {
			idle = append(idle, e.client)
		}
		delete(p.entries, k)
	}
	return idle
}

func (p *Pool) release(e *poolEntry) {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	e.users--
	e.lastUsed = now
}

// current returns the open client of an entry if it has these credentials, and
// closes one with other credentials.
func (p *Pool) current(e *poolEntry, c Credentials) Client {
	p.mu.Lock()
	client := e.client
	if client != nil && e.credentials == c {
		p.mu.Unlock()
		return client
	}
	e.client = nil
	p.mu.Unlock()
	if client != nil {
		client.Close()
	}
	return nil
}

// store puts a client into its entry. It returns false if the pool is closed.
func (p *Pool) store(e *poolEntry, client Client, c Credentials) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	e.client, e.credentials = client, c
	return true
}

// drop closes the client of an entry, unless another has replaced it.
func (p *Pool) drop(e *poolEntry, client Client) {
	p.mu.Lock()
	ours := e.client == client
	if ours {
		e.client = nil
	}
	p.mu.Unlock()
	if ours {
		client.Close()
	}
}

func closeAll(clients []Client) {
	for _, c := range clients {
		c.Close()
	}
}

// pooled is a shared client. It removes itself from the pool when the BMC refuses
// its credentials.
type pooled struct {
	pool   *Pool
	entry  *poolEntry
	client Client
}

// call runs a method of the client and keeps the entry from eviction meanwhile.
func (c *pooled) call(method func() error) error {
	c.pool.mu.Lock()
	c.entry.users++
	c.pool.mu.Unlock()
	defer c.pool.release(c.entry)
	err := method()
	if errors.Is(err, ErrUnauthorized) {
		c.pool.drop(c.entry, c.client)
	}
	return err
}

func (c *pooled) System(ctx context.Context) (s System, err error) {
	err = c.call(func() error { s, err = c.client.System(ctx); return err })
	return s, err
}

func (c *pooled) SetPower(ctx context.Context, a PowerAction) error {
	return c.call(func() error { return c.client.SetPower(ctx, a) })
}

func (c *pooled) SetBoot(ctx context.Context, b Boot) error {
	return c.call(func() error { return c.client.SetBoot(ctx, b) })
}

func (c *pooled) Identify(ctx context.Context, on bool) error {
	return c.call(func() error { return c.client.Identify(ctx, on) })
}

func (c *pooled) Log(ctx context.Context) (entries []Entry, err error) {
	err = c.call(func() error { entries, err = c.client.Log(ctx); return err })
	return entries, err
}

func (c *pooled) ClearLog(ctx context.Context) error {
	return c.call(func() error { return c.client.ClearLog(ctx) })
}

func (c *pooled) Sensors(ctx context.Context) (sensors []Sensor, err error) {
	err = c.call(func() error { sensors, err = c.client.Sensors(ctx); return err })
	return sensors, err
}

func (c *pooled) Media(ctx context.Context) (m Media, err error) {
	err = c.call(func() error { m, err = c.client.Media(ctx); return err })
	return m, err
}

func (c *pooled) InsertMedia(ctx context.Context, urls ...string) error {
	return c.call(func() error { return c.client.InsertMedia(ctx, urls...) })
}

func (c *pooled) EjectMedia(ctx context.Context) error {
	return c.call(func() error { return c.client.EjectMedia(ctx) })
}

// Close does nothing: the pool closes the client.
func (c *pooled) Close() {}
