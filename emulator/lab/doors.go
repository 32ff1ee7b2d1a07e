package lab

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// Usual ports of HTTP, chosen as those of HTTPS are.
const (
	httpPort = 80
	httpAlt  = 8080
)

// door is where a BMC takes connections.
type door struct {
	host  int
	plain bool // HTTP, which leads to HTTPS
}

// doors are where the BMCs are. One that nobody has moved is where the plan has
// it, and costs nothing here; another one has its doors in a table, and a socket
// of its own for each that no shared one hears of.
type doors struct {
	plan plan
	// wanted are the doors of a BMC as its settings have them.
	wanted func(host int, v *bmc.View) map[netip.AddrPort]door
	// listen opens the socket of a door.
	listen func(at netip.AddrPort) (io.Closer, error)
	table  atomic.Pointer[doorTable] // nil: all are where the plan has them

	mu      sync.Mutex
	sockets map[netip.AddrPort]socket // beside the shared ones
	serve   func(of io.Closer, plain bool)
}

// socket is a door's own.
type socket struct {
	io.Closer
	plain bool
}

// doorTable is immutable.
type doorTable struct {
	at    map[netip.AddrPort]door
	moved map[int]bool // BMCs whose doors are all in at
}

// find is whose door an address is.
func (d *doors) find(at netip.AddrPort) (door, bool) {
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	t := d.table.Load()
	if t != nil {
		if x, ok := t.at[at]; ok {
			return x, true
		}
	}
	i, ok := d.plan.index(at)
	if !ok || t != nil && t.moved[i] {
		return door{}, false
	}
	return door{host: i}, true
}

// place is where a BMC is if nobody moves it.
func (l *Lab) place(host int) bmc.NetworkDefaults {
	at := l.doors.plan.address(host)
	p := bmc.NetworkDefaults{Addr: at.Addr(), HTTPS: at.Port(), HTTP: httpAlt, IPMI: l.mail.plan.address(host).Port(), SSDP: l.searchable}
	if at.Port() == httpsPort {
		p.HTTP = httpPort
	}
	return p
}

// webDoors are those of the web services.
func webDoors(host int, v *bmc.View) map[netip.AddrPort]door {
	n, out := v.Network(), map[netip.AddrPort]door{}
	for _, addr := range v.Addresses() {
		if n.HTTP.On {
			out[netip.AddrPortFrom(addr, n.HTTP.Port)] = door{host: host, plain: true}
		}
		if n.HTTPS.On {
			out[netip.AddrPortFrom(addr, n.HTTPS.Port)] = door{host: host}
		}
	}
	return out
}

// shared says whether a shared socket hears of an address.
func (d *doors) shared(at netip.AddrPort) bool {
	if d.plan.own {
		return at.Port() == d.plan.first && loopbacks.Contains(at.Addr())
	}
	_, ok := d.plan.index(at)
	return ok
}

// loopbacks are the addresses that Linux routes to the device lo, and reserved
// those of them that computers use themselves.
var (
	loopbacks = netip.MustParsePrefix("127.0.0.0/8")
	reserved  = netip.MustParsePrefix("127.0.0.0/16")
)

// free says whether a BMC can have the doors that its settings ask for.
func (d *doors) free(host int, v *bmc.View) error {
	for _, addr := range v.Addresses() {
		if err := d.freeAddress(host, addr); err != nil {
			return err
		}
	}
	for at, x := range d.wanted(host, v) {
		if old, ok := d.find(at); ok && old.host != host {
			return fmt.Errorf("%w: %s is another's", bmc.ErrPort, at)
		} else if ok && old == x || d.shared(at) && !x.plain {
			continue
		}
		d.mu.Lock()
		_, mine := d.sockets[at]
		d.mu.Unlock()
		if mine {
			continue
		}
		own, err := d.listen(at)
		if err != nil {
			return fmt.Errorf("%w: %w", bmc.ErrPort, err)
		}
		if err := own.Close(); err != nil {
			return fmt.Errorf("%w: %w", bmc.ErrPort, err)
		}
	}
	return nil
}

