package ipmi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// Conn is a UDP socket to one BMC. Its fields may be changed between requests.
// A Conn and its sessions are for one goroutine.
type Conn struct {
	Timeout time.Duration // time limit of one try; 0: 1 s
	Tries   int           // tries of each request; 0: 4
	Tamper  Tamper

	socket   net.Conn
	sequence byte     // rqSeq of the last message, 6 bits
	tag      byte     // message tag of the last message of a handshake
	sent     []byte   // the last packet that was finished, before Tamper.Wire
	dropped  []string // why packets were not taken since the last request, the first few
}

const (
	defaultTimeout = time.Second
	defaultTries   = 4
	maxDatagram    = 65535
	maxDropped     = 8
)

// Dial opens a socket to host:port. It sends nothing.
func Dial(ctx context.Context, address string) (*Conn, error) {
	var d net.Dialer
	socket, err := d.DialContext(ctx, "udp", address)
	if err != nil {
		return nil, fmt.Errorf("ipmi: %w", err)
	}
	return &Conn{socket: socket}, nil
}

// Close closes the socket. It sends nothing to the BMC.
func (c *Conn) Close() error { return c.socket.Close() }

// Sent returns the last packet as it was before Tamper.Wire, for a caller that
// sends it again with Send.
func (c *Conn) Sent() []byte { return bytes.Clone(c.sent) }

// Send sends a datagram unchanged: Tamper does not apply.
func (c *Conn) Send(datagram []byte) error {
	if _, err := c.socket.Write(datagram); err != nil {
		return fmt.Errorf("ipmi: send: %w", err)
	}
	return nil
}

// sendTampered sends a packet after Tamper.Wire has changed it.
func (c *Conn) sendTampered(datagram []byte) error {
	c.sent = datagram
	if c.Tamper.Wire == nil {
		return c.Send(datagram)
	}
	for _, d := range c.Tamper.Wire(bytes.Clone(datagram)) {
		if err := c.Send(d); err != nil {
			return err
		}
	}
	return nil
}

// Receive waits at most d for the next datagram of any kind. It returns
// ErrNoAnswer if none arrives.
func (c *Conn) Receive(ctx context.Context, d time.Duration) ([]byte, error) {
	return c.receive(ctx, time.Now().Add(d))
}

func (c *Conn) receive(ctx context.Context, until time.Time) ([]byte, error) {
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	stop := context.AfterFunc(ctx, func() { _ = c.socket.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := c.socket.SetReadDeadline(until); err != nil {
		return nil, fmt.Errorf("ipmi: receive: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	buf := make([]byte, maxDatagram)
	n, err := c.socket.Read(buf)
	switch {
	case err == nil:
		return buf[:n:n], nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, ErrNoAnswer
	}
	return nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
}

// drop records why a packet was ignored, for error texts.
func (c *Conn) drop(format string, args ...any) {
	if len(c.dropped) < maxDropped {
		c.dropped = append(c.dropped, fmt.Sprintf(format, args...))
	}
}

// roundTrip sends the packet that build returns until take accepts the
// response. It calls build for each try, since a repeated command has another
// session sequence number. take returns false to ignore a packet; its error
// ends the round trip.
func (c *Conn) roundTrip(ctx context.Context, step string, build func() ([]byte, error), take func([]byte) (bool, error)) error {
	c.dropped = nil
	tries, timeout := c.Tries, c.Timeout
	if tries <= 0 {
		tries = defaultTries
	}
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	for range tries {
		datagram, err := build()
		if err != nil {
			return &Error{step, err}
		}
		if err := c.sendTampered(datagram); err != nil {
			return &Error{step, err}
		}
		done, err := c.await(ctx, time.Now().Add(timeout), take)
		if done {
			return nil
		}
		if !errors.Is(err, ErrNoAnswer) {
			return &Error{step, err}
		}
		if errors.Is(err, net.ErrClosed) {
			return &Error{step, err}
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			c.drop("%v", err) // perhaps it restarts
		}
	}
	err := fmt.Errorf("%w in %d tries of %s", ErrNoAnswer, tries, timeout)
	if len(c.dropped) > 0 {
		err = fmt.Errorf("%w (not taken: %s)", err, strings.Join(c.dropped, "; "))
	}
	return &Error{step, err}
}

// await passes datagrams to take until it accepts one or the time is over.
func (c *Conn) await(ctx context.Context, until time.Time, take func([]byte) (bool, error)) (bool, error) {
	for {
		b, err := c.receive(ctx, until)
		if err != nil {
			return false, err
		}
		done, err := take(b)
		if done || err != nil {
			return done && err == nil, err
		}
	}
}

// nextSequence returns the next rqSeq.
func (c *Conn) nextSequence() byte {
	c.sequence = (c.sequence + 1) & 0x3F
	return c.sequence
}

// nextTag returns a message tag that the last messages of a handshake did not
// have.
func (c *Conn) nextTag() byte {
	c.tag++
	return c.tag
}

// request returns the LAN message of a request.
func (c *Conn) request(r Request) message {
	return message{
		To: addressBMC, ToLUN: r.LUN, NetFn: r.NetFn, From: addressConsole,
		Sequence: c.nextSequence(), Command: r.Command, Data: r.Data,
	}
}

// payload encodes a message and applies Tamper.Message.
func (c *Conn) payload(m message) ([]byte, error) {
	b, err := m.AppendBinary(nil)
	if err == nil && c.Tamper.Message != nil {
		b = c.Tamper.Message(b)
	}
	return b, err
}

// result returns the data that follows the completion code, and an error if
// the code is not 00h.
func result(step string, data []byte) ([]byte, error) {
	if code := Code(data[0]); code != OK {
		return data[1:], &Error{step, code}
	}
	return data[1:], nil
}
