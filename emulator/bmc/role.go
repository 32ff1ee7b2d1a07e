package bmc

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Role is what an account may do (DSP0266, "Roles").
type Role string

// The roles that are predefined.
const (
	Administrator Role = "Administrator" // all privileges
	Operator      Role = "Operator"      // Login, ConfigureComponents and ConfigureSelf
	ReadOnly      Role = "ReadOnly"      // Login and ConfigureSelf
)

// Privilege is a right to operate (DSP0266, "Privilege model").
type Privilege string

// The privileges of the standard.
const (
	PrivLogin               Privilege = "Login"
	PrivConfigureManager    Privilege = "ConfigureManager"
	PrivConfigureUsers      Privilege = "ConfigureUsers"
	PrivConfigureComponents Privilege = "ConfigureComponents"
	PrivConfigureSelf       Privilege = "ConfigureSelf" // only the own account
)

// Privileges are all privileges of the standard that a role can have.
var Privileges = []Privilege{PrivLogin, PrivConfigureManager, PrivConfigureUsers, PrivConfigureComponents, PrivConfigureSelf}

// RoleSpec is a role and its privileges.
type RoleSpec struct {
	ID         Role        `json:"id"`
	Privileges []Privilege `json:"privileges"`
	OEM        []string    `json:"oem,omitempty"` // stored only
}

// Predefined are the roles that every BMC has and that cannot be changed.
var Predefined = []RoleSpec{
	{ID: Administrator, Privileges: Privileges},
	{ID: Operator, Privileges: []Privilege{PrivLogin, PrivConfigureComponents, PrivConfigureSelf}},
	{ID: ReadOnly, Privileges: []Privilege{PrivLogin, PrivConfigureSelf}},
}

// IsPredefined reports whether a role is predefined.
func IsPredefined(id Role) bool {
	return slices.ContainsFunc(Predefined, func(r RoleSpec) bool { return r.ID == id })
}

// Roles returns all roles, predefined ones first.
func (a *Access) Roles() []RoleSpec {
	if len(a.Custom) == 0 {
		return Predefined
	}
	return slices.Concat(Predefined, a.Custom)
}

// Role returns the role with an ID; without privileges when it does not exist.
func (a *Access) Role(id Role) RoleSpec {
	for _, all := range [][]RoleSpec{Predefined, a.Custom} {
		for _, r := range all {
			if r.ID == id {
				return r
			}
		}
	}
	return RoleSpec{ID: id}
}

// maxRoles is the maximum number of custom roles.
const maxRoles = 16

var roleName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// CreateRole adds a role.
type CreateRole struct{ RoleSpec }

func (c CreateRole) apply(b *BMC, now time.Time) ([]Event, error) {
	switch {
	case !roleName.MatchString(string(c.ID)):
		return nil, &FieldError{FieldRole, BadForm}
	case slices.ContainsFunc(b.st.Access.Roles(), func(r RoleSpec) bool { return r.ID == c.ID }):
		return nil, &FieldError{FieldRole, Taken}
	case len(b.st.Access.Custom) >= maxRoles:
		return nil, fmt.Errorf("%w: %d roles", ErrFull, maxRoles)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	to := b.forkAccess()
	to.Custom = append(slices.Clone(to.Custom), c.RoleSpec)
	b.setAccess(to)
	return nil, nil
}

func (r *RoleSpec) check() error {
	for _, p := range r.Privileges {
		if !slices.Contains(Privileges, p) {
			return &FieldError{FieldPrivileges, NoSuch}
		}
	}
	return nil
}

// ChangeRole replaces the privileges of a role, which apply at once to its
// accounts.
type ChangeRole struct{ RoleSpec }

func (c ChangeRole) apply(b *BMC, now time.Time) ([]Event, error) {
	i := slices.IndexFunc(b.st.Access.Custom, func(r RoleSpec) bool { return r.ID == c.ID })
	if i < 0 {
		return nil, fmt.Errorf("%w: role %s that can be changed", ErrNotFound, c.ID)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	to := b.forkAccess()
	to.Custom = slices.Clone(to.Custom)
	was := to.Custom[i]
	to.Custom[i] = c.RoleSpec
	if b.lastAdmin(to) {
		return nil, &FieldError{FieldPrivileges, LastAdmin}
	}
	b.setAccess(to)
	var evs []Event
	for _, p := range Privileges {
		has, had := slices.Contains(c.Privileges, p), slices.Contains(was.Privileges, p)
		switch {
		case has && !had:
			evs = append(evs, b.auditAccount(now, event.PrivilegeAdded, "", string(p), string(c.ID)))
		case had && !has:
			evs = append(evs, b.auditAccount(now, event.PrivilegeRemoved, "", string(p), string(c.ID)))
		}
	}
	return evs, nil
}

// RemoveRole deletes a role that no account has.
type RemoveRole struct{ ID Role }

func (c RemoveRole) apply(b *BMC, _ time.Time) ([]Event, error) {
	i := slices.IndexFunc(b.st.Access.Custom, func(r RoleSpec) bool { return r.ID == c.ID })
	if i < 0 {
		return nil, fmt.Errorf("%w: role %s that can be removed", ErrNotFound, c.ID)
	}
	for _, a := range b.st.Access.Accounts {
		if a.Role == c.ID {
			return nil, fmt.Errorf("%w: role %s, by account %s", ErrInUse, c.ID, a.ID)
		}
	}
	if b.st.Access.HostBootstrap().Role == c.ID {
		return nil, fmt.Errorf("%w: role %s, by bootstrap accounts", ErrInUse, c.ID)
	}
	to := b.forkAccess()
	to.Custom = slices.Delete(slices.Clone(to.Custom), i, i+1)
	b.setAccess(to)
	return nil, nil
}
