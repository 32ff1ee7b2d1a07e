package resource

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func sessionRows() []Row {
	return []Row{
		{URI: "/redfish/v1/SessionService", Schema: "SessionService.v1_2_0", DependsOn: partAccess,
			Read: sessionService, Patch: &sessionServicePatch},
		{URI: "/redfish/v1/SessionService/Sessions", Schema: "SessionCollection", DependsOn: partSessions,
			collectionName: "Sessions", memberVariable: "session", Create: &sessionCreate},
		{URI: "/redfish/v1/SessionService/Sessions/{session}", Schema: "Session.v1_8_0", DependsOn: partSessions,
			Read: session, BelongsTo: isSessionOfActor, Remove: deleteSession},
	}
}

func sessionService(v View) Object {
	p := v.BMC.Policy
	state := "Enabled"
	if p.NoSessions {
		state = "Disabled"
	}
	return Object{
		"Name": "Session Service", "ServiceEnabled": !p.NoSessions, "Status": status(state),
		"SessionTimeout":         int(v.BMC.SessionTimeout / time.Second),
		"AbsoluteSessionTimeout": int(p.AbsoluteSessionTimeout / time.Second), "AbsoluteSessionTimeoutEnabled": p.AbsoluteSessionTimeoutEnabled,
	}
}

// sessionServicePatch bounds the time-outs as DSP2046 does (SessionService.SessionTimeout
// and AbsoluteSessionTimeout), in seconds.
var sessionServicePatch = Patch{
	Inputs: []Input{
		{Name: "SessionTimeout", Kind: Integer, Min: 30, Max: 86400},
		{Name: "AbsoluteSessionTimeout", Kind: Integer, Min: 30, Max: 86400},
		{Name: "AbsoluteSessionTimeoutEnabled", Kind: Boolean},
		{Name: "ServiceEnabled", Kind: Boolean},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		p := *c.View.BMC.Policy
		p.AbsoluteSessionTimeout = seconds(c.Values, "AbsoluteSessionTimeout", p.AbsoluteSessionTimeout)
		p.AbsoluteSessionTimeoutEnabled = Value(c.Values, "AbsoluteSessionTimeoutEnabled", p.AbsoluteSessionTimeoutEnabled)
		p.NoSessions = !Value(c.Values, "ServiceEnabled", !p.NoSessions)
		_, err := c.Host.ApplyBMC(ctx, bmc.SetSessions{
			Timeout: seconds(c.Values, "SessionTimeout", c.View.BMC.SessionTimeout), Policy: p,
		})
		return Result{}, err
	},
}

// seconds returns a duration that the client sent as a number of seconds, or otherwise when
// the client sent none.
func seconds(set Values, name string, otherwise time.Duration) time.Duration {
	return time.Duration(Value(set, name, int64(otherwise/time.Second))) * time.Second
}

// sessionCreate logs a client in (DSP0266, "Session login"). Only its answer contains the
// token.
var sessionCreate = create{
	unauthenticated: true,
	Inputs: []Input{
		{Name: "UserName", Kind: Text, Required: true},
		{Name: "Password", Kind: Text, Required: true, Secret: true},
		{Name: "Context", Kind: Text, form: func(s string) bool { return len(s) <= maxContext }},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		a, ok := c.Host.Login(bmc.Credentials{
			Name: Value(c.Values, "UserName", ""), Password: Value(c.Values, "Password", ""), To: bmc.ForRedfish, From: c.From,
		})
		if !ok {
			return Result{}, ErrLogin
		}
		c.Request.SignedIn(Actor{User: a.Name, Account: a.ID})
		var chance [16]byte
		rand.Read(chance[:]) // never fails
		// Hexadecimal, so that a validator can judge how random it is.
		token := hex.EncodeToString(chance[:])
		evs, err := c.Host.ApplyBMC(ctx, bmc.OpenSession{Account: a, Token: token, From: c.From, Context: Value(c.Values, "Context", "")})
		if err != nil {
			return Result{}, err
		}
		out := Result{Token: token}
		for _, ev := range evs {
			if opened, ok := ev.(bmc.SessionOpened); ok {
				out.ID = opened.Session.ID
			}
		}
		if out.ID == "" {
			return Result{}, fmt.Errorf("redfish: session of %s: not opened", a.Name)
		}
		if a.ChangeRequired {
			out.Messages = []message.Message{message.PasswordChangeRequired.With(AccountURI(a.ID))}
		}
		return out, nil
	},
}

// maxContext is the longest Session.Context that the service stores, in bytes.
const maxContext = 256

func (v View) session() bmc.Session {
	return Find(v.BMC.Sessions, v.IDs["session"], func(s bmc.Session) string { return s.ID })
}

func session(v View) Object {
	s := v.session()
	o := Object{
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

func isSessionOfActor(v View, who Actor) bool { return v.session().Account == who.Account }

// deleteSession logs a client out (DSP0266, "Session termination or logout").
func deleteSession(ctx context.Context, c Call) (Result, error) {
	_, err := c.Host.ApplyBMC(ctx, bmc.CloseSession{ID: c.View.IDs["session"]})
	return Result{}, err
}
