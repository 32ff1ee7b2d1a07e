package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// The metrics name hosts and count their states, and the health probes show when a
// controller is busy. On loopback they are served in clear to every client: the kubelet's
// probes have no credentials. On any other address they are served by HTTPS to clients whose
// bearer token the cluster's API knows (TokenReview) and whose account may get the path
// (SubjectAccessReview of a nonResourceURL).

// protects reports whether an address of the metrics or the health probes needs
// authentication.
func (c *Config) protects(address string) bool {
	return address != "" && (c.ProtectLoopback || !isLoopback(address))
}

// isLoopback reports whether only programs of this machine can reach an address, HOST:PORT.
// An empty host is all addresses.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// statusTLS returns the TLS configuration of the metrics and the health probes: with the
// certificate that agents trust.
func (c *Config) statusTLS() *tls.Config {
	cert := c.Identity.Certificate
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if len(cert.Certificate) == 0 {
			return nil, errors.New("Config.Identity has no certificate")
		}
		return &cert, nil
	}}
}

// metricsOptions returns the options of the server of the metrics.
func (c *Config) metricsOptions() server.Options {
	switch {
	case c.Metrics == "":
		return server.Options{BindAddress: "0"}
	case !c.protects(c.Metrics):
		return server.Options{BindAddress: c.Metrics}
	}
	return server.Options{
		BindAddress: c.Metrics, SecureServing: true, FilterProvider: newGate,
		TLSOpts: []func(*tls.Config){func(t *tls.Config) {
			current := c.statusTLS()
			t.MinVersion, t.GetCertificate = current.MinVersion, current.GetCertificate
		}},
	}
}

// addProbes adds /healthz, which succeeds while the process serves, and /readyz, which
// succeeds once the caches are filled. A process that stands by is ready, too: ready to
// take over.
func (s *Set) addProbes(api *rest.Config) error {
	if !s.cfg.protects(s.cfg.Health) {
		return errors.Join(
			s.mgr.AddHealthzCheck("serves", healthz.Ping),
			s.mgr.AddReadyzCheck("objects", s.ready),
		)
	}
	mux := http.NewServeMux()
	for path, checks := range map[string]map[string]healthz.Checker{"/healthz": {"serves": healthz.Ping}, "/readyz": {"objects": s.ready}} {
		h := http.StripPrefix(path, &healthz.Handler{Checks: checks})
		mux.Handle(path, h)
		mux.Handle(path+"/", h)
	}
	h, err := protect(api, s.cfg, mux)
	if err != nil {
		return err
	}
	return s.mgr.Add(standby{func(ctx context.Context) error {
		return s.listenAndServe(ctx, "health probes", Endpoint{Address: s.cfg.Health}, h, s.cfg.statusTLS())
	}})
}

// protect returns a handler that authenticates and authorizes clients at the API before it
// calls h.
func protect(api *rest.Config, c Config, h http.Handler) (http.Handler, error) {
	client, err := rest.HTTPClientFor(api)
	if err != nil {
		return nil, fmt.Errorf("health probes: %w", err)
	}
	filter, err := newGate(api, client)
	if err != nil {
		return nil, fmt.Errorf("health probes: %w", err)
	}
	return filter(c.Log, h)
}
