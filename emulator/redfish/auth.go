package redfish

import (
	"context"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// authenticate returns the user that sent the request, by a session's token or by
// HTTP basic authentication (DSP0266, "Authentication"). A token takes precedence.
func (x *request) authenticate() (resource.Actor, bool) {
	if x.inner != "" {
		return x.actor, true
	}
	if actor, is, ok := x.impersonatedActor(); is {
		return actor, ok
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
	a, ok := x.host.Login(bmc.Credentials{Name: name, Password: password, To: bmc.ForRedfish, From: x.clientAddress()})
	if !ok {
		return resource.Actor{}, false
	}
	return resource.NewActor(a, "", x.host.BMC()), true
}

// wwwAuthenticate is the challenge of HTTP basic authentication (RFC 7617, §2).
var wwwAuthenticate = []string{`Basic realm="Redfish"`}

// challenge sends 401. The challenge of basic authentication comes with it unless the
// account service does not advertise that.
func (x *request) challenge(m message.Message) {
	if b := x.host.BMC().Policy.Basic; b != bmc.BasicUnadvertised && b != bmc.BasicDisabled {
		x.w.Header()["Www-Authenticate"] = wwwAuthenticate
	}
	x.refuseBody()
	x.sendError(http.StatusUnauthorized, m)
}

// forbid sends 403 to an actor that lacks the privileges.
func (x *request) forbid() {
	x.refuseBody()
	x.sendError(http.StatusForbidden, x.actor.Forbidden())
}

// refuseBody makes the response not wait for the request's body, of which nothing has
// been read: the connection ends after it. Otherwise net/http reads up to 256 KiB
// before it sends the response. HTTP/2 resets the stream instead.
func (x *request) refuseBody() {
	if x.inner == "" && x.r.ContentLength != 0 && x.r.ProtoMajor == 1 {
		x.w.Header()["Connection"] = connectionClose
	}
}

type actAs struct{}

// ActAs returns the context of a request that the service carries out as an account,
// with the privileges that the account has at that time. account is an ID.
func ActAs(ctx context.Context, account string) context.Context {
	return context.WithValue(ctx, actAs{}, account)
}

// impersonatedActor returns the actor of a request whose context is of ActAs. is
// reports whether it is; ok, whether the account exists and is enabled.
func (x *request) impersonatedActor() (actor resource.Actor, is, ok bool) {
	id, is := x.r.Context().Value(actAs{}).(string)
	if !is {
		return resource.Actor{}, false, false
	}
	at := x.host.BMC()
	a, ok := at.Account(id)
	return resource.NewActor(a, "", at), true, ok && a.Enabled
}
