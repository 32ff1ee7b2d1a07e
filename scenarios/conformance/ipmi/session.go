package ipmi

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// Session is an open session.
type Session struct {
	ID    uint32    // the BMC's
	Limit Privilege // the highest level that it may ask for
	GUID  [16]byte  // GUID of RAKP 2, in the order of the wire
	Suite Suite     // cipher suite of an RMCP+ session

	conn     *Conn
	console  uint32    // our ID; RMCP+
	sequence uint32    // sequence number of the last packet sent
	received window    // sequence numbers of the BMC's packets
	sol      [][]byte  // SOL payloads that nobody has read yet
	sums     integrity // RMCP+; nil: none
	block    cipher.Block

	v15    bool
	auth   AuthType // v1.5: of packets to and from the BMC
	sums15 authCode
}

// Sequence returns the session sequence number of the last packet sent.
func (s *Session) Sequence() uint32 { return s.sequence }

// SetSequence sets the number of the last packet sent: the next one has n+1.
func (s *Session) SetSequence(n uint32) { s.sequence = n }

// Conn returns the session's socket.
func (s *Session) Conn() *Conn { return s.conn }

// next returns the next session sequence number. It skips 0, which marks
// packets outside of sessions.
func (s *Session) next() uint32 {
	if s.sequence++; s.sequence == 0 {
		s.sequence = 1
	}
	return s.sequence
}

// encode returns the packet of a payload: encrypted and authenticated as the
// session is.
func (s *Session) encode(kind PayloadType, body []byte) ([]byte, error) {
	if s.v15 {
		return s.seal15(body)
	}
	tamper := &s.conn.Tamper
	h := Header{
		Payload: kind, Encrypted: s.block != nil, Authenticated: s.sums != nil,
		Session: s.ID, Sequence: s.next(),
	}
	if tamper.Header != nil {
		tamper.Header(&h)
	}
	if h.Encrypted && s.block != nil {
		var err error
		if body, err = s.encrypt(body); err != nil {
			return nil, err
		}
	}
	p := packet{Header: h, body: body}
	if h.Authenticated && s.sums != nil {
		return s.sign(p)
	}
	return p.AppendBinary(nil)
}

// encrypt returns the encrypted form of a payload (§13.29).
func (s *Session) encrypt(body []byte) ([]byte, error) {
	plain := bytes.Clone(body)
	pad := (aes.BlockSize - (len(plain)+1)%aes.BlockSize) % aes.BlockSize
	for i := range pad {
		plain = append(plain, byte(i+1))
	}
	plain = append(plain, byte(pad))
	if change := s.conn.Tamper.Padding; change != nil {
		plain = change(plain)
	}
	if len(plain)%aes.BlockSize != 0 {
		return nil, fmt.Errorf("ipmi: %d bytes cannot be encrypted: make them a multiple of %d", len(plain), aes.BlockSize)
	}
	out := make([]byte, aes.BlockSize+len(plain))
	if _, err := rand.Read(out[:aes.BlockSize]); err != nil {
		return nil, err
	}
	cipher.NewCBCEncrypter(s.block, out[:aes.BlockSize]).CryptBlocks(out[aes.BlockSize:], plain)
	return out, nil
}

// decrypt is the inverse of encrypt. It checks every byte of the pad.
func (s *Session) decrypt(body []byte) ([]byte, error) {
	if len(body) < 2*aes.BlockSize || len(body)%aes.BlockSize != 0 {
		return nil, fmt.Errorf("%w: %d encrypted bytes", ErrMalformed, len(body))
	}
	plain := make([]byte, len(body)-aes.BlockSize)
	cipher.NewCBCDecrypter(s.block, body[:aes.BlockSize]).CryptBlocks(plain, body[aes.BlockSize:])
	pad := int(plain[len(plain)-1])
	if pad >= aes.BlockSize || pad >= len(plain) {
		return nil, fmt.Errorf("%w: a pad of %d bytes", ErrMalformed, pad)
	}
	end := len(plain) - 1 - pad
	for i, b := range plain[end : len(plain)-1] {
		if b != byte(i+1) {
			return nil, fmt.Errorf("%w: pad % X", ErrMalformed, plain[end:])
		}
	}
	return plain[:end], nil
}

const nextHeader = 0x07 // fixed value before the AuthCode (§13.6)

