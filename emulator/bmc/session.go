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
	// ErrTooManySessions means that the maximum number of sessions is open.
	ErrTooManySessions = errors.New("bmc: too many sessions")
	// ErrDisabled means that a service is switched off.
	ErrDisabled = errors.New("bmc: the service is disabled")
)

// Session is a login with a token.
type Session struct {
	ID      string
	Account string    // ID of its account
	User    string    // name of its account
	Role    Role      // role of its account
	Since   time.Time // lab time
	From    string    // address of the client
	Context string    // chosen by the client
	// End is the lab time at which the session ends at the earliest, regardless of
	// use; zero: no such end.
	End    time.Time
	token  [sha256.Size]byte
	opened time.Time     // client time
	end    time.Time     // client time of End
	idle   time.Duration // inactivity timeout, as far as the copy knows
	used   *use
}

// use is the client time of a session's last use, in Unix nanoseconds. All copies
// of a session share it, and it alone is not stepped: any holder of a copy may
// record a use.
type use struct{ at atomic.Int64 }

// Equal reports whether two times are equal.
func (u *use) Equal(o *use) bool { return u == o || u.at.Load() == o.at.Load() }

// Use records a use of the session's token at a client time like Resume; it is
// false when the session had ended. Unlike Resume, it may run concurrently with
// steps of the BMC.
func (s *Session) Use(client time.Time) bool {
	at := client.UnixNano()
	for {
		last := s.used.at.Load()
		if at >= last+int64(s.idle) || !s.end.IsZero() && !client.Before(s.end) {
			return false
		}
		if at <= last || s.used.at.CompareAndSwap(last, at) {
			return true
		}
	}
}

// lastUsed returns the client time of the last use of the token.
func (s *Session) lastUsed() time.Time { return time.Unix(0, s.used.at.Load()).UTC() }

// Logins are the open sessions.
type Logins struct{ Sessions []Session }

var noSessions = new(Logins)

// publishSessions updates the sessions that a View shows.
func (b *BMC) publishSessions() {
	b.open = noSessions
	if len(b.sessions) == 0 {
		return
	}
	b.open = &Logins{slices.Clone(b.sessions)}
	for i := range b.open.Sessions {
		b.setEnd(&b.open.Sessions[i])
	}
}

// setEnd stores in a copy of a session when it ends.
func (b *BMC) setEnd(s *Session) {
	s.End, s.end, s.idle = b.sessionEnd(s.Since), b.sessionEnd(s.opened), b.st.Access.SessionTimeout
}

// sessionEnd returns when a session that was opened at a time ends regardless of
// use; zero: never.
func (b *BMC) sessionEnd(opened time.Time) time.Time {
	if p := b.policy(); p.AbsoluteSessionTimeoutEnabled {
		return opened.Add(p.AbsoluteSessionTimeout)
	}
	return time.Time{}
}

// sessionDue returns the client time at which a session expires.
func (b *BMC) sessionDue(s *Session) time.Time {
	return earlier(s.lastUsed().Add(b.st.Access.SessionTimeout), b.sessionEnd(s.opened))
}

// SessionsDue returns the client time at which a session expires if none is used;
// zero: never.
func (b *BMC) SessionsDue() time.Time {
	var first time.Time
	for i := range b.sessions {
		first = earlier(first, b.sessionDue(&b.sessions[i]))
	}
	return first
}

// expireSessions closes the sessions that have expired at a client time.
func (b *BMC) expireSessions(client time.Time) {
	b.closeSessions(func(s *Session) bool { return !client.Before(b.sessionDue(s)) })
}

// endSessions closes the sessions of an account except one.
func (b *BMC) endSessions(account, but string) {
	b.closeSessions(func(s *Session) bool { return s.Account == account && s.ID != but })
}

// closeSessions closes the sessions for which are returns true, and returns
// their number.
func (b *BMC) closeSessions(are func(*Session) bool) int {
	n := len(b.sessions)
	some := false // usually none is, and every request of a session asks
	for i := range b.sessions {
		some = some || are(&b.sessions[i])
	}
	if !some {
		return 0
	}
	b.sessions = slices.DeleteFunc(b.sessions, func(s Session) bool { return are(&s) })
	if len(b.sessions) != n {
		b.publishSessions()
	}
	return n - len(b.sessions)
}

// updateSessions updates name and role in the sessions of an account.
func (b *BMC) updateSessions(a *Account) {
	for i := range b.sessions {
		if s := &b.sessions[i]; s.Account == a.ID {
			s.User, s.Role = a.Name, a.Role
		}
	}
	b.publishSessions()
}

// OpenSession opens a session. The caller makes the token; the BMC stores a
// digest of it.
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
		Since: now, From: c.From, Context: c.Context, token: sha256.Sum256([]byte(c.Token)),
		opened: b.clientTime(now), used: new(use),
	}
	s.used.at.Store(s.opened.UnixNano())
	b.sessions = append(b.sessions, s)
	b.publishSessions()
	return []Event{SessionOpened{At: now, Session: s}, b.auditAccount(now, event.LoggedIn, s.Account, s.User, s.From)}, nil
}

// CloseSession closes a session.
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

// SetSessions sets the inactivity timeout and replaces the policy.
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
	b.publishSessions() // their end may have changed
	return nil, nil
}

// Resume returns the session of a token, and counts as its use at a client time.
func (b *BMC) Resume(client time.Time, token string) (Session, bool) {
	b.expireSessions(client)
	sum := sha256.Sum256([]byte(token))
	for i := range b.sessions {
		if subtle.ConstantTimeCompare(b.sessions[i].token[:], sum[:]) == 1 {
			s := b.sessions[i]
			b.setEnd(&s)
			s.Use(client)
			return s, true
		}
	}
	return Session{}, false
}

// SessionOpened reports the session that OpenSession made.
type SessionOpened struct {
	At      time.Time
	Session Session
}

// Time implements Event.
func (e SessionOpened) Time() time.Time { return e.At }
