package network

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// maxSilent bounds the connections that are held open and never answered.
const maxSilent = 1000

// Conn is a connection to a BMC.
type Conn struct {
	*net.TCPConn
	Host int       // index of the BMC
	TLS  fault.TLS // how the handshake fails; "" when it does not
	of   *Connections

	mu               sync.Mutex
	answering        bool // a request other than GET or HEAD is being answered
	responding       bool // its response is on the way to the client
	resetAfterAnswer bool // the connection is reset when the response is there
	coalescer        writeCoalescer
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.of.forget(c)
	return c.TCPConn.Close()
}

// Reset ends a connection at once with a TCP RST, below TLS.
func Reset(c net.Conn) {
	for {
		wrapped, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = wrapped.NetConn()
	}
	if tcp, ok := c.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0) // fails on a connection that is closed already
	}
	_ = c.Close()
}

// Connections are the open connections to the BMCs of a rack. The zero value is
// ready to use.
type Connections struct {
	mu     sync.Mutex
	open   map[*Conn]struct{}
	silent map[*Conn]struct{} // those of open that nobody answers
	ended  bool               // no further silent connections are held
}

// Add wraps a connection to the BMC of that index and tracks it until it is
// closed.
func (cs *Connections) Add(tcp *net.TCPConn, host int) *Conn {
	c := &Conn{TCPConn: tcp, Host: host, of: cs}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.open == nil {
		cs.open, cs.silent = map[*Conn]struct{}{}, map[*Conn]struct{}{}
	}
	cs.open[c] = struct{}{}
	return c
}

// HoldSilent keeps a connection open that is never answered. It returns false
// when too many of them are held already.
func (cs *Connections) HoldSilent(c *Conn) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.ended || len(cs.silent) >= maxSilent {
		return false
	}
	cs.silent[c] = struct{}{}
	return true
}

func (cs *Connections) forget(c *Conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.open, c)
	delete(cs.silent, c)
}

// Reset resets the connections to a BMC. A response that is on its way arrives
// first: a client that asks for a BMC reset gets its answer.
func (cs *Connections) Reset(host int) {
	cs.ResetAt(host, false, func(netip.AddrPort) bool { return true })
}

// ResetAt resets the connections to a BMC that came to the given addresses. When
// graceful is true, requests that are being answered get their answer first.
func (cs *Connections) ResetAt(host int, graceful bool, at func(netip.AddrPort) bool) {
	cs.reset(func(c *Conn) bool {
		if c.Host != host || !at(c.LocalAddr().(*net.TCPAddr).AddrPort()) {
			return false
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.resetAfterAnswer = c.responding || graceful && c.answering
		return !c.resetAfterAnswer
	}, func() map[*Conn]struct{} { return cs.open })
}

// ResetSilent resets the connections that nobody answers, and holds no further
// ones.
func (cs *Connections) ResetSilent() {
	cs.mu.Lock()
	cs.ended = true
	cs.mu.Unlock()
	cs.reset(func(*Conn) bool { return true }, func() map[*Conn]struct{} { return cs.silent })
}

func (cs *Connections) reset(which func(*Conn) bool, of func() map[*Conn]struct{}) {
	cs.mu.Lock()
	var all []*Conn
	for c := range of() { // connections are independent: their order is not seen
		if which(c) {
			all = append(all, c)
		}
	}
	cs.mu.Unlock()
	for _, c := range all {
		Reset(c)
	}
}

// RequestBegins notes that a request is being answered. A GET is not counted: a
// stream of events is a GET without an end. A nil Conn is allowed.
func (c *Conn) RequestBegins(method string) {
	if c == nil || method == http.MethodGet {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answering = true
}

// ResponseBegins notes that the response to a request is on its way. A nil Conn is
// allowed.
func (c *Conn) ResponseBegins() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.responding = true
}

// responseEnds notes that the response was sent.
func (c *Conn) responseEnds() {
	c.mu.Lock()
	c.answering, c.responding = false, false
	reset := c.resetAfterAnswer
	c.mu.Unlock()
	if reset {
		Reset(c)
	}
}

// connKey is the context key of a request's connection.
type connKey struct{}

// WithConn adds a connection to the context of its requests. It is an
// http.Server.ConnContext.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if of := below(c); of != nil {
		return context.WithValue(ctx, connKey{}, of)
	}
	return ctx
}

// ConnOf returns the connection of a request, or nil when the request did not
// come over one.
func ConnOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// below returns the Conn below other connections such as TLS; nil when there is
// none.
func below(c net.Conn) *Conn {
	for {
		switch is := c.(type) {
		case *Conn:
			return is
		case interface{ NetConn() net.Conn }:
			c = is.NetConn()
		default:
			return nil
		}
	}
}

// ConnState follows what an http.Server does with a connection. It is an
// http.Server.ConnState.
func ConnState(c net.Conn, s http.ConnState) {
	if s != http.StateIdle {
		return
	}
	if of := below(c); of != nil {
		of.responseEnds()
	}
}
