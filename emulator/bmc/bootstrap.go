package bmc

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Bootstrap holds the settings by which the server's own software gets an
// account over the system interface (DSP0270, "Credential bootstrapping").
type Bootstrap struct {
	Disabled bool `json:"disabled,omitempty"` // the host interface is disabled
	Closed   bool `json:"closed,omitempty"`   // bootstrapping is disabled
	// Stays keeps Closed over a reset of the machine or the BMC.
	Stays bool `json:"stays,omitempty"`
	Role  Role `json:"role,omitempty"` // role of bootstrap accounts; "": Administrator
}

// AccountRole returns the role of bootstrap accounts.
func (s *Bootstrap) AccountRole() Role {
	if s.Role == "" {
		return Administrator
	}
	return s.Role
}

// defaultBootstrap holds the defaults.
var defaultBootstrap = new(Bootstrap)

// HostBootstrap returns the bootstrap settings.
func (a *Access) HostBootstrap() *Bootstrap {
	if a.Bootstrap == nil {
		return defaultBootstrap
	}
	return a.Bootstrap
}

// SetBootstrap replaces the bootstrap settings.
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

// CreateBootstrapAccount creates an account for the server's own software; a
// reset of the machine or the BMC deletes it. Last disables bootstrapping until
// then, or until it is enabled again.
type CreateBootstrapAccount struct {
	Name, Password string
	Last           bool
}

func (c CreateBootstrapAccount) apply(b *BMC, now time.Time) ([]Event, error) {
	s := b.st.Access.HostBootstrap()
	if s.Disabled || s.Closed {
		return nil, fmt.Errorf("%w: bootstrap accounts", ErrDisabled)
	}
	a, err := b.newAccount()
	if err != nil {
		return nil, err
	}
	a.Bootstrap = true
	evs, err := b.addAccount(now, a, AccountChange{
		Name: &c.Name, Password: &c.Password, Role: new(s.AccountRole()), Types: &[]AccountType{ForRedfish},
	})
	if err == nil && c.Last {
		to := b.forkAccess()
		closed := *s
		closed.Closed = true
		to.Bootstrap = &closed
		b.setAccess(to)
	}
	return evs, err
}

// resetBootstrap ends what lasts until the machine or the BMC is reset.
func (b *BMC) resetBootstrap(now time.Time) []Event {
	var evs []Event
	for _, a := range b.st.Access.Accounts {
		if a.Bootstrap {
			to := b.forkAccess()
			to.Accounts = slices.DeleteFunc(to.Accounts, func(o Account) bool { return o.ID == a.ID })
			b.dropAccount(a.ID, to)
			evs = append(evs, b.auditAccount(now, event.AccountRemoved, a.ID, a.Name))
		}
	}
	if s := b.st.Access.HostBootstrap(); s.Closed && !s.Stays {
		to := b.forkAccess()
		opened := *s
		opened.Closed = false
		to.Bootstrap = &opened
		b.setAccess(to)
	}
	return evs
}