func (d *doors) freeAddress(host int, addr netip.Addr) error {
	if addr == d.plan.address(host).Addr() {
		return nil
	}
	last := addr.AsSlice()
	switch {
	case !d.plan.own:
		return fmt.Errorf("%w: %s: all BMCs of this lab are at %s, each at its port", bmc.ErrAddress, addr, d.plan.addr)
	case !loopbacks.Contains(addr) || reserved.Contains(addr) || last[3] == 0 || last[3] == 255:
		return fmt.Errorf("%w: %s is none that a BMC of this lab can have: use one of %s, outside of %s", bmc.ErrAddress, addr, loopbacks, reserved)
	}
	if i, ok := d.plan.index(netip.AddrPortFrom(addr, d.plan.first)); ok && i != host {
		return fmt.Errorf("%w: %s is another's", bmc.ErrAddress, addr)
	}
	if t := d.table.Load(); t != nil {
		for at, x := range t.at { // any of them: the order is not seen
			if at.Addr() == addr && x.host != host {
				return fmt.Errorf("%w: %s is another's", bmc.ErrAddress, addr)
			}
		}
	}
	return nil
}

// set opens the doors of a BMC as its settings have them, and closes others.
func (d *doors) set(host int, v *bmc.View) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &doorTable{at: map[netip.AddrPort]door{}, moved: map[int]bool{}}
	if old := d.table.Load(); old != nil {
		maps.Copy(t.moved, old.moved)
		for at, x := range old.at {
			if x.host != host {
				t.at[at] = x
			}
		}
	}
	want := d.wanted(host, v)
	if x, ok := want[d.plan.address(host)]; len(want) == 1 && ok && !x.plain {
		delete(t.moved, host)
	} else {
		t.moved[host] = true
		maps.Copy(t.at, want)
	}
	var errs []error
	if len(t.moved) == 0 {
		d.table.Store(nil)
	} else {
		d.table.Store(t)
	}
	for at, s := range d.sockets { // each by itself: the order is not seen
		if x, ok := t.at[at]; !ok || x.plain != s.plain {
			errs = append(errs, s.Close())
			delete(d.sockets, at)
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(t.at), netip.AddrPort.Compare) {
		if _, open := d.sockets[at]; !open && (!d.shared(at) || t.at[at].plain) {
			errs = append(errs, d.open(at, t.at[at].plain))
		}
	}
	return errors.Join(errs...)
}

// open opens a socket for one door. It holds d.mu.
func (d *doors) open(at netip.AddrPort, plain bool) error {
	own, err := d.listen(at)
	if err != nil {
		return fmt.Errorf("lab: %s: %w", at, err)
	}
	if d.sockets == nil {
		d.sockets = map[netip.AddrPort]socket{}
	}
	d.sockets[at] = socket{own, plain}
	if d.serve != nil {
		d.serve(own, plain)
	}
	return nil
}

// start has the sockets served, now and later; nil no longer.
func (d *doors) start(serve func(of io.Closer, plain bool)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serve = serve
	if serve == nil {
		return
	}
	for _, s := range d.sockets {
		serve(s.Closer, s.plain)
	}
}

// close closes all sockets.
func (d *doors) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for at, ln := range d.sockets {
		if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
		delete(d.sockets, at)
	}
	return errors.Join(errs...)
}

// listenWeb opens a socket that is one BMC's own.
func (l *Lab) listenWeb(at netip.AddrPort) (io.Closer, error) {
	ln, err := net.Listen("tcp", at.String())
	if err != nil {
		return nil, err
	}
	return &bmcListener{Listener: ln, admit: l.admit}, nil
}

// unsecured answers a request that came without TLS.
func (l *Lab) unsecured(w http.ResponseWriter, r *http.Request) {
	if h := l.reached(r); h != nil && h.Dialect().Protocol.PlainHTTP {
		l.ServeHTTP(w, r)
		return
	}
	l.redirect(w, r)
}

// redirect leads to HTTPS (DSP0266, "Protocol and transport").
func (l *Lab) redirect(w http.ResponseWriter, r *http.Request) {
	c := connOf(r.Context())
	c.asked(r.Method)
	defer c.answering()
	h := l.reached(r)
	if h == nil {
		http.Error(w, "no BMC", http.StatusNotFound)
		return
	}
	at := netip.AddrPortFrom(localAddr(r).Addr().Unmap(), h.BMC().Network().HTTPS.Port)
	status := http.StatusMovedPermanently
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		status = http.StatusPermanentRedirect // with the same method
	}
	w.Header().Set("Location", "https://"+at.String()+r.URL.RequestURI())
	w.WriteHeader(status)
}

// localAddr is the address that a request came to.
func localAddr(r *http.Request) netip.AddrPort {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	return at.AddrPort()
}

// reached is the host that a request came to; nil when it is none.
func (l *Lab) reached(r *http.Request) *Host {
	x, ok := l.doors.find(localAddr(r))
	if !ok {
		return nil
	}
	return l.hosts[x.host]
}
