// Package redfish is the BMC driver for Redfish services (DMTF DSP0266), on
// gofish. It owns how such services are spoken to, and the ways round what
// real ones get wrong; it knows no vendor by name unless the standard leaves
// no other way, and nothing of hosts.
//
// Of gofish it uses the connection: service root, login, request headers. The
// resources it reads itself. gofish's types refuse a whole resource when one
// of its hundreds of properties has the wrong type, its actions send If-Match,
// which iDRACs answer with 412, and its waits read the real clock.
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
	// logoutTimeout bounds Close, which has no context: a BMC that is gone
	// forgets its session by itself.
	logoutTimeout = 5 * time.Second
	// concurrency is how many requests a client has under way. BMCs are slow
	// and answer 503 to a crowd, but a poll must not wait for an upload.
	concurrency = 2
)

// client is a bmc.Client. Its only state beside the connection is where things
// are: what they are is read anew each time.
type client struct {
	address     bmc.Address
	credentials bmc.Credentials
	clock       clock.Clock
	transport   *transport

	login chan struct{} // holds one token while logging in

	mu      sync.Mutex
	api     *gofish.APIClient
	session bool // api holds a session, not a password
	closed  bool
	root    root
	system  string // URI, "" before it is known
	drive   string // URI of the virtual CD drive, "" before it is known
	resets  []string

	lessons  *bmc.Lessons
	standing bmc.Boot       // an override that the driver has to renew at each start; zero for none
	forced   *time.Time     // when the system was last reset by force
	restart  *time.Time     // when the BMC was last restarted for its virtual media
	missing  map[string]int // how often in a row an operation was not found, by its URI

	registries   *bmc.Registries
	registryURIs map[string]string // of attribute registries, by what a Bios calls them
}

// root is what is read of the service root.
type root struct {
	Systems  link `json:"Systems"`
	Managers link `json:"Managers"`
	Events   link `json:"EventService"`

	Registries link `json:"Registries"`
	Updates    link `json:"UpdateService"`
	Tasks      link `json:"Tasks"` // the TaskService
}

// Open connects to the Redfish service at c.Address. It logs in with HTTP
// Basic, which costs no request and leaves no session behind; only to a
// service that does not take Basic does it log in with a session.
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
		login:       make(chan struct{}, 1),
		registries:  c.Registries,
		lessons:     c.Lessons,
	}
	if cl.lessons == nil {
		cl.lessons = new(bmc.Lessons)
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
	// A wrong password must not be tried twice, or a host with a stale secret
	// locks its account in half the time. So this is only for services that do
	// not offer Basic in their 401.
	if e := c.connect(ctx, false); e != nil {
		if refusal := new(statusError); errors.As(e, &refusal) && refusal.status/100 == 4 {
			return err // a wrong password, or no sessions either
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
	rec := &record{}
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
	api, err := gofish.ConnectContext(withRecord(ctx, rec), config)
	if err != nil && rec.status == http.StatusUnauthorized && rec.path == servicePath && !c.transport.always() {
		// DSP0266 §13.3.1 wants the root open to all; some services are
		// closed altogether, and gofish has no account for this request.
		c.transport.setAlways("Basic " + basicToken(c.credentials))
		*rec = record{}
		api, err = gofish.ConnectContext(withRecord(ctx, rec), config)
	}
	if err != nil {
		return c.explain(ctx, "connect", rec, err)
	}
	if !basic {
		if s, err := api.GetSession(); err != nil || s.Token == "" {
			return fmt.Errorf("redfish: connect: the service created a session without a token: %w", bmc.ErrUnsupported)
		}
	}
	var r root
	_ = json.Unmarshal(rec.first, &r) // gofish has decoded it already

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	c.api, c.session, c.root = api, !basic, r
	return nil
}

// connection is the connection that requests use now.
func (c *client) connection() (api *gofish.APIClient, session bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false, errClosed
	}
	return c.api, c.session, nil
}

// relogin replaces a session that the service has forgotten: they time out,
// and do not survive a restart of the BMC.
func (c *client) relogin(ctx context.Context, stale *gofish.APIClient) error {
	select {
	case c.login <- struct{}{}:
		defer func() { <-c.login }()
	case <-ctx.Done():
		return fmt.Errorf("redfish: log in: %w", ctx.Err())
	}
	if api, _, err := c.connection(); err != nil || api != stale {
		return err // somebody else has
	}
	return c.connect(ctx, false)
}

// Close ends the session, if there is one, and drops the connections.
func (c *client) Close() {
	c.mu.Lock()
	api, session, closed := c.api, c.session, c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return
	}
	if session {
		// gofish's own Logout has no limit of time.
		ctx, cancel := context.WithTimeout(context.Background(), logoutTimeout)
		defer cancel()
		if s, err := api.GetSession(); err == nil {
			_ = api.WithContext(ctx).Service.DeleteSession(local(s.ID)) // it times out by itself
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
