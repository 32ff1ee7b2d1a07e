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
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// session is an open IPMI session, used by one goroutine.
type session struct {
	client       *client
	api          *goipmi.Client
	conn         *verifiedConn
	unresponsive bool // the BMC does not answer: close does not wait for it
}

// login opens a session with the first cipher suite that the BMC accepts,
// beginning with the one at index first. It returns that suite's index.
func (c *client) login(ctx context.Context, first int) (*session, int, error) {
	var refused error
	for i := range cipherSuites {
		at := (first + i) % len(cipherSuites)
		s, err := c.loginWithSuite(ctx, cipherSuites[at])
		if err == nil {
			return s, at, nil
		}
		if !errors.Is(err, errCipherSuite) {
			return nil, 0, err
		}
		refused = err
	}
	return nil, 0, refused
}

// The topics that the driver records workarounds under, and their variants.
const (
	topicLogin     = "login"
	nameUnpadded   = "the plain user name"
	namePadded     = "the user name padded to 16 bytes"
	topicRAKP2Code = "code of RAKP 2"
	topicSensors   = "sensors"
	codeTooLong    = "a byte too long"
)

// loginWithSuite opens a session with the form of the user name that the BMC
// accepts. A BMC that pads user names to 16 bytes computes RAKP 2 from the padded
// name, which looks like a wrong password (FreeIPMI, workaround intel20). A BMC
// with a wrong password rejects the padded name, too.
func (c *client) loginWithSuite(ctx context.Context, suite types.CipherSuiteID) (*session, error) {
	forms := []string{nameUnpadded, namePadded}
	if c.workarounds.Variant(topicLogin) == namePadded {
		forms = []string{namePadded, nameUnpadded}
	}
	var first error
	for _, form := range forms {
		s, err := c.openSession(ctx, suite, form == namePadded)
		if err == nil {
			c.workarounds.Record(bmc.Workaround{Topic: topicLogin, Variant: form, Nonstandard: form != nameUnpadded})
			if s.conn.longRAKP2 {
				c.workarounds.Record(bmc.Workaround{Topic: topicRAKP2Code, Variant: codeTooLong, Nonstandard: true})
			}
			return s, nil
		}
		if first == nil {
			first = err
		}
		if form == nameUnpadded && !errors.Is(err, errPasswordMismatch) || len(c.credentials.Username) == maxName || c.credentials.Username == "" {
			break
		}
	}
	return nil, first
}

// openSession opens a session with one cipher suite and one form of the user name.
func (c *client) openSession(ctx context.Context, suite types.CipherSuiteID, filled bool) (*session, error) {
	dialer := net.Dialer{Timeout: c.timeout}
	socket, err := dialer.DialContext(ctx, "udp", c.address.HostPort())
	if err != nil {
		return nil, c.stepError(ctx, "dial", err)
	}
	g := newVerifiedConn(socket, c.credentials)
	g.level = byte(c.level)
	name := c.credentials.Username
	if filled {
		g.proofName = []byte(name)
		name += strings.Repeat("\x00", maxName-len(name))
		g.name = []byte(name)
	}
	api, err := goipmi.NewClient(c.address.Host, int(c.address.Port), name, c.credentials.Password)
	if err != nil {
		_ = g.Close()
		return nil, err
	}
	try := min(maxTryTimeout, c.timeout/tries)
	api.WithUDPProxy(g).WithTimeout(try).WithCipherSuiteID(suite).WithMaxPrivilegeLevel(c.level)
	s := &session{client: c, api: api, conn: g}
	// go-ipmi repeats a packet byte for byte. That is right within the handshake
	// (§13.17–13.23).
	api.WithRetry(tries - 1)
	if err := s.handshake(ctx); err != nil {
		_ = g.Close()
		return nil, err
	}
	// It is wrong within a session: a BMC drops a session sequence number that it
	// has seen, so a lost answer could not be recovered. See command.
	api.WithRetry(0)
	return s, nil
}

