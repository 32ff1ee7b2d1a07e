package network

import (
	"net"
	"sync"
)

// HandedListener is a net.Listener for connections that another listener has
// accepted. BMCs that speak HTTP without TLS on the shared sockets get their
// connections through it.
type HandedListener struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewHandedListener returns a listener that reports addr as its address.
func NewHandedListener(addr net.Addr) *HandedListener {
	return &HandedListener{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Hand passes a connection to Accept. It returns false when the listener is
// closed; the caller keeps the connection then.
func (l *HandedListener) Hand(c net.Conn) bool {
	select {
	case l.conns <- c:
		return true
	case <-l.closed:
		return false
	}
}

// Accept implements net.Listener.
func (l *HandedListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *HandedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *HandedListener) Addr() net.Addr { return l.addr }
