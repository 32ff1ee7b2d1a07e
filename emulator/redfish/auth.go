package redfish

import (
	"context"
	"net"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// authenticate finds out who sent the request: the holder of a session, or of
// an account (DSP0266, "Authentication"). A token takes precedence.
func (x *request) authenticate() (resource.Actor, bool) {
	if x.inner != "" {
		return x.actor, true
	}
	if who, is, ok := x.impersonated(); is {
		return who, ok
	}
	if tokens := x.r.Header["X-Auth-Token"]; len(tokens) > 0 {
		s, ok := x.host.Resume(tokens[0])
		if !ok {
			return resource.Actor{}, false
		}
		at := x.host.BMC()
		a, ok := at.Account(s.Account)
		return resource.NewActor(a, s.ID, at), ok
	}
	name, password, ok := x.r.BasicAuth()
	if !ok || x.host.BMC().Policy.Basic == bmc.BasicDisabled {
		return resource.Actor{}, false
	}
	a, ok := x.host.Login(bmc.Credentials{Name: name, Password: password, To: bmc.ForRedfish, From: x.from()})
	if !ok {
		return resource.Actor{}, false
	}
	return resource.NewActor(a, "", x.host.BMC()), true
}

// from is the address of the client.
func (x *request) from() string {
	host, _, _ := net.SplitHostPort(x.r.RemoteAddr)
	return host
}

// public says whether a request needs no login: reading the fixed documents,
// and logging in.
func (x *request) public() bool {
	return x.match != nil && x.match.Public(x.r.Method)
}

// challenge asks for a login.
func (x *request) challenge(m message.Message) {
	if b := x.host.BMC().Policy.Basic; b != bmc.BasicUnadvertised && b != bmc.BasicDisabled {
		x.w.Header()["Www-Authenticate"] = realm
	}
	x.refuse(401, m)
}

var realm = []string{`Basic realm="Redfish"`}

// forbid refuses what an actor may not do.
func (x *request) forbid() { x.refuse(403, x.actor.Forbidden()) }

type actAs struct{}

// ActAs is the context of a request that is carried out in the name of an
// account, as that is then.
func ActAs(ctx context.Context, account string) context.Context {
	return context.WithValue(ctx, actAs{}, account)
}

// impersonated is in whose name a request is carried out that nobody has sent.
func (x *request) impersonated() (who resource.Actor, is, ok bool) {
	id, is := x.r.Context().Value(actAs{}).(string)
	if !is {
		return resource.Actor{}, false, false
	}
	at := x.host.BMC()
	a, ok := at.Account(id)
	return resource.NewActor(a, "", at), true, ok && a.Enabled
}
