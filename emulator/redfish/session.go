package redfish

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

func sessionRows() []resource {
	return []resource{
		{uri: "/redfish/v1/SessionService", schema: "SessionService.v1_2_0", needs: ofManager, shows: showsAccess,
			read: sessionService, patch: &sessionServicePatch},
		{uri: "/redfish/v1/SessionService/Sessions", schema: "SessionCollection", needs: ofSessions, shows: showsSessions,
			name: "Sessions", of: "session", create: &sessionCreate},
		{uri: "/redfish/v1/SessionService/Sessions/{session}", schema: "Session.v1_8_0", needs: ofSession, shows: showsSessions,
			read: session, own: ownSession, remove: closeSession},
	}
}

func sessionService(v view) object {
	return object{
		"Name": "Session Service", "ServiceEnabled": true, "Status": status("Enabled"),
		"SessionTimeout": int(v.b.SessionTimeout / time.Second),
	}
}

// sessionServicePatch bounds the time-out as DSP2046 does
// (SessionService.SessionTimeout).
var sessionServicePatch = patch{
	inputs: []input{{name: "SessionTimeout", kind: integer, min: 30, max: 86400}}, // seconds
	apply: func(ctx context.Context, c operation) (reply, error) {
		seconds := value(c.set, "SessionTimeout", int64(c.view.b.SessionTimeout/time.Second))
		_, err := c.host.ApplyBMC(ctx, bmc.SetSessionTimeout{After: time.Duration(seconds) * time.Second})
		return reply{}, err
	},
}

// sessionCreate logs in (DSP0266, "Session login"). The token is shown once.
var sessionCreate = create{
	open: true,
	inputs: []input{
		{name: "UserName", kind: text, required: true},
		{name: "Password", kind: text, required: true, secret: true},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		a, ok := c.host.Login(value(c.set, "UserName", ""), value(c.set, "Password", ""))
		if !ok {
			return reply{}, errLogin
		}
		var chance [16]byte
		rand.Read(chance[:]) // never fails
		// Hexadecimal, so that a validator can judge how random it is.
		token := hex.EncodeToString(chance[:])
		evs, err := c.host.ApplyBMC(ctx, bmc.OpenSession{Account: a, Token: token, From: c.from})
		if err != nil {
			return reply{}, err
		}
		for _, ev := range evs {
			if opened, ok := ev.(bmc.SessionOpened); ok {
				return reply{id: opened.Session.ID, token: token}, nil
			}
		}
		return reply{}, fmt.Errorf("redfish: session of %s: not opened", a.Name)
	},
}

func (v view) session() bmc.Session {
	return pick(v.b.Sessions, v.ids["session"], func(s bmc.Session) string { return s.ID })
}

func session(v view) object {
	s := v.session()
	return object{
		"Name": "Session " + s.ID, "UserName": s.User, "SessionType": "Redfish", "Roles": []string{string(s.Role)},
		"CreatedTime": s.Since.UTC().Format(time.RFC3339), "ClientOriginIPAddress": s.From,
	}
}

func ownSession(v view, who actor) bool { return v.session().Account == who.account }

// closeSession logs out (DSP0266, "Session termination or logout").
func closeSession(ctx context.Context, c operation) (reply, error) {
	_, err := c.host.ApplyBMC(ctx, bmc.CloseSession{ID: c.view.ids["session"]})
	return reply{}, err
}
