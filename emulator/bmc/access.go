package bmc

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Account is a user of the BMC.
type Account struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Password string `json:"password"` // in the clear: IPMI's RAKP needs it so
	Role     Role   `json:"role"`
	Enabled  bool   `json:"enabled"`
	// Types are the services that it may use; nil: all that the BMC has.
	Types []AccountType `json:"types,omitempty"`
	// Strict forbids the BMC to add to Types what it cannot keep apart.
	StrictTypes bool `json:"strict,omitempty"`
	// ChangeRequired lets a login do nothing but set another password.
	ChangeRequired bool `json:"changeRequired,omitempty"`
	// PasswordExpires is when ChangeRequired comes by itself; zero: never.
	PasswordExpires time.Time `json:"passwordExpires,omitzero"`
	// Expires is when the account is disabled; zero: never.
	Expires time.Time `json:"expires,omitzero"`
	// Bootstrap says that it is one of MakeBootstrap.
	Bootstrap bool `json:"bootstrap,omitempty"`
	// Old are digests of earlier passwords, the latest first.
	PasswordHistory []string `json:"old,omitempty"`
}

// AccountType is a service that an account may use; the values are Redfish's
// AccountTypes (DSP2046, ManagerAccount.AccountTypes).
type AccountType string

// The account types.
const (
	ForRedfish AccountType = "Redfish"
	ForIPMI    AccountType = "IPMI"
	ForWebUI   AccountType = "WebUI"
)

// TypeSpec is a type that accounts of a kind of BMC may have. The limits are in
// bytes; 0 is none.
type TypeSpec struct {
	Type           AccountType
	Name, Password int           // that it can carry at most
	Implies        []AccountType // what comes with it
}

// AccountSpec is how a kind of BMC keeps its accounts.
type AccountSpec struct {
	Most  int  // accounts at most
	Fixed bool // there always are Most of them, numbered, and unused ones have no name
	// Reserved are IDs of fixed accounts that nobody can use.
	Reserved []string
	NameMax  int    // bytes of a name; 0: any
	NameNot  string // characters that no name has, beside blanks and what is not ASCII
	Types    []TypeSpec
	// LastAdmin lets go of the last enabled administrator: nobody could make
	// another one but by a reset to defaults.
	LastAdmin bool
	Policy    Policy // as new
}

// Policy is what holds for all accounts.
type Policy struct {
	MinPassword int `json:"minPassword"` // bytes
	MaxPassword int `json:"maxPassword"`
	// PasswordLife is how long a new password is good for; 0: for ever.
	PasswordLifetime time.Duration `json:"passwordLife,omitempty"`
	// History is how many passwords must come before one can come again.
	History int `json:"history,omitempty"`
	// OldPassword is needed to set another one.
	OldPassword bool `json:"oldPassword,omitempty"`

	LockoutThreshold         int           `json:"lockAfter,omitempty"`   // failed logins; 0: never
	LockoutDuration          time.Duration `json:"lockFor,omitempty"`     // 0: no lock
	LockoutCounterResetAfter time.Duration `json:"forgetAfter,omitempty"` // since the last failure
	// LockForever makes LockFor and ForgetAfter void.
	LockForever bool `json:"lockForever,omitempty"`
	// LockMost lets locks grow: a login that fails within ForgetAfter of the end
	// of a lock makes one that is twice as long, up to so long; 0: none grows.
	MaxLockoutDuration time.Duration `json:"lockMost,omitempty"`
	// BlockAfter is how many logins from one address may fail within BlockWithin
	// until nobody gets in from there for BlockFor; 0: any.
	BlockAfter  int           `json:"blockAfter,omitempty"`
	BlockWithin time.Duration `json:"blockWithin,omitempty"`
	BlockFor    time.Duration `json:"blockFor,omitempty"`
	// NoteEvery is how many failed logins of an account make one entry of the
	// log; 0: none.
	FailureLogThreshold int `json:"noteEvery,omitempty"`

	Basic                         BasicAuth     `json:"basic,omitempty"`
	Lockdown                      bool          `json:"closed,omitempty"`     // no changes of accounts and no new sessions
	NoSessions                    bool          `json:"noSessions,omitempty"` // sessions neither begin nor are ended
	AbsoluteSessionTimeout        time.Duration `json:"sessionEnd,omitempty"` // whatever its use
	AbsoluteSessionTimeoutEnabled bool          `json:"endSession,omitempty"` // whether SessionEnd holds
}

