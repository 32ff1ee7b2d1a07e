package loadbalancer

import (
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// forwarder is the load balancer of one Cluster.
type forwarder struct {
	host     netip.Addr
	listener net.Listener
	stop     context.CancelFunc // cancels dials that have not ended
	dial     func(context.Context, Backend) (net.Conn, error)
	group    sync.WaitGroup

	mu          sync.Mutex
	closed      bool
	backends    []Backend
	next        int // counts connections
	connections map[*connection]bool
}

// connection is one of a client, with that to the backend once it is there.
type connection struct {
	client, server net.Conn
	to             Backend
}

// set replaces the backends, and closes the connections to those that are gone.
func (x *forwarder) set(backends []Backend) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.backends = slices.Clone(backends)
	for c := range x.connections {
		if c.server != nil && !slices.Contains(x.backends, c.to) {
			c.server.Close()
			c.client.Close()
		}
	}
}

func (x *forwarder) close() {
	x.stop()
	x.listener.Close()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	for c := range x.connections {
		c.client.Close()
		if c.server != nil {
			c.server.Close()
		}
	}
}

// serve accepts connections until the listener is closed, and returns when all have ended.
func (x *forwarder) serve(ctx context.Context) {
	defer x.group.Wait()
	for {
		client, err := x.listener.Accept()
		if err != nil {
			return
		}
		c := &connection{client: client}
		if !x.add(c) {
			client.Close()
			continue
		}
		x.group.Go(func() {
			defer x.remove(c)
			if x.connect(ctx, c) {
				c.forward()
			}
		})
	}
}

// add notes a connection, and reports whether there may be one more.
func (x *forwarder) add(c *connection) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || len(x.connections) >= maxConnections {
		return false
	}
	x.connections[c] = true
	return true
}

func (x *forwarder) remove(c *connection) {
	c.client.Close()
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.connections, c)
}

// connect connects to the first backend, from the next in turn, that answers.
func (x *forwarder) connect(ctx context.Context, c *connection) bool {
	x.mu.Lock()
	all, first := x.backends, x.next // set replaces the slice
	x.next++
	x.mu.Unlock()
	for i := range all {
		to := all[(first+i)%len(all)]
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		server, err := x.dial(ctx, to)
		cancel()
		if err != nil {
			continue
		}
		if x.assign(c, server, to) {
			return true
		}
		server.Close()
	}
	return false
}

// assign gives a connection its backend, unless that has gone meanwhile.
func (x *forwarder) assign(c *connection, server net.Conn, to Backend) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || !slices.Contains(x.backends, to) {
		return false
	}
	c.server, c.to = server, to
	return true
}

// forward copies both ways until both sides have ended.
func (c *connection) forward() {
	defer c.server.Close()
	var group sync.WaitGroup
	group.Go(func() { pipe(c.server, c.client) })
	pipe(c.client, c.server)
	group.Wait()
}

// pipe copies until from ends. The other direction may go on (RFC 9293, §3.6).
func pipe(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite() // the other side has closed it already
		return
	}
	to.Close()
	from.Close()
}
