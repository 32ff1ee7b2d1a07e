// Package redfish is the Redfish service of emulated BMCs (DSP0266): one
// http.Handler for all of them. It authenticates, authorizes and routes requests and
// sends the responses. Package render makes the representations, the rows of package
// resource carry out writes, and package vendor has what a vendor changes of either.
// It knows neither the rack that runs it nor IPMI.
package redfish

import (
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/redfish/cache"
	"github.com/metalab-dev/metalab/emulator/redfish/event"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
)

// Rack finds the host that a request is for.
type Rack interface {
	// At returns the host whose BMC has a local address, at which a request
	// arrived; false when there is none. Hosts are comparable (pointers, say), and
	// At returns the same one for a BMC at each call.
	At(local netip.AddrPort) (resource.Host, bool)
}

// Config configures a Service.
type Config struct {
	Rack Rack
	Log  *slog.Logger // nil: no log
	// OnRequestStart and OnRequestEnd, when not nil, are called when a request
	// begins to be in flight and when it no longer is. An event stream is not in
	// flight while it waits for events.
	OnRequestStart, OnRequestEnd func()
	// Journal, when not nil, is called with every request after its response, and
	// with the request's context.
	Journal func(context.Context, Entry)
	// OnLongResponse, when not nil, is called with the context of a request whose
	// body is longer than net/http writes at once: when the body is complete,
	// before its first byte is written.
	OnLongResponse func(context.Context)
	// Schemas, when not nil, holds DMTF's files, which the service then serves:
	// an unpacked DSP8010 archive, with or without DSP8011's registries.
	Schemas fs.FS
	// Clock, when not nil, is the clock by which idle event streams send a sign of
	// life and tasks wait.
	Clock *clock.Clock
}

// Entry describes a request and its response for the journal. It holds no secret
// and no body.
type Entry struct {
	At           time.Time // lab time of the response
	Took         time.Duration
	Host         resource.Host
	From         string // address of the client
	Method, Path string
	Status       int
	User         string // name of the user; "" before authentication
	Session      string // ID; "" without one
	In, Out      int64  // bytes of the bodies
}

// Service serves every BMC of a rack. It is safe for concurrent use.
type Service struct {
	rack           Rack
	log            *slog.Logger
	onRequestStart func()
	onRequestEnd   func()
	journal        func(context.Context, Entry)
	onLongResponse func(context.Context)
	clock          *clock.Clock
	vendors        *vendor.Vendors
	taskReads      *cache.Cache[taskRead, int]

	tree     *resource.Tree
	renderer *render.Renderer
	events   *event.Notifier

	// locks make the check of a precondition and the change one step. Each host
	// has one lock, which it may share with others.
	locks [256]sync.Mutex
	seed  maphash.Seed
}

const taskReadsCached = 4096 // tasks

// New returns a Service. It fails without a Rack, and if Schemas has no schemas.
func New(c Config) (*Service, error) {
	if c.Rack == nil {
		return nil, errors.New("redfish: Config.Rack: must not be nil")
	}
	s := &Service{
		rack: c.Rack, log: c.Log, onRequestStart: c.OnRequestStart, onRequestEnd: c.OnRequestEnd, journal: c.Journal,
		onLongResponse: c.OnLongResponse, clock: c.Clock,
		taskReads: cache.New[taskRead](taskReadsCached, func(int) int { return 1 }),
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

// lock locks a host for writes, and returns the function that unlocks it.
func (s *Service) lock(h resource.Host) (unlock func()) {
	l := &s.locks[maphash.Comparable(s.seed, h)%uint64(len(s.locks))]
	l.Lock()
	return l.Unlock
}

// Notify makes the events of a change to a host. It puts them into the buffer of the
// host's event streams, and returns those that have to be posted to subscribers. The
// changes of a host must be passed one at a time and in their order.
func (s *Service) Notify(h resource.Host, c event.Change) []event.Delivery {
	return s.events.Notify(h, c)
}

// CloseStreams ends all event streams, and each that is opened afterwards. It is
// called when the service ends.
func (s *Service) CloseStreams() { s.events.Close() }
