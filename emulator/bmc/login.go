package bmc

import (
	"crypto/subtle"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Locks are the failed logins of the accounts. They are a part of their own, so
// that who guesses passwords does not have the accounts rewritten.
type Locks struct {
	Of []Lock `json:"of"`
	// From are failed logins by where they came from, the latest last.
	From []Block `json:"from,omitempty"`
}

// Lock is what failed logins made of an account.
type Lock struct {
	Account  string    `json:"account"` // ID
	Failures int       `json:"failures"`
	Last     time.Time `json:"last"`
	Locked   bool      `json:"locked,omitempty"`
	Until    time.Time `json:"until,omitzero"` // of the lock; zero: until somebody unlocks it
	Unnoted  int       `json:"unnoted,omitempty"`
	Times    int       `json:"times,omitempty"` // it was locked in a row, where locks grow
}

// Locked says whether failed logins have locked an account.
func (l *Locks) Locked(account string) bool {
	return l != nil && slices.ContainsFunc(l.Of, func(o Lock) bool { return o.Account == account && o.Locked })
}

func (l *Locks) of(account string) Lock {
	if l != nil {
		for _, o := range l.Of {
			if o.Account == account {
				return o
			}
		}
	}
	return Lock{Account: account}
}

// Credentials are what somebody logs in with, and to which service.
type Credentials struct {
	Name, Password string
	To             AccountType
	From           string // address of the client
	// Account is the ID of the account whose password the client has proved to
	// know, or failed to, without sending it; Name and Password count for
	// nothing then.
	Account string
	Proved  bool
}

// Verdict is what a BMC makes of credentials.
type Verdict struct {
	Account Account // without the password; zero when they are refused
	OK      bool
	// Tell, when not nil, must be applied: it keeps count, which looking at
	// credentials alone does not.
	Tell Command
}

// Login looks at credentials. It takes the same time whatever is wrong with
// them. It changes nothing: a client that uses Basic authentication logs in
// with every request, and most of them tell nothing new.
func (b *BMC) Login(c Credentials) Verdict {
	if c.Account != "" {
		return b.proof(c)
	}
	hit := -1
	given := secretOf(c.Name, c.Password)
	for i := range b.st.Access.Accounts {
		if subtle.ConstantTimeCompare(b.secrets[i][:], given[:]) == 1 {
			hit = i
		}
	}
	if hit >= 0 {
		return b.known(b.st.Access.Accounts[hit], c)
	}
	for i := range b.st.Access.Accounts {
		if a := &b.st.Access.Accounts[i]; a.Name == c.Name && a.Enabled {
			return Verdict{Tell: loginFailed{a.ID, c.From, c.To}}
		}
	}
	return Verdict{Tell: loginFailed{from: c.From, to: c.To}}
}

// proof judges a client by what it has proved.
func (b *BMC) proof(c Credentials) Verdict {
	a, ok := b.st.Access.Account(c.Account)
	switch {
	case !ok || !c.Proved && !a.Enabled:
		return Verdict{Tell: loginFailed{from: c.From, to: c.To}}
	case !c.Proved:
		return Verdict{Tell: loginFailed{a.ID, c.From, c.To}}
	}
	return b.known(a, c)
}

// known judges a client that knows the password of an account.
func (b *BMC) known(a Account, c Credentials) Verdict {
	lock := b.st.Locks.of(a.ID)
	switch {
	case b.st.Locks.Blocked(c.From):
		return Verdict{}
	case !a.Enabled || !a.Has(c.To) || lock.Locked:
		return Verdict{Tell: loginFailed{from: c.From, to: c.To}}
	case lock.Failures > 0, b.st.Locks.suspects(c.From):
		return Verdict{Account: a.shown(), OK: true, Tell: loginPassed{a.ID, c.From}}
	}
	return Verdict{Account: a.shown(), OK: true}
}

// shown is an account without its secrets.
func (a Account) shown() Account {
	a.Password, a.Old = "", nil
	return a
}

// loginPassed forgets the failed logins of an account, and those from an address.
type loginPassed struct{ account, from string }

func (c loginPassed) apply(b *BMC, _ time.Time) ([]Event, error) {
	b.unlock(c.account)
	if b.st.Locks.suspects(c.from) {
		l := b.forkLocks()
		l.From = slices.DeleteFunc(l.From, func(o Block) bool { return o.Address == c.from })
		b.st.Locks = l
	}
	return nil, nil
}

// loginFailed counts a login with a wrong password, if the account is one that
// could have been meant; account is "" when it counts for none.
type loginFailed struct {
	account, from string
	to            AccountType
}

func (c loginFailed) apply(b *BMC, now time.Time) ([]Event, error) {
	p := b.policy()
	b.suspect(now, c.from)
	a, known := b.st.Access.Account(c.account)
	if !known {
		if p.NoteEvery == 0 {
			return nil, nil
		}
		// The name that came is not told: people type passwords there.
		return []Event{b.tell(now, event.LoginFailed, "", c.from, string(c.to))}, nil
	}
	lock := b.st.Locks.of(a.ID)
	if lock.Locked {
		return nil, nil
	}
	if !p.LockForever && p.ForgetAfter > 0 && lock.Failures > 0 && now.Sub(lock.Last) >= p.ForgetAfter {
		lock.Failures, lock.Times = 0, 0
	}
	lock.Failures++
	lock.Unnoted++
	lock.Last = now
	var evs []Event
	if p.NoteEvery > 0 && lock.Unnoted >= p.NoteEvery {
		lock.Unnoted = 0
		evs = append(evs, b.tell(now, event.LoginFailed, a.ID, c.from, string(c.to)))
	}
	if p.LockAfter > 0 && lock.Failures >= p.LockAfter && (p.LockForever || p.LockFor > 0) {
		lock.Locked = true
		if !p.LockForever {
			lock.Until = now.Add(p.lockFor(lock.Times))
			lock.Times++
		}
		evs = append(evs, b.tell(now, event.AccountLocked, a.ID, a.Name))
	}
	l := b.forkLocks()
	l.Of = append(slices.DeleteFunc(l.Of, func(o Lock) bool { return o.Account == a.ID }), lock)
	b.st.Locks = l
	return evs, nil
}

// lockFor is how long a lock is that comes after so many others.
func (p *Policy) lockFor(after int) time.Duration {
	d := p.LockFor
	for ; after > 0 && d < p.LockMost; after-- {
		d = min(2*d, p.LockMost)
	}
	return d
}

// forkLocks is a copy of the failed logins that a step may write and put in
// place.
func (b *BMC) forkLocks() *Locks {
	if b.st.Locks == nil {
		return &Locks{}
	}
	return &Locks{Of: slices.Clone(b.st.Locks.Of), From: slices.Clone(b.st.Locks.From)}
}

// unlock forgets the failed logins of an account, and says whether they had
// locked it.
func (b *BMC) unlock(account string) bool {
	was := b.st.Locks.of(account)
	if was.Failures == 0 && !was.Locked {
		return false
	}
	l := b.forkLocks()
	l.Of = slices.DeleteFunc(l.Of, func(o Lock) bool { return o.Account == account })
	b.st.Locks = l
	return was.Locked
}

// locksDue is when the next lock expires; zero: none does.
func (b *BMC) locksDue() time.Time {
	var due time.Time
	if b.st.Locks != nil {
		for _, o := range b.st.Locks.Of {
			due = sooner(due, o.Until)
		}
		for _, o := range b.st.Locks.From {
			due = sooner(due, o.Until)
		}
	}
	return due
}

// expireLocks ends the locks that time ends.
func (b *BMC) expireLocks(now time.Time) []Event {
	if due := b.locksDue(); due.IsZero() || now.Before(due) {
		return nil
	}
	var evs []Event
	l := &Locks{}
	for _, o := range b.st.Locks.From {
		if o.Until.IsZero() || now.Before(o.Until) {
			l.From = append(l.From, o)
		}
	}
	for _, o := range b.st.Locks.Of {
		if o.Until.IsZero() || now.Before(o.Until) {
			l.Of = append(l.Of, o)
			continue
		}
		if p := b.policy(); p.LockMost > 0 { // one more failure locks it again
			l.Of = append(l.Of, Lock{Account: o.Account, Failures: max(1, p.LockAfter-1), Last: o.Until, Times: o.Times})
		}
		a, _ := b.st.Access.Account(o.Account)
		evs = append(evs, b.tell(o.Until, event.LockExpired, a.ID, a.Name))
	}
	b.st.Locks = l
	return evs
}
