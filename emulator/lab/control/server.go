package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/lab"
)

// Bounds of the server, in real time.
const (
	headerTimeout   = 10 * time.Second
	idleTimeout     = time.Minute
	shutdownTimeout = time.Second
	maxHeader       = 16 << 10
	maxBody         = 1 << 20 // bytes
)

// Config says what a Server speaks for.
type Config struct {
	Lab *lab.Lab
	// Info, if not nil, says of a lab what the lab itself does not know. What
	// it leaves empty the server fills in.
	Info func() Status
	// Down ends the lab; it returns at once. Without it nobody can ask for
	// that.
	Down func()
	Log  *slog.Logger // nil: none
}

// Server answers on a lab's socket.
type Server struct {
	c        Config
	ln       net.Listener
	consoles sync.WaitGroup // that somebody is attached to
}

// New opens the socket of a lab. Clients wait until Serve answers them.
func New(c Config) (*Server, error) {
	if c.Lab == nil {
		return nil, errors.New("control: Config.Lab: must not be nil")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	ln, err := listen(c.Lab.Dir())
	if err != nil {
		return nil, err
	}
	return &Server{c: c, ln: ln}, nil
}

// Serve answers until ctx ends, and closes the socket.
func (s *Server) Serve(ctx context.Context) error {
	srv := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog:    slog.NewLogLogger(s.c.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx }, // who follows is done when the lab is
	}
	failed, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var child sync.WaitGroup
	child.Go(func() {
		if err := srv.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("control: %w", err))
		}
	})
	<-failed.Done()
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if srv.Shutdown(patience) != nil {
		srv.Close() // the error is that of the listener, which is closed
	}
	child.Wait()
	s.consoles.Wait()
	if ctx.Err() != nil { // as asked
		return nil
	}
	return context.Cause(failed)
}

// Close closes the socket of a server that is not served.
func (s *Server) Close() error {
	if err := s.ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}
