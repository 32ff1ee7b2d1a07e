package ipmi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Checks of what a session is.
var sessionChecks = []Check{
	{"level", "a session begins at USER level and changes to the requested level", "§22.18", Must, checkLevel},
	{"level limit", "a session cannot exceed its user's privilege limit", "§22.18", Must, checkLevelLimit},
	{"close", "a closed session gets no response, and closing an unknown session fails", "§22.19", Must, checkClose},
	{"session info", "Get Session Info describes the session that sends it", "§22.20", Must, checkSessionInfo},
	{"session limit", "at least four sessions can be open, and a session beyond the limit is refused until another ends", "§6.12.16, §13.24", Must, checkSessionLimit},
	{"idle", "an idle session ends 60 s (± 3 s) after its last packet", "§6.12.15", Must, checkIdle},
}

func checkLevel(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	for _, step := range []struct{ ask, want Privilege }{
		{0, User}, {Operator, Operator}, {0, Operator}, {Administrator, Administrator}, {User, User}, {0, User},
	} {
		got, err := s.Raise(ctx, step.ask)
		if err != nil {
			return requireStep(err, "to "+step.ask.String())
		}
		if got != step.want {
			return findingf("asked for %s: the session is at %s, not %s", step.ask, got, step.want)
		}
	}
	for _, level := range []Privilege{Callback, 0x0F} {
		_, err := s.Raise(ctx, level)
		if err := refused(err, fmt.Sprintf("reserved level %d", level), InvalidField, LevelUnavailable, LevelExceeds); err != nil {
			return err
		}
	}
	return nil
}

func checkLevelLimit(ctx context.Context, p *probe) error {
	for _, who := range []struct {
		account Account
		most    Privilege
	}{{p.User, User}, {p.Operator, Operator}} {
		if who.account.Name == "" {
			continue
		}
		s, err := p.openAs(ctx, who.account, Administrator, false)
		if err != nil {
			// Some BMCs refuse the role at once.
			return refused(err, who.account.Name+" as ADMINISTRATOR", UnauthorizedRole, UnknownName)
		}
		_, err = s.Raise(ctx, Administrator)
		if err := refused(err, who.account.Name+" to ADMINISTRATOR", LevelExceeds, LevelUnavailable); err != nil {
			return err
		}
		if got, err := s.Raise(ctx, who.most); err != nil || got != who.most {
			return findingf("%s to %s: %s, %v", who.account.Name, who.most, got, err)
		}
	}
	// A role asked for in RAKP 1 is a limit too.
	s, err := p.openAs(ctx, p.Admin, User, false)
	if err != nil {
		return requireStep(err, "the administrator as USER")
	}
	_, err = s.Raise(ctx, Administrator)
	return refused(err, "ADMINISTRATOR in a session of role USER", LevelExceeds, LevelUnavailable)
}

func checkClose(ctx context.Context, p *probe) error {
	s, err := p.administrator(ctx)
	if err != nil {
		return err
	}
	_, err = s.Do(ctx, closing(s.ID^0x5A5A5A5A))
	if err := refused(err, "an unknown session", InvalidSession); err != nil {
		return err
	}
	if err := s.Close(ctx); err != nil {
		return requireStep(err, "its own")
	}
	s.conn.Tries = 1
	if _, err := s.Do(ctx, GetDeviceID); !errors.Is(err, ErrNoAnswer) {
		return findingf("a command in the closed session: %v", err)
	}
	return nil
}

// sessionInfo asks for what the BMC knows of a session.
func sessionInfo(index byte, more ...byte) Request {
	return Request{NetFn: App, Command: 0x3D, Data: append([]byte{index}, more...), Name: "Get Session Info"}
}

func checkSessionInfo(ctx context.Context, p *probe) error {
	s, err := p.administrator(ctx)
	if err != nil {
		return err
	}
	const self, byHandle, byID = 0x00, 0xFE, 0xFF
	info, err := s.Do(ctx, sessionInfo(self))
	if err != nil {
		return requireStep(err, "its own")
	}
	if len(info) != 6 && len(info) != 18 {
		return findingf("%d bytes, not 6 or 18: % X", len(info), info)
	}
	slots, active, level, protocol := info[1], info[2], Privilege(info[4]&0x0F), info[5]>>4
	switch {
	case info[0] == 0 || active == 0 || active > slots:
		return findingf("handle %d, %d of %d sessions", info[0], active, slots)
	case level != Administrator || protocol != 1:
		return findingf("level %s, protocol %d", level, protocol)
	}
	for _, r := range []Request{sessionInfo(byHandle, info[0]), sessionInfo(byID, le32(s.ID)...)} {
		same, err := s.Do(ctx, r)
		if err != nil {
			return requireStep(err, "by handle or ID")
		}
		if len(same) != len(info) || same[0] != info[0] {
			return findingf("% X tells % X, not % X", r.Data, same, info)
		}
	}
	if slots < 0x3F {
		none, err := s.Do(ctx, sessionInfo(slots+1))
		if err == nil && len(none) != 3 {
			return findingf("beyond the last: % X, want 3 bytes", none)
		}
	}
	return nil
}

