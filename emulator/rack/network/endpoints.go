package network

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// Endpoint says what answers at an address and port.
type Endpoint struct {
	Host  int  // index of the BMC
	Plain bool // HTTP without TLS, which redirects to HTTPS
}

// Endpoints are the addresses and ports of all BMCs for one transport. A BMC
// whose network settings nobody has changed is where the plan puts it and costs
// nothing here. A BMC that was moved has its endpoints in a table, and a socket
// for each endpoint that the shared sockets do not receive.
type Endpoints struct {
	plan Plan
	// wanted returns the endpoints that a BMC's network settings ask for.
	wanted func(host int, v *bmc.View) map[netip.AddrPort]Endpoint
	// listen opens the socket of an endpoint.
	listen func(at netip.AddrPort) (io.Closer, error)
	table  atomic.Pointer[endpointTable] // nil when every BMC is where the plan puts it

	mu      sync.Mutex
	sockets map[netip.AddrPort]socket // beside the shared ones
	serve   func(socket io.Closer, plain bool)
}

// socket is the socket of one moved endpoint.
type socket struct {
	io.Closer
	plain bool
}

// endpointTable holds the endpoints of moved BMCs. It is immutable.
type endpointTable struct {
	at    map[netip.AddrPort]Endpoint
	moved map[int]bool // BMCs whose endpoints are all in at
}

// NewWebEndpoints returns the endpoints of the HTTP and HTTPS services. Sockets
// that it opens are *Listener with the given Admit function.
func NewWebEndpoints(plan Plan, admit func(*net.TCPConn) net.Conn) *Endpoints {
	return &Endpoints{plan: plan, wanted: webEndpoints, listen: func(at netip.AddrPort) (io.Closer, error) {
		ln, err := net.Listen("tcp", at.String())
		if err != nil {
			return nil, err
		}
		return &Listener{Listener: ln, Admit: admit}, nil
	}}
}

// NewIPMIEndpoints returns the endpoints of IPMI over LAN. Sockets that it opens
// are *Datagrams.
func NewIPMIEndpoints(plan Plan) *Endpoints {
	return &Endpoints{plan: plan, wanted: ipmiEndpoints, listen: func(at netip.AddrPort) (io.Closer, error) {
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		if err != nil {
			return nil, err
		}
		return &Datagrams{UDPConn: c, at: at}, nil
	}}
}

// Plan returns the plan that places the BMCs nobody has moved.
func (e *Endpoints) Plan() Plan { return e.plan }

// webEndpoints returns the endpoints of a BMC's web services.
func webEndpoints(host int, v *bmc.View) map[netip.AddrPort]Endpoint {
	n, out := v.Network(), map[netip.AddrPort]Endpoint{}
	for _, addr := range v.Addresses() {
		if n.HTTP.On {
			out[netip.AddrPortFrom(addr, n.HTTP.Port)] = Endpoint{Host: host, Plain: true}
		}
		if n.HTTPS.On {
			out[netip.AddrPortFrom(addr, n.HTTPS.Port)] = Endpoint{Host: host}
		}
	}
	return out
}

// ipmiEndpoints returns the endpoints of a BMC's IPMI service.
func ipmiEndpoints(host int, v *bmc.View) map[netip.AddrPort]Endpoint {
	n, out := v.Network(), map[netip.AddrPort]Endpoint{}
	for _, addr := range v.Addresses() {
		if n.IPMI.On {
			out[netip.AddrPortFrom(addr, n.IPMI.Port)] = Endpoint{Host: host}
		}
	}
	return out
}

// FactoryPlace returns the network settings of a BMC as delivered, given the
// plans of its web services and of IPMI.
func FactoryPlace(web, ipmi Plan, host int, ssdp bool) bmc.NetworkDefaults {
	at := web.Address(host)
	p := bmc.NetworkDefaults{Addr: at.Addr(), HTTPS: at.Port(), HTTP: httpAlt, IPMI: ipmi.Address(host).Port(), SSDP: ssdp}
	if at.Port() == httpsPort {
		p.HTTP = httpPort
	}
	return p
}

// Find returns the endpoint at an address and port; false when there is none.
func (e *Endpoints) Find(at netip.AddrPort) (Endpoint, bool) {
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	t := e.table.Load()
	if t != nil {
		if x, ok := t.at[at]; ok {
			return x, true
		}
	}
	i, ok := e.plan.Index(at)
	if !ok || t != nil && t.moved[i] {
		return Endpoint{}, false
	}
	return Endpoint{Host: i}, true
}

// shared reports whether a shared socket receives what is sent to an address.
func (e *Endpoints) shared(at netip.AddrPort) bool {
	if e.plan.loopbackAddresses {
		return at.Port() == e.plan.first && loopbacks.Contains(at.Addr())
	}
	_, ok := e.plan.Index(at)
	return ok
}