// sign appends the session trailer. The authenticated part, from the
// authentication type to the next header, is padded to a multiple of four
// bytes.
func (s *Session) sign(p packet) ([]byte, error) {
	out, err := p.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	signed := len(out) - len(rmcp(classIPMI)) + 2
	pad := (4 - signed%4) % 4
	for range pad {
		out = append(out, 0xFF)
	}
	out = append(out, byte(pad), nextHeader)
	return append(out, s.sums(out[len(rmcp(classIPMI)):])...), nil
}

// verify checks the session trailer of a packet.
func (s *Session) verify(datagram []byte, p packet) error {
	size := len(s.sums(nil))
	if len(p.trailer) < size+2 {
		return fmt.Errorf("%w: a session trailer of %d bytes", ErrMalformed, len(p.trailer))
	}
	cut := len(datagram) - size
	if !hmac.Equal(s.sums(datagram[len(rmcp(classIPMI)):cut]), datagram[cut:]) {
		return fmt.Errorf("%w: wrong AuthCode", ErrMalformed)
	}
	end := len(p.trailer) - size
	if pad := p.trailer[:end-2]; p.trailer[end-1] != nextHeader || int(p.trailer[end-2]) != len(pad) {
		return fmt.Errorf("%w: session trailer % X", ErrMalformed, p.trailer)
	}
	return nil
}

// open returns the payload of a packet from the BMC. It refuses a sequence
// number that it has seen or that is out of the window.
func (s *Session) open(datagram []byte) (PayloadType, []byte, error) {
	if s.v15 {
		body, err := s.open15(datagram)
		return PayloadIPMI, body, err
	}
	p, err := parsePacket(datagram)
	switch {
	case err != nil:
		return 0, nil, err
	case p.V15 || p.Session != s.console:
		return 0, nil, fmt.Errorf("%w: session %08X, not %08X", ErrMalformed, p.Session, s.console)
	case p.Authenticated != (s.sums != nil):
		return 0, nil, fmt.Errorf("%w: authenticated: %v", ErrMalformed, p.Authenticated)
	case p.Encrypted != (s.block != nil) && (p.Encrypted || p.Payload == PayloadIPMI):
		return 0, nil, fmt.Errorf("%w: encrypted: %v", ErrMalformed, p.Encrypted)
	}
	if s.sums != nil {
		if err := s.verify(datagram, p); err != nil {
			return 0, nil, err
		}
	} else if len(p.trailer) > 0 {
		return 0, nil, fmt.Errorf("%w: session trailer % X without integrity", ErrMalformed, p.trailer)
	}
	if !s.received.take(p.Sequence) {
		return 0, nil, fmt.Errorf("%w: sequence number %d comes again or from far", ErrMalformed, p.Sequence)
	}
	if p.Encrypted {
		p.body, err = s.decrypt(p.body)
	}
	return p.Payload, p.body, err
}

// window is the sliding window of received sequence numbers (§6.12.14).
type window struct {
	top  uint32 // highest number so far; 0: none
	seen uint64 // bit i: top-i came
}

const (
	windowAhead  = 15
	windowBehind = 16
)

// take reports whether a number is new and within the window, and records it.
func (w *window) take(n uint32) bool {
	switch ahead := n - w.top; {
	case n == 0:
		return false
	case w.top == 0: // the first: a BMC may begin anywhere
		w.top, w.seen = n, 1
		return true
	case ahead != 0 && ahead <= windowAhead:
		w.top, w.seen = n, w.seen<<ahead|1
		return true
	}
	behind := w.top - n
	if behind > windowBehind || w.seen>>behind&1 != 0 {
		return false
	}
	w.seen |= 1 << behind
	return true
}

// Do sends a command and returns the data after the completion code. With an
// Error that has a Code it returns the data, too. A repeated request has the
// same message sequence number and another session sequence number.
func (s *Session) Do(ctx context.Context, r Request) ([]byte, error) {
	m := s.conn.request(r)
	data, err := s.roundTrip(ctx, r.String(), m, m)
	if err != nil {
		return nil, err
	}
	return result(r.String(), data)
}

// roundTrip sends one message and waits for the response to want, which may be
// the same message.
func (s *Session) roundTrip(ctx context.Context, step string, send, want message) ([]byte, error) {
	var data []byte
	err := s.conn.roundTrip(ctx, step, func() ([]byte, error) {
		return s.message(send)
	}, func(b []byte) (bool, error) {
		a, ok := s.answer(b)
		if !ok {
			return false, nil
		}
		if !a.answers(want) {
			s.conn.drop("answer to %02Xh/%02Xh, number %d", byte(a.NetFn), a.Command, a.Sequence)
			return false, nil
		}
		data = a.Data
		return true, nil
	})
	return data, err
}

