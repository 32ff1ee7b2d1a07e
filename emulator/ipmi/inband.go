package ipmi

import (
	"context"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// InBandRequest is a command that the server's own software sends over the
// system interface (KCS, §9), which needs no authentication.
type InBandRequest struct {
	LUN, NetFn, Cmd byte
	Data            []byte // of a group extension, it begins with the defining body
}

// ExecuteInBand executes a command from the system interface on the same state
// that LAN sees. ok is false when the BMC does not answer. data does not
// include the completion code.
func (s *Service) ExecuteInBand(ctx context.Context, h Host, r InBandRequest) (code byte, data []byte, ok bool) {
	if !h.BMC().Life.Serves() {
		return 0, nil, false
	}
	st := s.state(h)
	s.exclusively(st, func() {
		st.invalidateSessions(s.c.Rand)
		req := wire.Request{
			To: bmcAddress, ToLUN: r.LUN & 3, NetFn: wire.NetFn(r.NetFn), From: systemSoftware, FromLUN: softwareLUN, Cmd: r.Cmd, Data: r.Data,
		}
		x := &request{
			ctx: ctx, service: s, host: h, state: st, session: systemSession(), now: h.Now(), fn: req.NetFn, cmd: req.Cmd, lun: req.ToLUN,
			data: req.Data, source: req.From, inBand: true,
		}
		c := s.execute(x, s.lookup(st, &req))
		data = withDefiningBody(&req, x.out)
		if code = byte(c); x.after != nil {
			x.after()
		}
	})
	return code, data, true
}

// systemSoftware is the software ID of system software: 41h (table 5-4).
const systemSoftware = 0x41

// systemSession returns the stand-in for the session that in-band requests do
// not have; it has every right.
func systemSession() *session.Session {
	u := session.User{Limit: wire.Administrator}
	return &session.Session{User: u, Limit: wire.Administrator, Privilege: wire.Administrator}
}