// loopbacks are the addresses that Linux routes to the device lo. Computers use
// the reserved ones themselves.
var (
	loopbacks = netip.MustParsePrefix("127.0.0.0/8")
	reserved  = netip.MustParsePrefix("127.0.0.0/16")
)

// Check reports whether a BMC can have the endpoints that its settings ask for.
// Its error wraps bmc.ErrAddress or bmc.ErrPort.
func (e *Endpoints) Check(host int, v *bmc.View) error {
	for _, addr := range v.Addresses() {
		if err := e.checkAddress(host, addr); err != nil {
			return err
		}
	}
	for at, x := range e.wanted(host, v) {
		if old, ok := e.Find(at); ok && old.Host != host {
			return fmt.Errorf("%w: another BMC has %s", bmc.ErrPort, at)
		} else if ok && old == x || e.shared(at) && !x.Plain {
			continue
		}
		e.mu.Lock()
		_, open := e.sockets[at]
		e.mu.Unlock()
		if open {
			continue
		}
		ln, err := e.listen(at)
		if err != nil {
			return fmt.Errorf("%w: %w", bmc.ErrPort, err)
		}
		if err := ln.Close(); err != nil {
			return fmt.Errorf("%w: %w", bmc.ErrPort, err)
		}
	}
	return nil
}

func (e *Endpoints) checkAddress(host int, addr netip.Addr) error {
	if addr == e.plan.Address(host).Addr() {
		return nil
	}
	last := addr.AsSlice()
	switch {
	case !e.plan.loopbackAddresses:
		return fmt.Errorf("%w: %s: all BMCs of this lab are at %s, each at its port", bmc.ErrAddress, addr, e.plan.addr)
	case !loopbacks.Contains(addr) || reserved.Contains(addr) || last[3] == 0 || last[3] == 255:
		return fmt.Errorf("%w: a BMC of this lab cannot have %s: use an address of %s outside of %s", bmc.ErrAddress, addr, loopbacks, reserved)
	}
	if i, ok := e.plan.Index(netip.AddrPortFrom(addr, e.plan.first)); ok && i != host {
		return fmt.Errorf("%w: another BMC has %s", bmc.ErrAddress, addr)
	}
	if t := e.table.Load(); t != nil {
		for at, x := range t.at { // the order of a search is not seen
			if at.Addr() == addr && x.Host != host {
				return fmt.Errorf("%w: another BMC has %s", bmc.ErrAddress, addr)
			}
		}
	}
	return nil
}

// Set opens the endpoints that a BMC's settings ask for, and closes the others
// that it had.
func (e *Endpoints) Set(host int, v *bmc.View) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := &endpointTable{at: map[netip.AddrPort]Endpoint{}, moved: map[int]bool{}}
	if old := e.table.Load(); old != nil {
		maps.Copy(t.moved, old.moved)
		for at, x := range old.at {
			if x.Host != host {
				t.at[at] = x
			}
		}
	}
	want := e.wanted(host, v)
	if x, ok := want[e.plan.Address(host)]; len(want) == 1 && ok && !x.Plain {
		delete(t.moved, host)
	} else {
		t.moved[host] = true
		maps.Copy(t.at, want)
	}
	var errs []error
	if len(t.moved) == 0 {
		e.table.Store(nil)
	} else {
		e.table.Store(t)
	}
	for at, s := range e.sockets { // sockets are independent: their order is not seen
		if x, ok := t.at[at]; !ok || x.Plain != s.plain {
			errs = append(errs, s.Close())
			delete(e.sockets, at)
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(t.at), netip.AddrPort.Compare) {
		if _, open := e.sockets[at]; !open && (!e.shared(at) || t.at[at].Plain) {
			errs = append(errs, e.open(at, t.at[at].Plain))
		}
	}
	return errors.Join(errs...)
}

// open opens the socket of one endpoint. The caller holds e.mu.
func (e *Endpoints) open(at netip.AddrPort, plain bool) error {
	ln, err := e.listen(at)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	if e.sockets == nil {
		e.sockets = map[netip.AddrPort]socket{}
	}
	e.sockets[at] = socket{ln, plain}
	if e.serve != nil {
		e.serve(ln, plain)
	}
	return nil
}

// Serve calls serve for every socket of a moved endpoint, now and whenever one
// is opened. A nil serve ends that.
func (e *Endpoints) Serve(serve func(socket io.Closer, plain bool)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.serve = serve
	if serve == nil {
		return
	}
	for _, s := range e.sockets {
		serve(s.Closer, s.plain)
	}
}

// Close closes the sockets of moved endpoints.
func (e *Endpoints) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for at, ln := range e.sockets {
		if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
		delete(e.sockets, at)
	}
	return errors.Join(errs...)
}
