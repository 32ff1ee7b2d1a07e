// Package view serves the page of a running lab: its racks as elevations with one tile
// for each server, and a page for each server with its parts, journal and console. The
// page is html/template and ES modules that are built in; it loads nothing from a network
// but the lab's events. The package owns the page, its token and its events. It knows
// Kubernetes only as texts that its user provides.
package view

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/network"
)

// Bounds of the server, in real time.
const (
	headerTimeout   = 10 * time.Second
	idleTimeout     = time.Minute
	shutdownTimeout = time.Second
	maxHeader       = 16 << 10
	maxBody         = 64 << 10 // bytes
)

// Config configures a Server.
type Config struct {
	Rack *rack.Rack
	// Shards, if not nil, returns the shards of a lab in several processes, in the order of
	// their hosts. Each has a page of its own, and Rack has no hosts.
	Shards func() []control.Shard
	// Actions performs what users confirm in the page.
	Actions Actions
	// Objects, if not nil, are the lab's Kubernetes objects.
	Objects Objects
	// Status returns the state of the lab.
	Status func() control.Status
	// Metrics serves the metrics of the lab; nil serves those of its servers alone.
	Metrics http.Handler
	// Clock is real time, at which the page is refreshed; nil is the real clock.
	Clock clock.WithTicker
	Log   *slog.Logger // nil: none
	// BodyPace is how fast browsers must send the bodies of requests; zero means
	// network.DefaultBodyPace.
	BodyPace network.BodyPace
}

// Objects are the Kubernetes objects of the lab's hosts.
type Objects interface {
	// Watch calls changed with the object of each host, and again whenever it has changed,
	// until ctx ends.
	Watch(ctx context.Context, changed func(Object)) error
	// Describe returns the objects that belong to a host, without secrets.
	Describe(ctx context.Context, host string) ([]Described, error)
}

// Object is the Kubernetes object of a host. Its zero value is that of no object.
type Object struct {
	Host  string `json:"-"`
	State string `json:"state,omitempty"` // provisioning state
	Role  string `json:"role,omitempty"`  // role of the machine that consumes it; "" for none
	Error string `json:"error,omitempty"` // kind of its error; "" for none
}

// Described is a Kubernetes object for people.
type Described struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	YAML string `json:"yaml"`
}

// Server serves the page of a lab.
type Server struct {
	c       Config
	access  access
	rack    *rackState
	fleet   *fleet // nil in a lab of one process
	handler http.Handler
	process string // names this process in the IDs of events

	watching sync.Once // starts the watch of the objects
	watch    context.Context
	endWatch context.CancelFunc
	running  sync.WaitGroup
	streams  chan struct{} // one for each open event stream
}

// maxStreams bounds the event streams that are open at a time.
const maxStreams = 64

// New returns the server of a lab's page. It makes the lab's token where there is none.
func New(c Config) (*Server, error) {
	switch {
	case c.Rack == nil:
		return nil, errors.New("Config.Rack: must not be nil")
	case c.Actions == nil:
		return nil, errors.New("Config.Actions: must not be nil")
	case c.Status == nil:
		return nil, errors.New("Config.Status: must not be nil")
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Metrics == nil {
		c.Metrics = control.Metrics(c.Rack)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	token := tokenFile{dir: c.Rack.Dir()}
	s := &Server{c: c, access: access{token: token.read, log: c.Log}, rack: newRackState(c.Rack, c.Clock), process: rand.Text(), streams: make(chan struct{}, maxStreams)}
	if _, err := token.ensure(); err != nil {
		return nil, err
	}
	s.watch, s.endWatch = context.WithCancel(context.Background())
	if c.Shards != nil {
		s.fleet = newFleet(s)
	}
	s.handler = s.routes()
	return s, nil
}

// ServeHTTP answers a request to the page.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Serve answers on a listener until ctx ends, and closes it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.running.Wait()
	defer s.endWatch()
	return serve(ctx, l, s, s.c.BodyPace, s.c.Log)
}

// serve answers on a listener until ctx ends, and closes it.
func serve(ctx context.Context, l net.Listener, h http.Handler, pace network.BodyPace, log *slog.Logger) error {
	srv := &http.Server{
		Handler: pace.Handler(h), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx }, // ends event streams
	}
	failed, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var child sync.WaitGroup
	child.Go(func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			fail(err)
		}
	})
	<-failed.Done()
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if srv.Shutdown(patience) != nil {
		srv.Close() // errors only for the listener, which is closed already
	}
	child.Wait()
	if ctx.Err() != nil { // the caller has ended it
		return nil
	}
	return context.Cause(failed)
}

// watchObjects starts to watch the objects when the first page is open: a lab that nobody
// looks at does not pay for it.
func (s *Server) watchObjects() {
	if s.c.Objects == nil {
		return
	}
	set := s.rack.setObject
	if s.fleet != nil {
		set = s.fleet.setObject
	}
	s.watching.Do(func() {
		s.running.Go(func() {
			if err := s.c.Objects.Watch(s.watch, set); err != nil && s.watch.Err() == nil {
				s.c.Log.Warn("the page shows no Kubernetes objects", "err", err)
			}
		})
	})
}

// route is a path of the page.
type route struct {
	pattern string
	do      func(s *Server, w http.ResponseWriter, r *http.Request)
}

// routes are the paths that need the token. Static files are beside them.
var routes = []route{
	{"GET /{$}", (*Server).page},
	{"GET /events", (*Server).events},
	{"GET /rack.svg", (*Server).svg},
	{"GET /hosts/{host}/objects", (*Server).objects},
	{"GET /hosts/{host}/contents", (*Server).contents},
	{"POST /hosts/{host}/console", (*Server).typeText},
	{"POST /hosts/{host}/actions/{action}", (*Server).act},
}

func (s *Server) routes() http.Handler {
	inside := http.NewServeMux()
	if s.fleet == nil {
		for _, r := range routes {
			inside.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) { r.do(s, w, req) })
		}
	} else {
		for _, r := range fleetRoutes {
			inside.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) { r.do(s.fleet, w, req) })
		}
	}
	inside.Handle("GET /assets/", http.HandlerFunc(asset))
	outside := http.NewServeMux()
	outside.Handle("GET /metrics", s.c.Metrics)
	return s.access.handler(inside, outside)
}

// host returns the host that a path names. It answers when there is none.
func (s *Server) host(w http.ResponseWriter, r *http.Request) (*rack.Host, bool) {
	h, ok := s.c.Rack.Host(r.PathValue("host"))
	if !ok {
		http.Error(w, "there is no host "+r.PathValue("host"), http.StatusNotFound)
	}
	return h, ok
}

// typeText types the body at the console of a host.
func (s *Server) typeText(w http.ResponseWriter, r *http.Request) {
	h, ok := s.host(w, r)
	if !ok {
		return
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the typed text: "+err.Error(), http.StatusBadRequest)
		return
	}
	defer s.c.Rack.Clock().Enter()() // the clock waits for the command
	if err := h.Type(r.Context(), text); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
