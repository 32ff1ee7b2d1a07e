package bmc

import (
	"crypto/subtle"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// LoginFailures are the failed logins of the accounts. They are a part of their own, so
// that who guesses passwords does not have the accounts rewritten.
type LoginFailures struct {
	ByAccount []AccountLock `json:"of"`
	// From are failed logins by where they came from, the latest last.
	ByAddress []AddressBlock `json:"from,omitempty"`
}

// AccountLock is what failed logins made of an account.
type AccountLock struct {
	Account     string    `json:"account"` // ID
	Failures    int       `json:"failures"`
	Last        time.Time `json:"last"`
	Locked      bool      `json:"locked,omitempty"`
	Until       time.Time `json:"until,omitzero"` // of the lock; zero: until somebody unlocks it
	Unlogged    int       `json:"unnoted,omitempty"`
	Consecutive int       `json:"times,omitempty"` // it was locked in a row, where locks grow
}

// Locked says whether failed logins have locked an account.
func (l *LoginFailures) Locked(account string) bool {
	return l != nil && slices.ContainsFunc(l.ByAccount, func(o AccountLock) bool { return o.Account == account && o.Locked })
}

func (l *LoginFailures) of(account string) AccountLock {
	if l != nil {
		for _, o := range l.ByAccount {
			if o.Account == account {
				return o
			}
		}
	}
	return AccountLock{Account: account}
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

// LoginResult is what a BMC makes of credentials.
type LoginResult struct {
	Account Account // without the password; zero when they are refused
	OK      bool
	// Tell, when not nil, must be applied: it keeps count, which looking at
	// credentials alone does not.
	Record Command
}

// Login looks at credentials. It takes the same time whatever is wrong with
// them. It changes nothing: a client that uses Basic authentication logs in
// with every request, and most of them tell nothing new.
func (b *BMC) Login(c Credentials) LoginResult {
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
			return LoginResult{Record: loginFailed{a.ID, c.From, c.To}}
		}
	}
	return LoginResult{Record: loginFailed{from: c.From, to: c.To}}
}

// proof judges a client by what it has proved.
func (b *BMC) proof(c Credentials) LoginResult {
	a, ok := b.st.Access.Account(c.Account)
	switch {
	case !ok || !c.Proved && !a.Enabled:
		return LoginResult{Record: loginFailed{from: c.From, to: c.To}}
	case !c.Proved:
		return LoginResult{Record: loginFailed{a.ID, c.From, c.To}}
	}
	return b.known(a, c)
}

// known judges a client that knows the password of an account.
func (b *BMC) known(a Account, c Credentials) LoginResult {
	lock := b.st.LoginFailures.of(a.ID)
	switch {
	case b.st.LoginFailures.Blocked(c.From):
		return LoginResult{}
	case !a.Enabled || !a.Has(c.To) || lock.Locked:
		return LoginResult{Record: loginFailed{from: c.From, to: c.To}}
	case lock.Failures > 0, b.st.LoginFailures.suspects(c.From):
		return LoginResult{Account: a.shown(), OK: true, Record: loginPassed{a.ID, c.From}}
	}
	return LoginResult{Account: a.shown(), OK: true}
}

// shown is an account without its secrets.
func (a Account) shown() Account {
	a.Password, a.PasswordHistory = "", nil
	return a
}

// loginPassed forgets the failed logins of an account, and those from an address.
type loginPassed struct{ account, from string }

