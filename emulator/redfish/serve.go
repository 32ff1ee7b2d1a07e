package redfish

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// The values of headers of every response (DSP0266, "Response headers").
var (
	odataVersion    = []string{"4.0"}
	noCache         = []string{"no-cache"}
	connectionClose = []string{"close"}
)

// methods are the HTTP methods that Redfish defines (DSP0266, "HTTP methods").
var methods = []string{"GET", "HEAD", "OPTIONS", "POST", "PATCH", "PUT", "DELETE"}

// serve checks the request and sends the response. Authentication comes before
// every check whose result only a user may learn (DSP0266, "HTTP header
// authentication requirements").
func (x *request) serve() {
	h := x.w.Header()
	h["Odata-Version"], h["Cache-Control"] = odataVersion, noCache
	if x.vendor.ClosesConnections() {
		h["Connection"] = connectionClose
	}
	if life := x.host.BMC().Life; !life.Serves() {
		x.sendStarting(life)
		return
	}
	if len(x.r.Header["Origin"]) > 0 {
		// Scripts of pages that the service itself serves may read the response, no others.
		h.Set("Access-Control-Allow-Origin", "https://"+x.r.Host)
	}
	x.match = x.route(x.r.URL)
	if !x.isPublic() {
		actor, ok := x.authenticate()
		if !ok {
			x.challenge(message.NoValidSession.With())
			return
		}
		x.setActor(actor)
	}
	if !slices.Contains(methods, x.r.Method) {
		x.sendError(http.StatusNotImplemented, message.OperationNotAllowed.With())
		return
	}
	if v := x.r.Header["Odata-Version"]; len(v) > 0 && v[0] != "4.0" {
		x.sendError(http.StatusPreconditionFailed, message.HeaderInvalid.With("OData-Version"))
		return
	}
	if x.match == nil || x.match.Action != nil && x.match.Action.Internal && x.inner == "" {
		x.sendError(http.StatusNotFound, message.ResourceMissingAtURI.With(x.r.URL.Path))
		return
	}
	at := x.snapshot()
	reads := x.r.Method == http.MethodGet || x.r.Method == http.MethodHead
	var p *render.Representation // most writes need none
	if reads {
		p = x.s.renderer.Representation(x.match, at)
	}
	if p == nil && (reads || !x.match.IsPresent(at)) || x.hidesNewTask() {
		x.sendNotFound(at)
		return
	}
	if !slices.Contains(x.match.Methods, x.r.Method) ||
		x.match.Refuses != nil && x.match.Refuses(x.match.View(at), x.r.Method) {
		x.sendMethodNotAllowed(at)
		return
	}
	if !x.isPublic() && !x.actor.Authorized(x.r.Method, x.match, at) {
		x.forbid()
		return
	}
	switch x.r.Method {
	case http.MethodGet, http.MethodHead:
		x.get(p, at)
	case http.MethodOptions:
		h["Allow"] = x.allowAt(at)
		x.sendNoContent()
	default:
		x.write()
	}
}

// route returns the resource or action that a URL names, or nil. Inner requests use
// the standard's URIs.
func (x *request) route(u *url.URL) *resource.Match {
	if x.inner != "" {
		return x.s.tree.Find(u)
	}
	return x.vendor.Route(x.r.Method, u)
}

// isPublic reports whether the request needs no authentication: a read of the fixed
// documents, and the creation of a session.
func (x *request) isPublic() bool {
	return x.match != nil && x.match.Public(x.r.Method)
}

// maxRetryAfter is the longest Retry-After, in seconds: a task may end before its
// estimated time, as when it is cancelled.
const maxRetryAfter = 10

// retryAfter returns the Retry-After of a client that waits for a lab time: the
// seconds until then by the client's clock, which the lab's time may outrun.
func (x *request) retryAfter(until time.Time) string {
	left := until.Sub(x.host.Now())
	if x.s.clock != nil {
		left = x.s.clock.ClientWait(left)
	}
	return strconv.Itoa(min(max(int(math.Ceil(left.Seconds())), 1), maxRetryAfter))
}

// sendStarting sends 503 with Retry-After while the BMC starts.
func (x *request) sendStarting(l *bmc.Life) {
	seconds := x.retryAfter(l.Until)
	x.w.Header()["Retry-After"] = []string{seconds}
	x.sendError(http.StatusServiceUnavailable, message.ServiceTemporarilyUnavailable.With(seconds))
}

// sendNotFound sends 404 with the message for the part of the URI that does not exist.
func (x *request) sendNotFound(at *resource.Snapshot) {
	name := x.match.MissingVariable(x.match.View(at))
	switch {
	case name != "":
		x.sendError(http.StatusNotFound, message.ResourceNotFound.With(x.s.tree.Types[name], x.match.IDs[name]))
	case x.match.Action != nil: // the resource exists and does not have the action
		x.sendError(http.StatusNotFound, message.ActionNotSupported.With(x.match.Action.Name))
	default:
		x.sendError(http.StatusNotFound, message.ResourceMissingAtURI.With(x.r.URL.Path))
	}
}

// sendMethodNotAllowed sends 405 with the Allow header.
func (x *request) sendMethodNotAllowed(at *resource.Snapshot) {
	x.w.Header()["Allow"] = x.allowAt(at)
	m := message.OperationNotAllowed.With()
	if x.r.Method == http.MethodDelete && x.match.Remove != nil { // others of its type can be deleted
		m = message.ResourceCannotBeDeleted.With()
	}
	x.sendError(http.StatusMethodNotAllowed, m)
}
