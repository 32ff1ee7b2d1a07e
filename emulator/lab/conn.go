package lab

import (
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/lab/journal"
	"github.com/metalab-dev/metalab/emulator/lab/mishap"
)

// maxSilent bounds the connections that are held and never answered.
const maxSilent = 1000

// bmcConn is a connection to a BMC.
type bmcConn struct {
	*net.TCPConn
	host int
	tls  fault.TLS // how its handshake fails
	of   *conns

	mu      sync.Mutex
	busy    bool // a request that is no GET is being answered
	sending bool // its answer is on its way
	doomed  bool // it is reset when that is there
	whole   whole
}

// Close implements net.Conn.
func (c *bmcConn) Close() error {
	c.of.forget(c)
	return c.TCPConn.Close()
}

// conns are the connections that are open.
type conns struct {
	mu     sync.Mutex
	open   map[*bmcConn]struct{}
	silent map[*bmcConn]struct{} // those of open that nobody serves
	ended  bool                  // there are to be no more of these
}

func (cs *conns) add(c *bmcConn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.open == nil {
		cs.open, cs.silent = map[*bmcConn]struct{}{}, map[*bmcConn]struct{}{}
	}
	cs.open[c] = struct{}{}
}

// hush holds a connection that is never answered; false when there are too many
// of these.
func (cs *conns) hush(c *bmcConn) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.ended || len(cs.silent) >= maxSilent {
		return false
	}
	cs.silent[c] = struct{}{}
	return true
}

func (cs *conns) forget(c *bmcConn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.open, c)
	delete(cs.silent, c)
}

// drop resets the connections to a host. An answer that is on its way gets
// there: who has a BMC reset is told that it was heard.
func (cs *conns) drop(host int) {
	cs.dropAt(host, false, func(netip.AddrPort) bool { return true })
}

// dropAt resets those of them that came to some addresses. A kind one lets
// requests be answered that are under way.
func (cs *conns) dropAt(host int, kind bool, at func(netip.AddrPort) bool) {
	cs.reset(func(c *bmcConn) bool {
		if c.host != host || !at(c.LocalAddr().(*net.TCPAddr).AddrPort()) {
			return false
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.doomed = c.sending || kind && c.busy
		return !c.doomed
	}, func() map[*bmcConn]struct{} { return cs.open })
}

// asked notes that a request is being answered.
func (c *bmcConn) asked(method string) {
	if c == nil || method == http.MethodGet { // a stream of events is one, and has no end
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = true
}

// answering notes that the answer to a request is on its way.
func (c *bmcConn) answering() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending = true
}

// answered notes that it is there.
func (c *bmcConn) answered() {
	c.mu.Lock()
	c.busy, c.sending = false, false
	doomed := c.doomed
	c.mu.Unlock()
	if doomed {
		mishap.Reset(c)
	}
}

// dropSilent resets all connections that nobody serves, for good.
func (cs *conns) dropSilent() {
	cs.mu.Lock()
	cs.ended = true
	cs.mu.Unlock()
	cs.reset(func(*bmcConn) bool { return true }, func() map[*bmcConn]struct{} { return cs.silent })
}

func (cs *conns) reset(which func(*bmcConn) bool, of func() map[*bmcConn]struct{}) {
	cs.mu.Lock()
	var all []*bmcConn
	for c := range of() { // each by itself: the order is not seen
		if which(c) {
			all = append(all, c)
		}
	}
	cs.mu.Unlock()
	for _, c := range all {
		mishap.Reset(c)
	}
}

// admit takes in a connection to a BMC; nil when nobody serves it, as at
// addresses that are no BMC's.
func (l *Lab) admit(tcp *net.TCPConn) net.Conn {
	x, ok := l.doors.find(tcp.LocalAddr().(*net.TCPAddr).AddrPort())
	if !ok {
		mishap.Reset(tcp)
		return nil
	}
	host := x.host
	c := &bmcConn{TCPConn: tcp, host: host, of: &l.conns}
	l.conns.add(c)
	if !l.hosts[host].BMC().Life.Reachable() { // and who becomes so later drops it
		mishap.Reset(c)
		return nil
	}
	if !l.asks(fault.Connect) {
		return l.sort(c, x)
	}
	d := l.decide(fault.Subject{Site: fault.Connect, BMC: l.hosts[host].Name()})
	what := ""
	switch {
	case d.Offline:
		mishap.Reset(c)
		return nil // the journal has the outage itself
	case d.Drop == fault.Unanswered && l.conns.hush(c):
		what = "connection.silent"
	case d.Drop != "":
		mishap.Reset(c)
		what = "connection.reset"
	case d.TLS != "":
		c.tls, what = d.TLS, "tls."+string(d.TLS)
	default:
		return l.sort(c, x)
	}
	from, _, _ := net.SplitHostPort(tcp.RemoteAddr().String())
	l.journal.Add(journal.Entry{At: l.clock.Now(), Host: l.hosts[host].Name(), Kind: journal.Event, From: from, What: what, Faults: d.Rules})
	if c.tls == "" {
		return nil
	}
	return l.sort(c, x)
}

// sort gives away a connection to a BMC that speaks without TLS; nil then.
func (l *Lab) sort(c *bmcConn, x door) net.Conn {
	if !l.hosts[x.host].Dialect().Protocol.PlainHTTP || x.plain {
		return c
	}
	if !l.plain.hand(c) {
		mishap.Reset(c)
	}
	return nil
}
