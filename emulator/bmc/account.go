package bmc

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Field is a field of an account, a role or the policy.
type Field string

// The fields.
const (
	FieldID         Field = "id"
	FieldName       Field = "name"
	FieldPassword   Field = "password"
	FieldRole       Field = "role"
	FieldEnabled    Field = "enabled"
	FieldTypes      Field = "types"
	FieldPrivileges Field = "privileges"
)

// Reason is why a field's value is refused.
type Reason string

// The reasons.
const (
	Taken     Reason = "another has it"
	BadForm   Reason = "not of the form that is allowed"
	BadLength Reason = "too short or too long"
	Reused    Reason = "was used too recently"
	NoSuch    Reason = "no such value"
	LastAdmin Reason = "nobody could administer accounts any longer"
	NoFit     Reason = "does not fit the services that the account is for"
	NotStrict Reason = "cannot be had without others"
	ByAction  Reason = "the old password is needed"
)

// FieldError says which field is refused and why. It does not contain the
// value, which may be a secret.
type FieldError struct {
	Field Field
	Why   Reason
}

// Error implements error.
func (e *FieldError) Error() string { return fmt.Sprintf("bmc: %s: %s", e.Field, e.Why) }

// AccountChange is a change of an account; nil fields do not change.
type AccountChange struct {
	Name, Password  *string
	Role            *Role
	Enabled         *bool
	Types           *[]AccountType
	StrictTypes     *bool
	ChangeRequired  *bool
	PasswordExpires *time.Time // zero: never
	Expires         *time.Time // zero: never
	Unlock          bool
}

// CreateAccount adds an account. It is enabled unless the change says otherwise.
type CreateAccount struct {
	ID string // a number up to AccountSpec.Most; "": the lowest free one
	AccountChange
}

func (c CreateAccount) apply(b *BMC, now time.Time) ([]Event, error) {
	if b.policy().Lockdown {
		return nil, fmt.Errorf("%w: accounts", ErrDisabled)
	}
	a, err := b.newAccount()
	if err != nil {
		return nil, err
	}
	if c.ID != "" {
		n, err := strconv.Atoi(c.ID)
		switch {
		case err != nil || strconv.Itoa(n) != c.ID || n < 1 || n > b.spec.Accounts.Most:
			return nil, &FieldError{FieldID, NoSuch}
		case !b.isFree(c.ID):
			return nil, &FieldError{FieldID, Taken}
		}
		a.ID = c.ID
	}
	return b.addAccount(now, a, c.AccountChange)
}

// isFree reports whether a new account can have an ID.
func (b *BMC) isFree(id string) bool {
	_, used := b.st.Access.Account(id)
	return !used && !b.isPendingUser(id) && !slices.Contains(b.spec.Accounts.Reserved, id)
}

// newAccount returns a new account at the lowest free ID.
func (b *BMC) newAccount() (Account, error) {
	spec := &b.spec.Accounts
	if spec.Most > 0 && len(b.st.Access.Accounts)+b.pendingUsers()+len(spec.Reserved) >= spec.Most {
		return Account{}, fmt.Errorf("%w: %d accounts", ErrFull, spec.Most)
	}
	a := Account{Enabled: true, Role: ReadOnly}
	for n := 1; a.ID == ""; n++ {
		if id := strconv.Itoa(n); b.isFree(id) {
			a.ID = id
		}
	}
	return a, nil
}

// addAccount adds an account.
func (b *BMC) addAccount(now time.Time, a Account, c AccountChange) ([]Event, error) {
	switch {
	case c.Name == nil:
		return nil, &FieldError{FieldName, BadForm}
	case c.Password == nil:
		return nil, &FieldError{FieldPassword, BadLength}
	}
	if err := b.applyChange(&a, now, c); err != nil {
		return nil, err
	}
	to := b.forkAccess()
	to.Accounts = append(to.Accounts, a)
	slices.SortFunc(to.Accounts, func(a, b Account) int { return compareIDs(a.ID, b.ID) })
	b.setAccess(to)
	b.dropPendingUser(a.ID)
	return []Event{b.auditAccount(now, event.AccountCreated, a.ID, a.Name), AccountCreated{At: now, ID: a.ID}}, nil
}

