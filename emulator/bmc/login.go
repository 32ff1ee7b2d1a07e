package bmc

import (
	"crypto/subtle"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// LoginFailures counts failed logins. It is a separate part, so that guessing
// passwords does not rewrite the accounts. Its times are client times.
type LoginFailures struct {
	ByAccount []AccountLock `json:"of"`
	// ByAddress are failed logins by source address, latest last.
	ByAddress []AddressBlock `json:"from,omitempty"`
}

// AccountLock counts the failed logins of an account.
type AccountLock struct {
	Account     string    `json:"account"` // ID
	Failures    int       `json:"failures"`
	Last        time.Time `json:"last"`
	Locked      bool      `json:"locked,omitempty"`
	Until       time.Time `json:"until,omitzero"` // end of the lock; zero: until somebody unlocks it
	Unlogged    int       `json:"unnoted,omitempty"`
	Consecutive int       `json:"times,omitempty"` // consecutive locks, where locks grow
}

// Locked reports whether an account is locked.
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

// Credentials are a login's credentials, and the service that it is for.
type Credentials struct {
	Name, Password string
	To             AccountType
	From           string // address of the client
	// Account is the ID of the account whose password the client has proved to
	// know, or failed to, without sending it (RAKP). Name and Password are then
	// ignored.
	Account string
	Proved  bool
}

// LoginResult is the result of checking credentials.
type LoginResult struct {
	Account Account // without password; zero when they are refused
	OK      bool
	// Record, when not nil, is a command to apply: checking credentials does
	// not count the login.
	Record Command
}

// Login checks credentials in constant time. It changes nothing: clients with
// basic authentication log in with every request, and most logins need no
// record.
func (b *BMC) Login(c Credentials) LoginResult {
	if c.Account != "" {
		return b.checkProof(c)
	}
	hit := -1
	given := loginDigest(c.Name, c.Password)
	for i := range b.st.Access.Accounts {
		if subtle.ConstantTimeCompare(b.secrets[i][:], given[:]) == 1 {
			hit = i
		}
	}
	if hit >= 0 {
		return b.acceptLogin(b.st.Access.Accounts[hit], c)
	}
	for i := range b.st.Access.Accounts {
		if a := &b.st.Access.Accounts[i]; a.Name == c.Name && a.Enabled {
			return LoginResult{Record: loginFailed{a.ID, c.From, c.To}}
		}
	}
	return LoginResult{Record: loginFailed{from: c.From, to: c.To}}
}

// checkProof checks a client's proof of a password.
func (b *BMC) checkProof(c Credentials) LoginResult {
	a, ok := b.st.Access.Account(c.Account)
	switch {
	case !ok || !c.Proved && !a.Enabled:
		return LoginResult{Record: loginFailed{from: c.From, to: c.To}}
	case !c.Proved:
		return LoginResult{Record: loginFailed{a.ID, c.From, c.To}}
	}
	return b.acceptLogin(a, c)
}

// acceptLogin checks the restrictions of an account whose password is correct.
func (b *BMC) acceptLogin(a Account, c Credentials) LoginResult {
	lock := b.st.LoginFailures.of(a.ID)
	switch {
	case b.st.LoginFailures.Blocked(c.From):
		return LoginResult{}
	case !a.Enabled || !a.Has(c.To) || lock.Locked:
		return LoginResult{Record: loginFailed{from: c.From, to: c.To}}
	case lock.Failures > 0, b.st.LoginFailures.suspects(c.From):
		return LoginResult{Account: a.withoutSecrets(), OK: true, Record: loginPassed{a.ID, c.From}}
	}
	return LoginResult{Account: a.withoutSecrets(), OK: true}
}

// withoutSecrets returns an account without password and history.
func (a Account) withoutSecrets() Account {
	a.Password, a.PasswordHistory = "", nil
	return a
}

// loginPassed clears the failed logins of an account and of an address.
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

// loginFailed counts a failed login of an account; account is "" when the name
// is unknown.
type loginFailed struct {
	account, from string
	to            AccountType
}

func (c loginFailed) apply(b *BMC, now time.Time) ([]Event, error) {
	p, client := b.policy(), b.clientTime(now)
	b.countAddressFailure(client, c.from)
	a, known := b.st.Access.Account(c.account)
	if !known {
		if p.FailureLogThreshold == 0 {
			return nil, nil
		}
		// The name is not logged: people type passwords there.
		return []Event{b.auditAccount(now, event.LoginFailed, "", c.from, string(c.to))}, nil
	}
	lock := b.st.LoginFailures.of(a.ID)
	if lock.Locked {
		return nil, nil
	}
	if !p.LockForever && p.LockoutCounterResetAfter > 0 && lock.Failures > 0 && client.Sub(lock.Last) >= p.LockoutCounterResetAfter {
		lock.Failures, lock.Consecutive = 0, 0
	}
	lock.Failures++
	lock.Unlogged++
	lock.Last = client
	var evs []Event
	if p.FailureLogThreshold > 0 && lock.Unlogged >= p.FailureLogThreshold {
		lock.Unlogged = 0
		evs = append(evs, b.auditAccount(now, event.LoginFailed, a.ID, c.from, string(c.to)))
	}
	if p.LockoutThreshold > 0 && lock.Failures >= p.LockoutThreshold && (p.LockForever || p.LockoutDuration > 0) {
		lock.Locked = true
		if !p.LockForever {
			lock.Until = client.Add(p.lockFor(lock.Consecutive))
			lock.Consecutive++
		}
		evs = append(evs, b.auditAccount(now, event.AccountLocked, a.ID, a.Name))
	}
	l := b.forkLocks()
	l.ByAccount = append(slices.DeleteFunc(l.ByAccount, func(o AccountLock) bool { return o.Account == a.ID }), lock)
	b.st.LoginFailures = l
	return evs, nil
}

// lockFor returns the duration of a lock after that many previous ones.
func (p *Policy) lockFor(after int) time.Duration {
	d := p.LockoutDuration
	for ; after > 0 && d < p.MaxLockoutDuration; after-- {
		d = min(2*d, p.MaxLockoutDuration)
	}
	return d
}

// forkLocks returns a copy that a step may change, and stores it.
func (b *BMC) forkLocks() *LoginFailures {
	if b.st.LoginFailures == nil {
		return &LoginFailures{}
	}
	return &LoginFailures{ByAccount: slices.Clone(b.st.LoginFailures.ByAccount), ByAddress: slices.Clone(b.st.LoginFailures.ByAddress)}
}

// unlock clears the failed logins of an account, and reports whether it was
// locked.
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

// locksDue returns the client time at which the next lock ends; zero: none does.
func (b *BMC) locksDue() time.Time {
	var due time.Time
	if b.st.LoginFailures != nil {
		for _, o := range b.st.LoginFailures.ByAccount {
			due = earlier(due, o.Until)
		}
		for _, o := range b.st.LoginFailures.ByAddress {
			due = earlier(due, o.Until)
		}
	}
	return due
}

// expireLocks ends the locks whose client time has come.
func (b *BMC) expireLocks(now time.Time) []Event {
	client := b.clientTime(now)
	if due := b.locksDue(); due.IsZero() || client.Before(due) {
		return nil
	}
	var evs []Event
	l := &LoginFailures{}
	for _, o := range b.st.LoginFailures.ByAddress {
		if o.Until.IsZero() || client.Before(o.Until) {
			l.ByAddress = append(l.ByAddress, o)
		}
	}
	for _, o := range b.st.LoginFailures.ByAccount {
		if o.Until.IsZero() || client.Before(o.Until) {
			l.ByAccount = append(l.ByAccount, o)
			continue
		}
		if p := b.policy(); p.MaxLockoutDuration > 0 { // one more failure locks it again
			l.ByAccount = append(l.ByAccount, AccountLock{Account: o.Account, Failures: max(1, p.LockoutThreshold-1), Last: o.Until, Consecutive: o.Consecutive})
		}
		a, _ := b.st.Access.Account(o.Account)
		evs = append(evs, b.auditAccount(now, event.LockExpired, a.ID, a.Name))
	}
	b.st.LoginFailures = l
	return evs
}
