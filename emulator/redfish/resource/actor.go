package resource

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// Actor is the authenticated user that sent a request.
type Actor struct {
	User       string
	Account    string // ID
	Session    string // ID; "" when the request came with a password
	role       bmc.Role
	privileges []Privilege // privileges of the role, at the time of the request
	// passwordChangeRequired limits the actor to requests that change its password
	// (DSP0266, "Password change required handling").
	passwordChangeRequired bool
}

// NewActor returns the actor for an account and its session, with the current
// privileges of its role.
func NewActor(a bmc.Account, session string, at *bmc.View) Actor {
	who := Actor{User: a.Name, Account: a.ID, Session: session, role: a.Role, passwordChangeRequired: a.ChangeRequired}
	who.privileges = at.Role(a.Role).Privileges
	if who.passwordChangeRequired {
		who.privileges = []Privilege{configureSelf}
	}
	return who
}

// hasPrivilege reports whether the actor has one of the privileges.
// ConfigureSelf counts only when isOwner is true: for the actor's own account or
// session.
func (a *Actor) hasPrivilege(one []Privilege, isOwner bool) bool {
	return slices.ContainsFunc(one, func(p Privilege) bool {
		return slices.Contains(a.privileges, p) && (p != configureSelf || isOwner)
	})
}

// Authorized reports whether the actor may use a method on a resource. A PATCH
// is authorized if the actor may change at least one of its properties.
func (a *Actor) Authorized(method string, m *Match, at *Snapshot) bool {
	isOwner := m.BelongsTo != nil && m.BelongsTo(m.View(at), *a)
	switch {
	case a.passwordChangeRequired && !(isOwner && m.allowedBeforePasswordChange(method)):
		return false
	case m.Action != nil && m.Action.writes != "":
		return a.hasPrivilege(m.Privileges.Properties[m.Action.writes], isOwner)
	case a.hasPrivilege(m.Privileges.ForMethod(method), isOwner):
		return true
	case method != "PATCH":
		return false
	}
	for _, one := range m.Privileges.Properties {
		if a.hasPrivilege(one, isOwner) {
			return true
		}
	}
	return false
}

// ReadsURISecrets reports whether the actor may read the secrets of URIs in a resource:
// actors that may change the resource may.
func (a *Actor) ReadsURISecrets(m *Match, at *Snapshot) bool { return a.Authorized("PATCH", m, at) }

// AuthorizedToPatch reports whether the actor may change a property with PATCH,
// according to the property overrides of the privilege mapping.
func (a *Actor) AuthorizedToPatch(property string, m *Match, isOwner bool) bool {
	one, ok := m.Privileges.Properties[property]
	if !ok {
		one = m.Privileges.Patch
	}
	return a.hasPrivilege(one, isOwner)
}

// allowedBeforePasswordChange reports whether an actor that must change its
// password may send this request: read its own account, set its password, or
// delete its own session.
func (m *Match) allowedBeforePasswordChange(method string) bool {
	switch TypeName(m.Schema) {
	case "ManagerAccount":
		return method != "DELETE" && (m.Action == nil || m.Action.writes == "Password")
	case "Session":
		return method == "DELETE"
	}
	return false
}

// Forbidden returns the message for a request that the actor is not authorized
// to send.
func (a *Actor) Forbidden() message.Message {
	if a.passwordChangeRequired {
		return message.PasswordChangeRequired.With(AccountURI(a.Account))
	}
	return message.InsufficientPrivilege.With()
}

// Public reports whether a route accepts a method without authentication.
func (t *Route) Public(method string) bool {
	if method == "POST" {
		return t.Create != nil && t.Create.unauthenticated && t.Action == nil
	}
	return t.Unauthenticated && t.Action == nil && !t.Members && slices.Contains(t.Methods, method)
}
