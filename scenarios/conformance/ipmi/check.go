package ipmi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// Severity is the weight of a failed check.
type Severity string

// The severities.
const (
	Must   Severity = "must"   // the standard requires it, and clients or security depend on it
	Should Severity = "should" // the standard requires it, but clients work without it
)

// Verdict is the outcome of a check.
type Verdict string

// The verdicts.
const (
	Pass   Verdict = "pass"
	Fail   Verdict = "fail"
	Warn   Verdict = "warn"  // failed, with severity Should
	Skip   Verdict = "skip"  // there was nothing to check
	Broken Verdict = "error" // the check could not be made; the BMC is not at fault
)

// Check is one requirement on a BMC. It changes nothing that outlives its own
// sessions.
type Check struct {
	Name      string // short and stable
	Title     string // the requirement
	Reference string // section of IPMI v2.0 rev 1.1
	Severity  Severity

	run func(context.Context, *probe) error
}

// Result is the outcome of one check of a BMC.
type Result struct {
	Check
	Verdict Verdict
	Detail  string // why, unless it passed
	Took    time.Duration
}

// Account is a user of the BMC.
type Account struct {
	Name, Password string
}

// Target is a BMC under test.
type Target struct {
	Address     string // host:port
	Admin       Account
	Operator    Account // an account with that level; zero skips the checks that need it
	User        Account // likewise
	KG          []byte  // the BMC's K_g; nil: it has none
	Insecure    bool    // cipher suite 0 and sessions without a password are allowed
	IncludeSlow bool    // also run checks that take more than a minute

	Timeout time.Duration // time limit of one try; 0: 1 s
	Tries   int           // tries of each request; 0: 4
	Clock   clock.Clock   // for checks that wait; nil: the real one
}

// Checks returns all checks in the order in which they run best.
func Checks() []Check {
	var all []Check
	for _, group := range [][]Check{outsideChecks, suiteChecks, openChecks, rakpChecks, sessionChecks, windowChecks, commandChecks, v15Checks} {
		all = append(all, group...)
	}
	return all
}

// Run makes checks one after another and returns their results. It ends early
// only when ctx does.
func Run(ctx context.Context, t Target, checks []Check) []Result {
	if t.Clock == nil {
		t.Clock = clock.RealClock{}
	}
	var results []Result
	for _, c := range checks {
		if ctx.Err() != nil {
			break
		}
		begun := time.Now()
		p := &probe{Target: t}
		err := p.alive(ctx)
		if err == nil {
			err = c.run(ctx, p)
		}
		p.close(ctx)
		r := Result{Check: c, Took: time.Since(begun)}
		r.Verdict = verdict(c, err)
		if err != nil {
			r.Detail = err.Error()
		}
		results = append(results, r)
	}
	return results
}

func verdict(c Check, err error) Verdict {
	f := new(finding)
	switch {
	case err == nil:
		return Pass
	case errors.As(err, new(skipped)):
		return Skip
	case !errors.As(err, &f):
		return Broken
	case c.Severity == Should:
		return Warn
	}
	return Fail
}

// finding is an error that describes a defect of the BMC.
type finding struct{ text string }

func (f *finding) Error() string { return f.text }

func findingf(format string, args ...any) error { return &finding{fmt.Sprintf(format, args...)} }

// skipped is an error that says why there is nothing to check.
type skipped string

func (s skipped) Error() string { return string(s) }

// requireStep turns the error of a step that must succeed into a finding.
func requireStep(err error, what string) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, new(skipped)), errors.As(err, new(*finding)):
		return err
	}
	return findingf("%s: %v", what, err)
}

// refused returns nil if err is one of the completion codes or statuses, else
// a finding.
func refused[E interface {
	error
	comparable
}](err error, what string, allowed ...E) error {
	var got E
	switch {
	case err == nil:
		return findingf("%s: was not refused", what)
	case !errors.As(err, &got) || errors.Is(err, ErrMalformed):
		return requireStep(err, what)
	}
	for _, a := range allowed {
		if got == a {
			return nil
		}
	}
	return findingf("%s: %v, want %v", what, got, allowed[0])
}

// probe is the BMC under test, with what one check has open there.
type probe struct {
	Target
	conns    []*Conn
	sessions []*Session
}

// silenceTimeout is the time to wait for a response that must not come. The
// response to the next request has arrived by then.
const silenceTimeout = 40 * time.Millisecond

func (p *probe) dial(ctx context.Context) (*Conn, error) {
	c, err := Dial(ctx, p.Address)
	if err != nil {
		return nil, err
	}
	c.Timeout, c.Tries = p.Timeout, p.Tries
	p.conns = append(p.conns, c)
	return c, nil
}

