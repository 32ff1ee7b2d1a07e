package ipmi

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// Login holds the credentials and the parameters of an RMCP+ login.
type Login struct {
	Name, Password string
	KG             []byte    // nil: none
	Suite          byte      // 0 is the one without a password
	Role           Privilege // asked in RAKP 1; 0: Administrator
	ByRole         bool      // look up name and role, not the name alone (§13.20)
	Limit          Privilege // asked in the Open Session Request; 0: the highest
}

// Handshake opens an RMCP+ session step by step: Open, Challenge, Prove. Each
// may be called again.
type Handshake struct {
	Console      uint32    // our session ID
	ID           uint32    // the BMC's, after Open
	Limit        Privilege // what the BMC grants, after Open
	GUID         [16]byte  // after Challenge
	login        Login
	suite        Suite
	rakp         rakp
	conn         *Conn
	ours         [16]byte // random numbers
	theirs       [16]byte
	sik, k1      []byte
	proof        []byte // what RAKP 4 must hold
	lastRequest  []byte // the last request of the handshake, a whole packet
	lastResponse []byte // the payload of its answer
}

// Login opens a session. It begins at USER level (§22.18).
func (c *Conn) Login(ctx context.Context, l Login) (*Session, error) {
	h, err := c.Handshake(l)
	if err != nil {
		return nil, err
	}
	if err := h.Open(ctx); err != nil {
		return nil, err
	}
	if err := h.Challenge(ctx); err != nil {
		return nil, err
	}
	return h.Prove(ctx)
}

// Handshake prepares a login. It sends nothing.
func (c *Conn) Handshake(l Login) (*Handshake, error) {
	s, err := suite(l.Suite)
	if err != nil {
		return nil, err
	}
	if l.Role == 0 {
		l.Role = Administrator
	}
	h := &Handshake{login: l, suite: s, rakp: rakps[s.Auth], conn: c}
	var id [4]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, fmt.Errorf("ipmi: %w", err)
	}
	h.Console = binary.LittleEndian.Uint32(id[:]) | 1 // 0 is no session
	return h, nil
}

// role returns the role byte of RAKP 1, which the key exchange codes cover in
// full.
func (h *Handshake) role() byte {
	if h.login.ByRole {
		return byte(h.login.Role)
	}
	return byte(h.login.Role) | 0x10
}

// setup sends a message of the handshake and returns the payload of the
// response if its status is 00h.
func (h *Handshake) setup(ctx context.Context, step string, kind PayloadType, body []byte) ([]byte, error) {
	if change := h.conn.Tamper.Message; change != nil {
		body = change(bytes.Clone(body))
	}
	asked, err := h.conn.bare(Header{Payload: kind}, body)
	if err != nil {
		return nil, &Error{step, err}
	}
	h.lastRequest, h.lastResponse = asked, nil
	err = h.conn.roundTrip(ctx, step, func() ([]byte, error) { return asked, nil }, func(b []byte) (bool, error) {
		response, ok := h.response(b, kind+1, body[0])
		h.lastResponse = response
		return ok, nil
	})
	if err != nil {
		return nil, err
	}
	response := h.lastResponse
	if status := Status(response[1]); status != 0 {
		// Nothing follows the console's session ID on errors (§13.18–23), and
		// a client must not be made to believe so by random bytes.
		if len(response) != refusal {
			return nil, &Error{step, fmt.Errorf("%w, but in %d bytes, not %d: %w", status, len(response), refusal, ErrMalformed)}
		}
		return nil, &Error{step, status}
	}
	return response, nil
}

const refusal = 8 // bytes of an answer whose status is not 00h

// response returns the payload of a datagram if it has the payload type and
// the message tag.
func (h *Handshake) response(b []byte, kind PayloadType, tag byte) ([]byte, bool) {
	p, err := parsePacket(b)
	if err != nil || p.V15 || p.Payload != kind || p.Session != 0 || p.Sequence != 0 || len(p.trailer) > 0 ||
		len(p.body) < 2 || p.body[0] != tag {
		h.conn.drop("% X: no answer to this (%v)", b, err)
		return nil, false
	}
	return p.body, true
}

// Open sends an Open Session Request (§13.17).
func (h *Handshake) Open(ctx context.Context) error {
	return h.OpenWith(ctx, h.suite)
}

// OpenWith is Open with any algorithms, even if no cipher suite combines them.
func (h *Handshake) OpenWith(ctx context.Context, s Suite) error {
	const step = "Open Session Request"
	response, err := h.setup(ctx, step, PayloadOpenRequest, h.openRequest(s))
	if err != nil {
		return err
	}
	r := reader{b: response}
	r.bytes(2) // tag and status
	h.Limit = Privilege(r.u8())
	r.u8()
	console := r.u32()
	h.ID = r.u32()
	var got Suite
	for kind, a := range []*byte{&got.Auth, &got.Integrity, &got.Crypt} {
		if k := r.u8(); r.err == nil && k != byte(kind) {
			r.err = fmt.Errorf("%w: algorithm payload of type %d in place %d", ErrMalformed, k, kind)
		}
		r.bytes(2)
		if n := r.u8(); r.err == nil && n != algorithmSize {
			r.err = fmt.Errorf("%w: algorithm payload of %d bytes", ErrMalformed, n)
		}
		*a = r.u8()
		r.bytes(3)
	}
	err = r.end()
	s.ID = 0
	switch {
	case err != nil:
	case console != h.Console:
		err = fmt.Errorf("%w: console session ID %08X, not %08X", ErrMalformed, console, h.Console)
	case h.ID == 0:
		err = fmt.Errorf("%w: session ID 0", ErrMalformed)
	case got != s:
		err = fmt.Errorf("%w: algorithms %d, %d, %d were not asked for", ErrMalformed, got.Auth, got.Integrity, got.Crypt)
	}
	if err != nil {
		return &Error{step, err}
	}
	return nil
}

