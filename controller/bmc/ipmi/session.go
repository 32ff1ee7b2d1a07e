package ipmi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	goipmi "github.com/bougou/go-ipmi/pkg/client"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// session is an open session, for one goroutine.
type session struct {
	client *client
	api    *goipmi.Client
	guard  *guard
	dead   bool // the BMC does not answer: do not wait for it once more
}

// login opens a session with the first cipher suite that the BMC takes, and
// gives that one's index.
func (c *client) login(ctx context.Context, first int) (*session, int, error) {
	var refused error
	for i := range suites {
		at := (first + i) % len(suites)
		s, err := c.prove(ctx, suites[at])
		if err == nil {
			return s, at, nil
		}
		if !errors.Is(err, errNoSuite) {
			return nil, 0, err
		}
		refused = err
	}
	return nil, 0, refused
}

// What lessons are about, and what is learned.
const (
	aboutLogin   = "login"
	nameAsIs     = "the name as it is"
	nameFilled   = "the name filled up to 16 bytes"
	aboutCode    = "code of RAKP 2"
	aboutSensors = "sensors"
	codeLong     = "a byte too long"
)

// prove opens a session with a name in the form that the BMC takes. One that
// fills names up proves to know another password (FreeIPMI, workaround intel20),
// as one does that really knows another: that one knows no filled up name.
func (c *client) prove(ctx context.Context, suite types.CipherSuiteID) (*session, error) {
	forms := []string{nameAsIs, nameFilled}
	if c.lessons.Way(aboutLogin) == nameFilled {
		forms = []string{nameFilled, nameAsIs}
	}
	var first error
	for _, form := range forms {
		s, err := c.open(ctx, suite, form == nameFilled)
		if err == nil {
			c.lessons.Learn(bmc.Lesson{Topic: aboutLogin, Way: form, Odd: form != nameAsIs})
			if s.guard.long {
				c.lessons.Learn(bmc.Lesson{Topic: aboutCode, Way: codeLong, Odd: true})
			}
			return s, nil
		}
		if first == nil {
			first = err
		}
		if form == nameAsIs && !errors.Is(err, errProof) || len(c.credentials.Username) == maxName || c.credentials.Username == "" {
			break
		}
	}
	return nil, first
}

// open opens a session with one cipher suite.
func (c *client) open(ctx context.Context, suite types.CipherSuiteID, filled bool) (*session, error) {
	dialer := net.Dialer{Timeout: c.timeout}
	socket, err := dialer.DialContext(ctx, "udp", c.address.HostPort())
	if err != nil {
		return nil, c.explain(ctx, "dial", err)
	}
	g := newGuard(socket, c.credentials)
	if c.level >= types.PrivilegeLevelUser { // no command of ours is one of call back
		g.level = byte(c.level)
	}
	name := c.credentials.Username
	if filled {
		g.proof = []byte(name)
		name += strings.Repeat("\x00", maxName-len(name))
		g.name = []byte(name)
	}
	api, err := goipmi.NewClient(c.address.Host, int(c.address.Port), name, c.credentials.Password)
	if err != nil {
		_ = g.Close()
		return nil, err
	}
	try := min(longestTry, c.timeout/tries)
	api.WithUDPProxy(g).WithTimeout(try).WithCipherSuiteID(suite).WithMaxPrivilegeLevel(c.level)
	s := &session{client: c, api: api, guard: g}
	// go-ipmi repeats a packet byte for byte. Within the handshake that is
	// right (§13.17–13.23).
	api.WithRetry(tries - 1)
	if err := s.handshake(ctx); err != nil {
		_ = g.Close()
		return nil, err
	}
	// Within a session it is not: a BMC drops a session sequence number that
	// it has seen, so a lost answer would be lost for good. See command.
	api.WithRetry(0)
	return s, nil
}