// checkSessionLimit keeps others out for a moment, so it is for those who have
// the BMC for themselves.
func checkSessionLimit(ctx context.Context, p *probe) error {
	if !p.IncludeSlow {
		return skipped("it takes all sessions for a while")
	}
	const least, most = 4, 260 // there are 254 handles (§22.20)
	var refusal error
	for range most {
		if _, refusal = p.open(ctx); refusal != nil {
			break
		}
	}
	open := len(p.sessions)
	switch {
	case refusal != nil && !errors.Is(refusal, NoResources):
		return requireStep(refusal, fmt.Sprintf("a login beside %d sessions", open))
	case open < least:
		return findingf("%d sessions are all, want %d", open, least)
	case refusal == nil:
		return skipped(fmt.Sprintf("it takes %d sessions and more", open))
	}
	// The oldest still works, and makes room.
	if _, err := p.sessions[0].Do(ctx, GetDeviceID); err != nil {
		return requireStep(err, "the first session when all are taken")
	}
	if err := p.sessions[0].Close(ctx); err != nil {
		return requireStep(err, "to close the first session")
	}
	p.sessions = p.sessions[1:]
	_, err := p.open(ctx)
	return requireStep(err, "a login after one session has ended")
}

func checkIdle(ctx context.Context, p *probe) error {
	if !p.IncludeSlow {
		return skipped("it takes two minutes")
	}
	wait := func(d time.Duration) error {
		t := p.Clock.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	const least, most = 56 * time.Second, 64 * time.Second
	if err := wait(least); err != nil {
		return err
	}
	if _, err := s.Do(ctx, GetDeviceID); err != nil {
		return requireStep(err, "after "+least.String())
	}
	if err := wait(most); err != nil {
		return err
	}
	s.conn.Tries = 1
	if _, err := s.Do(ctx, GetDeviceID); !errors.Is(err, ErrNoAnswer) {
		return findingf("after %s it still answers: %v", most, err)
	}
	return nil
}

// Checks of the packets of a session.
var windowChecks = []Check{
	{"duplicate", "a duplicate packet gets no second response", "§6.12.13", Must, checkDuplicate},
	{"replay", "a packet that is replayed much later gets no response", "§6.12.13, §6.12.14", Must, checkReplay},
	{"order", "packets out of order get responses", "§6.12.14", Must, checkOrder},
	{"far ahead", "a packet far ahead of the window gets no response, and the session stays open", "§6.12.14", Must, checkFarAhead},
	{"AuthCode", "a packet with a wrong AuthCode gets no response and does not move the window", "§6.12.13", Must, checkAuthCode},
	{"unsigned", "a packet without AuthCode gets no response", "§6.12.13, §13.28.4", Must, checkUnsigned},
	{"pad", "a packet with a wrong pad gets no response", "§13.29", Must, checkPad},
	{"checksum", "a message with a wrong checksum gets no response", "§13.8", Must, checkChecksum},
	{"wrong session", "a packet with another session ID gets no response", "§13.6", Must, checkWrongSession},
	{"repeated request", "a repeated request in a new packet gets a response and is not carried out again", "§6.12.13", Should, checkRepeated},
	{"first number", "the first sequence number of a session need not be 1", "§6.12.14", Should, checkFirstNumber},
}

func checkDuplicate(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	s.conn.Tamper.Wire = func(b []byte) [][]byte { return [][]byte{b, b, b} }
	if _, err := s.Do(ctx, GetDeviceID); err != nil {
		return requireStep(err, "a packet sent three times")
	}
	return p.expectSilence(ctx, s, "a duplicate", func() error { return nil })
}

func checkReplay(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	if _, err := s.Do(ctx, GetDeviceID); err != nil {
		return err
	}
	old := s.conn.Sent()
	for range windowBehind + 4 {
		if _, err := s.Do(ctx, GetDeviceID); err != nil {
			return err
		}
		if err := p.expectSilence(ctx, s, "a replayed packet", func() error { return s.conn.Send(old) }); err != nil {
			return err
		}
	}
	return nil
}

func checkOrder(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	if _, err := s.Do(ctx, GetDeviceID); err != nil {
		return err
	}
	first := s.Sequence()
	for _, ahead := range []uint32{5, 2, 4, 1, 3, 20, 6} {
		s.SetSequence(first + ahead - 1)
		s.conn.Tries = 1
		if _, err := s.Do(ctx, GetDeviceID); err != nil {
			return requireStep(err, fmt.Sprintf("number %d after %d", first+ahead, first))
		}
	}
	s.SetSequence(first + 20)
	return nil
}

func checkFarAhead(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	if _, err := s.Do(ctx, GetDeviceID); err != nil {
		return err
	}
	for _, ahead := range []uint32{windowAhead + 2, 1000, 1 << 31, 1<<32 - windowBehind - 2} {
		here := s.Sequence()
		err := p.expectSilence(ctx, s, fmt.Sprintf("a packet %d ahead", ahead), func() error {
			s.SetSequence(here + ahead - 1)
			b, err := s.message(s.conn.request(GetDeviceID))
			s.SetSequence(here)
			if err != nil {
				return err
			}
			return s.conn.Send(b)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// spoilt sends one packet with a Tamper, which must stay without an answer.
func (p *probe) spoilt(ctx context.Context, s *Session, what string, t Tamper) error {
	return p.expectSilence(ctx, s, what, func() error {
		s.conn.Tamper = t
		b, err := s.message(s.conn.request(GetDeviceID))
		if err != nil {
			return err
		}
		return s.conn.sendTampered(b)
	})
}

func checkAuthCode(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	if _, err := s.Do(ctx, GetDeviceID); err != nil {
		return err
	}
	spoilt := s.Sequence() + windowAhead - 1
	here := s.Sequence()
	s.SetSequence(spoilt - 1)
	b, err := s.message(s.conn.request(GetDeviceID))
	if err != nil {
		return err
	}
	s.SetSequence(here)
	for _, at := range []int{len(b) - 1, len(b) - 12, 20, 30} {
		bad := append([]byte(nil), b...)
		bad[at] ^= 0x40
		err := p.expectSilence(ctx, s, fmt.Sprintf("a packet with byte %d changed", at), func() error { return s.conn.Send(bad) })
		if err != nil {
			return err
		}
	}
	// The number is still free: nothing has come that counts.
	s.SetSequence(spoilt - 1)
	s.conn.Tries = 1
	_, err = s.Do(ctx, GetDeviceID)
	return requireStep(err, "the number that the spoilt packets had")
}

func checkUnsigned(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	unsigned := func(h *Header) { h.Authenticated = false }
	if err := p.spoilt(ctx, s, "a packet without AuthCode", Tamper{Header: unsigned}); err != nil {
		return err
	}
	return p.spoilt(ctx, s, "a plain packet without AuthCode", Tamper{Header: func(h *Header) {
		h.Authenticated, h.Encrypted = false, false
	}})
}

func checkPad(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	for _, tt := range []struct {
		what   string
		change func(plain []byte) []byte
	}{
		{"a pad that counts from 2", func(b []byte) []byte {
			for i := len(b) - 1 - int(b[len(b)-1]); i < len(b)-1; i++ {
				b[i]++
			}
			return b
		}},
		{"a pad longer than the packet", func(b []byte) []byte {
			b[len(b)-1] = 0xFF
			return b
		}},
		{"a pad of 16 bytes", func(b []byte) []byte {
			for i := range 16 {
				b = append(b, byte(i+1))
			}
			b[len(b)-1] = 16
			return b
		}},
		{"no encrypted bytes", func([]byte) []byte { return nil }},
	} {
		if err := p.spoilt(ctx, s, tt.what, Tamper{Padding: tt.change}); err != nil {
			return err
		}
	}
	return nil
}

func checkChecksum(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	for _, at := range []int{2, 6} {
		err := p.spoilt(ctx, s, fmt.Sprintf("a message with byte %d changed", at), Tamper{Message: func(b []byte) []byte {
			b[at] ^= 0x10
			return b
		}})
		if err != nil {
			return err
		}
	}
	return p.spoilt(ctx, s, "half a message", Tamper{Message: func(b []byte) []byte { return b[:len(b)/2] }})
}

func checkWrongSession(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	for _, wrong := range []uint32{s.ID ^ 0x5A5A5A5A, s.console, 0xFFFFFFFF, 0} {
		if wrong == s.ID {
			continue
		}
		if err := p.spoilt(ctx, s, fmt.Sprintf("a packet of session %08X", wrong), Tamper{Header: func(h *Header) { h.Session = wrong }}); err != nil {
			return err
		}
	}
	return nil
}

// checkRepeated repeats a request that gives another answer each time it is
// carried out: a reservation.
func checkRepeated(ctx context.Context, p *probe) error {
	s, err := p.administrator(ctx)
	if err != nil {
		return err
	}
	reserve := Request{NetFn: Storage, Command: 0x42, Name: "Reserve SEL"}
	first, err := s.Do(ctx, reserve)
	switch {
	case errors.Is(err, InvalidCommand):
		return skipped("the BMC has no SEL reservations")
	case err != nil:
		return err
	}
	if other, err := s.Do(ctx, reserve); err != nil || string(other) == string(first) {
		return skipped(fmt.Sprintf("two reservations are the same: % X, %v", other, err))
	}
	m := s.conn.request(reserve)
	var answers []uint16
	for range 3 {
		data, err := s.roundTrip(ctx, reserve.String(), m, m)
		if err != nil {
			return requireStep(err, "a repeated request")
		}
		if len(data) != 3 {
			return findingf("%s is answered % X", reserve, data)
		}
		answers = append(answers, binary.LittleEndian.Uint16(data[1:]))
	}
	if answers[0] != answers[1] || answers[0] != answers[2] {
		return findingf("one request in three packets made reservations %d", answers)
	}
	return nil
}

func checkFirstNumber(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	s.SetSequence(2) // ipmitool begins with 3
	s.conn.Tries = 1
	_, err = s.Do(ctx, GetDeviceID)
	return requireStep(err, "number 3 first")
}
