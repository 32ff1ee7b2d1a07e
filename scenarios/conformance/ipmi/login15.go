package ipmi

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"fmt"
)

// Login15 holds the credentials and the parameters of an IPMI v1.5 login.
type Login15 struct {
	Name, Password string // 16 bytes at most
	Auth           AuthType
	Role           Privilege // 0: Administrator
}

// authCode returns the AuthCode of a packet (§22.17.1). A nil authCode means
// that packets have none.
type authCode func(session, sequence uint32, data []byte) []byte

func newAuthCode(t AuthType, password string) (authCode, error) {
	key := padded(password, 16)
	hashed := func(sum func([]byte) [16]byte) authCode {
		return func(session, sequence uint32, data []byte) []byte {
			b := sum(bytes.Join([][]byte{key, le32(session), data, le32(sequence), key}, nil))
			return b[:]
		}
	}
	switch t {
	case AuthNone:
		return nil, nil
	case AuthMD2:
		return hashed(md2), nil
	case AuthMD5:
		return hashed(md5.Sum), nil
	case AuthPassword:
		return func(uint32, uint32, []byte) []byte { return key }, nil
	}
	return nil, fmt.Errorf("ipmi: authentication type %02Xh is none of v1.5's", byte(t))
}

// Challenge15 sends Get Session Challenge (§22.16). It returns a temporary
// session ID and the challenge for Activate Session.
func (c *Conn) Challenge15(ctx context.Context, l Login15) (temporary uint32, challenge [16]byte, err error) {
	r := Request{NetFn: App, Command: 0x39, Name: "Get Session Challenge"}
	r.Data = append([]byte{byte(l.Auth)}, padded(l.Name, 16)...)
	data, err := c.Ask(ctx, V15, r)
	if err != nil {
		return 0, challenge, err
	}
	b := reader{b: data}
	temporary = b.u32()
	challenge = [16]byte(b.bytes(16))
	if err := b.end(); err != nil {
		return 0, challenge, &Error{r.String(), err}
	}
	return temporary, challenge, nil
}

// Login15 opens a v1.5 session. It begins at USER level.
func (c *Conn) Login15(ctx context.Context, l Login15) (*Session, error) {
	temporary, challenge, err := c.Challenge15(ctx, l)
	if err != nil {
		return nil, err
	}
	return c.Activate15(ctx, l, temporary, challenge)
}

// Activate15 sends Activate Session (§22.17).
func (c *Conn) Activate15(ctx context.Context, l Login15, temporary uint32, challenge [16]byte) (*Session, error) {
	if l.Role == 0 {
		l.Role = Administrator
	}
	sums, err := newAuthCode(l.Auth, l.Password)
	if err != nil {
		return nil, err
	}
	var first [4]byte
	if _, err := rand.Read(first[:]); err != nil {
		return nil, fmt.Errorf("ipmi: %w", err)
	}
	first[0] |= 1 // 0 is no number
	s := &Session{ID: temporary, conn: c, v15: true, auth: l.Auth, sums15: sums}
	r := Request{NetFn: App, Command: 0x3A, Name: "Activate Session"}
	r.Data = append([]byte{byte(l.Auth), byte(l.Role)}, challenge[:]...)
	r.Data = append(r.Data, first[:]...)
	m := c.request(r)
	var data []byte
	err = c.roundTrip(ctx, r.String(), func() ([]byte, error) {
		body, err := c.payload(m)
		if err != nil {
			return nil, err
		}
		return s.pack15(Header{V15: true, Auth: s.auth, Session: temporary}, body)
	}, func(b []byte) (bool, error) {
		a, ok := s.answer(b)
		if !ok || !a.answers(m) {
			return false, nil
		}
		data = a.Data
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	if data, err = result(r.String(), data); err != nil {
		return nil, err
	}
	b := reader{b: data}
	rest := AuthType(b.u8())
	s.ID = b.u32()
	s.sequence = b.u32()
	s.Limit = Privilege(b.u8())
	switch err := b.end(); {
	case err != nil:
		return nil, &Error{r.String(), err}
	case s.sequence == 0 || s.ID == 0:
		return nil, &Error{r.String(), fmt.Errorf("%w: session ID %d, first number %d", ErrMalformed, s.ID, s.sequence)}
	case rest != l.Auth && rest != AuthNone:
		return nil, &Error{r.String(), fmt.Errorf("%w: goes on with %s", ErrMalformed, rest)}
	}
	s.sequence-- // what the BMC gave is the number of the next packet
	s.auth = rest
	if rest == AuthNone {
		s.sums15 = nil
	}
	return s, nil
}

// seal15 makes a v1.5 packet of a message.
func (s *Session) seal15(body []byte) ([]byte, error) {
	return s.pack15(Header{V15: true, Auth: s.auth, Session: s.ID, Sequence: s.next()}, body)
}

func (s *Session) pack15(h Header, body []byte) ([]byte, error) {
	if change := s.conn.Tamper.Header; change != nil {
		change(&h)
	}
	p := packet{Header: h, body: body}
	if h.Auth != AuthNone && s.sums15 != nil {
		p.code = s.sums15(h.Session, h.Sequence, body)
	}
	return p.AppendBinary(nil)
}

// open15 gives the message of a v1.5 packet of the BMC, once.
func (s *Session) open15(datagram []byte) ([]byte, error) {
	p, err := parsePacket(datagram)
	switch {
	case err != nil:
		return nil, err
	case !p.V15 || p.Session != s.ID:
		return nil, fmt.Errorf("%w: session %08X, not %08X", ErrMalformed, p.Session, s.ID)
	case p.Auth != s.auth:
		return nil, fmt.Errorf("%w: authentication %s, not %s", ErrMalformed, p.Auth, s.auth)
	case s.sums15 != nil && !hmac.Equal(p.code, s.sums15(p.Session, p.Sequence, p.body)):
		return nil, fmt.Errorf("%w: wrong AuthCode", ErrMalformed)
	case !s.received.take(p.Sequence):
		return nil, fmt.Errorf("%w: sequence number %d comes again or from far", ErrMalformed, p.Sequence)
	}
	return p.body, nil
}
