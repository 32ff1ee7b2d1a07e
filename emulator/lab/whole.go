package lab

import (
	"context"
	"errors"
	"sync"
	"time"
)

// An answer of more than a few kilobytes leaves the HTTP server in parts, over
// TLS each in a record of its own. Where all of it is there at once, the
// connection holds the parts until the server is done with the request, and
// sends them as one: the system is called once, and the client woken once.

// maxWhole is how much of an answer is held, in bytes; one that is longer goes on
// its way in parts of about that size.
const maxWhole = 16 << 10

// whole is what a connection holds of an answer.
type whole struct {
	coming bool    // the parts that are written belong to one answer
	held   *[]byte // nil: none yet
}

// rooms are buffers for answers: a connection that waits has none.
var rooms = sync.Pool{New: func() any {
	b := make([]byte, 0, maxWhole)
	return &b
}}

// take holds a part; false when there is no room for it.
func (w *whole) take(b []byte) bool {
	if !w.coming || len(b) > maxWhole {
		return false
	}
	if w.held == nil {
		w.held = rooms.Get().(*[]byte)
	}
	if len(*w.held)+len(b) > maxWhole {
		return false
	}
	*w.held = append(*w.held, b...)
	return true
}

// give gives away what is held; nil when that is nothing.
func (w *whole) give() *[]byte {
	held := w.held
	w.held = nil
	return held
}

// inWhole tells the connection of a request that its answer is there as a whole.
func inWhole(ctx context.Context) {
	if c := connOf(ctx); c != nil {
		c.mu.Lock()
		c.whole.coming = true
		c.mu.Unlock()
	}
}

// Write implements net.Conn.
func (c *bmcConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	if c.whole.take(b) {
		c.mu.Unlock()
		return len(b), nil
	}
	held := c.whole.give()
	c.mu.Unlock()
	if err := c.send(held); err != nil {
		return 0, err
	}
	return c.TCPConn.Write(b)
}

// send sends what was held. It does not hold c.mu: the client may be slow.
func (c *bmcConn) send(held *[]byte) error {
	if held == nil {
		return nil
	}
	_, err := c.TCPConn.Write(*held)
	*held = (*held)[:0]
	rooms.Put(held)
	return err
}

// done sends what is held: no more of the answer comes.
func (c *bmcConn) done() error {
	c.mu.Lock()
	c.whole.coming = false
	held := c.whole.give()
	c.mu.Unlock()
	return c.send(held)
}

// SetWriteDeadline implements net.Conn. The server sets one when it is done with
// a request.
func (c *bmcConn) SetWriteDeadline(t time.Time) error {
	return errors.Join(c.done(), c.TCPConn.SetWriteDeadline(t))
}

// SetDeadline implements net.Conn. The server sets one before it gives a
// connection away.
func (c *bmcConn) SetDeadline(t time.Time) error {
	return errors.Join(c.done(), c.TCPConn.SetDeadline(t))
}

// CloseWrite ends what the connection sends.
func (c *bmcConn) CloseWrite() error {
	return errors.Join(c.done(), c.TCPConn.CloseWrite())
}
