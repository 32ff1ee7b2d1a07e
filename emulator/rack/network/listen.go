package network

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// Loopback is the device that the BMCs' own addresses are on. Linux routes all
// of 127.0.0.0/8 to it, so one socket serves every address. Bound to the device,
// the socket receives nothing from other networks.
const Loopback = "lo"

// Ports that BMCs usually have, and the first of the ports that are tried when
// the standard one is taken or not allowed.
const (
	httpsPort = 443
	httpsAlt  = 8443
	httpPort  = 80
	httpAlt   = 8080
	ipmiPort  = 623
	ipmiAlt   = 6230
)

const (
	altPorts    = 100 // ports tried from httpsAlt or ipmiAlt up
	rowTries    = 32  // attempts to find a row of free ports
	alternative = "give each BMC a port instead, with --listen 127.0.0.1:9000"
)

// Listener accepts TCP connections to BMCs.
type Listener struct {
	net.Listener
	// Admit returns the connection to serve, or nil when it has disposed of the
	// connection. It must be set before Accept is called.
	Admit func(c *net.TCPConn) net.Conn
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			_ = c.Close()
			continue
		}
		if c := l.Admit(tcp); c != nil {
			return c, nil
		}
	}
}

// Listen opens the TCP listeners of a rack's BMCs. The spec is that of
// rack.Config.Listen; last is the first port that the rack used the last time, or 0.
// skipped is the number of BMCs of other shards whose loopback addresses come first.
func Listen(ctx context.Context, spec string, last uint16, hosts, skipped int) ([]*Listener, Plan, error) {
	on := Plan{loopbackAddresses: true, hosts: hosts, skipped: skipped}
	if spec == "" {
		return listenLoopback(ctx, on, standardPorts(last))
	}
	host, port, err := net.SplitHostPort(spec)
	n, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil {
		return nil, Plan{}, fmt.Errorf("listen %q: use ADDRESS:FIRSTPORT or %s:PORT", spec, Loopback)
	}
	ports := []uint16{uint16(n)}
	if n == 0 && last != 0 { // any port will do, but clients know the last one
		ports = []uint16{last, 0}
	}
	if host == Loopback {
		return listenLoopback(ctx, on, ports)
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.IsUnspecified() {
		return nil, Plan{}, fmt.Errorf("listen %q: name one IP address at which clients find the BMCs", spec)
	}
	return listenPorts(ctx, addr.Unmap(), hosts, ports)
}

// standardPorts returns the ports to try in turn. A rack that used a port before
// keeps it, because clients have it in their configuration.
func standardPorts(last uint16) []uint16 {
	if last != 0 {
		return []uint16{last}
	}
	ports := []uint16{httpsPort}
	for i := range altPorts {
		ports = append(ports, uint16(httpsAlt+i))
	}
	return ports
}

// listenLoopback opens one listener for BMCs that each have their own loopback
// address.
func listenLoopback(ctx context.Context, p Plan, ports []uint16) ([]*Listener, Plan, error) {
	var bindErr error // why the socket could not be bound to the device
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		if err := c.Control(func(fd uintptr) { bindErr = bindToDevice(int(fd), Loopback) }); err != nil {
			return err
		}
		return bindErr
	}}
	var err error
	for _, port := range ports {
		var ln net.Listener
		ln, err = lc.Listen(ctx, "tcp4", fmt.Sprintf("0.0.0.0:%d", port))
		if err == nil {
			p.first = uint16(ln.Addr().(*net.TCPAddr).Port)
			return []*Listener{{Listener: ln}}, p, nil
		}
		if bindErr != nil {
			return nil, Plan{}, fmt.Errorf("bind a socket to the device %s: %w: %s", Loopback, bindErr, alternative)
		}
		if !portUnavailable(err) {
			break
		}
	}
	switch {
	case len(ports) == 1 && portUnavailable(err):
		return nil, Plan{}, fmt.Errorf("port %d for the BMCs: %w: stop the program that uses it, or %s", ports[0], err, alternative)
	case portUnavailable(err):
		return nil, Plan{}, fmt.Errorf("no port up to %d is free: %w: %s", ports[len(ports)-1], err, alternative)
	}
	return nil, Plan{}, fmt.Errorf("listen: %w", err)
}

// portUnavailable reports whether a port is in use or not allowed, so that
// another port may work.
func portUnavailable(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES)
}

// listenPorts opens one port of addr for each BMC, in a row that begins at one of
// the given first ports. A first port of 0 means any port.
func listenPorts(ctx context.Context, addr netip.Addr, hosts int, firsts []uint16) (lns []*Listener, p Plan, err error) {
	tries := firsts
	for len(firsts) > 0 && firsts[len(firsts)-1] == 0 && len(tries) < rowTries {
		tries = append(tries, 0)
	}
	for _, first := range tries {
		p = Plan{addr: addr, first: first, hosts: hosts}
		if lns, err = listenRow(ctx, &p); err == nil {
			return lns, p, nil
		}
		if !portUnavailable(err) {
			break
		}
	}
	return nil, Plan{}, fmt.Errorf("%d ports in a row for the BMCs: %w", hosts, err)
}

// listenRow opens the ports that the plan assigns. A plan whose first port is 0
// gets the port that the system chose for the first BMC.
func listenRow(ctx context.Context, p *Plan) (lns []*Listener, err error) {
	defer func() {
		if err != nil {
			for _, ln := range lns {
				err = errors.Join(err, ln.Close())
			}
		}
	}()
	for i := range p.hosts {
		if int(p.first)+i > math.MaxUint16 {
			return lns, fmt.Errorf("port %d: %w", int(p.first)+i, syscall.EADDRINUSE)
		}
		ln, err := new(net.ListenConfig).Listen(ctx, "tcp", p.Address(i).String())
		if err != nil {
			return lns, err
		}
		lns = append(lns, &Listener{Listener: ln})
		if p.first == 0 {
			p.first = uint16(ln.Addr().(*net.TCPAddr).Port)
		}
	}
	return lns, nil
}