const algorithmSize = 8 // bytes of an algorithm payload

func (h *Handshake) openRequest(s Suite) []byte {
	b := []byte{h.conn.nextTag(), byte(h.login.Limit), 0, 0}
	b = binary.LittleEndian.AppendUint32(b, h.Console)
	for kind, a := range []byte{s.Auth, s.Integrity, s.Crypt} {
		b = append(b, byte(kind), 0, 0, algorithmSize, a, 0, 0, 0)
	}
	return b
}

// Challenge sends RAKP 1 and checks that the BMC knows the password (§13.20,
// §13.21).
func (h *Handshake) Challenge(ctx context.Context) error {
	const step = "RAKP 1"
	if _, err := rand.Read(h.ours[:]); err != nil {
		return &Error{step, err}
	}
	body := []byte{h.conn.nextTag(), 0, 0, 0}
	body = binary.LittleEndian.AppendUint32(body, h.ID)
	body = append(body, h.ours[:]...)
	body = append(body, h.role(), 0, 0, byte(len(h.login.Name)))
	body = append(body, h.login.Name...)
	response, err := h.setup(ctx, step, PayloadRAKP1, body)
	if err != nil {
		return err
	}
	r := reader{b: response}
	r.bytes(4)
	console := r.u32()
	h.theirs = [16]byte(r.bytes(16))
	h.GUID = [16]byte(r.bytes(16))
	code := r.rest()
	kuid := padded(h.login.Password, 20)
	want := h.rakp.sum(kuid, le32(h.Console), le32(h.ID), h.ours[:], h.theirs[:], h.GUID[:], h.roleAndName())
	err = r.end()
	switch {
	case err != nil:
	case console != h.Console:
		err = fmt.Errorf("%w: console session ID %08X, not %08X", ErrMalformed, console, h.Console)
	case len(code) != len(want):
		err = fmt.Errorf("%w: a code of %d bytes, not %d", ErrMalformed, len(code), len(want))
	case !hmac.Equal(code, want):
		err = ErrPassword
	}
	if err != nil {
		return &Error{step, err}
	}
	return nil
}

// roleAndName returns the role, the length of the name and the name, as the
// key exchange codes cover them.
func (h *Handshake) roleAndName() []byte {
	return append([]byte{h.role(), byte(len(h.login.Name))}, h.login.Name...)
}

func le32(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }

// keys derives the session's keys (§13.31, §13.32).
func (h *Handshake) keys() {
	key := padded(h.login.Password, 20)
	if h.login.KG != nil {
		key = padded(string(h.login.KG), 20)
	}
	h.sik = h.rakp.sum(key, h.ours[:], h.theirs[:], h.roleAndName())
	h.k1 = h.rakp.sum(h.sik, constant(1))
	h.proof = h.rakp.sum(h.sik, h.ours[:], le32(h.ID), h.GUID[:])
	if h.rakp.hash != nil {
		h.proof = h.proof[:h.rakp.icv]
	}
}

// Prove sends RAKP 3 and checks that the BMC has the same keys (§13.22,
// §13.23).
func (h *Handshake) Prove(ctx context.Context) (*Session, error) {
	const step = "RAKP 3"
	h.keys()
	body := append([]byte{h.conn.nextTag(), 0, 0, 0}, le32(h.ID)...)
	body = append(body, h.rakp.sum(padded(h.login.Password, 20), h.theirs[:], le32(h.Console), h.roleAndName())...)
	response, err := h.setup(ctx, step, PayloadRAKP3, body)
	if err != nil {
		return nil, err
	}
	r := reader{b: response}
	r.bytes(4)
	console := r.u32()
	code := r.rest()
	err = r.end()
	switch {
	case err != nil:
	case console != h.Console:
		err = fmt.Errorf("%w: console session ID %08X, not %08X", ErrMalformed, console, h.Console)
	case len(code) != len(h.proof):
		err = fmt.Errorf("%w: a code of %d bytes, not %d", ErrMalformed, len(code), len(h.proof))
	case !hmac.Equal(code, h.proof):
		err = ErrKey
	}
	if err != nil {
		return nil, &Error{step, err}
	}
	return h.session()
}

func (h *Handshake) session() (*Session, error) {
	s := &Session{
		ID: h.ID, Limit: h.Limit, GUID: h.GUID, Suite: h.suite, conn: h.conn, console: h.Console,
		sums: newIntegrity(h.suite.Integrity, h.k1, padded(h.login.Password, 20)),
	}
	if h.suite.Crypt == cryptAES {
		block, err := aes.NewCipher(h.rakp.sum(h.sik, constant(2))[:16])
		if err != nil {
			return nil, fmt.Errorf("ipmi: %w", err)
		}
		s.block = block
	}
	return s, nil
}
