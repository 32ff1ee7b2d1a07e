package control

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/network"
)

// Bounds of the server, in real time.
const (
	headerTimeout   = 10 * time.Second
	idleTimeout     = time.Minute
	shutdownTimeout = time.Second
	maxHeader       = 16 << 10
	maxBody         = 1 << 20 // bytes
)

// Config configures a Server.
type Config struct {
	Rack *rack.Rack
	// Info, if not nil, returns what the lab does not know about itself. The server
	// fills in the rest.
	Info func() Status
	// Files, if not nil, lists a directory of the operating system that a host runs, or
	// returns a file. An error that is fs.ErrNotExist means that there is no such path.
	Files func(ctx context.Context, h *rack.Host, path string) (Files, error)
	// FileChanges, if not nil, compares those files with the files of the boot image.
	FileChanges func(ctx context.Context, h *rack.Host) ([]FileChange, error)
	// Exec, if not nil, runs a command in the operating system that a host runs, and
	// returns its exit code.
	Exec func(ctx context.Context, h *rack.Host, c Command) (int, error)
	// PutFile, if not nil, writes a file of the operating system that a host runs.
	PutFile func(ctx context.Context, h *rack.Host, f File) error
	// SystemOf, if not nil, describes the operating system that a host runs.
	SystemOf func(h *rack.Host) System
	// ResetSystem, if not nil, removes what the operating system that a host runs has stored since
	// its installation, and restarts the host.
	ResetSystem func(ctx context.Context, h *rack.Host) error
	// Down stops the lab and returns at once. Without it, requests to stop the lab
	// are refused.
	Down func()
	// Remote, if not nil, lets programs that have its token use the API from elsewhere.
	Remote *Remote
	// BodyPace is how fast clients must send the bodies of requests; zero means
	// network.DefaultBodyPace.
	BodyPace network.BodyPace
	Log      *slog.Logger // nil: none
}

// Server answers on a lab's control socket, and at the address of a Remote.
type Server struct {
	c         Config
	api       http.Handler
	listeners map[net.Listener]http.Handler
	consoles  sync.WaitGroup // open connections to consoles and commands
}

// New opens the socket of a lab. Clients wait until Serve answers them.
func New(c Config) (*Server, error) {
	if c.Rack == nil {
		return nil, errors.New("Config.Rack: must not be nil")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{c: c}
	s.api = s.handler()
	return s, s.listen(c.Rack.Dir())
}

// listen opens the socket of a lab.
func (s *Server) listen(dir string) error {
	ln, err := listen(dir)
	if err != nil {
		return err
	}
	s.listeners = map[net.Listener]http.Handler{ln: s.api}
	if r := s.c.Remote; r != nil {
		s.listeners[r.Listener] = r.guard(s.api)
	}
	return nil
}

// Serve answers until ctx ends, and closes the socket.
func (s *Server) Serve(ctx context.Context) error {
	failed, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var children, ends sync.WaitGroup
	var servers []*http.Server
	for ln, h := range s.listeners { // servers are independent: their order is not seen
		srv := &http.Server{
			Handler: s.c.BodyPace.Handler(h), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
			ErrorLog:    slog.NewLogLogger(s.c.Log.Handler(), slog.LevelDebug),
			BaseContext: func(net.Listener) context.Context { return ctx }, // ends requests that follow the journal
		}
		servers = append(servers, srv)
		children.Go(func() {
			if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				fail(err)
			}
		})
	}
	<-failed.Done()
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	for _, srv := range servers {
		ends.Go(func() {
			if srv.Shutdown(patience) != nil {
				srv.Close() // errors only for the listener, which is closed already
			}
		})
	}
	ends.Wait()
	children.Wait()
	s.consoles.Wait()
	if ctx.Err() != nil { // the caller has ended it
		return nil
	}
	return context.Cause(failed)
}

// Close closes the socket when Serve does not run.
func (s *Server) Close() error {
	for ln := range s.listeners { // listeners are independent: their order is not seen
		if err := ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
	}
	return nil
}
