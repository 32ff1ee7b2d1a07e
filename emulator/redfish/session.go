package redfish

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

func sessionService(v view) object {
	return object{
		"Name": "Session Service", "ServiceEnabled": true, "Status": status("Enabled"),
		"SessionTimeout": int(v.b.SessionTimeout / time.Second),
		"Sessions":       ref("/redfish/v1/SessionService/Sessions"),
	}
}

// sessionServicePatch bounds the time-out as DSP2046 does
// (SessionService.SessionTimeout).
var sessionServicePatch = patch{
	inputs: []input{{name: "SessionTimeout", kind: integer, min: 30, max: 86400}}, // seconds
	apply: func(ctx context.Context, h Host, v view, set values) error {
		seconds := value(set, "SessionTimeout", int64(v.b.SessionTimeout/time.Second))
		_, err := h.ApplyBMC(ctx, bmc.SetSessionTimeout{After: time.Duration(seconds) * time.Second})
		return err
	},
}

// sessionCreate logs in (DSP0266, "Session login"). The token is shown once.
var sessionCreate = create{
	open: true,
	inputs: []input{
		{name: "UserName", kind: text, required: true},
		{name: "Password", kind: text, required: true, secret: true},
	},
	apply: func(ctx context.Context, h Host, set values, from string) (created, error) {
		a, ok := h.Login(value(set, "UserName", ""), value(set, "Password", ""))
		if !ok {
			return created{}, errLogin
		}
		var chance [16]byte
		rand.Read(chance[:]) // never fails
		// Hexadecimal, so that a validator can judge how random it is.
		token := hex.EncodeToString(chance[:])
		evs, err := h.ApplyBMC(ctx, bmc.OpenSession{Account: a, Token: token, From: from})
		if err != nil {
			return created{}, err
		}
		for _, ev := range evs {
			if opened, ok := ev.(bmc.SessionOpened); ok {
				return created{id: opened.Session.ID, token: token}, nil
			}
		}
		return created{}, fmt.Errorf("redfish: session of %s: not opened", a.Name)
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
func closeSession(ctx context.Context, h Host, v view) error {
	_, err := h.ApplyBMC(ctx, bmc.CloseSession{ID: v.ids["session"]})
	return err
}