// BasicAuth says whether a name and a password are taken with each request; the
// values are Redfish's (DSP2046, AccountService.HTTPBasicAuth) but for the zero
// one, which is Enabled.
type BasicAuth string

// The values of BasicAuth.
const (
	BasicEnabled      BasicAuth = "Enabled"
	BasicUnadvertised BasicAuth = "Unadvertised" // taken, but not asked for
	BasicDisabled     BasicAuth = "Disabled"
)

// Access is who may log in, and how long that lasts.
type Access struct {
	Accounts       []Account     `json:"accounts"`
	SessionTimeout time.Duration `json:"sessionTimeout"`
	Custom         []RoleSpec    `json:"roles,omitempty"`     // beside the predefined ones
	Policy         *Policy       `json:"policy,omitempty"`    // nil: as the Spec says
	Bootstrap      *Bootstrap    `json:"bootstrap,omitempty"` // nil: as new
}

// Account is the account with an ID; in a View of a BMC whose accounts are
// fixed an unused one has no more than its ID.
func (a *Access) Account(id string) (Account, bool) {
	for i := range a.Accounts {
		if a.Accounts[i].ID == id {
			return a.Accounts[i], true
		}
	}
	return Account{}, false
}

// Has says whether an account may use a service.
func (a *Account) Has(t AccountType) bool { return a.Types == nil || slices.Contains(a.Types, t) }

// takes says whether a BMC takes a name.
func (s *AccountSpec) takes(name string) bool {
	for _, r := range name {
		if r <= ' ' || r > '~' || strings.ContainsRune(s.NameNot, r) {
			return false
		}
	}
	return name != "" && (s.NameMax == 0 || len(name) <= s.NameMax)
}

// policy is what holds for all accounts.
func (b *BMC) policy() *Policy {
	if p := b.st.Access.Policy; p != nil {
		return p
	}
	return &b.spec.Accounts.Policy
}

// setAccess makes a the state's, and all that follows from it.
func (b *BMC) setAccess(a *Access) {
	b.st.Access = a
	b.keyed()
}

// keyed works out what follows from the accounts: what logins are compared
// with, and when something about them is due.
func (b *BMC) keyed() {
	b.secrets, b.accountsDue = nil, time.Time{}
	for _, a := range b.st.Access.Accounts {
		b.secrets = append(b.secrets, secretOf(a.Name, a.Password))
		if a.Enabled {
			b.accountsDue = sooner(b.accountsDue, a.Expires)
		}
		if !a.ChangeRequired {
			b.accountsDue = sooner(b.accountsDue, a.PasswordExpires)
		}
	}
}

// expireAccounts does what time does to accounts.
func (b *BMC) expireAccounts(now time.Time) []Event {
	if b.accountsDue.IsZero() || now.Before(b.accountsDue) {
		return nil
	}
	is := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	var evs []Event
	to := b.forkAccess()
	for i := range to.Accounts {
		a := &to.Accounts[i]
		if a.Enabled && is(a.Expires) {
			a.Enabled = false
			b.endSessions(a.ID, "")
			evs = append(evs, b.tell(a.Expires, event.AccountDisabled, a.ID, a.Name))
		}
		if !a.ChangeRequired && is(a.PasswordExpires) {
			a.ChangeRequired = true
		}
	}
	b.setAccess(to)
	return evs
}

// forkAccess is a copy of the accounts that a step may write and hand to
// setAccess.
func (b *BMC) forkAccess() *Access {
	a := *b.st.Access
	a.Accounts = slices.Clone(a.Accounts)
	return &a
}

// blank is what a View shows of the accounts.
func (b *BMC) blank() *Access {
	a := b.forkAccess()
	for i := range a.Accounts {
		a.Accounts[i].Password, a.Accounts[i].PasswordHistory = "", nil
	}
	if b.spec.Accounts.Fixed {
		used := a.Accounts
		a.Accounts = make([]Account, 0, b.spec.Accounts.Most)
		for n := range b.spec.Accounts.Most {
			id := strconv.Itoa(n + 1)
			i := slices.IndexFunc(used, func(u Account) bool { return u.ID == id })
			if i < 0 {
				a.Accounts = append(a.Accounts, Account{ID: id})
				continue
			}
			a.Accounts = append(a.Accounts, used[i])
		}
	}
	a.Policy = new(*b.policy())
	return a
}

// secretOf is a digest of what a login consists of: of equal length for all, so
// that comparing tells nothing, and made once per account, because clients
// that use Basic authentication log in with every request.
func secretOf(name, password string) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(name), name, password))
}
