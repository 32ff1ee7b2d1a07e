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
	Password string `json:"password"` // in clear text, which IPMI's RAKP needs
	Role     Role   `json:"role"`
	Enabled  bool   `json:"enabled"`
	// Types are the services that the account may use; nil: all of the BMC's.
	Types []AccountType `json:"types,omitempty"`
	// StrictTypes refuses implied types instead of adding them to Types.
	StrictTypes bool `json:"strict,omitempty"`
	// ChangeRequired restricts a login to changing the password.
	ChangeRequired bool `json:"changeRequired,omitempty"`
	// PasswordExpires is when ChangeRequired is set; zero: never.
	PasswordExpires time.Time `json:"passwordExpires,omitzero"`
	// Expires is when the account is disabled; zero: never.
	Expires time.Time `json:"expires,omitzero"`
	// Bootstrap marks an account made by CreateBootstrapAccount.
	Bootstrap bool `json:"bootstrap,omitempty"`
	// PasswordHistory holds digests of earlier passwords, latest first.
	PasswordHistory []string `json:"old,omitempty"`
}

// AccountType is a service that an account may use; the values are Redfish's
// AccountTypes (DSP2046, ManagerAccount.AccountTypes).
type AccountType string

// The account types.
const (
	ForRedfish AccountType = "Redfish" // Redfish
	ForIPMI    AccountType = "IPMI"    // IPMI over LAN
	ForWebUI   AccountType = "WebUI"   // the web interface
)

// TypeSpec is an account type of a kind of BMC. The limits are in bytes; 0
// means no limit.
type TypeSpec struct {
	Type     AccountType
	Name     int           // longest user name that the service supports
	Password int           // longest password that the service supports
	Implies  []AccountType // types that come with it
}

// AccountSpec says how a kind of BMC stores accounts.
type AccountSpec struct {
	Most  int  // maximum number of accounts
	Fixed bool // Most numbered accounts always exist; unused ones have no name
	// Reserved are IDs of fixed accounts that cannot be used.
	Reserved []string
	NameMax  int    // longest name in bytes; 0: no limit
	NameNot  string // characters that a name must not contain, besides blanks and non-ASCII ones
	Types    []TypeSpec
	// LastAdmin allows removing the last enabled administrator, after which
	// only a reset to defaults helps.
	LastAdmin bool
	ChosenID  bool   // a client may choose the ID of a new account, a number up to Most
	Policy    Policy // default policy
}

// Policy is the account policy.
type Policy struct {
	MinPassword int `json:"minPassword"` // shortest password, in bytes
	MaxPassword int `json:"maxPassword"` // longest password, in bytes
	// PasswordLifetime is how long a new password is valid; 0: for ever.
	PasswordLifetime time.Duration `json:"passwordLife,omitempty"`
	// History is the number of earlier passwords that cannot be used again.
	History int `json:"history,omitempty"`
	// OldPassword requires the old password for a change.
	OldPassword bool `json:"oldPassword,omitempty"`

	LockoutThreshold         int           `json:"lockAfter,omitempty"`   // failed logins that lock an account; 0: never
	LockoutDuration          time.Duration `json:"lockFor,omitempty"`     // how long an account is locked; 0: not at all
	LockoutCounterResetAfter time.Duration `json:"forgetAfter,omitempty"` // time after the last failure that resets the count of failed logins
	// LockForever locks until somebody unlocks; LockoutDuration and
	// LockoutCounterResetAfter are ignored.
	LockForever bool `json:"lockForever,omitempty"`
	// MaxLockoutDuration makes locks grow: a login that fails within
	// LockoutCounterResetAfter of the end of a lock doubles the duration, up to
	// this; 0: constant.
	MaxLockoutDuration time.Duration `json:"lockMost,omitempty"`
	// BlockAfter is the number of failed logins from one address within
	// BlockWithin that block the address for BlockFor; 0: never.
	BlockAfter  int           `json:"blockAfter,omitempty"`
	BlockWithin time.Duration `json:"blockWithin,omitempty"` // see BlockAfter
	BlockFor    time.Duration `json:"blockFor,omitempty"`    // see BlockAfter
	// FailureLogThreshold is the number of failed logins of an account per log
	// entry; 0: no entries.
	FailureLogThreshold int `json:"noteEvery,omitempty"`

	Basic                         BasicAuth     `json:"basic,omitempty"`      // HTTP basic authentication
	Lockdown                      bool          `json:"closed,omitempty"`     // accounts cannot be changed and no session can be opened
	NoSessions                    bool          `json:"noSessions,omitempty"` // sessions can neither be opened nor closed
	AbsoluteSessionTimeout        time.Duration `json:"sessionEnd,omitempty"` // time after which a session ends, even when it is used
	AbsoluteSessionTimeoutEnabled bool          `json:"endSession,omitempty"` // AbsoluteSessionTimeout applies
}

