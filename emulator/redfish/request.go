package redfish

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
)

// request is a request with its response.
type request struct {
	s          *Service
	w          http.ResponseWriter
	r          *http.Request
	host       resource.Host // nil when the address is of no BMC
	vendor     *vendor.Vendor
	match      *resource.Match // nil when the URI names nothing
	actor      resource.Actor
	preference preference // Prefer header of a write
	applyTime  string     // the OperationApplyTime of a write
	status     int
	bytesIn    int64 // bytes of the request's body
	bytesOut   int64 // bytes of the response's body

	auditContext *bmc.AuditContext // audit log entry of a write
	snap         resource.Snapshot

	inFlight  bool // Config.OnRequestStart was called, OnRequestEnd not yet
	outlives  bool // a task uses the request after its response
	start     time.Time
	journaled bool

	inner    resource.InnerKind // "" for a request of a client
	taskID   string             // ID of the task that an inner request is part of
	messages []message.Message  // error response of an inner request
}

// requests holds requests that are over and that nothing refers to.
var requests = sync.Pool{New: func() any { return new(request) }}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := requests.Get().(*request)
	*x = request{s: s, w: w, r: r}
	x.run()
	if !x.outlives {
		*x = request{}
		requests.Put(x)
	}
}

// run finds the host, serves the request, and writes the audit log and the journal.
func (x *request) run() {
	x.startInFlight()
	defer x.endInFlight()
	host, ok := x.s.rack.At(localAddress(x.r))
	if !ok {
		x.sendError(http.StatusNotFound, message.ResourceMissingAtURI.With(x.r.URL.Path))
		return
	}
	x.host, x.vendor = host, x.s.vendors.Of(host.Dialect())
	if x.s.journal != nil {
		x.start = host.Now()
	}
	x.startAudit()
	x.serve()
	x.audit()
	x.writeJournal()
}

// snapshot returns the state of the host at the start of the request.
func (x *request) snapshot() *resource.Snapshot {
	if x.start.IsZero() {
		return resource.TakeSnapshot(x.host)
	}
	h := x.host
	x.snap = resource.Snapshot{Host: h, Dialect: h.Dialect(), Machine: h.Machine(), BMC: h.BMC(), Now: x.start.Truncate(time.Second)}
	return &x.snap
}

// startInFlight calls Config.OnRequestStart, unless the request is in flight.
func (x *request) startInFlight() {
	if !x.inFlight && x.s.onRequestStart != nil {
		x.s.onRequestStart()
	}
	x.inFlight = true
}

// endInFlight calls Config.OnRequestEnd, if the request is in flight.
func (x *request) endInFlight() {
	if x.inFlight && x.s.onRequestEnd != nil {
		x.s.onRequestEnd()
	}
	x.inFlight = false
}

// writeJournal calls Config.Journal, at its first call only.
func (x *request) writeJournal() {
	if x.s.journal == nil || x.journaled {
		return
	}
	x.journaled = true
	now := x.host.Now()
	x.s.journal(x.r.Context(), Entry{
		At: now, Took: now.Sub(x.start), Host: x.host, From: x.clientAddress(), Method: x.r.Method, Path: x.r.URL.Path,
		Status: x.status, User: x.actor.User, Session: x.actor.Session, In: x.bytesIn, Out: x.bytesOut,
	})
}

// localAddress returns the address at which a request arrived; the zero AddrPort,
// which no BMC has, when it is unknown.
func localAddress(r *http.Request) netip.AddrPort {
	var at netip.AddrPort
	switch a := r.Context().Value(http.LocalAddrContextKey).(type) {
	case *net.TCPAddr:
		at = a.AddrPort()
	case net.Addr:
		at, _ = netip.ParseAddrPort(a.String())
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// clientAddress returns the IP address of the client, without the port.
func (x *request) clientAddress() string {
	host, _, _ := net.SplitHostPort(x.r.RemoteAddr)
	return host
}
