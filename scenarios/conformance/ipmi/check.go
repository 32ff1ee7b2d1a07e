package ipmi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// Severity says what a failed check means.
type Severity string

// The severities.
const (
	Must   Severity = "must"   // the standard demands it, and clients or safety need it
	Should Severity = "should" // the standard says so, and clients live without it
)

// Verdict is what came of a check.
type Verdict string

// The verdicts.
const (
	Pass   Verdict = "pass"
	Fail   Verdict = "fail"
	Warn   Verdict = "warn"  // as Fail, of a check that only should hold
	Skip   Verdict = "skip"  // there was nothing to check
	Broken Verdict = "error" // the check could not be made: nothing against the BMC
)

// Check is one thing that a BMC must do. It changes nothing that outlives its
// own sessions.
type Check struct {
	Name      string // short and stable
	Title     string // what holds
	Reference string // where IPMI v2.0 rev 1.1 says so
	Severity  Severity

	run func(context.Context, *probe) error
}

// Result is what came of a check.
type Result struct {
	Check
	Verdict Verdict
	Detail  string // why, unless it passed
	Took    time.Duration
}

// Account is an account of the BMC.
type Account struct {
	Name, Password string
}

// Target is a BMC under test.
type Target struct {
	Address  string // host:port
	Admin    Account
	Operator Account // limited to that level; zero: its checks are skipped
	User     Account // likewise
	KG       []byte  // as the BMC has it; nil: it has none
	Insecure bool    // cipher suite 0 and sessions without a password are wanted
	Patient  bool    // also make checks that take more than a minute

	Timeout time.Duration // of one try; 0: 1 s
	Tries   int           // of each request; 0: 4
	Clock   clock.Clock   // for checks that wait; nil: the real one
}

// Checks are all checks, in the order in which they are best made.
func Checks() []Check {
	var all []Check
	for _, group := range [][]Check{outsideChecks, suiteChecks, openChecks, rakpChecks, sessionChecks, windowChecks, commandChecks, v15Checks} {
		all = append(all, group...)
	}
	return all
}

// Run makes checks one after another. It ends early only when ctx does.
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

// finding is what is wrong with a BMC.
type finding struct{ text string }

func (f *finding) Error() string { return f.text }

func found(format string, args ...any) error { return &finding{fmt.Sprintf(format, args...)} }

// skipped is why there is nothing to check.
type skipped string

func (s skipped) Error() string { return string(s) }

// demand makes a finding of an error of a step that had to succeed.
func demand(err error, what string) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, new(skipped)), errors.As(err, new(*finding)):
		return err
	}
	return found("%s: %v", what, err)
}

// refused demands that err is one of some codes or statuses.
func refused[E interface {
	error
	comparable
}](err error, what string, allowed ...E) error {
	var got E
	switch {
	case err == nil:
		return found("%s: was not refused", what)
	case !errors.As(err, &got) || errors.Is(err, ErrMalformed):
		return demand(err, what)
	}
	for _, a := range allowed {
		if got == a {
			return nil
		}
	}
	return found("%s: %v, want %v", what, got, allowed[0])
}

// probe is a BMC under test and what one check has open there.
type probe struct {
	Target
	conns    []*Conn
	sessions []*Session
}

// grace is how long a packet that must not be answered is given to be answered
// after all: the answer to the next request has come by then.
const grace = 40 * time.Millisecond

func (p *probe) dial(ctx context.Context) (*Conn, error) {
	c, err := Dial(ctx, p.Address)
	if err != nil {
		return nil, err
	}
	c.Timeout, c.Tries = p.Timeout, p.Tries
	p.conns = append(p.conns, c)
	return c, nil
}

// alive fails when nobody is there: then nothing that follows is a fault of the
// BMC's, but of an earlier check that killed it, or of the network.
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

// keep closes a session after the check.
func (p *probe) keep(s *Session, err error) (*Session, error) {
	if err == nil {
		p.sessions = append(p.sessions, s)
	}
	return s, err
}

// login says how the administrator logs in.
func (p *probe) login(suite byte) Login {
	return Login{Name: p.Admin.Name, Password: p.Admin.Password, KG: p.KG, Suite: suite}
}

// best is the suite that checks use which need any: 17, or else 3.
func (p *probe) best(ctx context.Context, c *Conn) (byte, error) {
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
	id, err := p.best(ctx, c)
	if err != nil {
		return nil, err
	}
	return p.keep(c.Login(ctx, p.login(id)))
}

// as opens a session of another account, if there is one.
func (p *probe) as(ctx context.Context, who Account, role Privilege, byRole bool) (*Session, error) {
	if who.Name == "" {
		return nil, skipped("no such account is known")
	}
	c, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	id, err := p.best(ctx, c)
	if err != nil {
		return nil, err
	}
	return p.keep(c.Login(ctx, Login{
		Name: who.Name, Password: who.Password, KG: p.KG, Suite: id, Role: role, ByRole: byRole,
	}))
}

// administrator opens a session and raises it.
func (p *probe) administrator(ctx context.Context) (*Session, error) {
	s, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	_, err = s.Raise(ctx, Administrator)
	return s, err
}

// beside sends what send sends, which must stay without an answer, and then a
// right request, which must be answered: nothing else may come.
func (p *probe) beside(ctx context.Context, s *Session, what string, send func() error) error {
	c := s.conn
	tamper := c.Tamper
	if err := send(); err != nil {
		return err
	}
	c.Tamper = Tamper{}
	defer func() { c.Tamper = tamper }()
	m := c.request(GetDeviceID)
	replies := 0
	err := c.exchange(ctx, "the request after", func() ([]byte, error) { return s.message(m) }, func(b []byte) (bool, error) {
		a, ok := s.answer(b)
		if ok && a.answers(m) {
			return true, nil
		}
		replies++
		return false, nil
	})
	if err != nil {
		return demand(err, what+" ended the session")
	}
	for {
		b, err := c.Receive(ctx, grace)
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
		return found("%s was answered with %d packets", what, replies)
	}
	return nil
}

// quiet sends datagrams that must stay without an answer, and then pings.
func (p *probe) quiet(ctx context.Context, c *Conn, what string, datagrams ...[]byte) error {
	for _, d := range datagrams {
		if err := c.Send(d); err != nil {
			return err
		}
	}
	if _, err := c.Ping(ctx); err != nil {
		return demand(err, "the ping after "+what)
	}
	if len(c.dropped) > 0 {
		return found("%s was answered: %s", what, c.dropped[0])
	}
	b, err := c.Receive(ctx, grace)
	switch {
	case err == nil:
		return found("%s was answered: % X", what, b)
	case errors.Is(err, ErrNoAnswer):
		return nil
	}
	return err
}
