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

// Endpoint is where servers under management reach us.
type Endpoint struct {
	URL     string // as they are told
	Address string // to listen on, once this process leads
	// Listener, when set, is used instead of Address.
	Listener net.Listener
	// Certificate, when set, is shown there instead of that of Identity, where
	// TLS is spoken at all.
	Certificate *tls.Certificate
}

// Bounds of what a client may make us wait for.
const (
	headerTimeout = 30 * time.Second
	idleTimeout   = 2 * time.Minute
)

// serve adds a server to the manager, which runs it while this process leads:
// another that stands by on the same machine may have the address until then.
// With a certificate it speaks TLS.
func (s *Set) serve(name string, at Endpoint, h http.Handler, cert ...tls.Certificate) error {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(s.cfg.Log.V(1)), slog.LevelInfo),
	}
	serve := srv.Serve
	if len(cert) > 0 {
		srv.TLSConfig = &tls.Config{Certificates: cert, MinVersion: tls.VersionTLS12}
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	return s.mgr.Add(ctrlmanager.RunnableFunc(func(ctx context.Context) error {
		l := at.Listener
		if l == nil {
			var err error
			if l, err = new(net.ListenConfig).Listen(ctx, "tcp", at.Address); err != nil {
				return fmt.Errorf("server of %s: %w", name, err)
			}
		}
		// Close, not Shutdown: agents and BMCs are used to controllers that go.
		// However it ends: an agent that kept its connection would go on talking
		// to a controller that is gone.
		defer srv.Close()
		defer context.AfterFunc(ctx, func() { srv.Close() })()
		if err := serve(l); err != nil && !(errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil) {
			return fmt.Errorf("server of %s: %w", name, err)
		}
		return nil
	}))
}

// serveSecure adds the server of boot media by HTTPS, where there is one. BMCs
// that verify certificates have to know who has signed its.
func (s *Set) serveSecure(media http.Handler) error {
	at := s.cfg.Secure
	if at.URL == "" {
		return nil
	}
	cert := s.cfg.Identity.Certificate
	if at.Certificate != nil {
		cert = *at.Certificate
	}
	return s.serve("media by HTTPS", at, media, cert)
}