// ChangeAccount changes an account. A new password ends the account's sessions,
// except the one that made the change.
type ChangeAccount struct {
	ID string
	AccountChange
	Session string // ID of the session that makes the change, if any
}

func (c ChangeAccount) apply(b *BMC, now time.Time) ([]Event, error) {
	if b.policy().Lockdown {
		return nil, fmt.Errorf("%w: accounts", ErrDisabled)
	}
	i := slices.IndexFunc(b.st.Access.Accounts, func(a Account) bool { return a.ID == c.ID })
	if i < 0 {
		if b.fixed(c.ID) {
			return b.assignFixedAccount(now, c)
		}
		return nil, fmt.Errorf("%w: account %s", ErrNotFound, c.ID)
	}
	if b.spec.Accounts.Fixed && c.Name != nil && *c.Name == "" {
		return RemoveAccount{ID: c.ID}.apply(b, now)
	}
	to := b.forkAccess()
	was, a := to.Accounts[i], &to.Accounts[i]
	if err := b.applyChange(a, now, c.AccountChange); err != nil {
		return nil, err
	}
	if b.lastAdmin(to) {
		field := FieldEnabled
		switch {
		case a.Role != was.Role:
			field = FieldRole
		case !slices.Equal(a.Types, was.Types):
			field = FieldTypes
		}
		return nil, &FieldError{field, LastAdmin}
	}
	b.setAccess(to)
	var evs []Event
	if c.Unlock && b.unlock(a.ID) {
		evs = append(evs, b.auditAccount(now, event.AccountUnlocked, a.ID, a.Name))
	}
	switch {
	case was.Enabled && !a.Enabled:
		b.endSessions(a.ID, "")
		evs = append(evs, b.auditAccount(now, event.AccountDisabled, a.ID, a.Name))
	case !was.Enabled && a.Enabled:
		evs = append(evs, b.auditAccount(now, event.AccountEnabled, a.ID, a.Name))
	}
	if c.Password != nil {
		b.endSessions(a.ID, c.Session)
		b.userPasswordChanged(a.ID)
		evs = append(evs, b.auditAccount(now, event.AccountPassword, a.ID, a.Name))
	}
	if a.Role != was.Role {
		b.userRoleChanged(a.ID)
		evs = append(evs, b.auditAccount(now, event.RoleChanged, a.ID, a.Name, string(was.Role), string(a.Role)))
	}
	if a.Name != was.Name || a.Role != was.Role {
		b.updateSessions(a)
	}
	return evs, nil
}

// fixed reports whether an ID is that of an unused fixed account.
func (b *BMC) fixed(id string) bool {
	n, err := strconv.Atoi(id)
	return b.spec.Accounts.Fixed && err == nil && n >= 1 && n <= b.spec.Accounts.Most && strconv.Itoa(n) == id
}

// assignFixedAccount gives an unused fixed account its name. It stays disabled
// unless the change enables it, as on BMCs with fixed slots.
func (b *BMC) assignFixedAccount(now time.Time, c ChangeAccount) ([]Event, error) {
	switch {
	case slices.Contains(b.spec.Accounts.Reserved, c.ID):
		return nil, &FieldError{FieldName, NoSuch}
	case c.Name == nil && c.Password == nil && (c.Enabled == nil || !*c.Enabled):
		return nil, nil // an unused account has nothing to change
	}
	return b.addAccount(now, Account{ID: c.ID, Role: ReadOnly}, c.AccountChange)
}

