// Package ipmi is the BMC driver for IPMI v2.0 over LAN, on go-ipmi. It owns
// how such BMCs are spoken to, and the ways round what go-ipmi and real BMCs
// get wrong; it knows nothing of hosts, and offers what IPMI has no command for
// (virtual media, secure boot) to nobody.
//
// Of go-ipmi it uses the messages of the handshake, the session's packets and
// raw commands. A Client of it serves one call of this driver, in one
// goroutine, and is thrown away: used by two it loses its numbers, used after
// Close it dials again for each command and panics at the second Close. Its
// Connect starts a goroutine and hides the BMC's status, so the steps are taken
// one by one. Between it and the socket stands a guard, because it checks
// neither the integrity of what it reads nor its lengths.
package ipmi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bougou/go-ipmi/pkg/types"
	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/controller/bmc"
)

const (
	defaultTimeout = 30 * time.Second
	// longestTry is how long one packet is waited for: BMCs answer within
	// milliseconds, or have lost it.
	longestTry = 2 * time.Second
	tries      = 4
	// concurrency is how many sessions a client has at a time. Some BMCs have
	// four altogether.
	concurrency = 2

	maxName     = 16 // bytes (IPMI v2.0 rev 1.1, §22.28)
	maxPassword = 20 // bytes (§22.30)
)

// suites are the cipher suites that go-ipmi can use, best first. All others
// that it offers it does not encrypt or sign as they want it.
var suites = []types.CipherSuiteID{types.CipherSuiteID17, types.CipherSuiteID3}

// levels are the privilege levels of an address.
var levels = map[string]types.PrivilegeLevel{
	"CALLBACK":      types.PrivilegeLevelCallback,
	"USER":          types.PrivilegeLevelUser,
	"OPERATOR":      types.PrivilegeLevelOperator,
	"ADMINISTRATOR": types.PrivilegeLevelAdministrator,
	"":              types.PrivilegeLevelAdministrator,
}

// client is a bmc.Client. Each call opens a session and closes it, as ipmitool
// does: sessions end after 60 s of silence, and with every restart of the BMC.
type client struct {
	address     bmc.Address
	credentials bmc.Credentials
	clock       clock.Clock
	timeout     time.Duration // of one request
	level       types.PrivilegeLevel
	turns       chan struct{} // holds a token for each session
	lessons     *bmc.Lessons

	mu       sync.Mutex
	closed   bool
	suite    int       // index of the first of suites to try: the BMC takes it
	identity *identity // nil before it is known
	records  *records  // likewise
}

// Open connects to the BMC at c.Address.
func Open(ctx context.Context, c bmc.Config) (bmc.Client, error) {
	level, ok := levels[c.Address.Privilege]
	switch {
	case c.Address.Driver != "ipmi":
		return nil, fmt.Errorf("ipmi: %s is no address of IPMI: %w", c.Address, bmc.ErrUnsupported)
	case !ok:
		return nil, fmt.Errorf("ipmi: privilege level %q: %w", c.Address.Privilege, bmc.ErrUnsupported)
	case len(c.Credentials.Username) > maxName:
		return nil, fmt.Errorf("ipmi: %w: a user name has %d bytes at most", bmc.ErrUnauthorized, maxName)
	case len(c.Credentials.Password) > maxPassword:
		return nil, fmt.Errorf("ipmi: %w: a password has %d bytes at most", bmc.ErrUnauthorized, maxPassword)
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	cl := &client{
		address: c.Address, credentials: c.Credentials, clock: c.Clock, timeout: c.Timeout, level: level,
		turns: make(chan struct{}, concurrency), lessons: c.Lessons,
	}
	if cl.lessons == nil {
		cl.lessons = new(bmc.Lessons)
	}
	if err := cl.do(ctx, "open", func(s *session) error {
		_, err := s.chassis(ctx)
		return err
	}); err != nil {
		return nil, err
	}
	return cl, nil
}

var errClosed = errors.New("ipmi: the client is closed")

// do opens a session for one call of the driver.
func (c *client) do(ctx context.Context, verb string, work func(*session) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ipmi: %s: %w", verb, err)
	}
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-ctx.Done():
		return fmt.Errorf("ipmi: %s: %w", verb, ctx.Err())
	}
	c.mu.Lock()
	closed, first := c.closed, c.suite
	c.mu.Unlock()
	if closed {
		return errClosed
	}
	s, used, err := c.login(ctx, first)
	if err != nil {
		return fmt.Errorf("ipmi: %w", err)
	}
	defer s.close(ctx)
	c.mu.Lock()
	c.suite = used
	c.mu.Unlock()
	if err := work(s); err != nil {
		return fmt.Errorf("ipmi: %s: %w", verb, err)
	}
	return nil
}

// Close makes the client of no use. It has no session open between calls.
func (c *client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// sleep waits on the client's clock.
func (c *client) sleep(ctx context.Context, d time.Duration) error {
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// noMedia is why verbs of virtual media fail.
func noMedia(verb string) error {
	return fmt.Errorf("ipmi: %w", &bmc.UnsupportedError{Verb: verb, Why: "IPMI has no virtual media"})
}

// Media fails: IPMI has no virtual media.
func (c *client) Media(context.Context) (bmc.Media, error) { return bmc.Media{}, noMedia("Media") }

// InsertMedia fails: IPMI has no virtual media.
func (c *client) InsertMedia(context.Context, ...string) error { return noMedia("InsertMedia") }

// EjectMedia fails: IPMI has no virtual media.
func (c *client) EjectMedia(context.Context) error { return noMedia("EjectMedia") }
