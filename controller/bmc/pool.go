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

// poolIdle is how long a pool keeps a client that nobody uses: a few rounds of
// the power poll of a host (60 s, B-121), so that a host in steady state keeps
// its connection and a host that is gone does not keep one for ever.
const poolIdle = 10 * time.Minute

// poolSweep is how often a pool looks for them.
const poolSweep = poolIdle / 10

// errClosed is what a closed pool answers.
var errClosed = errors.New("bmc: the pool is closed")

// Pool keeps one open Client per BMC and account. Logging in to a BMC is slow,
// and sessions are few (an iDRAC has 8), so a reconciler takes its clients
// from here, one Get per piece of work. The zero Pool has no drivers.
type Pool struct {
	Drivers map[string]Open // by Address.Driver; not changed after the first Get
	Clock   clock.Clock     // nil is the real one

	registries Registries // of all BMCs

	mu      sync.Mutex
	entries map[poolKey]*poolEntry
	swept   time.Time // when the idle ones were last looked for
	closed  bool
}

// poolKey is all of a Config that a connection depends on but the credentials:
// an entry outlives their change.
type poolKey struct {
	address  Address
	insecure bool
	rootCAs  *x509.CertPool
}

type poolEntry struct {
	turn    chan struct{} // holds one token while a client is being opened
	lessons Lessons       // of all clients that there were

	// The rest belongs to Pool.mu.
	client      Client // nil when none is open
	credentials Credentials
	busy        int       // calls under way, and Gets
	used        time.Time // end of the last one
}

// Get gives an open client for c, and opens one if there is none or if the
// credentials have changed. Its Close does nothing, as the client is shared.
// The client leaves the pool when the BMC refuses its credentials, when
// another Get comes with other credentials, and when it is idle for long.
func (p *Pool) Get(ctx context.Context, c Config) (Client, error) {
	open, ok := p.Drivers[c.Address.Driver]
	if !ok {
		return nil, fmt.Errorf("bmc: no driver for %s: %w", c.Address.Scheme, ErrUnsupported)
	}
	key := poolKey{address: c.Address, insecure: c.Insecure, rootCAs: c.RootCAs}
	e, err := p.enter(key)
	if err != nil {
		return nil, err
	}
	defer p.leave(e)
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("bmc: %s: %w", c.Address, ctx.Err())
	}

	if client := p.current(e, c.Credentials); client != nil {
		return &pooled{pool: p, entry: e, client: client}, nil
	}
	if c.Registries == nil {
		c.Registries = &p.registries
	}
	if c.Lessons == nil {
		c.Lessons = &e.lessons
	}
	client, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	if !p.keep(e, client, c.Credentials) {
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

// enter finds or makes the entry of a key, keeps it from being evicted until
// leave, and evicts what has been idle for too long.
func (p *Pool) enter(key poolKey) (*poolEntry, error) {
	now := p.now()
	var idle []Client
	defer func() { closeAll(idle) }()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	// Not each time: with a thousand BMCs it would cost more than many a call.
	if now.Sub(p.swept) >= poolSweep {
		p.swept = now
		idle = p.sweep(key, now)
	}
	e := p.entries[key]
	if e == nil {
		e = &poolEntry{turn: make(chan struct{}, 1)}
		if p.entries == nil {
			p.entries = make(map[poolKey]*poolEntry)
		}
		p.entries[key] = e
	}
	e.busy++
	return e, nil
}

// sweep takes out what has been idle for too long, but not the entry of a key,
// and hands out the clients to close.
func (p *Pool) sweep(but poolKey, now time.Time) (idle []Client) {
	for k, e := range p.entries {
		if k == but || e.busy > 0 || now.Sub(e.used) < poolIdle {
			continue
		}
		if e.client != nil {
			idle = append(idle, e.client)
		}
		delete(p.entries, k)
	}
	return idle
}

func (p *Pool) leave(e *poolEntry) {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	e.busy--
	e.used = now
}

// current is the open client of an entry, if it has these credentials; one
// with others is closed.
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

// keep reports whether the pool still wants the client.
func (p *Pool) keep(e *poolEntry, client Client, c Credentials) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	e.client, e.credentials = client, c
	return true
}

// drop closes the client of an entry, unless another has taken its place.
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

// pooled is a shared client that watches what its calls come to.
type pooled struct {
	pool   *Pool
	entry  *poolEntry
	client Client
}

// call runs a method of the client, which the pool does not evict meanwhile.
func (c *pooled) call(method func() error) error {
	c.pool.mu.Lock()
	c.entry.busy++
	c.pool.mu.Unlock()
	defer c.pool.leave(c.entry)
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

// Close does nothing: the client is the pool's.
func (c *pooled) Close() {}
