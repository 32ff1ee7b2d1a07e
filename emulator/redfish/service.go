// Package redfish is the Redfish service of emulated BMCs (DSP0266): one
// http.Handler for all of them. It routes, authenticates and authorises requests,
// and answers them: reads from package render, writes by the rows of package
// resource, and what a vendor changes of either by package vendor. It knows
// neither the lab that runs it nor IPMI.
package redfish

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/redfish/cache"
	"github.com/metalab-dev/metalab/emulator/redfish/event"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
)

// Rack finds the host that a request is for.
type Rack interface {
	// At is the host whose BMC has the local address that the request came
	// to; false when there is none. Hosts are comparable (pointers, say), and
	// a BMC has the same one at each call.
	At(local netip.AddrPort) (resource.Host, bool)
}

// Config says what a Service serves.
type Config struct {
	Rack Rack
	Log  *slog.Logger // nil: none
	// Enter and Leave, when not nil, are told of every request in flight: that
	// it is, and that it is no longer.
	Enter, Leave func()
	// Journal, when not nil, is told of every request that was answered, with
	// its context.
	Journal func(context.Context, Entry)
	// Whole, when not nil, is told of every long answer, with the context of its
	// request, when all of it is there and the first of it is about to be written.
	Whole func(context.Context)
	// Schemas, when not nil, holds DMTF's files, which the service then serves:
	// an unpacked DSP8010 archive, with or without DSP8011's registries.
	Schemas fs.FS
	// Clock, when not nil, is the time in which idle streams give signs of life.
	Clock *clock.Clock
}

// Entry is one request that was answered. It holds no secret and no body.
type Entry struct {
	At           time.Time // of the lab, when it was answered
	Took         time.Duration
	Host         resource.Host
	From         string // address of the client
	Method, Path string
	Status       int
	User         string // "" before login
	Session      string // "" without one
	In, Out      int64  // bytes of the bodies
}

// Service serves every BMC of a rack. It is safe for concurrent use.
type Service struct {
	rack      Rack
	log       *slog.Logger
	enter     func()
	exit      func()
	journal   func(context.Context, Entry)
	entire    func(context.Context)
	clock     *clock.Clock
	vendors   *vendor.Vendors
	taskReads *cache.Cache[taskRead, int]

	tree     *resource.Tree
	renderer *render.Renderer
	events   *event.Notifier

	// locks make a precondition and the change that rests on it one step. A
	// host has one of them, which it may share with others.
	locks [256]sync.Mutex
	seed  maphash.Seed
}

const (
	missesCached = 4096
	maxBody      = 256 << 10
	longAnswer   = 3 << 10 // bytes of a body: with its headers more than net/http writes at once
)

// New returns a Service.
func New(c Config) (*Service, error) {
	if c.Rack == nil {
		return nil, errors.New("redfish: Config.Rack: must not be nil")
	}
	s := &Service{
		rack: c.Rack, log: c.Log, enter: c.Enter, exit: c.Leave, journal: c.Journal, entire: c.Whole, clock: c.Clock,
		taskReads: cache.New[taskRead](missesCached, func(int) int { return 1 }),
		seed:      maphash.MakeSeed(),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if s.tree, err = resource.NewTree(c.Schemas, s.log); err != nil {
		return nil, err
	}
	s.vendors = vendor.NewVendors(s.tree)
	s.renderer = render.NewRenderer(s.tree, s.vendors)
	s.events = event.NewNotifier(s.tree, s.vendors, s.renderer)
	return s, nil
}

// lock makes others wait that would change the host.
func (s *Service) lock(h resource.Host) (unlock func()) {
	l := &s.locks[maphash.Comparable(s.seed, h)%uint64(len(s.locks))]
	l.Lock()
	return l.Unlock
}

// request is one request and its answer.
type request struct {
	s      *Service
	w      http.ResponseWriter
	r      *http.Request
	host   resource.Host
	vendor *vendor.Vendor  // of the host
	match  *resource.Match // nil when the address is of nothing
	actor  resource.Actor
	prefer preference // of a write
	when   string     // a write shall take effect
	status int
	in     int64 // bytes of the request's body
	out    int64 // bytes of the answer's body

	auditContext *bmc.AuditContext // of a write
	taken        resource.Snapshot

	notInFlight bool // it is not in flight for now
	outlives    bool // a job goes on with it
	began       time.Time
	journaled   bool // the journal has been told

	inner   resource.InnerKind // it is a step of another one
	task    string             // job that what it begins joins
	refused []message.Message  // of a step: what it was refused with
}

// requests are those that are over, and that nothing refers to.
var requests = sync.Pool{New: func() any { return new(request) }}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := requests.Get().(*request)
	*x = request{s: s, w: w, r: r, notInFlight: true}
	x.run()
	if !x.outlives {
		*x = request{}
		requests.Put(x)
	}
}