// handshake takes the steps of go-ipmi's Connect except the first: the BMC's
// capabilities change nothing that follows.
func (s *session) handshake(ctx context.Context) error {
	c := s.client
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, s.conn.interrupt)
	defer stop()
	if _, err := s.api.OpenSession(ctx); err != nil {
		return c.stepError(ctx, "open session", err)
	}
	if _, err := s.api.RAKPMessage1(ctx); err != nil {
		return c.stepError(ctx, "RAKP 1", err)
	}
	if _, err := s.api.RAKPMessage3(ctx); err != nil {
		if errors.Is(err, goipmi.ErrRAKPAuthentication) {
			// RAKP 2 has proved the password, so the keys differ in K_g.
			return fmt.Errorf("RAKP 3: the BMC has a K_g, and this driver cannot be given one: %w", bmc.ErrUnsupported)
		}
		return c.stepError(ctx, "RAKP 3", err)
	}
	s.api.WithRetry(0)
	_, err := s.command(ctx, setLevel, byte(c.level)) // a session begins at the level of a user (§6.8)
	return err
}

// close ends the session, if the BMC answers, and closes the socket. It does so
// after ctx has ended, too: an open session would occupy one of the BMC's few for
// a minute.
func (s *session) close(ctx context.Context) {
	defer func() { _ = s.conn.Close() }()
	if s.unresponsive {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxTryTimeout)
	defer cancel()
	s.conn.resume()
	id := s.conn.sessionID()
	_, _ = s.sendOnce(ctx, closeSession, id[:]) // if this fails the session times out
}

// request is an IPMI command: its numbers, whether it may be repeated, and the
// completion codes that have another meaning for it than in completionKinds.
type request struct {
	fn      types.NetFn
	cmd     byte
	name    string
	noRetry bool // the command must not be sent again if its answer is lost
	kinds   map[types.CompletionCode]error
}

var (
	setLevel = request{fn: types.NetFnAppRequest, cmd: 0x3B, name: "Set Session Privilege Level",
		kinds: map[types.CompletionCode]error{0x80: bmc.ErrUnauthorized, 0x81: bmc.ErrUnauthorized}}
	closeSession = request{fn: types.NetFnAppRequest, cmd: 0x3C, name: "Close Session"}
)

// busyWait is the pause before a command is sent again to a busy BMC.
const busyWait = 500 * time.Millisecond

// command sends a command until the BMC answers, each time with a new sequence
// number. It returns the data after the completion code.
func (s *session) command(ctx context.Context, r request, data ...byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.client.timeout)
	defer cancel()
	var err error
	for try := range tries {
		var out []byte
		out, err = s.sendOnce(ctx, r, data)
		code := new(codeError)
		switch {
		case err == nil:
			return out, nil
		case errors.As(err, &code) && code.busy() && try < tries-1:
			if e := s.client.sleep(ctx, busyWait); e != nil {
				return nil, s.client.stepError(ctx, r.name, e)
			}
			continue
		case errors.As(err, &code), ctx.Err() != nil, deadlinePassed(ctx):
			return nil, err
		case r.noRetry:
			s.unresponsive = true
			return nil, fmt.Errorf("%w: whether it is done is not known", err)
		}
	}
	s.unresponsive = true
	return nil, err
}

// sendOnce sends a command once.
func (s *session) sendOnce(ctx context.Context, r request, data []byte) ([]byte, error) {
	stop := context.AfterFunc(ctx, s.conn.interrupt)
	defer stop()
	_, span := bmc.StartSpan(ctx, "IPMI "+r.name, attribute.String("server.address", s.client.address.Host))
	defer span.End()
	answer, err := s.api.RawCommand(ctx, r.fn, r.cmd, data, r.name)
	if err == nil {
		return answer.Response, nil
	}
	span.SetStatus(codes.Error, "no success")
	if refusal, ok := types.IsResponseError(err); ok {
		return nil, newCodeError(r, refusal.CompletionCode())
	}
	return nil, s.client.stepError(ctx, r.name, err)
}

// errPasswordMismatch reports that RAKP 2 was computed from another password.
var errPasswordMismatch = errors.New("another password")

// errCipherSuite reports that the BMC rejects the cipher suite.
var errCipherSuite = fmt.Errorf("it takes none of the cipher suites 17 and 3: %w", bmc.ErrUnsupported)

