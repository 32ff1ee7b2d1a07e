package bmc

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// SetUser changes an IPMI user: its account if it has one, otherwise the
// pending settings until a password makes it an account. An empty name deletes
// the user.
type SetUser struct {
	Account string // ID
	AccountChange
	Session string // ID of the requesting session, if any
	// As, when not nil, replaces the IPMI settings; its Name, Enabled and Role
	// are ignored.
	As *IPMIUser
}

func (c SetUser) apply(b *BMC, now time.Time) ([]Event, error) {
	_, has := b.st.Access.Account(c.Account)
	u := b.channel().User(c.Account)
	var evs []Event
	var err error
	switch {
	case !b.validAccountID(c.Account):
		return nil, &FieldError{FieldName, NoSuch}
	case b.policy().Lockdown:
		return nil, fmt.Errorf("%w: accounts", ErrDisabled)
	case c.Name != nil && *c.Name == "" && has:
		return RemoveAccount{ID: c.Account}.apply(b, now)
	case c.Name != nil && *c.Name == "":
		b.putUser(IPMIUser{Account: c.Account})
		return nil, nil
	case has && c.AccountChange == AccountChange{}:
	case has:
		evs, err = ChangeAccount{ID: c.Account, AccountChange: c.AccountChange, Session: c.Session}.apply(b, now)
	default:
		evs, err = b.changePendingUser(now, u, c.AccountChange)
	}
	if err != nil {
		return evs, err
	}
	switch is := b.channel().User(c.Account); {
	case c.As != nil:
		u = *c.As
		u.Account, u.Name, u.Enabled, u.Role = c.Account, is.Name, is.Enabled, is.Role
		b.putUser(u)
	case !has && is == IPMIUser{Account: c.Account}: // the account was created in this step
		u.Name, u.Enabled, u.Role = "", false, ""
		b.putUser(u)
	}
	return evs, nil
}

// validAccountID reports whether an account can have that ID.
func (b *BMC) validAccountID(id string) bool {
	n, err := strconv.Atoi(id)
	s := &b.spec.Accounts
	return err == nil && n >= 1 && (s.Most == 0 || n <= s.Most) && strconv.Itoa(n) == id && !slices.Contains(s.Reserved, id)
}

// changePendingUser changes a user without account, and creates the account
// when there is a password.
func (b *BMC) changePendingUser(now time.Time, u IPMIUser, c AccountChange) ([]Event, error) {
	if c.Name != nil {
		switch {
		case !b.spec.Accounts.takes(*c.Name):
			return nil, &FieldError{FieldName, BadForm}
		case b.nameTaken(*c.Name, u.Account):
			return nil, &FieldError{FieldName, Taken}
		}
	}
	set(&u.Name, c.Name)
	set(&u.Enabled, c.Enabled)
	set(&u.Role, c.Role)
	if c.Password == nil {
		b.putUser(u)
		return nil, nil
	}
	if u.Name == "" {
		return nil, &FieldError{FieldPassword, NoFit}
	}
	c.Name, c.Enabled = &u.Name, &u.Enabled
	if u.Role != "" {
		c.Role = &u.Role
	}
	return b.addAccount(now, Account{ID: u.Account, Role: ReadOnly}, c)
}

// putUser stores a user.
func (b *BMC) putUser(u IPMIUser) {
	if b.channel().User(u.Account) == u {
		return
	}
	to := b.forkChannel()
	to.put(u)
	b.st.Channel = to
}

// dropPendingUser drops a user's pending settings after its account was
// created.
func (b *BMC) dropPendingUser(account string) { b.putUser(IPMIUser{Account: account}) }

// userRoleChanged drops IPMI settings that a new role overrides,
// userPasswordChanged those that a new password overrides.
func (b *BMC) userRoleChanged(account string) {
	u := b.channel().User(account)
	u.Limit = 0
	b.putUser(u)
}

func (b *BMC) userPasswordChanged(account string) {
	u := b.channel().User(account)
	u.LongPassword = false
	b.putUser(u)
}

// isPendingUser reports whether an ID is reserved for a user without account,
// and pendingUsers returns their number.
func (b *BMC) isPendingUser(account string) bool { return b.channel().User(account).Name != "" }

func (b *BMC) pendingUsers() int {
	n := 0
	for _, u := range b.channel().Users {
		if u.Name != "" {
			n++
		}
	}
	return n
}

// nameTaken reports whether another user has a name.
func (b *BMC) nameTaken(name, account string) bool {
	return slices.ContainsFunc(b.st.Access.Accounts, func(o Account) bool { return o.ID != account && o.Name == name }) ||
		slices.ContainsFunc(b.channel().Users, func(o IPMIUser) bool { return o.Account != account && o.Name == name })
}

// compareIDs orders numeric IDs: 10 comes after 9.
func compareIDs(a, b string) int {
	if d := len(a) - len(b); d != 0 {
		return d
	}
	return slices.Compare([]byte(a), []byte(b))
}
