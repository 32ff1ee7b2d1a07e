package session_test

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// engine answers the few commands that clients open and close a session with.
type engine struct {
	table *session.Table
	auth  *fakeAuthenticator
}

// datagram is the answer to one datagram; nil for none.
func (e *engine) datagram(now time.Time, from netip.AddrPort, packet []byte) []byte {
	got := e.table.Receive(now, from, packet, nil, e.auth)
	if got.Body == nil {
		return got.Reply
	}
	q, err := wire.ParseRequest(got.Body)
	if err != nil {
		return nil
	}
	code, data := e.run(now, from, got.Session, q)
	out := e.table.Wrap(nil, got.Frame, got.Payload, q.AppendResponse(nil, code, data))
	if got.Session != nil && q.NetFn == wire.App && q.Cmd == 0x3c {
		e.table.Close(got.Session.ID)
	}
	return out
}

func (e *engine) run(now time.Time, from netip.AddrPort, s *session.Session, q wire.Request) (code byte, data []byte) {
	inside := s != nil && s.Privilege > 0
	switch {
	case q.NetFn == wire.Chassis && q.Cmd == 1 && inside:
		return 0, []byte{0x21, 0, 0}
	case q.NetFn != wire.App:
		return 0xc1, nil
	case q.Cmd == 0x38:
		types, versions := byte(e.auth.types), byte(0)
		if q.Data[0]&0x80 != 0 {
			types, versions = types|0x80, 3
		}
		status := byte(4)
		if e.auth.kg != nil {
			status |= 0x20
		}
		return 0, []byte{1, types, status, versions, 0, 0, 0, 0}
	case q.Cmd == 0x37:
		return 0, e.auth.guid[:]
	case q.Cmd == 0x39:
		id, words, code := e.table.Challenge(now, from, q.Data[0]&0x0f, q.Data[1:17], e.auth)
		return code, append(u32(id), words[:]...)
	case q.Cmd == 0x3a:
		a, code := e.table.Activate(now, from, s, q.Data, e.auth)
		if code != 0 {
			return code, nil
		}
		b := binary.LittleEndian.AppendUint32([]byte{a.Auth}, a.ID)
		return 0, append(binary.LittleEndian.AppendUint32(b, a.Sequence), byte(a.Limit))
	case !inside:
		return 0xd4, nil
	case q.Cmd == 0x3b:
		s.Privilege = min(wire.Privilege(q.Data[0]), s.Limit)
		return 0, []byte{byte(s.Privilege)}
	case q.Cmd == 0x3c:
		return 0, nil
	}
	return 0xc1, nil
}