// message returns the packet of a message.
func (s *Session) message(m message) ([]byte, error) {
	body, err := s.conn.payload(m)
	if err != nil {
		return nil, err
	}
	return s.encode(PayloadIPMI, body)
}

// answer parses a packet from the BMC. It stores SOL payloads for the reader
// of the console.
func (s *Session) answer(datagram []byte) (message, bool) {
	kind, body, err := s.open(datagram)
	if err == nil && kind == PayloadSOL {
		s.sol = append(s.sol, body)
		return message{}, false
	}
	var a message
	if err == nil {
		a, err = parseMessage(body)
	}
	if err != nil {
		s.conn.drop("%v", err)
		return message{}, false
	}
	return a, true
}

// Raise requests a privilege level, 0 for the present one, and returns the
// resulting level (§22.18).
func (s *Session) Raise(ctx context.Context, p Privilege) (Privilege, error) {
	r := Request{NetFn: App, Command: 0x3B, Data: []byte{byte(p)}, Name: "Set Session Privilege Level"}
	data, err := s.Do(ctx, r)
	if err != nil {
		return 0, err
	}
	if len(data) != 1 {
		return 0, &Error{r.String(), fmt.Errorf("%w: %d bytes, not 1", ErrMalformed, len(data))}
	}
	return Privilege(data[0]), nil
}

// closing returns the Close Session request for a session ID.
func closing(id uint32) Request {
	return Request{NetFn: App, Command: 0x3C, Data: binary.LittleEndian.AppendUint32(nil, id), Name: "Close Session"}
}

// Close ends the session (§22.19). The socket stays open.
func (s *Session) Close(ctx context.Context) error {
	_, err := s.Do(ctx, closing(s.ID))
	return err
}

// AuthCapabilities requests the authentication capabilities of a channel.
func (s *Session) AuthCapabilities(ctx context.Context, channel byte, p Privilege, extended bool) (Capabilities, error) {
	return capabilities(ctx, s.Do, channel, p, extended)
}

// CipherSuites requests the cipher suites of a channel.
func (s *Session) CipherSuites(ctx context.Context, channel byte) ([]Suite, error) {
	return cipherSuites(ctx, s.Do, channel)
}

// SystemGUID requests the system's GUID.
func (s *Session) SystemGUID(ctx context.Context) ([16]byte, error) { return guid(ctx, s.Do) }

// Bridge sends a command to a controller behind the BMC (§6.13.3, §22.7), such
// as the one at 2Ch on channel 0, and returns its data. BMCs differ: the
// response arrives as a separate message or within that of Send Message.
func (s *Session) Bridge(ctx context.Context, channel, address byte, r Request) ([]byte, error) {
	const track = 0x40
	step := fmt.Sprintf("%s for %02Xh on channel %d", r, address, channel)
	inner := message{
		To: address, ToLUN: r.LUN, NetFn: r.NetFn, From: addressConsole, Command: r.Command, Data: r.Data,
	}
	outer := s.conn.request(Request{NetFn: App, Command: 0x34})
	inner.Sequence = outer.Sequence // whichever of the two the BMC keeps, it is this
	body, err := inner.AppendBinary([]byte{track | channel&0x0F})
	if err != nil {
		return nil, &Error{step, err}
	}
	outer.Data = body
	var data []byte
	sent := false // Send Message itself succeeded
	err = s.conn.roundTrip(ctx, step, func() ([]byte, error) {
		return s.message(outer)
	}, func(b []byte) (bool, error) {
		a, ok := s.answer(b)
		switch {
		case !ok:
			return false, nil
		case a.answers(inner):
			data = a.Data
			return true, nil
		case !a.answers(outer):
			s.conn.drop("answer to %02Xh/%02Xh, number %d", byte(a.NetFn), a.Command, a.Sequence)
			return false, nil
		case Code(a.Data[0]) != OK:
			return false, fmt.Errorf("send message: %w", Code(a.Data[0]))
		}
		sent = true
		if len(a.Data) == 1 {
			return false, nil // the answer is still to come
		}
		wrapped, err := parseMessage(a.Data[1:])
		if err != nil || len(wrapped.Data) == 0 {
			return false, fmt.Errorf("within send message: %w", err)
		}
		data = wrapped.Data
		return true, nil
	})
	if err != nil {
		if sent {
			err = fmt.Errorf("sent on, but: %w", err)
		}
		return nil, err
	}
	return result(step, data)
}
