// Package vm connects a virtual machine to an external BMC over the byte stream
// of QEMU's ipmi-bmc-extern and OpenIPMI's simulator: the machine's system
// interface (KCS, for example) is at one end, the BMC at the other. It
// implements the stream and its own commands; it does not know what IPMI
// commands mean, and opens no socket.
package vm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// BMC executes commands.
type BMC interface {
	// Execute executes a command from the system interface. answer does not
	// include the completion code; ok is false when there is no response.
	Execute(ctx context.Context, lun, fn, cmd byte, data []byte) (code byte, answer []byte, ok bool)
}

// Commands of the stream protocol.
const (
	version      = 0xff // followed by the version
	capabilities = 0x08 // followed by the machine's capabilities
	protocol     = 1
)

// Op is an operation that the BMC asks of the machine; the values are the
// protocol's.
type Op byte

// The operations.
const (
	NoAttention Op = 0x00 // no message waits for system software
	Attention   Op = 0x01
	PowerOff    Op = 0x03
	Reset       Op = 0x04
	Interrupt   Op = 0x07 // NMI
	Shutdown    Op = 0x09 // graceful
)

// requiredCapability maps operations to the capability bits that they need.
var requiredCapability = map[Op]byte{NoAttention: 0x10, Attention: 0x10, PowerOff: 0x01, Reset: 0x02, Interrupt: 0x08, Shutdown: 0x20}

// Link is the connection to one machine. Its methods are safe for concurrent
// use.
type Link struct {
	conn io.ReadWriter
	// Restarted, when not nil, is called after the machine was reset. Set it
	// before Serve.
	Restarted func()

	mu           sync.Mutex
	capabilities byte // as the machine has announced
}

// New returns a link over a stream.
func New(conn io.ReadWriter) *Link { return &Link{conn: conn} }

// ErrUnsupported means that the machine lacks the capability for an operation.
var ErrUnsupported = errors.New("vm: the machine has not said that it can do this")

// Do asks the machine for an operation.
func (l *Link) Do(op Op) error {
	l.mu.Lock()
	able := l.capabilities&requiredCapability[op] != 0
	l.mu.Unlock()
	if !able {
		return fmt.Errorf("%w: operation %02X", ErrUnsupported, byte(op))
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

// Serve answers requests until the stream ends, which is not an error. The
// caller closes the stream.
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
			l.receiveCommand(f.body)
			continue
		}
		if err := l.answer(ctx, b, f.body); err != nil {
			return err
		}
	}
}

// receiveCommand handles a command of the machine. Unknown ones belong to later
// versions and are ignored.
func (l *Link) receiveCommand(body []byte) {
	switch {
	case len(body) >= 2 && body[0] == capabilities:
		l.mu.Lock()
		l.capabilities = body[1]
		l.mu.Unlock()
	case len(body) == 1 && Op(body[0]) == Reset && l.Restarted != nil:
		l.Restarted()
	}
}

// answer answers a message: sequence number, network function and LUN, command,
// data, checksum. A damaged message gets no response, nor does one that the BMC
// does not answer: the machine's side times out.
func (l *Link) answer(ctx context.Context, b BMC, m []byte) error {
	const least = 4
	if len(m) < least || checksum(m) != 0 {
		return nil
	}
	number, fn, lun, cmd, data := m[0], m[1]>>2, m[1]&3, m[2], m[3:len(m)-1]
	if fn&1 != 0 { // a response to nothing
		return nil
	}
	code, answer, ok := b.Execute(ctx, lun, fn, cmd, data)
	if !ok {
		return nil
	}
	out := append([]byte{number, (fn|1)<<2 | lun, cmd, code}, answer...)
	return l.send(endMessage, append(out, checksum(out))...)
}
