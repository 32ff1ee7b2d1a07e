package ipmi

import (
	"context"
	"encoding/binary"
	"fmt"
)

// Framing is how a message outside of any session is wrapped (§13.6).
type Framing bool

// The framings.
const (
	V15 Framing = false // IPMI v1.5, authentication type none
	V20 Framing = true  // RMCP+, session 0
)

func (f Framing) String() string {
	if f == V15 {
		return "v1.5 framing"
	}
	return "RMCP+ framing"
}

// Ask sends a command outside of any session, and gives the data after the
// completion code. An Error with a Code comes with the data too.
func (c *Conn) Ask(ctx context.Context, f Framing, r Request) ([]byte, error) {
	m := c.request(r)
	var data []byte
	step := r.String() + " in " + f.String()
	err := c.roundTrip(ctx, step, func() ([]byte, error) {
		body, err := c.payload(m)
		if err != nil {
			return nil, err
		}
		return c.bare(Header{V15: f == V15, Auth: AuthNone}, body)
	}, func(b []byte) (bool, error) {
		p, err := parsePacket(b)
		if err != nil || p.Session != 0 || p.V15 != (f == V15) || p.V15 && p.Auth != AuthNone ||
			!p.V15 && (p.Payload != PayloadIPMI || p.Authenticated || p.Encrypted || p.Sequence != 0) {
			c.drop("% X: another framing (%v)", b, err)
			return false, nil
		}
		a, err := parseMessage(p.body)
		if err != nil || !a.answers(m) {
			c.drop("% X: no answer to this (%v)", p.body, err)
			return false, nil
		}
		data = a.Data
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return result(step, data)
}

// bare makes a packet without integrity and encryption, through Tamper.Header.
func (c *Conn) bare(h Header, body []byte) ([]byte, error) {
	if c.Tamper.Header != nil {
		c.Tamper.Header(&h)
	}
	return packet{Header: h, body: body}.AppendBinary(nil)
}

// Pong is the answer to a presence ping (§13.2.4).
type Pong struct {
	Enterprise   uint32 // 4542, or of who defines OEM
	OEM          [4]byte
	IPMI         bool
	ASF          byte // version
	Interactions byte // bit 7 security extensions, bit 5 DASH or DCMI
	Raw          []byte
}

const enterpriseASF = 4542

// Ping asks whether anybody is there (§13.2.3).
func (c *Conn) Ping(ctx context.Context) (Pong, error) {
	tag := c.nextTag() & 0x7F // FFh would want no answer
	ping := append(rmcp(classASF), 0, 0, 0x11, 0xBE, 0x80, tag, 0, 0)
	var p Pong
	err := c.roundTrip(ctx, "presence ping", func() ([]byte, error) { return ping, nil }, func(b []byte) (bool, error) {
		r := reader{b: b}
		if [4]byte(r.bytes(4)) != [4]byte(rmcp(classASF)) || binary.BigEndian.Uint32(r.bytes(4)) != enterpriseASF ||
			r.u8() != 0x40 || r.u8() != tag {
			c.drop("% X: no pong to this ping", b)
			return false, nil
		}
		r.u8()
		if n := r.u8(); r.err == nil && n != 16 {
			return false, fmt.Errorf("%w: a pong of %d bytes", ErrMalformed, n)
		}
		p.Enterprise = binary.BigEndian.Uint32(r.bytes(4))
		p.OEM = [4]byte(r.bytes(4))
		entities := r.u8()
		p.IPMI, p.ASF = entities&0x80 != 0, entities&0x0F
		p.Interactions = r.u8()
		r.bytes(6)
		p.Raw = b
		return true, r.end()
	})
	return p, err
}

// Capabilities are a channel's authentication capabilities (§22.13).
type Capabilities struct {
	Channel    byte
	Extended   bool    // the answer is in the form of v2.0
	Types      byte    // bit set by AuthType
	TwoKey     bool    // K_g is set
	PerMessage bool    // packets within a session must be authenticated
	UserLevel  bool    // those of commands for users too
	Names      byte    // bit 0 anonymous, 1 null names, 2 others
	V20, V15   bool    // sessions that the channel takes; of the extended form
	Enterprise [3]byte // IANA Enterprise Number of OEM authentication
	OEM        byte    // its data
	Reserved   [3]byte // bits that must be 0, of the three bytes before Enterprise
}

// Has reports whether v1.5 sessions of a type are offered.
func (a Capabilities) Has(t AuthType) bool { return a.Types>>t&1 != 0 }

// asker is who can ask a command: outside of a session, or in one.
type asker func(context.Context, Request) ([]byte, error)

func (c *Conn) outside(f Framing) asker {
	return func(ctx context.Context, r Request) ([]byte, error) { return c.Ask(ctx, f, r) }
}

const thisChannel = 0x0E

// AuthCapabilities asks for the authentication capabilities of a channel,
// Eh being the one that is used.
func (c *Conn) AuthCapabilities(ctx context.Context, f Framing, channel byte, p Privilege, extended bool) (Capabilities, error) {
	return capabilities(ctx, c.outside(f), channel, p, extended)
}

func capabilities(ctx context.Context, ask asker, channel byte, p Privilege, extended bool) (Capabilities, error) {
	r := Request{NetFn: App, Command: 0x38, Name: "Get Channel Authentication Capabilities"}
	if extended {
		channel |= 0x80
	}
	data, err := ask(ctx, r.with(channel, byte(p)))
	if err != nil {
		return Capabilities{}, err
	}
	b := reader{b: data}
	var a Capabilities
	a.Channel = b.u8()
	types, status, ext := b.u8(), b.u8(), b.u8()
	a.Extended, a.Types = types&0x80 != 0, types&0x3F
	a.TwoKey, a.PerMessage, a.UserLevel, a.Names = status&0x20 != 0, status&0x10 == 0, status&0x08 == 0, status&0x07
	a.V20, a.V15 = ext&2 != 0, ext&1 != 0
	a.Reserved = [3]byte{types & 0x48, status & 0xC0, ext & 0xFC}
	a.Enterprise = [3]byte(b.bytes(3))
	a.OEM = b.u8()
	if err := b.end(); err != nil {
		return Capabilities{}, &Error{r.String(), err}
	}
	return a, nil
}

// CipherSuites asks for the cipher suites of a channel (§22.15).
func (c *Conn) CipherSuites(ctx context.Context, f Framing, channel byte) ([]Suite, error) {
	return cipherSuites(ctx, c.outside(f), channel)
}

func cipherSuites(ctx context.Context, ask asker, channel byte) ([]Suite, error) {
	r := Request{NetFn: App, Command: 0x54, Name: "Get Channel Cipher Suites"}
	const (
		bySuite = 0x80
		slice   = 16
		slices  = 0x40
	)
	var records []byte
	for i := byte(0); ; i++ {
		data, err := ask(ctx, r.with(channel, byte(PayloadIPMI), bySuite|i))
		if err != nil {
			return nil, err
		}
		if len(data) < 1 || len(data) > 1+slice {
			return nil, &Error{r.String(), fmt.Errorf("%w: %d bytes", ErrMalformed, len(data))}
		}
		records = append(records, data[1:]...)
		if len(data) < 1+slice {
			break
		}
		if i == slices-1 {
			return nil, &Error{r.String(), fmt.Errorf("%w: the list does not end", ErrMalformed)}
		}
	}
	suites, err := parseSuites(records)
	if err != nil {
		return nil, &Error{r.String(), err}
	}
	return suites, nil
}

// parseSuites reads cipher suite records (Table 22-19).
func parseSuites(b []byte) ([]Suite, error) {
	var suites []Suite
	for len(b) > 0 {
		r := reader{b: b}
		start := r.u8()
		s := Suite{ID: r.u8()}
		switch start {
		case 0xC0:
		case 0xC1:
			r.bytes(3) // the OEM's enterprise number
		default:
			return nil, fmt.Errorf("%w: a cipher suite record begins with %02Xh", ErrMalformed, start)
		}
		// Each algorithm has a tag in its two highest bits.
		for r.err == nil && len(r.b) > 0 && r.b[0]&0xC0 != 0xC0 {
			switch a := r.u8(); a >> 6 {
			case 0:
				s.Auth = a
			case 1:
				s.Integrity = a & 0x3F
			case 2:
				s.Crypt = a & 0x3F
			}
		}
		if r.err != nil {
			return nil, r.err
		}
		suites = append(suites, s)
		b = r.b
	}
	return suites, nil
}

// GUID asks for the system's GUID, in the order of the wire (§22.14).
func (c *Conn) GUID(ctx context.Context, f Framing) ([16]byte, error) {
	return guid(ctx, c.outside(f))
}

func guid(ctx context.Context, ask asker) ([16]byte, error) {
	data, err := ask(ctx, GetSystemGUID)
	if err != nil {
		return [16]byte{}, err
	}
	if len(data) != 16 {
		return [16]byte{}, &Error{GetSystemGUID.String(), fmt.Errorf("%w: %d bytes, not 16", ErrMalformed, len(data))}
	}
	return [16]byte(data), nil
}
