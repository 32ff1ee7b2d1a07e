package ipmi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Console is an active SOL payload (§15). In both directions each packet with
// data is acknowledged before the next is sent.
type Console struct {
	Port              uint16 // where the BMC wants the payload to go on
	Inbound, Outbound uint16 // the largest payloads that it takes and sends

	session  *Session
	instance byte
	ours     byte   // sequence number of our last packet with data
	theirs   byte   // sequence number of the BMC's last packet with data
	taken    int    // how much of the BMC's last packet has been read
	unread   []byte // received during other round trips
	Ended    bool   // the BMC has announced that it deactivates the payload
}

// Bits of a SOL packet's operation and status (Table 15-2).
const (
	solNACK        = 0x40
	solUnavailable = 0x20 // from the BMC: the system takes no characters
	solDeactivated = 0x10 // from the BMC
	SOLBreak       = 0x10 // to the BMC: generate a break
	SOLFlushIn     = 0x02
	SOLFlushOut    = 0x01
)

// ErrUnavailable means that the system takes no characters now, as when it is
// off.
var ErrUnavailable = errors.New("the console takes no characters")

// Console activates SOL (§24.1); the first instance is 1. The session's level
// must allow it.
func (s *Session) Console(ctx context.Context, instance byte) (*Console, error) {
	const (
		authenticate = 0x40
		encrypt      = 0x80
		deferAlerts  = 0x04
	)
	r := Request{NetFn: App, Command: 0x48, Name: "Activate Payload"}
	options := byte(deferAlerts)
	if s.sums != nil {
		options |= authenticate
	}
	if s.block != nil {
		options |= encrypt
	}
	data, err := s.Do(ctx, r.with(byte(PayloadSOL), instance, options, 0, 0, 0))
	if err != nil {
		return nil, err
	}
	b := reader{b: data}
	c := &Console{session: s, instance: instance}
	b.bytes(4)
	c.Inbound, c.Outbound, c.Port = b.u16(), b.u16(), b.u16()
	b.u16() // VLAN
	if err := b.end(); err != nil {
		return nil, &Error{r.String(), err}
	}
	if c.Inbound <= solHeader || c.Outbound <= solHeader {
		return nil, &Error{r.String(), fmt.Errorf("%w: payloads of %d and %d bytes", ErrMalformed, c.Inbound, c.Outbound)}
	}
	return c, nil
}

const solHeader = 4

// solPacket is a SOL payload.
type solPacket struct {
	sequence, ack, accepted, status byte
	data                            []byte
}

func (p solPacket) bytes() []byte {
	return append([]byte{p.sequence, p.ack, p.accepted, p.status}, p.data...)
}

func parseSOL(b []byte) (solPacket, error) {
	r := reader{b: b}
	p := solPacket{sequence: r.u8(), ack: r.u8(), accepted: r.u8(), status: r.u8(), data: r.rest()}
	if err := r.end(); err != nil {
		return solPacket{}, err
	}
	if p.sequence > 0x0F || p.ack > 0x0F {
		return solPacket{}, fmt.Errorf("%w: SOL numbers %02Xh and %02Xh", ErrMalformed, p.sequence, p.ack)
	}
	return p, nil
}

// next returns the next sequence number of a packet with data, 1 to 15.
func (c *Console) next() byte {
	if c.ours++; c.ours > 0x0F {
		c.ours = 1
	}
	return c.ours
}

// Write sends characters to the system and waits until the BMC has accepted
// them.
func (c *Console) Write(ctx context.Context, text []byte) error {
	const patience = 20 // consecutive packets without an accepted character
	most := min(int(c.Inbound)-solHeader, 0xFF)
	for full := 0; len(text) > 0; {
		n, err := c.send(ctx, 0, text[:min(len(text), most)])
		if err != nil {
			return err
		}
		text = text[n:]
		if n > 0 {
			full = 0
			continue
		}
		if full++; full == patience {
			return &Error{"SOL packet", fmt.Errorf("%w for %d packets", ErrUnavailable, full)}
		}
		// The BMC's buffer is full. What it prints meanwhile is stored.
		if b, err := c.session.conn.Receive(ctx, busyWait); err == nil {
			c.session.answer(b)
			c.arrived()
		} else if !errors.Is(err, ErrNoAnswer) {
			return &Error{"SOL packet", err}
		}
	}
	return nil
}