// handshake takes the steps of go-ipmi's Connect, but for the first: what a
// BMC says of its capabilities changes nothing of what follows.
func (s *session) handshake(ctx context.Context) error {
	c := s.client
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, s.guard.interrupt)
	defer stop()
	if _, err := s.api.OpenSession(ctx); err != nil {
		return c.explain(ctx, "open session", err)
	}
	if _, err := s.api.RAKPMessage1(ctx); err != nil {
		return c.explain(ctx, "RAKP 1", err)
	}
	if _, err := s.api.RAKPMessage3(ctx); err != nil {
		if errors.Is(err, goipmi.ErrRAKPAuthentication) {
			// RAKP 2 has proved the password: the keys differ in K_g.
			return fmt.Errorf("RAKP 3: the BMC has a K_g, and this driver cannot be given one: %w", bmc.ErrUnsupported)
		}
		return c.explain(ctx, "RAKP 3", err)
	}
	s.api.WithRetry(0)
	if c.level > types.PrivilegeLevelUser {
		if _, err := s.command(ctx, setLevel, byte(c.level)); err != nil {
			return err
		}
	}
	return nil
}

// close ends the session, if the BMC is there, and closes the socket. The
// session is ended even when ctx has: it would fill a slot for a minute.
func (s *session) close(ctx context.Context) {
	defer func() { _ = s.guard.Close() }()
	if s.dead {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestTry)
	defer cancel()
	s.guard.resume()
	id := s.guard.session()
	_, _ = s.once(ctx, closeSession, id[:]) // it times out by itself
}

// request is a command: its numbers, whether it may be carried out twice, and
// codes that mean something else for it than for others.
type request struct {
	fn    types.NetFn
	cmd   byte
	name  string
	once  bool // a command whose answer is lost must not be sent again
	kinds map[types.CompletionCode]error
}

var (
	setLevel = request{fn: types.NetFnAppRequest, cmd: 0x3B, name: "Set Session Privilege Level",
		kinds: map[types.CompletionCode]error{0x80: bmc.ErrUnauthorized, 0x81: bmc.ErrUnauthorized}}
	closeSession = request{fn: types.NetFnAppRequest, cmd: 0x3C, name: "Close Session"}
)

// busyWait is how long a BMC that says that it is busy is left alone.
const busyWait = 500 * time.Millisecond

// command sends a command until it is answered, each time as a new one, and
// gives the data after the completion code.
func (s *session) command(ctx context.Context, r request, data ...byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.client.timeout)
	defer cancel()
	var err error
	for try := range tries {
		var out []byte
		out, err = s.once(ctx, r, data)
		code := new(codeError)
		switch {
		case err == nil:
			return out, nil
		case errors.As(err, &code) && code.busy() && try < tries-1:
			if e := s.client.sleep(ctx, busyWait); e != nil {
				return nil, s.client.explain(ctx, r.name, e)
			}
			continue
		case errors.As(err, &code), ctx.Err() != nil, past(ctx):
			return nil, err
		case r.once:
			s.dead = true
			return nil, fmt.Errorf("%w: whether it is done is not known", err)
		}
	}
	s.dead = true
	return nil, err
}

// once sends a command one time.
func (s *session) once(ctx context.Context, r request, data []byte) ([]byte, error) {
	stop := context.AfterFunc(ctx, s.guard.interrupt)
	defer stop()
	answer, err := s.api.RawCommand(ctx, r.fn, r.cmd, data, r.name)
	if err == nil {
		return answer.Response, nil
	}
	if refusal, ok := types.IsResponseError(err); ok {
		return nil, newCodeError(r, refusal.CompletionCode())
	}
	return nil, s.client.explain(ctx, r.name, err)
}

// errProof says that the BMC has proved to know another password.
var errProof = errors.New("another password")

// errNoSuite says that the BMC does not take the cipher suite.
var errNoSuite = fmt.Errorf("it takes none of the cipher suites 17 and 3: %w", bmc.ErrUnsupported)

