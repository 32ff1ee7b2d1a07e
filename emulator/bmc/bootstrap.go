package bmc

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Bootstrap is how the server's own software comes to an account of the BMC: it
// asks for one over the system interface (DSP0270, "Credential bootstrapping").
type Bootstrap struct {
	Disabled bool `json:"disabled,omitempty"` // the whole interface is
	Closed   bool `json:"closed,omitempty"`   // nobody gets an account
	// Stays keeps Closed over a reset of the machine or the BMC.
	Stays bool `json:"stays,omitempty"`
	Role  Role `json:"role,omitempty"` // of the accounts; "": Administrator
}

// AccountRole is the role of the accounts.
func (s *Bootstrap) AccountRole() Role {
	if s.Role == "" {
		return Administrator
	}
	return s.Role
}

// noBootstrap is how it is as new.
var noBootstrap = new(Bootstrap)

// HostBootstrap is how the server's own software comes to an account.
func (a *Access) HostBootstrap() *Bootstrap {
	if a.Bootstrap == nil {
		return noBootstrap
	}
	return a.Bootstrap
}

// SetBootstrap sets that, whole.
type SetBootstrap struct{ Bootstrap }

func (c SetBootstrap) apply(b *BMC, _ time.Time) ([]Event, error) {
	if !slices.ContainsFunc(b.st.Access.Roles(), func(r RoleSpec) bool { return r.ID == c.AccountRole() }) {
		return nil, &FieldError{FieldRole, NoSuch}
	}
	if c.Bootstrap == *b.st.Access.HostBootstrap() {
		return nil, nil
	}
	to := b.forkAccess()
	to.Bootstrap = &c.Bootstrap
	b.setAccess(to)
	return nil, nil
}

// CreateBootstrapAccount makes an account for the server's own software, which is gone
// after a reset of the machine or the BMC. Last has it be the last one until
// then, or until somebody allows more.
type CreateBootstrapAccount struct {
	Name, Password string
	Last           bool
}

func (c CreateBootstrapAccount) apply(b *BMC, now time.Time) ([]Event, error) {
	s := b.st.Access.HostBootstrap()
	if s.Disabled || s.Closed {
		return nil, fmt.Errorf("%w: bootstrap accounts", ErrDisabled)
	}
	a, err := b.free()
	if err != nil {
		return nil, err
	}
	a.Bootstrap = true
	evs, err := b.enter(now, a, AccountChange{
		Name: &c.Name, Password: &c.Password, Role: new(s.AccountRole()), Types: &[]AccountType{ForRedfish},
	})
	if err == nil && c.Last {
		to := b.forkAccess()
		own := *s
		own.Closed = true
		to.Bootstrap = &own
		b.setAccess(to)
	}
	return evs, err
}

// bootstrapped ends what lasts until the machine or the BMC is reset.
func (b *BMC) bootstrapped(now time.Time) []Event {
	var evs []Event
	for _, a := range b.st.Access.Accounts {
		if a.Bootstrap {
			to := b.forkAccess()
			to.Accounts = slices.DeleteFunc(to.Accounts, func(o Account) bool { return o.ID == a.ID })
			b.without(a.ID, to)
			evs = append(evs, b.tell(now, event.AccountRemoved, a.ID, a.Name))
		}
	}
	if s := b.st.Access.HostBootstrap(); s.Closed && !s.Stays {
		to := b.forkAccess()
		own := *s
		own.Closed = false
		to.Bootstrap = &own
		b.setAccess(to)
	}
	return evs
}