// applyChange applies a change, or returns a FieldError.
func (b *BMC) applyChange(a *Account, now time.Time, c AccountChange) error {
	spec, policy := &b.spec.Accounts, b.policy()
	if c.Name != nil {
		switch {
		case !spec.takes(*c.Name):
			return &FieldError{FieldName, BadForm}
		case b.nameTaken(*c.Name, a.ID):
			return &FieldError{FieldName, Taken}
		}
		a.Name = *c.Name
	}
	if c.Password != nil {
		if n := len(*c.Password); n < policy.MinPassword || policy.MaxPassword > 0 && n > policy.MaxPassword {
			return &FieldError{FieldPassword, BadLength}
		}
		if err := a.setPassword(*c.Password, policy, now); err != nil {
			return err
		}
	}
	if c.Role != nil {
		if !slices.ContainsFunc(b.st.Access.Roles(), func(r RoleSpec) bool { return r.ID == *c.Role }) {
			return &FieldError{FieldRole, NoSuch}
		}
		a.Role = *c.Role
	}
	set(&a.Enabled, c.Enabled)
	set(&a.StrictTypes, c.StrictTypes)
	set(&a.ChangeRequired, c.ChangeRequired)
	set(&a.PasswordExpires, c.PasswordExpires)
	set(&a.Expires, c.Expires)
	if c.PasswordExpires != nil && !a.PasswordExpires.IsZero() && !now.Before(a.PasswordExpires) {
		a.ChangeRequired = true
	}
	if !a.Expires.IsZero() && !now.Before(a.Expires) {
		a.Enabled = false
	}
	return b.setTypes(a, c)
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// setPassword sets a password, which is valid for as long as the policy says.
func (a *Account) setPassword(p string, policy *Policy, now time.Time) error {
	if policy.History > 0 {
		if a.Password != "" {
			a.PasswordHistory = slices.Insert(slices.Clone(a.PasswordHistory), 0, digest(a.ID, a.Password))
		}
		a.PasswordHistory = a.PasswordHistory[:min(len(a.PasswordHistory), policy.History)]
		if slices.Contains(a.PasswordHistory, digest(a.ID, p)) {
			return &FieldError{FieldPassword, Reused}
		}
	}
	a.Password, a.ChangeRequired, a.PasswordExpires = p, false, time.Time{}
	if policy.PasswordLifetime > 0 {
		a.PasswordExpires = now.Add(policy.PasswordLifetime)
	}
	return nil
}

// digest returns a password as the history stores it.
func digest(account, password string) string {
	sum := sha256.Sum256([]byte(account + "/" + password))
	return hex.EncodeToString(sum[:])
}

// setTypes sets the account types and checks that name and password fit them. A
// new account without types gets all that they fit.
func (b *BMC) setTypes(a *Account, c AccountChange) error {
	specs := b.spec.Accounts.Types
	_, known := b.st.Access.Account(a.ID)
	switch {
	case c.Types != nil:
		types, err := b.withImplied(*c.Types, a.StrictTypes)
		if err != nil {
			return err
		}
		a.Types = types
	case !known && a.StrictTypes:
		a.Types = []AccountType{ForRedfish} // DSP2046, ManagerAccount.AccountTypes
	case !known:
		for _, s := range specs {
			if s.fits(a) == "" {
				a.Types = append(a.Types, s.Type)
			}
		}
	}
	if c.Types == nil && c.Name == nil && c.Password == nil {
		return nil // unchanged; accounts from a rack file need not fit
	}
	for _, s := range specs {
		if f := s.fits(a); a.Has(s.Type) && f != "" {
			if c.Types != nil {
				f = FieldTypes
			}
			return &FieldError{f, NoFit}
		}
	}
	return nil
}

// fits returns the field of an account that its type cannot support; "" when
// all fit.
func (s *TypeSpec) fits(a *Account) Field {
	switch {
	case s.Name > 0 && len(a.Name) > s.Name:
		return FieldName
	case s.Password > 0 && len(a.Password) > s.Password:
		return FieldPassword
	}
	return ""
}

// withImplied returns the requested types and the implied ones, in the BMC's
// order.
func (b *BMC) withImplied(asked []AccountType, strict bool) ([]AccountType, error) {
	all := slices.Clone(asked)
	for i := 0; i < len(all); i++ {
		j := slices.IndexFunc(b.spec.Accounts.Types, func(s TypeSpec) bool { return s.Type == all[i] })
		if j < 0 {
			return nil, &FieldError{FieldTypes, NoSuch}
		}
		for _, t := range b.spec.Accounts.Types[j].Implies {
			if !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
	}
	if strict && len(all) > len(asked) {
		return nil, &FieldError{FieldTypes, NotStrict}
	}
	types := []AccountType{}
	for _, s := range b.spec.Accounts.Types {
		if slices.Contains(all, s.Type) {
			types = append(types, s.Type)
		}
	}
	return types, nil
}

// RemoveAccount deletes an account and ends its sessions.
type RemoveAccount struct{ ID string }

func (c RemoveAccount) apply(b *BMC, now time.Time) ([]Event, error) {
	if b.policy().Lockdown {
		return nil, fmt.Errorf("%w: accounts", ErrDisabled)
	}
	i := slices.IndexFunc(b.st.Access.Accounts, func(a Account) bool { return a.ID == c.ID })
	if i < 0 {
		return nil, fmt.Errorf("%w: account %s", ErrNotFound, c.ID)
	}
	to := b.forkAccess()
	name := to.Accounts[i].Name
	to.Accounts = slices.Delete(to.Accounts, i, i+1)
	if b.lastAdmin(to) {
		return nil, &FieldError{FieldName, LastAdmin}
	}
	b.dropAccount(c.ID, to)
	return []Event{b.auditAccount(now, event.AccountRemoved, c.ID, name)}, nil
}

// dropAccount stores accounts from which one was deleted, with everything that
// belonged to it.
func (b *BMC) dropAccount(id string, to *Access) {
	b.setAccess(to)
	b.unlock(id)
	b.putUser(IPMIUser{Account: id})
	b.dropStore(AccountStore(id))
	b.endSessions(id, "")
}

// ErrProof means that the requester's own password is wrong.
var ErrProof = errors.New("bmc: wrong password of who asks")

// ChangePassword sets an account's password after checking the requester's own
// password.
type ChangePassword struct {
	ID, To    string
	By, Proof string // the requester's account ID and password
	Session   string // session ID, if any
}

func (c ChangePassword) apply(b *BMC, now time.Time) ([]Event, error) {
	by, ok := b.st.Access.Account(c.By)
	given := loginDigest(by.Name, c.Proof)
	if is := loginDigest(by.Name, by.Password); !ok || subtle.ConstantTimeCompare(given[:], is[:]) != 1 {
		return nil, ErrProof
	}
	return ChangeAccount{ID: c.ID, AccountChange: AccountChange{Password: &c.To}, Session: c.Session}.apply(b, now)
}

// lastAdmin reports whether no administrator would remain with the accounts in
// to.
func (b *BMC) lastAdmin(to *Access) bool {
	return !b.spec.Accounts.LastAdmin && b.st.Access.Admins() > 0 && to.Admins() == 0
}

// Admins returns the number of enabled accounts that can administer accounts.
func (a *Access) Admins() int {
	n := 0
	for i := range a.Accounts {
		if u := &a.Accounts[i]; u.Enabled && !u.Bootstrap && u.Has(ForRedfish) && slices.Contains(a.Role(u.Role).Privileges, PrivConfigureUsers) {
			n++
		}
	}
	return n
}

// SetPolicy replaces the policy. Existing passwords and locks are not changed.
type SetPolicy struct{ Policy }

func (c SetPolicy) apply(b *BMC, now time.Time) ([]Event, error) {
	return SetSessions{Timeout: b.st.Access.SessionTimeout, Policy: c.Policy}.apply(b, now)
}

// AccountCreated reports the ID that CreateAccount assigned.
type AccountCreated struct {
	At time.Time
	ID string
}

// Time implements Event.
func (e AccountCreated) Time() time.Time { return e.At }
