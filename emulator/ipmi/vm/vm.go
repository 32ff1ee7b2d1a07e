// Package vm lets a virtual machine reach a BMC that is outside of it, over the
// byte stream that QEMU's ipmi-bmc-extern and OpenIPMI's simulator speak: the
// machine's system interface (KCS, say) is at one end, the BMC at the other. It
// owns that stream and what either end says of itself; it does not know what
// the commands mean, and opens no socket.
package vm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// BMC is what answers.
type BMC interface {
	// Ask carries out a command that came over the system interface. The answer
	// is without the completion code; it is false when there is none.
	Ask(ctx context.Context, lun, fn, cmd byte, data []byte) (code byte, answer []byte, ok bool)
}

// Commands of the stream itself.
const (
	version      = 0xff // a byte with the version follows
	capabilities = 0x08 // a byte with what the machine can do follows
	protocol     = 1
)

// Op is something that the BMC asks of the machine. Values are those of the
// stream.
type Op byte

// The operations.
const (
	NoAttention Op = 0x00 // nothing waits for system software
	Attention   Op = 0x01
	PowerOff    Op = 0x03
	Reset       Op = 0x04
	Interrupt   Op = 0x07 // that cannot be masked
	Shutdown    Op = 0x09 // in good order
)

// can is the capability that an operation needs.
var can = map[Op]byte{NoAttention: 0x10, Attention: 0x10, PowerOff: 0x01, Reset: 0x02, Interrupt: 0x08, Shutdown: 0x20}

// Link is the connection to one machine. Its methods are safe for concurrent
// use.
type Link struct {
	conn io.ReadWriter
	// Restarted, when not nil, is called when the machine was reset. Set it
	// before Serve.
	Restarted func()

	mu  sync.Mutex
	can byte // capabilities that the machine has told
}

// New makes a link of a stream.
func New(conn io.ReadWriter) *Link { return &Link{conn: conn} }

// ErrCannot means that the machine cannot do what it is asked for.
var ErrCannot = errors.New("vm: the machine has not said that it can do this")

// Do asks something of the machine.
func (l *Link) Do(op Op) error {
	l.mu.Lock()
	able := l.can&can[op] != 0
	l.mu.Unlock()
	if !able {
		return fmt.Errorf("%w: operation %02X", ErrCannot, byte(op))
	}
	return l.send(endCommand, byte(op))
}

func (l *Link) send(end byte, body ...byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.conn.Write(appendFrame(nil, end, body...)); err != nil {
		return fmt.Errorf("vm: %w", err)
	}
	return nil
}

// Serve answers until the stream ends, which is no error. Whoever made the
// stream closes it.
func (l *Link) Serve(ctx context.Context, b BMC) error {
	if err := l.send(endCommand, version, protocol); err != nil {
		return err
	}
	r, buf := bufio.NewReader(l.conn), make([]byte, 0, maxFrame)
	for {
		f, err := readFrame(r, buf)
		switch {
		case errors.Is(err, errFrame):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("vm: %w", err)
		case f.end == endCommand:
			l.told(f.body)
			continue
		}
		if err := l.answer(ctx, b, f.body); err != nil {
			return err
		}
	}
}

// told is what the machine says of itself. What it says beside that is of a
// later version, and changes nothing here.
func (l *Link) told(body []byte) {
	switch {
	case len(body) >= 2 && body[0] == capabilities:
		l.mu.Lock()
		l.can = body[1]
		l.mu.Unlock()
	case len(body) == 1 && Op(body[0]) == Reset && l.Restarted != nil:
		l.Restarted()
	}
}

// answer answers a message: its number, network function and LUN, command, data
// and a checksum over all. One that is damaged has no answer, as one that the
// BMC leaves without: the machine's side has a time-out.
func (l *Link) answer(ctx context.Context, b BMC, m []byte) error {
	const least = 4
	if len(m) < least || checksum(m) != 0 {
		return nil
	}
	number, fn, lun, cmd, data := m[0], m[1]>>2, m[1]&3, m[2], m[3:len(m)-1]
	if fn&1 != 0 { // an answer, to nothing that was asked
		return nil
	}
	code, answer, ok := b.Ask(ctx, lun, fn, cmd, data)
	if !ok {
		return nil
	}
	out := append([]byte{number, (fn|1)<<2 | lun, cmd, code}, answer...)
	return l.send(endMessage, append(out, checksum(out))...)
}
