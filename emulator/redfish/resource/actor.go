package resource

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// Actor is who sent a request.
type Actor struct {
	User       string
	Account    string // ID
	Session    string // ID; "" when the request came with a password
	role       bmc.Role
	privileges []Privilege // of the role as it is now
	// restricted actors must set another password before they may do anything
	// else (DSP0266, "Password change required handling").
	restricted bool
}

// ActorOf is the user of an account.
func ActorOf(a bmc.Account, session string, at *bmc.View) Actor {
	who := Actor{User: a.Name, Account: a.ID, Session: session, role: a.Role, restricted: a.ChangeRequired}
	who.privileges = at.Role(a.Role).Privileges
	if who.restricted {
		who.privileges = []Privilege{configureSelf}
	}
	return who
}

// has says whether an actor has one of some privileges for what is its own, or
// is not.
func (a *Actor) has(one []Privilege, own bool) bool {
	return slices.ContainsFunc(one, func(p Privilege) bool {
		return slices.Contains(a.privileges, p) && (p != configureSelf || own)
	})
}

// May says whether an actor may do that to what is at an address, or at least,
// with a PATCH, to some property of it.
func (a *Actor) May(method string, m *Match, at *Snapshot) bool {
	own := m.BelongsTo != nil && m.BelongsTo(m.View(at), *a)
	switch {
	case a.restricted && !(own && m.urgent(method)):
		return false
	case m.Action != nil && m.Action.writes != "":
		return a.has(m.Privileges.Properties[m.Action.writes], own)
	case a.has(m.Privileges.ForMethod(method), own):
		return true
	case method != "PATCH":
		return false
	}
	for _, one := range m.Privileges.Properties {
		if a.has(one, own) {
			return true
		}
	}
	return false
}

// MaySet says whether an actor may change a property of what it may change in
// part.
func (a *Actor) MaySet(property string, m *Match, own bool) bool {
	one, ok := m.Privileges.Properties[property]
	if !ok {
		one = m.Privileges.Patch
	}
	return a.has(one, own)
}

// urgent says whether who must set another password may do that before: to
// read the own account, to set its password, and to end the own session.
func (m *Match) urgent(method string) bool {
	switch TypeName(m.Schema) {
	case "ManagerAccount":
		return method != "DELETE" && (m.Action == nil || m.Action.writes == "Password")
	case "Session":
		return method == "DELETE"
	}
	return false
}

// Forbidden says why an actor may not do something.
func (a *Actor) Forbidden() message.Message {
	if a.restricted {
		return message.PasswordChangeRequired.With(AccountURI(a.Account))
	}
	return message.InsufficientPrivilege.With()
}

// Public says whether an address takes a method without login.
func (t *Route) Public(method string) bool {
	if method == "POST" {
		return t.Create != nil && t.Create.unauthenticated && t.Action == nil
	}
	return t.Unauthenticated && t.Action == nil && !t.Members && slices.Contains(t.Methods, method)
}