func (x *request) run() {
	x.enter()
	defer x.leave()
	at := local(x.r)
	host, ok := x.s.rack.At(at)
	if !ok {
		x.refuse(http.StatusNotFound, message.ResourceMissingAtURI.With(x.r.URL.Path))
		return
	}
	x.host, x.vendor = host, x.s.vendors.Of(host.Dialect())
	if x.s.journal != nil {
		x.began = host.Now()
	}
	x.startAudit()
	x.serve()
	x.audit()
	x.writeJournal()
}

// snapshot is what the host shows at the time of the request.
func (x *request) snapshot() *resource.Snapshot {
	if x.began.IsZero() {
		return resource.TakeSnapshot(x.host)
	}
	h := x.host
	x.taken = resource.Snapshot{Host: h, Dialect: h.Dialect(), Machine: h.Machine(), BMC: h.BMC(), Now: x.began.Truncate(time.Second)}
	return &x.taken
}

// enter tells that the request is in flight, if it is not.
func (x *request) enter() {
	if x.notInFlight && x.s.enter != nil {
		x.s.enter()
	}
	x.notInFlight = false
}

// leave tells that it is no longer, if it is.
func (x *request) leave() {
	if !x.notInFlight && x.s.exit != nil {
		x.s.exit()
	}
	x.notInFlight = true
}

// writeJournal tells the journal of the request, once.
func (x *request) writeJournal() {
	if x.s.journal == nil || x.journaled {
		return
	}
	x.journaled = true
	now := x.host.Now()
	x.s.journal(x.r.Context(), Entry{
		At: now, Took: now.Sub(x.began), Host: x.host, From: x.from(), Method: x.r.Method, Path: x.r.URL.Path,
		Status: x.status, User: x.actor.User, Session: x.actor.Session, In: x.in, Out: x.out,
	})
}

