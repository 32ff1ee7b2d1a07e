package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/metalab-dev/metalab/emulator/lab/rack"
)

// loopback is the device that the BMCs' own addresses are on. Linux routes all
// of 127.0.0.0/8 there, so that one socket serves every address; bound to the
// device it hears of nothing else.
const loopback = "lo"

const (
	httpsPort   = 443
	httpsAlt    = 8443
	altPorts    = 100 // tried from httpsAlt up
	blockTries  = 32  // for a row of free ports
	perBlock    = 254 // .0 and .255 of a /24 look like its network and its broadcast
	alternative = "give each BMC a port instead, with --listen 127.0.0.1:9000"
)

// plan says which address each BMC has.
type plan struct {
	own   bool       // each has its own loopback address
	addr  netip.Addr // of all, if not own
	first uint16     // port: of all if own, else of the first, the others follow
	hosts int
}

// address is where the i-th BMC is, counted from 0.
func (p plan) address(i int) netip.AddrPort {
	if !p.own {
		return netip.AddrPortFrom(p.addr, p.first+uint16(i))
	}
	block := i / perBlock
	a := netip.AddrFrom4([4]byte{127, byte(64 + block/256), byte(block % 256), byte(i%perBlock + 1)})
	return netip.AddrPortFrom(a, p.first)
}

// index is the BMC that is there; false when none is.
func (p plan) index(at netip.AddrPort) (int, bool) {
	addr := at.Addr().Unmap()
	i := int(at.Port()) - int(p.first)
	if p.own {
		if !addr.Is4() || i != 0 {
			return 0, false
		}
		b := addr.As4()
		i = (int(b[1])-64)*256*perBlock + int(b[2])*perBlock + int(b[3]) - 1
	}
	if i < 0 || i >= p.hosts || p.address(i) != netip.AddrPortFrom(addr, at.Port()) {
		return 0, false
	}
	return i, true
}

// listenAs is what a rack says of it, as Config.Listen says it.
func listenAs(l rack.Listen) (string, error) {
	p, err := l.Parse()
	switch {
	case err != nil:
		return "", fmt.Errorf("lab: listen: %w", err)
	case p.Addr.IsValid():
		return netip.AddrPortFrom(p.Addr, p.Port).String(), nil
	case p.Port != 0:
		return fmt.Sprintf("%s:%d", loopback, p.Port), nil
	}
	return "", nil
}

// listen opens what the BMCs of a lab listen on, as Config.Listen says. last is
// the first port of the last time, 0 if there is none.
func listen(ctx context.Context, spec string, last uint16, hosts int) ([]net.Listener, plan, error) {
	if spec == "" {
		return listenOwn(ctx, hosts, standardPorts(last))
	}
	host, port, err := net.SplitHostPort(spec)
	n, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil {
		return nil, plan{}, fmt.Errorf("lab: listen %q: use ADDRESS:FIRSTPORT or %s:PORT", spec, loopback)
	}
	ports := []uint16{uint16(n)}
	if n == 0 && last != 0 { // any port will do, but that one is known
		ports = []uint16{last, 0}
	}
	if host == loopback {
		return listenOwn(ctx, hosts, ports)
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.IsUnspecified() {
		return nil, plan{}, fmt.Errorf("lab: listen %q: name one IP address, at which clients find the BMCs", spec)
	}
	return listenEach(ctx, addr.Unmap(), hosts, ports)
}

// standardPorts are the ports to try in turn. BMCs that had an address once
// keep it: clients have it in their configuration.
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

// listenOwn opens one socket for BMCs that each have their own address.
func listenOwn(ctx context.Context, hosts int, ports []uint16) ([]net.Listener, plan, error) {
	var bound error // why the socket could not be bound to the device
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		if err := c.Control(func(fd uintptr) { bound = bindToDevice(int(fd), loopback) }); err != nil {
			return err
		}
		return bound
	}}
	var err error
	for _, port := range ports {
		var ln net.Listener
		ln, err = lc.Listen(ctx, "tcp4", fmt.Sprintf("0.0.0.0:%d", port))
		if err == nil {
			p := plan{own: true, first: uint16(ln.Addr().(*net.TCPAddr).Port), hosts: hosts}
			return []net.Listener{&bmcListener{Listener: ln}}, p, nil
		}
		if bound != nil {
			return nil, plan{}, fmt.Errorf("lab: a socket for the device %s alone: %w: %s", loopback, bound, alternative)
		}
		if !taken(err) {
			break
		}
	}
	switch {
	case len(ports) == 1 && taken(err):
		return nil, plan{}, fmt.Errorf("lab: port %d, at which the BMCs shall be: %w: end what holds it, or %s", ports[0], err, alternative)
	case taken(err):
		return nil, plan{}, fmt.Errorf("lab: no port up to %d is free: %w: %s", ports[len(ports)-1], err, alternative)
	}
	return nil, plan{}, fmt.Errorf("lab: listen: %w", err)
}

// taken says whether another port may do: this one is in use or not allowed.
func taken(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES)
}

// listenEach opens a port of addr for each BMC, in a row from one of the given
// first ports; 0 stands for any.
func listenEach(ctx context.Context, addr netip.Addr, hosts int, firsts []uint16) (lns []net.Listener, p plan, err error) {
	tries := firsts
	for len(firsts) > 0 && firsts[len(firsts)-1] == 0 && len(tries) < blockTries {
		tries = append(tries, 0)
	}
	for _, first := range tries {
		p = plan{addr: addr, first: first, hosts: hosts}
		if lns, err = listenRow(ctx, &p); err == nil {
			return lns, p, nil
		}
		if !taken(err) {
			break
		}
	}
	return nil, plan{}, fmt.Errorf("lab: %d ports in a row for the BMCs: %w", hosts, err)
}

func listenRow(ctx context.Context, p *plan) (lns []net.Listener, err error) {
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
		ln, err := new(net.ListenConfig).Listen(ctx, "tcp", p.address(i).String())
		if err != nil {
			return lns, err
		}
		lns = append(lns, ln)
		if p.first == 0 {
			p.first = uint16(ln.Addr().(*net.TCPAddr).Port)
		}
	}
	for i := range lns {
		lns[i] = &bmcListener{Listener: lns[i]}
	}
	return lns, nil
}

// bmcListener resets connections to addresses that are no BMC's, as hosts do
// that nobody listens on.
type bmcListener struct {
	net.Listener
	admit func(c *net.TCPConn) net.Conn // nil to see no more of it; set before Accept
}

// Accept implements net.Listener.
func (l *bmcListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := c.(*net.TCPConn)
		if ok {
			if c := l.admit(tcp); c != nil {
				return c, nil
			}
			continue
		}
		_ = c.Close() // a connection that nobody has
	}
}
