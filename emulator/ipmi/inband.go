package ipmi

import (
	"context"

	"github.com/metalab-dev/metalab/emulator/ipmi/command"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// InBandRequest is a command that the server's own software sends over the
// system interface (KCS, §9), which needs no authentication.
type InBandRequest struct {
	LUN, NetFn, Cmd byte
	Data            []byte // request data; with a group extension it begins with the defining body
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
		st.InvalidateSessions(s.c.Rand)
		x := command.NewInBand(ctx, &st.State, r.LUN, wire.NetFn(r.NetFn), r.Cmd, r.Data)
		code = byte(s.execute(x, x.Row()))
		if data = x.ResponseData(); x.After != nil {
			x.After()
		}
	})
	return code, data, true
}
