package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/lab"
)

// Bounds of the server, in real time.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = time.Minute
	farewell      = time.Second
	maxBody       = 4 << 10 // bytes
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
	c  Config
	ln net.Listener
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
		Handler: s.handler(), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxBody,
		ErrorLog: slog.NewLogLogger(s.c.Log.Handler(), slog.LevelDebug),
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
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if srv.Shutdown(patience) != nil {
		srv.Close() // the error is that of the listener, which is closed
	}
	child.Wait()
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

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, http.StatusOK, s.status()) })
	mux.HandleFunc("GET /v1/hosts", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, http.StatusOK, Hosts(s.c.Lab)) })
	mux.HandleFunc("POST /v1/hosts/{name}/power", s.power)
	mux.HandleFunc("POST /v1/down", s.down)
	return mux
}

func (s *Server) status() Status {
	var st Status
	if s.c.Info != nil {
		st = s.c.Info()
	}
	st.PID, st.State, st.Hosts = os.Getpid(), s.c.Lab.Dir(), len(s.c.Lab.Hosts())
	if st.Speed == "" {
		st.Speed = string(s.c.Lab.Rack().Speed)
	}
	return st
}

func (s *Server) power(w http.ResponseWriter, r *http.Request) {
	var p power
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&p); err != nil {
		s.answer(w, http.StatusBadRequest, problem{`the body must be {"reset": "On"}, or another reset of Redfish`})
		return
	}
	h, ok := s.c.Lab.Host(r.PathValue("name"))
	if !ok {
		s.answer(w, http.StatusNotFound, problem{fmt.Sprintf("there is no host %s", r.PathValue("name"))})
		return
	}
	defer s.c.Lab.Clock().Enter()()
	if err := h.Power(r.Context(), p.Reset); err != nil {
		s.answer(w, http.StatusConflict, problem{err.Error()})
		return
	}
	s.answer(w, http.StatusOK, describe(s.c.Lab, h))
}

func (s *Server) down(w http.ResponseWriter, _ *http.Request) {
	if s.c.Down == nil {
		s.answer(w, http.StatusForbidden, problem{"this lab belongs to another program, which ends it"})
		return
	}
	s.answer(w, http.StatusAccepted, s.status())
	s.c.Down()
}

func (s *Server) answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.c.Log.Debug("client gone", "err", err)
	}
}