// statuses are what the statuses of a handshake mean (§13.24).
var statuses = map[types.RmcpStatusCode]error{
	types.RmcpStatusCodeNoResToCreateSess:          bmc.ErrUnreachable, // for now
	types.RmcpStatusCodeNoResToCreateSessAtRole:    bmc.ErrUnreachable,
	types.RmcpStatusCodeInvalidAuthAlg:             errNoSuite,
	types.RmcpStatusCodeInvalidIntegrityAlg:        errNoSuite,
	types.RmcpStatusCodeNoMatchingAuthPayload:      errNoSuite,
	types.RmcpStatusCodeNoMatchingIntegrityPayload: errNoSuite,
	types.RmcpStatusCodeInvalidConfidentAlg:        errNoSuite,
	types.RmcpStatusCodeNoCipherSuiteMatch:         errNoSuite,
	types.RmcpStatusCodeInvalidRole:                bmc.ErrUnauthorized,
	types.RmcpStatusCodeUnauthorizedRoleOfPriLevel: bmc.ErrUnauthorized,
	types.RmcpStatusCodeInvalidNameLength:          bmc.ErrUnauthorized,
	types.RmcpStatusCodeUnauthorizedName:           bmc.ErrUnauthorized,
	types.RmcpStatusCodeInvalidIntegrityCheckValue: bmc.ErrUnauthorized,
}

// explain makes an error of a step that has no completion code.
func (c *client) explain(ctx context.Context, step string, err error) error {
	status := new(types.RmcpStatusError)
	switch {
	case errors.As(err, &status):
		if kind := statuses[status.StatusCode()]; kind != nil {
			return fmt.Errorf("%s: %w: %w", step, kind, status)
		}
		return fmt.Errorf("%s: %w", step, status)
	case errors.Is(err, goipmi.ErrRAKPAuthentication):
		return fmt.Errorf("%s: %w: %w", step, bmc.ErrUnauthorized, errProof)
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%s: %w", step, ctx.Err())
	case ctx.Err() != nil, past(ctx):
		return fmt.Errorf("%s: %w: %w", step, bmc.ErrUnreachable, context.DeadlineExceeded)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: %w: %w", step, bmc.ErrUnreachable, syscall.ECONNREFUSED)
	}
	return fmt.Errorf("%s: %w: %s", step, bmc.ErrUnreachable, c.clean(err.Error()))
}

// past reports whether the time of a context is up: go-ipmi gives it to the
// socket, whose timer may be the faster one.
func past(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}

// clean takes the password out of a text.
func (c *client) clean(text string) string {
	if c.credentials.Password != "" {
		text = strings.ReplaceAll(text, c.credentials.Password, "…")
	}
	return text
}

// codeError is a command that was refused.
type codeError struct {
	request string
	code    types.CompletionCode
	kind    error // of package bmc; nil when the caller can do nothing special
}

// kinds are what completion codes mean for every command (Table 5-2).
var kinds = map[types.CompletionCode]error{
	0xC0: bmc.ErrUnreachable, 0xC3: bmc.ErrUnreachable, 0xCE: bmc.ErrUnreachable, 0xCF: bmc.ErrUnreachable,
	0xD0: bmc.ErrUnreachable, 0xD1: bmc.ErrUnreachable, 0xD2: bmc.ErrUnreachable, 0xD3: bmc.ErrUnreachable,
	0xC1: bmc.ErrUnsupported, 0xC2: bmc.ErrUnsupported, 0xD6: bmc.ErrUnsupported,
	0xD4: bmc.ErrUnauthorized,
}

func newCodeError(r request, code types.CompletionCode) *codeError {
	kind, ok := r.kinds[code]
	if !ok {
		kind = kinds[code]
	}
	return &codeError{request: r.name, code: code, kind: kind}
}

// busy reports whether the BMC will do it, but not now.
func (e *codeError) busy() bool {
	return e.code == 0xC0 || e.code == 0xD2
}

func (e *codeError) Error() string {
	s := e.request + ": "
	if e.kind != nil {
		s += e.kind.Error() + ": "
	}
	return s + fmt.Sprintf("completion code %02Xh", uint8(e.code))
}

func (e *codeError) Unwrap() error { return e.kind }

// refused reports whether err is one of some completion codes.
func refused(err error, codes ...types.CompletionCode) bool {
	e := new(codeError)
	if !errors.As(err, &e) {
		return false
	}
	for _, c := range codes {
		if e.code == c {
			return true
		}
	}
	return false
}
