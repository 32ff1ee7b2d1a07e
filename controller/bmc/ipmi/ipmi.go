// Package ipmi is the BMC driver for IPMI v2.0 over LAN, on go-ipmi. It owns the
// protocol and the workarounds for go-ipmi and for BMCs that deviate from it. It
// knows nothing of hosts, and returns an UnsupportedError for verbs without an
// IPMI command (virtual media, secure boot).
//
// Of go-ipmi it uses the messages of the handshake, the session's packets and raw
// commands. Each go-ipmi client serves one call of this driver, in one goroutine,
// and is then discarded: shared by two goroutines it mixes up its sequence
// numbers, used after Close it dials again for each command and panics at the
// second Close. Its Connect starts a goroutine and hides the BMC's status, so the
// driver takes the steps of Connect one by one. A verifiedConn stands between
// go-ipmi and the socket, because go-ipmi checks neither the integrity nor the
// lengths of packets.
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
	// maxTryTimeout bounds the wait for the answer to one packet: a BMC answers
	// within milliseconds, or the packet is lost.
	maxTryTimeout = 2 * time.Second
	tries         = 4
	// concurrency is the number of sessions that a client opens at a time. Some
	// BMCs have four in total.
	concurrency = 2

	maxName     = 16 // bytes (IPMI v2.0 rev 1.1, §22.28)
	maxPassword = 20 // bytes (§22.30)
)

// cipherSuites are the cipher suites that work with go-ipmi, best first. go-ipmi
// offers others, and encrypts or signs them wrongly.
var cipherSuites = []types.CipherSuiteID{types.CipherSuiteID17, types.CipherSuiteID3}

// privilegeLevels maps the privilege levels of an address.
var privilegeLevels = map[string]types.PrivilegeLevel{
	"CALLBACK":      types.PrivilegeLevelCallback,
	"USER":          types.PrivilegeLevelUser,
	"OPERATOR":      types.PrivilegeLevelOperator,
	"ADMINISTRATOR": types.PrivilegeLevelAdministrator,
	"":              types.PrivilegeLevelAdministrator,
}

// client is a bmc.Client. Each call opens a session and closes it, as ipmitool
// does: sessions end after 60 s without traffic, and with every restart of the
// BMC.
type client struct {
	address     bmc.Address
	credentials bmc.Credentials
	clock       clock.Clock
	timeout     time.Duration // limit of one request
	level       types.PrivilegeLevel
	slots       chan struct{} // one token for each open session
	workarounds *bmc.Workarounds

	mu       sync.Mutex
	closed   bool
	suite    int            // index in cipherSuites of the first to try: the one that the BMC accepted last
	identity *identity      // nil until it is read
	records  *sensorRecords // nil until they are read
}

// leastLevel is the level that a host needs. A user may read the chassis status, but
// Chassis Control, Set System Boot Options and Get System Boot Options take an operator
// (IPMI v2.0 rev 1.1, appendix G, table G-1).
const leastLevel = types.PrivilegeLevelOperator

// Open connects to the BMC at c.Address.
func Open(ctx context.Context, c bmc.Config) (bmc.Client, error) {
	level, ok := privilegeLevels[c.Address.Privilege]
	switch {
	case c.Address.Driver != "ipmi":
		return nil, fmt.Errorf("ipmi: %s is no address of IPMI: %w", c.Address, bmc.ErrUnsupported)
	case !ok:
		return nil, fmt.Errorf("ipmi: privilege level %q: %w", c.Address.Privilege, bmc.ErrUnsupported)
	case level < leastLevel:
		return nil, fmt.Errorf("ipmi: privilegelevel=%[1]s of the BMC address: %[2]w: IPMI lets a session of %[1]s neither change the power nor choose the boot device: use privilegelevel=OPERATOR or ADMINISTRATOR",
			c.Address.Privilege, bmc.ErrPrivilege)
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
		slots: make(chan struct{}, concurrency), workarounds: c.Workarounds,
	}
	if cl.workarounds == nil {
		cl.workarounds = new(bmc.Workarounds)
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

// do opens a session, calls work with it and closes it.
func (c *client) do(ctx context.Context, verb string, work func(*session) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ipmi: %s: %w", verb, err)
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
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

// Close makes further calls fail. Between calls a client has no open session.
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

// noMedia returns the error of the methods for virtual media.
func noMedia(verb string) error {
	return fmt.Errorf("ipmi: %w", &bmc.UnsupportedError{Verb: verb, Why: "IPMI has no virtual media"})
}

// Media returns an UnsupportedError: IPMI has no virtual media.
func (c *client) Media(context.Context) (bmc.Media, error) { return bmc.Media{}, noMedia("Media") }

// InsertMedia returns an UnsupportedError: IPMI has no virtual media.
func (c *client) InsertMedia(context.Context, ...string) error { return noMedia("InsertMedia") }

// EjectMedia returns an UnsupportedError: IPMI has no virtual media.
func (c *client) EjectMedia(context.Context) error { return noMedia("EjectMedia") }
