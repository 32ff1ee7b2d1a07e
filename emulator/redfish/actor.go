package redfish

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// actor is who sent a request.
type actor struct {
	user       string
	account    string // ID
	session    string // ID; "" when the request came with a password
	role       bmc.Role
	privileges []privilege // of the role as it is now
	// restricted actors must set another password before they may do anything
	// else (DSP0266, "Password change required handling").
	restricted bool
}

// actorOf is the user of an account.
func actorOf(a bmc.Account, session string, at *bmc.View) actor {
	who := actor{user: a.Name, account: a.ID, session: session, role: a.Role, restricted: a.ChangeRequired}
	who.privileges = at.Role(a.Role).Privileges
	if who.restricted {
		who.privileges = []privilege{configureSelf}
	}
	return who
}

// has says whether an actor has one of some privileges for what is its own, or
// is not.
func (a *actor) has(one []privilege, own bool) bool {
	return slices.ContainsFunc(one, func(p privilege) bool {
		return slices.Contains(a.privileges, p) && (p != configureSelf || own)
	})
}

// may says whether an actor may do that to what is at an address, or at least,
// with a PATCH, to some property of it.
func (a *actor) may(method string, m *match, at *snapshot) bool {
	own := m.own != nil && m.own(m.view(at), *a)
	switch {
	case a.restricted && !(own && m.urgent(method)):
		return false
	case m.action != nil && m.action.like != "":
		return a.has(m.needs.properties[m.action.like], own)
	case a.has(m.needs.to(method), own):
		return true
	case method != "PATCH":
		return false
	}
	for _, one := range m.needs.properties {
		if a.has(one, own) {
			return true
		}
	}
	return false
}

// maySet says whether an actor may change a property of what it may change in
// part.
func (a *actor) maySet(property string, m *match, own bool) bool {
	one, ok := m.needs.properties[property]
	if !ok {
		one = m.needs.patch
	}
	return a.has(one, own)
}

// urgent says whether who must set another password may do that before: to
// read the own account, to set its password, and to end the own session.
func (m *match) urgent(method string) bool {
	switch typeName(m.schema) {
	case "ManagerAccount":
		return method != "DELETE" && (m.action == nil || m.action.like == "Password")
	case "Session":
		return method == "DELETE"
	}
	return false
}

// forbidden says why an actor may not do something.
func (a *actor) forbidden() message.Message {
	if a.restricted {
		return message.PasswordChangeRequired.With(accountURI(a.account))
	}
	return message.InsufficientPrivilege.With()
}

// public says whether an address takes a method without login.
func (t *route) public(method string) bool {
	if method == "POST" {
		return t.create != nil && t.create.open && t.action == nil
	}
	return t.open && t.action == nil && !t.members && slices.Contains(t.methods, method)
}
