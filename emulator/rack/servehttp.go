package rack

import (
	"net/http"
	"net/netip"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/exchange"
	"github.com/metalab-dev/metalab/emulator/rack/faults"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// ServeHTTP answers a request to a BMC, wrong where a fault rule says so.
func (l *Rack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := network.ConnOf(r.Context())
	c.RequestBegins(r.Method)
	defer c.ResponseBegins()
	if l.exchanges.Any() {
		if h := l.hostOf(r); h != nil {
			l.exchanges.Serve(h.Name(), l.clock.Now, http.HandlerFunc(l.serveHTTP), w, r)
			return
		}
	}
	l.serveHTTP(w, r)
}

func (l *Rack) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPatch && !l.faults.Has(fault.Connect) && !l.faults.Has(fault.Request) {
		l.service.ServeHTTP(w, r)
		return
	}
	h := l.hostOf(r)
	if h == nil {
		l.service.ServeHTTP(w, r)
		return
	}
	p := &h.Dialect().Protocol
	l.faultyHTTP.Serve(w, r, faults.Target{Index: h.index, Name: h.Name(), Messages: p.Registries, PatchDelay: p.PatchDelay})
}

// WatchRequests calls f with each request to a BMC that has ended, with the bodies but
// without secrets, until stop is called. f must not wait.
func (l *Rack) WatchRequests(f func(exchange.Exchange)) (stop func()) { return l.exchanges.Watch(f) }

// previousRack shows each host as it was before its last change.
type previousRack struct{ *Rack }

// At implements redfish.Rack.
func (r previousRack) At(local netip.AddrPort) (resource.Host, bool) {
	h, ok := r.Rack.At(local)
	if !ok {
		return nil, false
	}
	return previousHost{h.(*Host)}, true
}

// previousHost is a host whose views are those from before its last change.
type previousHost struct{ *Host }

// Machine implements resource.Host.
func (h previousHost) Machine() *machine.View {
	if v := h.previousMachine.Load(); v != nil {
		return v
	}
	return h.Host.Machine()
}

// BMC implements resource.Host.
func (h previousHost) BMC() *bmc.View {
	if v := h.previousBMC.Load(); v != nil {
		return v
	}
	return h.Host.BMC()
}