// alive returns an error if the BMC does not answer. Then the failure of the
// next check is not its own: an earlier check has stopped the BMC, or the
// network is down.
func (p *probe) alive(ctx context.Context) error {
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	_, err = c.AuthCapabilities(ctx, V15, thisChannel, User, false)
	if errors.As(err, new(Code)) {
		return nil
	}
	return err
}

func (p *probe) close(ctx context.Context) {
	for _, s := range p.sessions {
		s.conn.Tamper = Tamper{}
		s.conn.Tries, s.conn.Timeout = 1, 200*time.Millisecond
		_ = s.Close(ctx) // it may be closed already
	}
	for _, c := range p.conns {
		_ = c.Close()
	}
}

// closeAfter closes a session at the end of the check.
func (p *probe) closeAfter(s *Session, err error) (*Session, error) {
	if err == nil {
		p.sessions = append(p.sessions, s)
	}
	return s, err
}

// login returns the login of the administrator with a cipher suite.
func (p *probe) login(suite byte) Login {
	return Login{Name: p.Admin.Name, Password: p.Admin.Password, KG: p.KG, Suite: suite}
}

// anySuite returns the cipher suite for checks that need any: 17, or else 3.
func (p *probe) anySuite(ctx context.Context, c *Conn) (byte, error) {
	offered, err := c.CipherSuites(ctx, V15, thisChannel)
	if err != nil {
		return 0, err
	}
	for _, want := range []byte{17, 3} {
		for _, s := range offered {
			if s.ID == want {
				return want, nil
			}
		}
	}
	return 0, skipped("the BMC offers neither cipher suite 17 nor 3")
}

// open opens a session of the administrator, at USER level.
func (p *probe) open(ctx context.Context) (*Session, error) {
	c, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	id, err := p.anySuite(ctx, c)
	if err != nil {
		return nil, err
	}
	return p.closeAfter(c.Login(ctx, p.login(id)))
}

// openAs opens a session of another account, or skips the check if the target
// has none.
func (p *probe) openAs(ctx context.Context, who Account, role Privilege, byRole bool) (*Session, error) {
	if who.Name == "" {
		return nil, skipped("no such account is known")
	}
	c, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	id, err := p.anySuite(ctx, c)
	if err != nil {
		return nil, err
	}
	return p.closeAfter(c.Login(ctx, Login{
		Name: who.Name, Password: who.Password, KG: p.KG, Suite: id, Role: role, ByRole: byRole,
	}))
}

// administrator opens a session of the administrator and raises it to that
// level.
func (p *probe) administrator(ctx context.Context) (*Session, error) {
	s, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	_, err = s.Raise(ctx, Administrator)
	return s, err
}

// expectSilence calls send, whose packet must stay without a response, and
// then sends a valid request, whose response must be the only packet that
// arrives.
func (p *probe) expectSilence(ctx context.Context, s *Session, what string, send func() error) error {
	c := s.conn
	tamper := c.Tamper
	if err := send(); err != nil {
		return err
	}
	c.Tamper = Tamper{}
	defer func() { c.Tamper = tamper }()
	m := c.request(GetDeviceID)
	replies := 0
	err := c.roundTrip(ctx, "the request after", func() ([]byte, error) { return s.message(m) }, func(b []byte) (bool, error) {
		a, ok := s.answer(b)
		if ok && a.answers(m) {
			return true, nil
		}
		replies++
		return false, nil
	})
	if err != nil {
		return requireStep(err, what+" ended the session")
	}
	for {
		b, err := c.Receive(ctx, silenceTimeout)
		if errors.Is(err, ErrNoAnswer) {
			break
		}
		if err != nil {
			return err
		}
		if a, ok := s.answer(b); !ok || !a.answers(m) {
			replies++
		}
	}
	if replies > 0 {
		return findingf("%s was answered with %d packets", what, replies)
	}
	return nil
}

// expectNoAnswer sends datagrams that must stay without a response, and then a
// ping.
func (p *probe) expectNoAnswer(ctx context.Context, c *Conn, what string, datagrams ...[]byte) error {
	for _, d := range datagrams {
		if err := c.Send(d); err != nil {
			return err
		}
	}
	if _, err := c.Ping(ctx); err != nil {
		return requireStep(err, "the ping after "+what)
	}
	if len(c.dropped) > 0 {
		return findingf("%s was answered: %s", what, c.dropped[0])
	}
	b, err := c.Receive(ctx, silenceTimeout)
	switch {
	case err == nil:
		return findingf("%s was answered: % X", what, b)
	case errors.Is(err, ErrNoAnswer):
		return nil
	}
	return err
}
