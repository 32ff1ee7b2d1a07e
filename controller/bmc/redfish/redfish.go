// Package redfish is the BMC driver for Redfish services (DMTF DSP0266), on
// gofish. It owns the protocol and the workarounds for services that deviate from
// it. It branches on a vendor's name only where the standard leaves no other way,
// and knows nothing of hosts.
//
// Of gofish it uses the connection: service root, login, request headers. It
// decodes the resources itself. gofish's types reject a whole resource when one of
// its hundreds of properties has the wrong type, its actions send If-Match, which
// iDRACs answer with 412, and its waits read the real clock.
package redfish

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stmcginnis/gofish"
	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/controller/bmc"
)

const (
	defaultTimeout = 30 * time.Second
	// logoutTimeout bounds Close, which has no context: a BMC that is gone expires
	// the session itself.
	logoutTimeout = 5 * time.Second
	// concurrency is the number of requests that a client sends at a time. BMCs
	// are slow and answer 503 to many at once, but a poll must not wait for an
	// upload.
	concurrency = 2
)

// client is a bmc.Client. Beside the connection it caches URIs and a few facts
// about this BMC; it reads every resource again on each call.
type client struct {
	address     bmc.Address
	credentials bmc.Credentials
	clock       clock.Clock
	transport   *transport

	loginLock chan struct{} // holds one token while logging in

	mu              sync.Mutex
	api             *gofish.APIClient
	session         bool // api holds a session rather than a password
	closed          bool
	root            root
	knownSystem     string // URI, "" before it is known
	knownDrive      string // URI of the virtual CD drive, "" before it is known
	knownResetTypes []string

	workarounds   *bmc.Workarounds
	renewedBoot   bmc.Boot       // override that the driver sets again before each start; zero for none
	forcedReset   *time.Time     // time of the last forced reset; nil if the system survived it
	bmcRestart    *time.Time     // time of the last restart of the BMC for its virtual media
	notFoundCount map[string]int // consecutive 404s of an operation, by its URI

	registries   *bmc.Registries
	registryURIs map[string]string // URIs of attribute registries, by the Bios resource's name for them
}

// root holds the properties that the driver reads of the service root.
type root struct {
	Systems  link `json:"Systems"`
	Managers link `json:"Managers"`
	Events   link `json:"EventService"`

	Registries link `json:"Registries"`
	Updates    link `json:"UpdateService"`
	Tasks      link `json:"Tasks"` // the TaskService
}

// Open connects to the Redfish service at c.Address. It authenticates with HTTP
// Basic, which costs no request and leaves no session behind. Only if the service
// does not offer Basic does it create a session.
func Open(ctx context.Context, c bmc.Config) (bmc.Client, error) {
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Address.URL() == "" {
		return nil, fmt.Errorf("redfish: %s is no web service: %w", c.Address, bmc.ErrUnsupported)
	}
	cl := &client{
		address:     c.Address,
		credentials: c.Credentials,
		clock:       c.Clock,
		transport:   newTransport(c),
		loginLock:   make(chan struct{}, 1),
		registries:  c.Registries,
		workarounds: c.Workarounds,
	}
	if cl.workarounds == nil {
		cl.workarounds = new(bmc.Workarounds)
	}
	if cl.registries == nil {
		cl.registries = new(bmc.Registries)
	}
	if err := cl.open(ctx); err != nil {
		cl.Close()
		return nil, err
	}
	return cl, nil
}

func (c *client) open(ctx context.Context) error {
	if err := c.connect(ctx, true); err != nil {
		return err
	}
	_, err := c.computerSystem(ctx)
	if !refusesBasic(err) {
		return err
	}
	// Try a wrong password only once, or a host with a stale secret locks its
	// account in half the time. So this branch is only for services whose 401 does
	// not offer Basic.
	if e := c.connect(ctx, false); e != nil {
		if refusal := new(statusError); errors.As(e, &refusal) && refusal.status/100 == 4 {
			return err // a wrong password, or no session service
		}
		return e
	}
	_, err = c.computerSystem(ctx)
	return err
}

// refusesBasic reports whether err is a 401 that does not offer Basic
// (RFC 9110, §11.6.1; DSP0266 §13.3 wants the header in each 401).
func refusesBasic(err error) bool {
	e := new(statusError)
	if !errors.As(err, &e) || e.status != http.StatusUnauthorized {
		return false
	}
	for _, challenge := range e.challenges {
		if strings.Contains(strings.ToLower(challenge), "basic") {
			return false
		}
	}
	return true
}

// connect reads the service root and, unless basic, creates a session.
func (c *client) connect(ctx context.Context, basic bool) error {
	rec := &outcome{}
	config := gofish.ClientConfig{
		Endpoint:              c.address.URL(),
		Username:              c.credentials.Username,
		Password:              c.credentials.Password,
		BasicAuth:             basic,
		HTTPClient:            c.transport.client(),
		NoModifyTransport:     true,
		ReuseConnections:      true,
		MaxConcurrentRequests: concurrency,
	}
	api, err := gofish.ConnectContext(withOutcome(ctx, rec), config)
	if err != nil && rec.status == http.StatusUnauthorized && rec.path == servicePath && !c.transport.hasDefaultAuth() {
		// DSP0266 §13.3.1 requires an open service root; some services protect it,
		// and gofish sends no credentials with this request.
		c.transport.setDefaultAuth("Basic " + basicToken(c.credentials))
		*rec = outcome{}
		api, err = gofish.ConnectContext(withOutcome(ctx, rec), config)
	}
	if err != nil {
		return c.responseError(ctx, "connect", rec, err)
	}
	if !basic {
		if s, err := api.GetSession(); err != nil || s.Token == "" {
			return fmt.Errorf("redfish: connect: the service created a session without a token: %w", bmc.ErrUnsupported)
		}
	}
	var r root
	_ = json.Unmarshal(rec.firstBody, &r) // gofish has decoded it without an error

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	c.api, c.session, c.root = api, !basic, r
	return nil
}

// connection returns the connection to send requests on.
func (c *client) connection() (api *gofish.APIClient, session bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false, errClosed
	}
	return c.api, c.session, nil
}

// relogin replaces a session that the service has dropped: sessions time out and
// do not survive a restart of the BMC.
func (c *client) relogin(ctx context.Context, stale *gofish.APIClient) error {
	select {
	case c.loginLock <- struct{}{}:
		defer func() { <-c.loginLock }()
	case <-ctx.Done():
		return fmt.Errorf("redfish: log in: %w", ctx.Err())
	}
	if api, _, err := c.connection(); err != nil || api != stale {
		return err // another request has logged in
	}
	return c.connect(ctx, false)
}

// Close deletes the session, if there is one, and closes the connections.
func (c *client) Close() {
	c.mu.Lock()
	api, session, closed := c.api, c.session, c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return
	}
	if session {
		// gofish's Logout has no timeout.
		ctx, cancel := context.WithTimeout(context.Background(), logoutTimeout)
		defer cancel()
		if s, err := api.GetSession(); err == nil {
			_ = api.WithContext(ctx).Service.DeleteSession(localPath(s.ID)) // if this fails the session times out
		}
	}
	c.transport.base.CloseIdleConnections()
}

// sleep waits on the client's clock.
func (c *client) sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func basicToken(c bmc.Credentials) string {
	return base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Password))
}
