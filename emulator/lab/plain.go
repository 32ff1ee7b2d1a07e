package lab

import (
	"net"
	"sync"
)

// plain takes the connections to BMCs that speak HTTP without TLS: the sockets
// are those of all others.
type plain struct {
	at    net.Addr
	came  chan net.Conn
	ended chan struct{}
	once  sync.Once
}

func newPlain(at net.Addr) *plain {
	return &plain{at: at, came: make(chan net.Conn), ended: make(chan struct{})}
}

// hand gives a connection to whoever serves; false when nobody does any longer.
func (p *plain) hand(c net.Conn) bool {
	select {
	case p.came <- c:
		return true
	case <-p.ended:
		return false
	}
}

// Accept implements net.Listener.
func (p *plain) Accept() (net.Conn, error) {
	select {
	case c := <-p.came:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *plain) Close() error {
	p.once.Do(func() { close(p.ended) })
	return nil
}

// Addr implements net.Listener.
func (p *plain) Addr() net.Addr { return p.at }
