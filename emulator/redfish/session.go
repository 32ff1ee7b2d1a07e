package redfish

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func sessionRows() []resource {
	return []resource{
		{uri: "/redfish/v1/SessionService", schema: "SessionService.v1_2_0", shows: PartAccess,
			read: sessionService, patch: &sessionServicePatch},
		{uri: "/redfish/v1/SessionService/Sessions", schema: "SessionCollection", shows: PartSessions,
			name: "Sessions", of: "session", create: &sessionCreate},
		{uri: "/redfish/v1/SessionService/Sessions/{session}", schema: "Session.v1_8_0", shows: PartSessions,
			read: session, own: ownSession, remove: closeSession},
	}
}

func sessionService(v view) object {
	p := v.b.Policy
	state := "Enabled"
	if p.NoSessions {
		state = "Disabled"
	}
	return object{
		"Name": "Session Service", "ServiceEnabled": !p.NoSessions, "Status": status(state),
		"SessionTimeout":         int(v.b.SessionTimeout / time.Second),
		"AbsoluteSessionTimeout": int(p.AbsoluteSessionTimeout / time.Second), "AbsoluteSessionTimeoutEnabled": p.AbsoluteSessionTimeoutEnabled,
	}
}

// sessionServicePatch bounds the time-outs as DSP2046 does
// (SessionService.SessionTimeout and AbsoluteSessionTimeout), in seconds.
var sessionServicePatch = patch{
	inputs: []input{
		{name: "SessionTimeout", kind: integer, min: 30, max: 86400},
		{name: "AbsoluteSessionTimeout", kind: integer, min: 30, max: 86400},
		{name: "AbsoluteSessionTimeoutEnabled", kind: boolean},
		{name: "ServiceEnabled", kind: boolean},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		p := *c.view.b.Policy
		p.AbsoluteSessionTimeout = seconds(c.set, "AbsoluteSessionTimeout", p.AbsoluteSessionTimeout)
		p.AbsoluteSessionTimeoutEnabled = value(c.set, "AbsoluteSessionTimeoutEnabled", p.AbsoluteSessionTimeoutEnabled)
		p.NoSessions = !value(c.set, "ServiceEnabled", !p.NoSessions)
		_, err := c.host.ApplyBMC(ctx, bmc.SetSessions{
			Timeout: seconds(c.set, "SessionTimeout", c.view.b.SessionTimeout), Policy: p,
		})
		return reply{}, err
	},
}

// seconds is a number of seconds that a client sent.
func seconds(set values, name string, otherwise time.Duration) time.Duration {
	return time.Duration(value(set, name, int64(otherwise/time.Second))) * time.Second
}

// sessionCreate logs in (DSP0266, "Session login"). The token is shown once.
var sessionCreate = create{
	open: true,
	inputs: []input{
		{name: "UserName", kind: text, required: true},
		{name: "Password", kind: text, required: true, secret: true},
		{name: "Context", kind: text, form: func(s string) bool { return len(s) <= maxContext }},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		a, ok := c.host.Login(bmc.Credentials{
			Name: value(c.set, "UserName", ""), Password: value(c.set, "Password", ""), To: bmc.ForRedfish, From: c.from,
		})
		if !ok {
			return reply{}, errLogin
		}
		c.x.SignedIn(actor{user: a.Name, account: a.ID})
		var chance [16]byte
		rand.Read(chance[:]) // never fails
		// Hexadecimal, so that a validator can judge how random it is.
		token := hex.EncodeToString(chance[:])
		evs, err := c.host.ApplyBMC(ctx, bmc.OpenSession{Account: a, Token: token, From: c.from, Context: value(c.set, "Context", "")})
		if err != nil {
			return reply{}, err
		}
		out := reply{token: token}
		for _, ev := range evs {
			if opened, ok := ev.(bmc.SessionOpened); ok {
				out.id = opened.Session.ID
			}
		}
		if out.id == "" {
			return reply{}, fmt.Errorf("redfish: session of %s: not opened", a.Name)
		}
		if a.ChangeRequired {
			out.told = []message.Message{message.PasswordChangeRequired.With(accountURI(a.ID))}
		}
		return out, nil
	},
}

// maxContext bounds what a client has a session keep, in bytes.
const maxContext = 256

func (v view) session() bmc.Session {
	return pick(v.b.Sessions, v.ids["session"], func(s bmc.Session) string { return s.ID })
}

func session(v view) object {
	s := v.session()
	o := object{
		"Name": "Session " + s.ID, "UserName": s.User, "SessionType": "Redfish", "Roles": []string{string(s.Role)},
		"CreatedTime": s.Since.UTC().Format(time.RFC3339), "ClientOriginIPAddress": s.From,
		"Password": nil, // never shown (DSP2046, Session.Password)
	}
	if s.Context != "" {
		o["Context"] = s.Context
	}
	if !s.End.IsZero() {
		o["ExpirationTime"] = s.End.UTC().Format(time.RFC3339)
	}
	return o
}

func ownSession(v view, who actor) bool { return v.session().Account == who.account }

// closeSession logs out (DSP0266, "Session termination or logout").
func closeSession(ctx context.Context, c operation) (reply, error) {
	_, err := c.host.ApplyBMC(ctx, bmc.CloseSession{ID: c.view.ids["session"]})
	return reply{}, err
}