// busyWait is the pause before the next packet to a BMC that takes no
// characters.
const busyWait = 50 * time.Millisecond

// Control sends operations such as SOLBreak and waits for the BMC's
// acknowledgement.
func (c *Console) Control(ctx context.Context, operations byte) error {
	_, err := c.send(ctx, operations, nil)
	return err
}

// send sends a packet until it is acknowledged, and returns the number of
// accepted characters. A repeated packet has the same SOL number and another
// session sequence number (§15.11).
func (c *Console) send(ctx context.Context, operations byte, text []byte) (int, error) {
	p := solPacket{sequence: c.next(), status: operations, data: text}
	const step = "SOL packet"
	accepted := -1
	err := c.session.conn.roundTrip(ctx, step, func() ([]byte, error) {
		return c.packet(p)
	}, func(b []byte) (bool, error) {
		if _, ok := c.session.answer(b); ok {
			c.session.conn.drop("a message while SOL is waited for")
		}
		for _, q := range c.arrived() {
			if q.ack != p.sequence {
				continue
			}
			if accepted = int(q.accepted); accepted > len(text) {
				return false, fmt.Errorf("%w: %d of %d characters accepted", ErrMalformed, accepted, len(text))
			}
			if q.status&solUnavailable != 0 && accepted == 0 && len(text) > 0 {
				return false, ErrUnavailable
			}
			return true, nil
		}
		return false, nil
	})
	return accepted, err
}

func (c *Console) packet(p solPacket) ([]byte, error) {
	body := p.bytes()
	if change := c.session.conn.Tamper.Message; change != nil {
		body = change(body)
	}
	return c.session.encode(PayloadSOL, body)
}

// arrived acknowledges the packets with data that have arrived, stores their
// new characters, and returns all SOL packets.
func (c *Console) arrived() []solPacket {
	var all []solPacket
	for _, body := range c.session.sol {
		p, err := parseSOL(body)
		if err != nil {
			c.session.conn.drop("%v", err)
			continue
		}
		all = append(all, p)
		c.Ended = c.Ended || p.status&solDeactivated != 0
		if p.sequence == 0 {
			continue
		}
		if p.sequence != c.theirs {
			c.theirs, c.taken = p.sequence, 0
		}
		// A packet that comes again may have grown.
		if len(p.data) > c.taken {
			c.unread = append(c.unread, p.data[c.taken:]...)
			c.taken = len(p.data)
		}
		ack, err := c.packet(solPacket{ack: p.sequence, accepted: byte(len(p.data))})
		if err == nil {
			err = c.session.conn.sendTampered(ack)
		}
		if err != nil {
			c.session.conn.drop("acknowledgement: %v", err)
		}
	}
	c.session.sol = nil
	return all
}

// Read returns what the system has printed since the last Read. If that is
// nothing, it waits for d, and returns ErrNoAnswer if nothing arrives.
func (c *Console) Read(ctx context.Context, d time.Duration) ([]byte, error) {
	c.arrived()
	until := time.Now().Add(d)
	for len(c.unread) == 0 {
		b, err := c.session.conn.receive(ctx, until)
		if err != nil {
			return nil, &Error{"SOL packet", err}
		}
		c.session.answer(b)
		c.arrived()
		if c.Ended && len(c.unread) == 0 {
			return nil, &Error{"SOL packet", fmt.Errorf("%w: the payload is deactivated", ErrNoAnswer)}
		}
	}
	text := c.unread
	c.unread = nil
	return text, nil
}

// Close deactivates the payload (§24.2).
func (c *Console) Close(ctx context.Context) error {
	r := Request{NetFn: App, Command: 0x49, Name: "Deactivate Payload"}
	_, err := c.session.Do(ctx, r.with(byte(PayloadSOL), c.instance, 0, 0, 0, 0))
	return err
}