func (c loginPassed) apply(b *BMC, _ time.Time) ([]Event, error) {
	b.unlock(c.account)
	if b.st.LoginFailures.suspects(c.from) {
		l := b.forkLocks()
		l.ByAddress = slices.DeleteFunc(l.ByAddress, func(o AddressBlock) bool { return o.Address == c.from })
		b.st.LoginFailures = l
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
		if p.FailureLogThreshold == 0 {
			return nil, nil
		}
		// The name that came is not told: people type passwords there.
		return []Event{b.tell(now, event.LoginFailed, "", c.from, string(c.to))}, nil
	}
	lock := b.st.LoginFailures.of(a.ID)
	if lock.Locked {
		return nil, nil
	}
	if !p.LockForever && p.LockoutCounterResetAfter > 0 && lock.Failures > 0 && now.Sub(lock.Last) >= p.LockoutCounterResetAfter {
		lock.Failures, lock.Consecutive = 0, 0
	}
	lock.Failures++
	lock.Unlogged++
	lock.Last = now
	var evs []Event
	if p.FailureLogThreshold > 0 && lock.Unlogged >= p.FailureLogThreshold {
		lock.Unlogged = 0
		evs = append(evs, b.tell(now, event.LoginFailed, a.ID, c.from, string(c.to)))
	}
	if p.LockoutThreshold > 0 && lock.Failures >= p.LockoutThreshold && (p.LockForever || p.LockoutDuration > 0) {
		lock.Locked = true
		if !p.LockForever {
			lock.Until = now.Add(p.lockFor(lock.Consecutive))
			lock.Consecutive++
		}
		evs = append(evs, b.tell(now, event.AccountLocked, a.ID, a.Name))
	}
	l := b.forkLocks()
	l.ByAccount = append(slices.DeleteFunc(l.ByAccount, func(o AccountLock) bool { return o.Account == a.ID }), lock)
	b.st.LoginFailures = l
	return evs, nil
}

// lockFor is how long a lock is that comes after so many others.
func (p *Policy) lockFor(after int) time.Duration {
	d := p.LockoutDuration
	for ; after > 0 && d < p.MaxLockoutDuration; after-- {
		d = min(2*d, p.MaxLockoutDuration)
	}
	return d
}

// forkLocks is a copy of the failed logins that a step may write and put in
// place.
func (b *BMC) forkLocks() *LoginFailures {
	if b.st.LoginFailures == nil {
		return &LoginFailures{}
	}
	return &LoginFailures{ByAccount: slices.Clone(b.st.LoginFailures.ByAccount), ByAddress: slices.Clone(b.st.LoginFailures.ByAddress)}
}

// unlock forgets the failed logins of an account, and says whether they had
// locked it.
func (b *BMC) unlock(account string) bool {
	was := b.st.LoginFailures.of(account)
	if was.Failures == 0 && !was.Locked {
		return false
	}
	l := b.forkLocks()
	l.ByAccount = slices.DeleteFunc(l.ByAccount, func(o AccountLock) bool { return o.Account == account })
	b.st.LoginFailures = l
	return was.Locked
}

// locksDue is when the next lock expires; zero: none does.
func (b *BMC) locksDue() time.Time {
	var due time.Time
	if b.st.LoginFailures != nil {
		for _, o := range b.st.LoginFailures.ByAccount {
			due = sooner(due, o.Until)
		}
		for _, o := range b.st.LoginFailures.ByAddress {
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
	l := &LoginFailures{}
	for _, o := range b.st.LoginFailures.ByAddress {
		if o.Until.IsZero() || now.Before(o.Until) {
			l.ByAddress = append(l.ByAddress, o)
		}
	}
	for _, o := range b.st.LoginFailures.ByAccount {
		if o.Until.IsZero() || now.Before(o.Until) {
			l.ByAccount = append(l.ByAccount, o)
			continue
		}
		if p := b.policy(); p.MaxLockoutDuration > 0 { // one more failure locks it again
			l.ByAccount = append(l.ByAccount, AccountLock{Account: o.Account, Failures: max(1, p.LockoutThreshold-1), Last: o.Until, Consecutive: o.Consecutive})
		}
		a, _ := b.st.Access.Account(o.Account)
		evs = append(evs, b.tell(o.Until, event.LockExpired, a.ID, a.Name))
	}
	b.st.LoginFailures = l
	return evs
}