// BasicAuth says whether HTTP basic authentication is accepted; the values are
// Redfish's (DSP2046, AccountService.HTTPBasicAuth), except that zero means
// Enabled.
type BasicAuth string

// The values of BasicAuth.
const (
	BasicEnabled      BasicAuth = "Enabled"      // accepted
	BasicUnadvertised BasicAuth = "Unadvertised" // accepted, without a WWW-Authenticate header
	BasicDisabled     BasicAuth = "Disabled"     // rejected
)

// Access holds accounts, roles and the policy.
type Access struct {
	Accounts       []Account     `json:"accounts"`
	SessionTimeout time.Duration `json:"sessionTimeout"`
	Custom         []RoleSpec    `json:"roles,omitempty"`     // custom roles
	Policy         *Policy       `json:"policy,omitempty"`    // nil: the Spec's
	Bootstrap      *Bootstrap    `json:"bootstrap,omitempty"` // nil: defaults
}

// Account returns the account with an ID. In a View of a BMC with fixed
// accounts, an unused one has only its ID.
func (a *Access) Account(id string) (Account, bool) {
	for i := range a.Accounts {
		if a.Accounts[i].ID == id {
			return a.Accounts[i], true
		}
	}
	return Account{}, false
}

// Has reports whether an account may use a service.
func (a *Account) Has(t AccountType) bool { return a.Types == nil || slices.Contains(a.Types, t) }

// takes reports whether a name is allowed.
func (s *AccountSpec) takes(name string) bool {
	for _, r := range name {
		if r <= ' ' || r > '~' || strings.ContainsRune(s.NameNot, r) {
			return false
		}
	}
	return name != "" && (s.NameMax == 0 || len(name) <= s.NameMax)
}

// policy returns the account policy.
func (b *BMC) policy() *Policy {
	if p := b.st.Access.Policy; p != nil {
		return p
	}
	return &b.spec.Accounts.Policy
}

// setAccess stores a and everything that depends on it.
func (b *BMC) setAccess(a *Access) {
	b.st.Access = a
	b.refreshLogins()
}

// refreshLogins recomputes what depends on the accounts: the digests that
// logins are compared with, and the next time that an account changes.
func (b *BMC) refreshLogins() {
	b.secrets, b.accountsDue = nil, time.Time{}
	for _, a := range b.st.Access.Accounts {
		b.secrets = append(b.secrets, loginDigest(a.Name, a.Password))
		if a.Enabled {
			b.accountsDue = earlier(b.accountsDue, a.Expires)
		}
		if !a.ChangeRequired {
			b.accountsDue = earlier(b.accountsDue, a.PasswordExpires)
		}
	}
}

// expireAccounts applies the passing of time to the accounts.
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
			evs = append(evs, b.auditAccount(a.Expires, event.AccountDisabled, a.ID, a.Name))
		}
		if !a.ChangeRequired && is(a.PasswordExpires) {
			a.ChangeRequired = true
		}
	}
	b.setAccess(to)
	return evs
}

// forkAccess returns a copy of the accounts that a step may change and pass to
// setAccess.
func (b *BMC) forkAccess() *Access {
	a := *b.st.Access
	a.Accounts = slices.Clone(a.Accounts)
	return &a
}

// publicAccess returns the accounts as a View shows them.
func (b *BMC) publicAccess() *Access {
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

// loginDigest returns a digest of a name and a password: equal lengths make the
// comparison constant-time, and it is computed once per account, because
// clients with basic authentication log in with every request.
func loginDigest(name, password string) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(name), name, password))
}