// local is the address that a request came to.
func local(r *http.Request) netip.AddrPort {
	var at netip.AddrPort
	switch a := r.Context().Value(http.LocalAddrContextKey).(type) {
	case *net.TCPAddr:
		at = a.AddrPort()
	case net.Addr:
		at, _ = netip.ParseAddrPort(a.String()) // none: of no BMC
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// maxRetryAfter bounds how long a client is asked to wait, in seconds: the lab's
// time may pass faster than the client's.
const maxRetryAfter = 10

// starting answers while the BMC comes up.
func (x *request) starting(l *bmc.Life) {
	left := int(math.Ceil(l.Until.Sub(x.host.Now()).Seconds()))
	wait := strconv.Itoa(min(max(left, 1), maxRetryAfter))
	x.w.Header()["Retry-After"] = []string{wait}
	x.refuse(http.StatusServiceUnavailable, message.ServiceTemporarilyUnavailable.With(wait))
}

// Headers of every answer (DSP0266, "Response headers").
var (
	odataVersion = []string{"4.0"}
	noCache      = []string{"no-cache"}
	closing      = []string{"close"}
)

// serve answers the request. What a client may not know it is not told:
// authentication comes before all else (DSP0266, "HTTP header authentication
// requirements").
func (x *request) serve() {
	h := x.w.Header()
	h["Odata-Version"], h["Cache-Control"] = odataVersion, noCache
	if x.vendor.ClosesConnections() {
		h["Connection"] = closing
	}
	if life := x.host.BMC().Life; !life.Serves() {
		x.starting(life)
		return
	}
	if len(x.r.Header["Origin"]) > 0 {
		// Scripts of the service's own pages may read the answer, no others.
		h.Set("Access-Control-Allow-Origin", "https://"+x.r.Host)
	}
	x.match = x.find(x.r.URL)
	if !x.public() {
		who, ok := x.authenticate()
		if !ok {
			x.challenge(message.NoValidSession.With())
			return
		}
		x.signIn(who)
	}
	if !slices.Contains(verbs, x.r.Method) {
		x.refuse(http.StatusNotImplemented, message.OperationNotAllowed.With())
		return
	}
	if v := x.r.Header["Odata-Version"]; len(v) > 0 && v[0] != "4.0" {
		x.refuse(http.StatusPreconditionFailed, message.HeaderInvalid.With("OData-Version"))
		return
	}
	if x.match == nil || x.match.Action != nil && x.match.Action.Internal && x.inner == "" {
		x.refuse(http.StatusNotFound, message.ResourceMissingAtURI.With(x.r.URL.Path))
		return
	}
	at := x.snapshot()
	reads := x.r.Method == http.MethodGet || x.r.Method == http.MethodHead
	var p *render.Representation // who writes may never need it
	if reads {
		p = x.s.renderer.Representation(x.match, at)
	}
	if p == nil && (reads || !x.match.IsPresent(at)) || x.hidesNewTask() {
		x.refuseMissing(at)
		return
	}
	if !slices.Contains(x.match.Methods, x.r.Method) ||
		x.match.Refuses != nil && x.match.Refuses(x.match.View(at), x.r.Method) {
		h["Allow"] = x.allowed(at)
		m := message.OperationNotAllowed.With()
		if x.r.Method == http.MethodDelete && x.match.Remove != nil { // but not this one
			m = message.ResourceCannotBeDeleted.With()
		}
		x.refuse(http.StatusMethodNotAllowed, m)
		return
	}
	if !x.public() && !x.actor.Authorized(x.r.Method, x.match, at) {
		x.forbid()
		return
	}
	switch x.r.Method {
	case http.MethodGet, http.MethodHead:
		if answer := answerers[x.match.Answer]; answer != nil {
			answer(x, x.match.View(at))
			return
		}
		if x.vendor.LocationIsTask() && resource.TypeName(x.match.Schema) == "Task" && x.answerTask(p, at) {
			return
		}
		x.read(p)
	case http.MethodOptions:
		h["Allow"] = x.allowed(at)
		x.done()
	default:
		x.write()
	}
}

// refuseMissing answers that something in the address does not exist.
func (x *request) refuseMissing(at *resource.Snapshot) {
	name := x.match.MissingVariable(x.match.View(at))
	switch {
	case name != "":
	case x.match.Action != nil: // this one does not have it
		x.refuse(http.StatusNotFound, message.ActionNotSupported.With(x.match.Action.Name))
		return
	default:
		x.refuse(http.StatusNotFound, message.ResourceMissingAtURI.With(x.r.URL.Path))
		return
	}
	x.refuse(http.StatusNotFound, message.ResourceNotFound.With(x.s.tree.Types[name], x.match.IDs[name]))
}

// read answers a GET or HEAD.
func (x *request) read(p *render.Representation) {
	if x.r.URL.RawQuery != "" {
		if p = x.query(p); p == nil {
			return
		}
	}
	if a := x.r.Header["Accept"]; len(a) > 0 && !accepts(a, p.MediaType) {
		x.refuse(http.StatusNotAcceptable, message.HeaderInvalid.With("Accept"))
		return
	}
	x.w.Header()["Vary"] = varies
	if p.MediaType == resource.JSON {
		if body := x.vendor.ReplaceBody(x.host, x.match, p.Body); body != nil {
			x.show(http.StatusOK, p.With(body))
			return
		}
	}
	plain := x.wantsIdentity(p)
	if x.vendor.GzipOnly(x.match.URI) {
		plain = false
		if gzip, _ := gzipQuality(x.r.Header["Accept-Encoding"]); gzip == 0 {
			x.refuse(http.StatusNotAcceptable, message.HeaderInvalid.With("Accept-Encoding"))
			return
		}
	}
	if tags := x.r.Header["If-None-Match"]; len(tags) > 0 && x.vendor.IfNoneMatchHolds(tags, p.Tag()) {
		x.w.Header()["Etag"] = p.ETag[:]
		if !plain {
			x.w.Header()["Etag"] = x.s.renderer.Gzip(p).ETag
		}
		x.status = http.StatusNotModified
		x.w.WriteHeader(x.status)
		return
	}
	if !plain {
		x.showGzip(p)
		return
	}
	x.show(http.StatusOK, p)
}

// show sends a page.
func (x *request) show(status int, p *render.Representation) {
	h := x.w.Header()
	h["Etag"], h["Content-Type"], h["Content-Length"], h["Allow"] = p.ETag[:], p.ContentType, p.ContentLength[:], x.allow(p)
	if p.Link != nil {
		h["Link"] = p.Link
	}
	x.send(status, p.Body)
}

// refuse sends an error response (DSP0266, "Error responses").
func (x *request) refuse(status int, ms ...message.Message) {
	if len(ms) > resource.MaxMessages {
		ms = append(slices.Clip(ms[:resource.MaxMessages]), message.MaximumErrorsExceeded.With())
	}
	if x.inner != "" {
		x.refused = ms
	}
	var body []byte
	if x.vendor == nil {
		body = message.Versions(nil).Error(ms...)
	} else {
		status, ms = x.vendor.Reword(status, ms)
		body = x.vendor.Error(ms...)
	}
	x.w.Header()["Content-Type"] = jsonContent
	x.send(status, body)
}

// refusePlain refuses without an error that a program could read.
func (x *request) refusePlain(status int, m message.Message) {
	x.w.Header()["Content-Type"] = []string{"text/plain;charset=utf-8"}
	x.send(status, []byte(m.Text+"\n"))
}

// find is what is at a URL; nil when there is nothing.
func (x *request) find(u *url.URL) *resource.Match {
	if x.inner != "" {
		return x.s.tree.Find(u)
	}
	return x.vendor.Route(x.r.Method, u)
}

// setLocation tells a client an address of the tree.
func (x *request) setLocation(uri string) {
	x.w.Header()["Location"] = []string{x.vendor.URI(uri)}
}

// succeed answers that a write was done, with no resource to show.
func (x *request) succeed() {
	body := x.vendor.Success(vendor.Request{Method: x.r.Method, Match: x.match})
	if body == nil {
		x.done()
		return
	}
	x.w.Header()["Content-Type"] = jsonContent
	x.send(http.StatusOK, body)
}

var jsonContent = []string{string(resource.JSON) + ";charset=utf-8"}

// done answers that there is nothing to say.
func (x *request) done() {
	x.status = http.StatusNoContent
	x.w.WriteHeader(x.status)
}

// send sends an answer; its body may come in parts.
func (x *request) send(status int, body ...[]byte) {
	x.status = status
	size := 0
	for _, b := range body {
		size += len(b)
	}
	if x.s.entire != nil && x.inner == "" && size > longAnswer && x.r.Method != http.MethodHead && x.r.ProtoMajor == 1 { // others share the connection
		x.s.entire(x.r.Context())
	}
	x.w.WriteHeader(status)
	if x.r.Method == http.MethodHead {
		return
	}
	x.out += int64(size)
	for i, b := range body {
		if len(b) == 0 && i > 0 {
			continue
		}
		if _, err := x.w.Write(b); err != nil {
			if !errors.Is(err, io.ErrClosedPipe) {
				x.s.log.Debug("client gone", "bmc", local(x.r), "err", err)
			}
			return
		}
	}
}
