package bmc

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Errors of sessions.
var (
	// ErrTooManySessions means that as many sessions are open as the BMC allows.
	ErrTooManySessions = errors.New("bmc: too many sessions")
	// ErrDisabled means that a service is switched off.
	ErrDisabled = errors.New("bmc: the service is disabled")
)

// Session is a login that a token stands for.
type Session struct {
	ID      string
	Account string // ID of its account
	User    string // name of its account
	Role    Role   // of its account
	Since   time.Time
	Used    time.Time // last time that its token was shown, as far as the copy knows
	From    string    // address of the client
	Context string    // the client's own
	End     time.Time // whatever its use; zero: it has none
	token   [sha256.Size]byte
	idle    time.Duration // how long it lives without use, as far as the copy knows
	used    *use
}

// use is when the token of a session was shown last, in nanoseconds of Unix
// time. All copies of the session share it, and it is the only thing that is not
// stepped: who holds a copy may note a use at any time.
type use struct{ at atomic.Int64 }

// Equal tells whether two are of the same time.
func (u *use) Equal(o *use) bool { return u == o || u.at.Load() == o.at.Load() }

// Use notes that the token of a session was shown, as Resume does: false when
// the session had ended by then. Unlike Resume it may be called while the BMC is
// stepped.
func (s *Session) Use(now time.Time) bool {
	at := now.UnixNano()
	for {
		last := s.used.at.Load()
		if at >= last+int64(s.idle) || !s.End.IsZero() && !now.Before(s.End) {
			return false
		}
		if at <= last || s.used.at.CompareAndSwap(last, at) {
			return true
		}
	}
}

// lastUsed is when its token was shown last.
func (s *Session) lastUsed() time.Time { return time.Unix(0, s.used.at.Load()).UTC() }

// Logins are the sessions that are open.
type Logins struct{ Sessions []Session }

var noSessions = new(Logins)

// showSessions makes the sessions as they are what a View shows.
func (b *BMC) showSessions() {
	b.open = noSessions
	if len(b.sessions) == 0 {
		return
	}
	b.open = &Logins{slices.Clone(b.sessions)}
	for i := range b.open.Sessions {
		b.tellEnd(&b.open.Sessions[i])
	}
}

// tellEnd has a copy of a session know when that ends.
func (b *BMC) tellEnd(s *Session) {
	s.Used, s.End, s.idle = s.lastUsed(), b.end(s), b.st.Access.SessionTimeout
}

// end is when a session ends whatever its use; zero when nothing but that ends
// it.
func (b *BMC) end(s *Session) time.Time {
	if p := b.policy(); p.AbsoluteSessionTimeoutEnabled {
		return s.Since.Add(p.AbsoluteSessionTimeout)
	}
	return time.Time{}
}

// sessionDue is when a session ends by itself.
func (b *BMC) sessionDue(s *Session) time.Time {
	return sooner(s.lastUsed().Add(b.st.Access.SessionTimeout), b.end(s))
}

// SessionsDue is when a session ends by itself if none is used; zero: never.
func (b *BMC) SessionsDue() time.Time {
	var first time.Time
	for i := range b.sessions {
		first = sooner(first, b.sessionDue(&b.sessions[i]))
	}
	return first
}

// expireSessions ends what time ends.
func (b *BMC) expireSessions(now time.Time) {
	b.closeSessions(func(s *Session) bool { return !now.Before(b.sessionDue(s)) })
}

// endSessions ends the sessions of an account but for one.
func (b *BMC) endSessions(account, but string) {
	b.closeSessions(func(s *Session) bool { return s.Account == account && s.ID != but })
}

// closeSessions ends those that are, and tells how many.
func (b *BMC) closeSessions(are func(*Session) bool) int {
	n := len(b.sessions)
	some := false // mostly none is, and every request of a session asks
	for i := range b.sessions {
		some = some || are(&b.sessions[i])
	}
	if !some {
		return 0
	}
	b.sessions = slices.DeleteFunc(b.sessions, func(s Session) bool { return are(&s) })
	if len(b.sessions) != n {
		b.showSessions()
	}
	return n - len(b.sessions)
}

// followAccount has the sessions of an account show its name and its role.
func (b *BMC) followAccount(a *Account) {
	for i := range b.sessions {
		if s := &b.sessions[i]; s.Account == a.ID {
			s.User, s.Role = a.Name, a.Role
		}
	}
	b.showSessions()
}

// OpenSession logs an account in. The token is the caller's to make and to
// hand out; the BMC keeps a digest of it.
type OpenSession struct {
	Account Account
	Token   string
	From    string
	Context string
}

func (c OpenSession) apply(b *BMC, now time.Time) ([]Event, error) {
	if p := b.policy(); p.Lockdown || p.NoSessions {
		return nil, fmt.Errorf("%w: sessions", ErrDisabled)
	}
	if b.spec.Sessions > 0 && len(b.sessions) >= b.spec.Sessions {
		return nil, fmt.Errorf("%w: %d are open", ErrTooManySessions, len(b.sessions))
	}
	b.logins++
	s := Session{
		ID: fmt.Sprint(b.logins), Account: c.Account.ID, User: c.Account.Name, Role: c.Account.Role,
		Since: now, Used: now, From: c.From, Context: c.Context, token: sha256.Sum256([]byte(c.Token)),
		used: new(use),
	}
	s.used.at.Store(now.UnixNano())
	b.sessions = append(b.sessions, s)
	b.showSessions()
	return []Event{SessionOpened{At: now, Session: s}, b.tell(now, event.LoggedIn, s.Account, s.User, s.From)}, nil
}

// CloseSession logs out.
type CloseSession struct{ ID string }

func (c CloseSession) apply(b *BMC, now time.Time) ([]Event, error) {
	if b.policy().NoSessions {
		return nil, fmt.Errorf("%w: sessions", ErrDisabled)
	}
	if b.closeSessions(func(s *Session) bool { return s.ID == c.ID }) == 0 {
		return nil, fmt.Errorf("%w: session %s", ErrNotFound, c.ID)
	}
	return nil, nil
}

// SetSessions sets how long a session lives without use, and what holds for
// all accounts, whole.
type SetSessions struct {
	Timeout time.Duration
	Policy  Policy
}

func (c SetSessions) apply(b *BMC, _ time.Time) ([]Event, error) {
	if *b.policy() == c.Policy && b.st.Access.SessionTimeout == c.Timeout {
		return nil, nil
	}
	to := b.forkAccess()
	to.SessionTimeout, to.Policy = c.Timeout, &c.Policy
	b.setAccess(to)
	b.showSessions() // which may end by another rule now
	return nil, nil
}

// Resume finds the session that a token stands for, and counts as its use.
func (b *BMC) Resume(now time.Time, token string) (Session, bool) {
	b.expireSessions(now)
	sum := sha256.Sum256([]byte(token))
	for i := range b.sessions {
		if subtle.ConstantTimeCompare(b.sessions[i].token[:], sum[:]) == 1 {
			s := b.sessions[i]
			b.tellEnd(&s)
			s.Use(now)
			s.Used = now
			return s, true
		}
	}
	return Session{}, false
}

// SessionOpened tells the session that OpenSession made.
type SessionOpened struct {
	At      time.Time
	Session Session
}

// Time implements Event.
func (e SessionOpened) Time() time.Time { return e.At }
