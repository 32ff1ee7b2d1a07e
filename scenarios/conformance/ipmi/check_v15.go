package ipmi

import (
	"context"
	"errors"
)

// Checks of IPMI v1.5 sessions.
var v15Checks = []Check{
	{"v1.5 sessions", "sessions open with each offered authentication type and with no other", "§22.16, §22.17", Must, checkV15},
	{"v1.5 without a password", "no authentication type opens a session without a password", "§22.17", Must, checkV15None},
	{"v1.5 activation", "a repeated Activate Session gets the same response until the session is used", "§22.17", Should, checkV15Activation},
	{"v1.5 packets", "corrupt, duplicate and far-off packets of a v1.5 session get no response", "§6.12.8–6.12.12, §22.17.1", Must, checkV15Packets},
}

func checkV15(ctx context.Context, p *probe) error {
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	a, err := c.AuthCapabilities(ctx, V15, thisChannel, Administrator, false)
	if err != nil {
		return requireStep(err, "capabilities")
	}
	const longest = 16
	for _, t := range []AuthType{AuthNone, AuthMD2, AuthMD5, AuthPassword} {
		l := Login15{Name: p.Admin.Name, Password: p.Admin.Password, Auth: t}
		if !a.Has(t) {
			c.Tries = 2
			_, _, err := c.Challenge15(ctx, l)
			if err == nil {
				return findingf("%s is not offered, and challenged all the same", t)
			}
			if !errors.As(err, new(Code)) && !errors.Is(err, ErrNoAnswer) {
				return requireStep(err, t.String())
			}
			continue
		}
		c.Tries = p.Tries
		if len(p.Admin.Password) > longest {
			continue
		}
		s, err := p.closeAfter(c.Login15(ctx, l))
		if err != nil {
			return requireStep(err, t.String())
		}
		if got, err := s.Raise(ctx, Administrator); err != nil || got != Administrator {
			return findingf("%s: raised to %s, %v", t, got, err)
		}
		for range 20 {
			if _, err := s.Do(ctx, GetDeviceID); err != nil {
				return requireStep(err, t.String())
			}
		}
		if t == AuthNone {
			continue
		}
		l.Password = "not-it"
		c.Tries = 1
		if _, err := p.closeAfter(c.Login15(ctx, l)); err == nil {
			return findingf("%s: a wrong password opens a session", t)
		}
	}
	return nil
}

func checkV15None(ctx context.Context, p *probe) error {
	if p.Insecure {
		return skipped("it is wanted here")
	}
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	for level := Callback; level <= Administrator; level++ {
		a, err := c.AuthCapabilities(ctx, V15, thisChannel, level, false)
		switch {
		case err != nil && !errors.As(err, new(Code)):
			return requireStep(err, level.String())
		case err == nil && a.Has(AuthNone):
			return findingf("sessions at %s are offered without a password", level)
		}
	}
	return nil
}

// open15 opens a v1.5 session with the best type that is offered.
func (p *probe) open15(ctx context.Context) (*Session, error) {
	c, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	a, err := c.AuthCapabilities(ctx, V15, thisChannel, Administrator, false)
	if err != nil {
		return nil, err
	}
	for _, t := range []AuthType{AuthMD5, AuthMD2, AuthPassword} {
		if a.Has(t) {
			return p.closeAfter(c.Login15(ctx, Login15{Name: p.Admin.Name, Password: p.Admin.Password, Auth: t}))
		}
	}
	return nil, skipped("no v1.5 sessions with a password are offered")
}

func checkV15Activation(ctx context.Context, p *probe) error {
	s, err := p.open15(ctx)
	if err != nil {
		return err
	}
	activate := s.conn.Sent()
	again := func() (bool, error) {
		if err := s.conn.Send(activate); err != nil {
			return false, err
		}
		b, err := s.conn.Receive(ctx, max(p.Timeout, 4*silenceTimeout))
		if errors.Is(err, ErrNoAnswer) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		q, err := parsePacket(b)
		if err != nil {
			return false, findingf("it is answered % X", b)
		}
		m, err := parseMessage(q.body)
		if err != nil || m.Command != 0x3A || len(m.Data) == 0 || Code(m.Data[0]) != OK {
			return false, findingf("it is answered % X", q.body)
		}
		return true, nil
	}
	if answered, err := again(); err != nil || !answered {
		return errors.Join(err, findingf("an Activate Session that comes again, before the session is used: answered: %v", answered))
	}
	if _, err := s.Do(ctx, GetDeviceID); err != nil {
		return requireStep(err, "the session after that")
	}
	if answered, err := again(); err != nil || answered {
		return errors.Join(err, findingf("an Activate Session that comes again, after the session was used: answered: %v", answered))
	}
	return nil
}

func checkV15Packets(ctx context.Context, p *probe) error {
	s, err := p.open15(ctx)
	if err != nil {
		return err
	}
	if _, err := s.Do(ctx, GetDeviceID); err != nil {
		return err
	}
	last := s.conn.Sent()
	const far = 1000
	for _, tt := range []struct {
		what string
		t    Tamper
	}{
		{"a duplicate", Tamper{Wire: func([]byte) [][]byte { return [][]byte{last} }}},
		{"a packet with a wrong AuthCode", Tamper{Wire: func(b []byte) [][]byte {
			b[13] ^= 0x40
			return [][]byte{b}
		}}},
		{"a packet without AuthCode", Tamper{Header: func(h *Header) { h.Auth = AuthNone }}},
		{"a packet of another session", Tamper{Header: func(h *Header) { h.Session ^= 0x5A5A5A5A }}},
		{"a packet from far ahead", Tamper{Header: func(h *Header) { h.Sequence += far }}},
		{"a packet without a number", Tamper{Header: func(h *Header) { h.Sequence = 0 }}},
		{"a message with a wrong checksum", Tamper{Message: func(b []byte) []byte {
			b[len(b)-1]++
			return b
		}}},
	} {
		if err := p.spoilt(ctx, s, tt.what, tt.t); err != nil {
			return err
		}
	}
	return nil
}
