package bmc

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"
)

// OpenSession logs an account in. The token is the caller's to make and to
// hand out; the BMC keeps a digest of it.
type OpenSession struct {
	Account Account
	Token   string
	From    string
}

func (c OpenSession) apply(b *BMC, now time.Time) ([]Event, error) {
	if b.spec.Sessions > 0 && len(b.sessions) >= b.spec.Sessions {
		return nil, fmt.Errorf("%w: %d sessions are open", ErrFull, len(b.sessions))
	}
	b.logins++
	s := Session{
		ID: fmt.Sprint(b.logins), Account: c.Account.ID, User: c.Account.Name, Role: c.Account.Role,
		Since: now, Used: now, From: c.From, token: sha256.Sum256([]byte(c.Token)),
	}
	b.sessions = append(b.sessions, s)
	b.showSessions()
	return []Event{SessionOpened{At: now, Session: s}}, nil
}

// CloseSession logs out.
type CloseSession struct{ ID string }

func (c CloseSession) apply(b *BMC, now time.Time) ([]Event, error) {
	n := len(b.sessions)
	b.sessions = slices.DeleteFunc(b.sessions, func(s Session) bool { return s.ID == c.ID })
	if len(b.sessions) == n {
		return nil, fmt.Errorf("%w: session %s", ErrNotFound, c.ID)
	}
	b.showSessions()
	return nil, nil
}

// SetSessionTimeout sets how long a session lives without use.
type SetSessionTimeout struct{ After time.Duration }

func (c SetSessionTimeout) apply(b *BMC, _ time.Time) ([]Event, error) {
	a := *b.st.Access
	a.SessionTimeout = c.After
	b.st.Access = &a
	return nil, nil
}

// SessionOpened tells the session that OpenSession made.
type SessionOpened struct {
	At      time.Time
	Session Session
}

// Time implements Event.
func (e SessionOpened) Time() time.Time { return e.At }