// rakpStatuses maps the status codes of the handshake (§13.24).
var rakpStatuses = map[types.RmcpStatusCode]error{
	types.RmcpStatusCodeNoResToCreateSess:          bmc.ErrUnreachable, // temporary
	types.RmcpStatusCodeNoResToCreateSessAtRole:    bmc.ErrUnreachable,
	types.RmcpStatusCodeInvalidAuthAlg:             errCipherSuite,
	types.RmcpStatusCodeInvalidIntegrityAlg:        errCipherSuite,
	types.RmcpStatusCodeNoMatchingAuthPayload:      errCipherSuite,
	types.RmcpStatusCodeNoMatchingIntegrityPayload: errCipherSuite,
	types.RmcpStatusCodeInvalidConfidentAlg:        errCipherSuite,
	types.RmcpStatusCodeNoCipherSuiteMatch:         errCipherSuite,
	types.RmcpStatusCodeInvalidRole:                bmc.ErrUnauthorized,
	types.RmcpStatusCodeUnauthorizedRoleOfPriLevel: bmc.ErrUnauthorized,
	types.RmcpStatusCodeInvalidNameLength:          bmc.ErrUnauthorized,
	types.RmcpStatusCodeUnauthorizedName:           bmc.ErrUnauthorized,
	types.RmcpStatusCodeInvalidIntegrityCheckValue: bmc.ErrUnauthorized,
}

// stepError returns the error for a step that ended without a completion code.
func (c *client) stepError(ctx context.Context, step string, err error) error {
	status := new(types.RmcpStatusError)
	switch {
	case errors.As(err, &status):
		if kind := rakpStatuses[status.StatusCode()]; kind != nil {
			return fmt.Errorf("%s: %w: %w", step, kind, status)
		}
		return fmt.Errorf("%s: %w", step, status)
	case errors.Is(err, goipmi.ErrRAKPAuthentication):
		return fmt.Errorf("%s: %w: %w", step, bmc.ErrUnauthorized, errPasswordMismatch)
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%s: %w", step, ctx.Err())
	case ctx.Err() != nil, deadlinePassed(ctx):
		return fmt.Errorf("%s: %w: %w", step, bmc.ErrUnreachable, context.DeadlineExceeded)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: %w: %w", step, bmc.ErrUnreachable, syscall.ECONNREFUSED)
	}
	return fmt.Errorf("%s: %w: %s", step, bmc.ErrUnreachable, c.sanitize(err.Error()))
}

// deadlinePassed reports whether a context's deadline has passed. go-ipmi sets the
// same deadline on the socket, whose timer may fire first.
func deadlinePassed(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}

// sanitize removes the password from a text.
func (c *client) sanitize(text string) string {
	if c.credentials.Password != "" {
		text = strings.ReplaceAll(text, c.credentials.Password, "…")
	}
	return text
}

// codeError is an answer with a completion code other than 00h.
type codeError struct {
	request string
	code    types.CompletionCode
	kind    error // error of package bmc; nil when callers cannot act on it
}

// completionKinds maps the completion codes of all commands (Table 5-2).
var completionKinds = map[types.CompletionCode]error{
	0xC0: bmc.ErrUnreachable, 0xC3: bmc.ErrUnreachable, 0xCE: bmc.ErrUnreachable, 0xCF: bmc.ErrUnreachable,
	0xD0: bmc.ErrUnreachable, 0xD1: bmc.ErrUnreachable, 0xD2: bmc.ErrUnreachable, 0xD3: bmc.ErrUnreachable,
	0xC1: bmc.ErrUnsupported, 0xC2: bmc.ErrUnsupported, 0xD6: bmc.ErrUnsupported,
	0xD4: bmc.ErrUnauthorized,
}

func newCodeError(r request, code types.CompletionCode) *codeError {
	kind, ok := r.kinds[code]
	if !ok {
		kind = completionKinds[code]
	}
	return &codeError{request: r.name, code: code, kind: kind}
}

// busy reports whether the command may succeed a moment later.
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

// hasCode reports whether err is an answer with one of these completion codes.
func hasCode(err error, codes ...types.CompletionCode) bool {
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
