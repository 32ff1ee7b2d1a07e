package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
)

// Endpoint is the address of an HTTP server for the managed servers: their agents or
// their BMCs.
type Endpoint struct {
	URL     string // base URL that agents and BMCs are given
	Address string // TCP address to listen on, once this process leads
	// Listener, when set, is used instead of Address.
	Listener net.Listener
	// Certificate, when set, replaces the certificate of Config.Identity for TLS.
	Certificate *tls.Certificate
}

// Timeouts for clients that send a request slowly or keep a connection idle.
const (
	headerTimeout = 30 * time.Second
	// requestTimeout is for the whole of a request: an agent's longest report comes in
	// seconds, and boot media are fetched by requests without a body. The responses,
	// which may be gigabytes, have no limit.
	requestTimeout = time.Minute
	idleTimeout    = 2 * time.Minute
)

// server returns an HTTP server without an address.
func (s *Set) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(s.cfg.Log.V(1)), slog.LevelInfo),
	}
}

// serve adds an HTTP server to the manager, or an HTTPS server when secure is not nil. The
// manager starts it once this process leads, because until then the leading process may
// listen on the same address of the same machine.
func (s *Set) serve(name string, endpoint Endpoint, h http.Handler, secure *tls.Config) error {
	return s.mgr.Add(ctrlmanager.RunnableFunc(func(ctx context.Context) error { return s.listenAndServe(ctx, name, endpoint, h, secure) }))
}

// listenAndServe serves until ctx ends.
func (s *Set) listenAndServe(ctx context.Context, name string, endpoint Endpoint, h http.Handler, secure *tls.Config) error {
	srv := s.server(h)
	serve := srv.Serve
	if secure != nil {
		srv.TLSConfig = secure
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	l := endpoint.Listener
	if l == nil {
		var err error
		if l, err = new(net.ListenConfig).Listen(ctx, "tcp", endpoint.Address); err != nil {
			return fmt.Errorf("server for %s: %w", name, err)
		}
	}
	// Close, not Shutdown: agents and BMCs cope with a controller that disappears.
	// Close also on an error: an agent with an open connection would go on sending
	// reports to a controller that has stopped.
	defer srv.Close()
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	if err := serve(l); err != nil && !(errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil) {
		return fmt.Errorf("server for %s: %w", name, err)
	}
	return nil
}

// serveAgents adds the HTTPS server for agents, which identify themselves by certificates
// that nobody has signed. The API server, which calls the webhook there, has none.
func (s *Set) serveAgents(h http.Handler) error {
	return s.serve("agents", s.cfg.Agents, h, &tls.Config{
		Certificates: []tls.Certificate{s.cfg.Identity.Certificate}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12,
	})
}

// serveSecure adds the HTTPS server for boot media, if Config.Secure has a URL. A BMC
// that verifies certificates has to trust the authority of this one.
func (s *Set) serveSecure(media http.Handler) error {
	endpoint := s.cfg.Secure
	if endpoint.URL == "" {
		return nil
	}
	cert := s.cfg.Identity.Certificate
	if endpoint.Certificate != nil {
		cert = *endpoint.Certificate
	}
	return s.serve("boot media (HTTPS)", endpoint, media, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
}
