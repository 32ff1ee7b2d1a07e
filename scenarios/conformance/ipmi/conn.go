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

// Conn is a UDP socket to one BMC. Its fields may be changed at any time by
// who uses it. It and its sessions are for one goroutine.
type Conn struct {
	Timeout time.Duration // of one try; 0: 1 s
	Tries   int           // of each request; 0: 4
	Tamper  Tamper

	socket   net.Conn
	sequence byte     // rqSeq of the last message, 6 bits
	tag      byte     // of the last message of a handshake
	sent     []byte   // the last packet that was finished, before Tamper.Wire
	dropped  []string // why packets were not taken since the last request, the first few
}

const (
	defaultTimeout = time.Second
	defaultTries   = 4
	maxDatagram    = 65535
	maxDropped     = 8
)

// Dial makes a socket to host:port. Nothing is sent.
func Dial(ctx context.Context, address string) (*Conn, error) {
	var d net.Dialer
	socket, err := d.DialContext(ctx, "udp", address)
	if err != nil {
		return nil, fmt.Errorf("ipmi: %w", err)
	}
	return &Conn{socket: socket}, nil
}

// Close closes the socket. The BMC learns nothing of it.
func (c *Conn) Close() error { return c.socket.Close() }

// Sent is the last packet that was made, as it was before Tamper.Wire: for who
// wants to send it once more with Send.
func (c *Conn) Sent() []byte { return bytes.Clone(c.sent) }

// Send sends a datagram as it is, past Tamper.
func (c *Conn) Send(datagram []byte) error {
	if _, err := c.socket.Write(datagram); err != nil {
		return fmt.Errorf("ipmi: send: %w", err)
	}
	return nil
}

// put sends a packet through Tamper.Wire.
func (c *Conn) put(datagram []byte) error {
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

// Receive waits for the next datagram, whatever it is, at most for d.
// ErrNoAnswer says that none came.
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

// drop notes why a packet was not taken.
func (c *Conn) drop(format string, args ...any) {
	if len(c.dropped) < maxDropped {
		c.dropped = append(c.dropped, fmt.Sprintf(format, args...))
	}
}

// exchange sends what build gives until take has its answer. build is called
// anew for each try: a repeated command has another session sequence number. An
// error of take ends the exchange; to leave a packet to nobody it returns
// false.
func (c *Conn) exchange(ctx context.Context, step string, build func() ([]byte, error), take func([]byte) (bool, error)) error {
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
		if err := c.put(datagram); err != nil {
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

// await shows datagrams to take until one is the last.
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

// nextSequence is the next rqSeq.
func (c *Conn) nextSequence() byte {
	c.sequence = (c.sequence + 1) & 0x3F
	return c.sequence
}

// nextTag is a message tag that the last handshake messages did not have.
func (c *Conn) nextTag() byte {
	c.tag++
	return c.tag
}

// request makes a message of a request.
func (c *Conn) request(r Request) message {
	return message{
		To: addressBMC, ToLUN: r.LUN, NetFn: r.NetFn, From: addressConsole,
		Sequence: c.nextSequence(), Command: r.Command, Data: r.Data,
	}
}

// plain makes the payload of a message, through Tamper.Message.
func (c *Conn) plain(m message) ([]byte, error) {
	b, err := m.AppendBinary(nil)
	if err == nil && c.Tamper.Message != nil {
		b = c.Tamper.Message(b)
	}
	return b, err
}

// result splits the data of an answer: what follows the completion code, and
// an error if that is not 00h.
func result(step string, data []byte) ([]byte, error) {
	if code := Code(data[0]); code != OK {
		return data[1:], &Error{step, code}
	}
	return data[1:], nil
}
