package rack

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// Reach says how a BMC can be reached over the network.
type Reach string

// The values of Reach. Every service of a BMC asks Host.Reach before it answers.
const (
	Reachable Reach = "reachable"
	// Starting means that clients can connect but services are not ready.
	Starting Reach = "starting"
	// Gone means that connections are reset and datagrams are not answered.
	Gone Reach = "gone"
)

// Reach returns how the BMC can be reached now. It depends on the phase of the
// BMC's life and on fault rules that take it off the network.
func (h *Host) Reach() Reach {
	switch l := h.BMC().Life; {
	case !l.Reachable() || h.Offline():
		return Gone
	case !l.Serves():
		return Starting
	}
	return Reachable
}

// Address returns the endpoint of the BMC's HTTPS service.
func (h *Host) Address() netip.AddrPort {
	v := h.BMC()
	all := v.Addresses()
	if v.Net == nil || len(all) == 0 {
		return h.rack.webEndpoints.Plan().Address(h.index)
	}
	return netip.AddrPortFrom(all[0], v.Network().HTTPS.Port)
}

// Advertised returns the host and port at which clients find an endpoint of the BMC: its
// address, or the name that the rack advertises.
func (h *Host) Advertised(at netip.AddrPort) string {
	if h.rack.advertise == "" {
		return at.String()
	}
	return net.JoinHostPort(h.rack.advertise, strconv.Itoa(int(at.Port())))
}

// URL returns the URL of the BMC's web service, without a path.
func (h *Host) URL() string { return h.Dialect().Protocol.Scheme() + "://" + h.Address().String() }

// IPMI returns the endpoint of the BMC's IPMI service, and false when it is
// switched off.
func (h *Host) IPMI() (netip.AddrPort, bool) {
	v := h.BMC()
	all, n := v.Addresses(), v.Network()
	if len(all) == 0 || !n.IPMI.On {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(all[0], n.IPMI.Port), true
}

// At implements redfish.Rack.
func (l *Rack) At(local netip.AddrPort) (resource.Host, bool) {
	x, ok := l.webEndpoints.Find(local)
	if !ok {
		return nil, false
	}
	return l.hosts[x.Host], true
}

// IPMIAt implements ipmi.Rack. A BMC is silent while it is down, while a fault
// keeps it from the network, and while its IPMI is switched off.
func (l *Rack) IPMIAt(at netip.AddrPort) (ipmi.Host, bool) {
	x, ok := l.ipmiEndpoints.Find(at)
	if !ok || l.hosts[x.Host].Reach() != Reachable {
		return nil, false
	}
	h := l.hosts[x.Host]
	if v := h.BMC(); v.Net == nil && !v.Spec.Network.IPMI.On { // a BMC with settings of its own has no endpoint then
		return nil, false
	}
	return h, true
}

// endpoints returns the endpoints of TCP and of UDP.
func (l *Rack) endpoints() []*network.Endpoints {
	return []*network.Endpoints{l.webEndpoints, l.ipmiEndpoints}
}

// checkEndpoints reports whether a BMC can have the endpoints that its settings
// ask for.
func (l *Rack) checkEndpoints(host int, v *bmc.View) error {
	for _, e := range l.endpoints() {
		if err := e.Check(host, v); err != nil {
			return err
		}
	}
	return nil
}

// moveEndpoints opens the endpoints that the BMC's settings ask for now, and
// resets the connections to those that it no longer has. The caller holds h.mu.
func (h *Host) moveEndpoints() {
	for _, e := range h.rack.endpoints() {
		if err := e.Set(h.index, h.BMC()); err != nil {
			h.rack.log.Error("the BMC's new endpoints cannot be opened", "host", h.Name(), "err", err)
		}
	}
	h.rack.connections.ResetAt(h.index, true, func(at netip.AddrPort) bool {
		x, ok := h.rack.webEndpoints.Find(at)
		return !ok || x.Host != h.index
	})
}

// admit returns the connection to serve for one that a listener has accepted. It
// returns nil when nobody serves it: at an address that no BMC has, while the BMC
// is off the network, or because of a fault rule.
func (l *Rack) admit(tcp *net.TCPConn) net.Conn {
	x, ok := l.webEndpoints.Find(tcp.LocalAddr().(*net.TCPAddr).AddrPort())
	if !ok {
		network.Reset(tcp)
		return nil
	}
	h := l.hosts[x.Host]
	c := l.connections.Add(tcp, x.Host)
	if !h.BMC().Life.Reachable() { // a BMC that goes down after this check resets its connections
		network.Reset(c)
		return nil
	}
	if !l.faults.Has(fault.Connect) {
		return l.route(c, x)
	}
	d := l.faults.Decide(fault.Subject{Site: fault.Connect, BMC: h.Name()})
	what := ""
	switch {
	case d.Offline:
		network.Reset(c)
		return nil // the journal has an entry for the outage
	case d.Drop == fault.Unanswered && l.connections.HoldSilent(c):
		what = "connection.silent"
	case d.Drop != "":
		network.Reset(c)
		what = "connection.reset"
	case d.TLS != "":
		c.TLS, what = d.TLS, "tls."+string(d.TLS)
	default:
		return l.route(c, x)
	}
	from, _, _ := net.SplitHostPort(tcp.RemoteAddr().String())
	l.journal.Add(journal.Entry{At: l.clock.Now(), Host: h.Name(), Kind: journal.Event, From: from, What: what, Faults: d.Rules})
	if c.TLS == "" {
		return nil
	}
	return l.route(c, x)
}

// route hands a connection to a BMC whose dialect speaks HTTP without TLS to the
// plain server, and returns nil then.
func (l *Rack) route(c *network.Conn, x network.Endpoint) net.Conn {
	if !l.hosts[x.Host].Dialect().Protocol.PlainHTTP || x.Plain {
		return c
	}
	if !l.plainConns.Hand(c) {
		network.Reset(c)
	}
	return nil
}

// hostOf returns the host that a request came to, or nil when no BMC is there.
func (l *Rack) hostOf(r *http.Request) *Host {
	x, ok := l.webEndpoints.Find(localAddr(r))
	if !ok {
		return nil
	}
	return l.hosts[x.Host]
}

// localAddr returns the address that a request came to.
func localAddr(r *http.Request) netip.AddrPort {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	return at.AddrPort()
}

// servePlain answers a request that came without TLS.
func (l *Rack) servePlain(w http.ResponseWriter, r *http.Request) {
	if h := l.hostOf(r); h != nil && h.Dialect().Protocol.PlainHTTP {
		l.ServeHTTP(w, r)
		return
	}
	l.redirect(w, r)
}

// redirect answers a request without TLS with a redirect to HTTPS (DSP0266,
// "Protocol and transport").
func (l *Rack) redirect(w http.ResponseWriter, r *http.Request) {
	c := network.ConnOf(r.Context())
	c.RequestBegins(r.Method)
	defer c.ResponseBegins()
	h := l.hostOf(r)
	if h == nil {
		http.Error(w, "no BMC has this address", http.StatusNotFound)
		return
	}
	at := netip.AddrPortFrom(localAddr(r).Addr().Unmap(), h.BMC().Network().HTTPS.Port)
	status := http.StatusMovedPermanently
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		status = http.StatusPermanentRedirect // which keeps the method
	}
	w.Header().Set("Location", "https://"+at.String()+r.URL.RequestURI())
	w.WriteHeader(status)
}
