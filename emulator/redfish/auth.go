package redfish

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// privilege is a right to operate (DSP0266, "Privilege model").
type privilege string

const (
	login               privilege = "Login"
	configureManager    privilege = "ConfigureManager"
	configureUsers      privilege = "ConfigureUsers"
	configureComponents privilege = "ConfigureComponents"
	configureSelf       privilege = "ConfigureSelf" // only what is the actor's own
)

// role is a predefined role (DSP0266, "Roles").
type role struct {
	name       bmc.Role
	privileges []privilege
}

// roles are all roles, in the order in which the service lists them.
var roles = []role{
	{bmc.Administrator, []privilege{login, configureManager, configureUsers, configureComponents, configureSelf}},
	{bmc.Operator, []privilege{login, configureComponents, configureSelf}},
	{bmc.ReadOnly, []privilege{login, configureSelf}},
}

// needs says which privileges each operation on a resource asks for: any one
// of the list. Actions are a POST.
type needs struct{ get, patch, post, delete []privilege }

// The needs of the Redfish operation-to-privilege mapping (DSP8011,
// Redfish_1.8.0_PrivilegeRegistry). It lets a HEAD of an account pass with
// Login; here a HEAD asks for what a GET asks for.
var (
	ofManager    = needsTo([]privilege{login}, configureManager)
	ofComponents = needsTo([]privilege{login}, configureComponents)
	ofUsers      = needsTo([]privilege{login}, configureUsers)
	ofAccount    = needsTo([]privilege{configureManager, configureUsers, configureSelf}, configureUsers)
	ofSessions   = needs{
		get: []privilege{login}, patch: []privilege{configureManager}, post: []privilege{login}, delete: []privilege{configureManager},
	}
	ofSession = needs{
		get: []privilege{configureManager, configureSelf}, patch: []privilege{configureManager},
		post: []privilege{configureManager}, delete: []privilege{configureManager, configureSelf},
	}
)

func needsTo(read []privilege, write privilege) needs {
	w := []privilege{write}
	return needs{get: read, patch: w, post: w, delete: w}
}

// to lists the privileges for an HTTP method.
func (n needs) to(method string) []privilege {
	switch method {
	case "PATCH":
		return n.patch
	case "POST":
		return n.post
	case "DELETE":
		return n.delete
	}
	return n.get
}

// actor is who sent a request.
type actor struct {
	user    string
	account string // ID
	session string // ID; "" when the request came with a password
	role    bmc.Role
}

// may says whether an actor may do that to what is at an address.
func (a actor) may(method string, m *match, at snapshot) bool {
	has := pick(roles, string(a.role), func(r role) string { return string(r.name) }).privileges
	return slices.ContainsFunc(m.needs.to(method), func(p privilege) bool {
		return slices.Contains(has, p) && (p != configureSelf || m.own != nil && m.own(m.view(at), a))
	})
}

// authenticate finds out who sent the request: the holder of a session, or of
// an account (DSP0266, "Authentication"). A token takes precedence.
func (x *exchange) authenticate() (actor, bool) {
	if tokens := x.r.Header["X-Auth-Token"]; len(tokens) > 0 {
		s, ok := x.host.Resume(tokens[0])
		return actor{user: s.User, account: s.Account, session: s.ID, role: s.Role}, ok
	}
	name, password, ok := x.r.BasicAuth()
	if !ok {
		return actor{}, false
	}
	a, ok := x.host.Login(name, password)
	return actor{user: a.Name, account: a.ID, role: a.Role}, ok
}

// public says whether a request needs no login: reading the fixed documents,
// and logging in.
func (x *exchange) public() bool {
	m := x.match
	if m == nil {
		return false
	}
	if x.r.Method == "POST" {
		return m.create != nil && m.create.open && m.action == nil
	}
	return m.open && m.action == nil && !m.members && slices.Contains(m.methods, x.r.Method)
}

// challenge asks for a login.
func (x *exchange) challenge(m message.Message) {
	x.w.Header()["Www-Authenticate"] = realm
	x.refuse(401, m)
}

var realm = []string{`Basic realm="Redfish"`}
