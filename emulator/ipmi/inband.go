package ipmi

import (
	"context"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// InBandRequest is a command that a server's own software gives its BMC over the
// system interface, which asks for no password (§9, KCS).
type InBandRequest struct {
	LUN, NetFn, Cmd byte
	Data            []byte // that of a group extension begins with the group
}

// ExecuteInBand carries out a command that comes over the system interface: the state is
// that which the LAN shows. It is false where the BMC does not answer. The data
// are without the completion code.
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

// systemSoftware is the address of system software (table 5-4): software ID 41h.
const systemSoftware = 0x41

// systemSession stands for that of who asks over the system interface, which
// has none: it may do all.
func systemSession() *session.Session {
	u := session.User{Limit: wire.Administrator}
	return &session.Session{User: u, Limit: wire.Administrator, Privilege: wire.Administrator}
}
