package bmc

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// SetUser sets what becomes of a user: of its account, if it has one, else of
// what is kept until it has a password and so can have one. An empty name takes
// the user away.
type SetUser struct {
	Account string // ID
	AccountChange
	Session string // ID of the session that asks for it, if any
	// As, when not nil, is what is kept beside the account; its Name, Enabled
	// and Role count for nothing.
	As *IPMIUser
}

func (c SetUser) apply(b *BMC, now time.Time) ([]Event, error) {
	_, has := b.st.Access.Account(c.Account)
	u := b.channel().User(c.Account)
	var evs []Event
	var err error
	switch {
	case !b.numbered(c.Account):
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
		evs, err = b.await(now, u, c.AccountChange)
	}
	if err != nil {
		return evs, err
	}
	switch is := b.channel().User(c.Account); {
	case c.As != nil:
		u = *c.As
		u.Account, u.Name, u.Enabled, u.Role = c.Account, is.Name, is.Enabled, is.Role
		b.putUser(u)
	case !has && is == IPMIUser{Account: c.Account}: // the account has just come
		u.Name, u.Enabled, u.Role = "", false, ""
		b.putUser(u)
	}
	return evs, nil
}

// numbered says whether an account can have that ID.
func (b *BMC) numbered(id string) bool {
	n, err := strconv.Atoi(id)
	s := &b.spec.Accounts
	return err == nil && n >= 1 && (s.Most == 0 || n <= s.Most) && strconv.Itoa(n) == id && !slices.Contains(s.Reserved, id)
}

// await changes a user that has no account, and makes that when there is a
// password for it.
func (b *BMC) await(now time.Time, u IPMIUser, c AccountChange) ([]Event, error) {
	if c.Name != nil {
		switch {
		case !b.spec.Accounts.takes(*c.Name):
			return nil, &FieldError{FieldName, BadForm}
		case b.named(*c.Name, u.Account):
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
	return b.enter(now, Account{ID: u.Account, Role: ReadOnly}, c)
}

// putUser puts a user in its place.
func (b *BMC) putUser(u IPMIUser) {
	if b.channel().User(u.Account) == u {
		return
	}
	to := b.forkChannel()
	to.put(u)
	b.st.Channel = to
}

// arrived forgets what was kept of a user before it had an account.
func (b *BMC) arrived(account string) { b.putUser(IPMIUser{Account: account}) }

// relimited forgets of a user what another role has made void, and rekeyed what
// another password has.
func (b *BMC) relimited(account string) {
	u := b.channel().User(account)
	u.Limit = 0
	b.putUser(u)
}

func (b *BMC) rekeyed(account string) {
	u := b.channel().User(account)
	u.LongPassword = false
	b.putUser(u)
}

// isAwaited says whether an ID is kept for a user that has no account yet, and
// awaiting how many are.
func (b *BMC) isAwaited(account string) bool { return b.channel().User(account).Name != "" }

func (b *BMC) awaiting() int {
	n := 0
	for _, u := range b.channel().Users {
		if u.Name != "" {
			n++
		}
	}
	return n
}

// named says whether somebody else has a name.
func (b *BMC) named(name, account string) bool {
	return slices.ContainsFunc(b.st.Access.Accounts, func(o Account) bool { return o.ID != account && o.Name == name }) ||
		slices.ContainsFunc(b.channel().Users, func(o IPMIUser) bool { return o.Account != account && o.Name == name })
}

// compareIDs orders IDs that are numbers: 10 comes after 9.
func compareIDs(a, b string) int {
	if d := len(a) - len(b); d != 0 {
		return d
	}
	return slices.Compare([]byte(a), []byte(b))
}
