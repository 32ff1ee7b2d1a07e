package world

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/ipmi"
	"github.com/metalab-dev/metalab/controller/bmc/redfish"
	"github.com/metalab-dev/metalab/controller/host"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/controller/webhook"
)

// Scheme knows every kind that the controllers work with.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(corev1.AddToScheme(s), admissionv1.AddToScheme(s), metal3.AddToScheme(s))
}

// drivers are the BMC protocols that the controllers speak.
var drivers = map[string]bmc.Open{"ipmi": ipmi.Open, "redfish": redfish.Open}

// controllerConfig is what a set of controllers is started with.
type controllerConfig struct {
	API      *rest.Config
	Identity inband.Identity
	RootCAs  *x509.CertPool // of BMCs
	Clock    clock.WithTicker
	Enter    func() func()
	Chance   func() float64
	Log      *slog.Logger
	Inband   string // address to listen on for agents, HTTPS
	Boot     string // address to listen on for BMCs, HTTP
}

// controllers are a running set: manager, agents' server and boot server.
type controllers struct {
	cfg    controllerConfig
	conns  connections
	pool   *bmc.Pool
	inband net.Listener
	boot   net.Listener
	stop   context.CancelFunc
	ended  chan struct{}
	err    error // why it ended; read after ended
}

// startControllers returns when both servers listen and the manager runs.
func startControllers(ctx context.Context, c controllerConfig) (_ *controllers, err error) {
	s := &controllers{cfg: c, ended: make(chan struct{}), pool: &bmc.Pool{Drivers: drivers}}
	ctx, s.stop = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			s.cut()
			s.stop()
		}
	}()
	if s.inband, err = net.Listen("tcp", c.Inband); err != nil {
		return nil, fmt.Errorf("world: the agents' server: %w", err)
	}
	if s.boot, err = net.Listen("tcp", c.Boot); err != nil {
		return nil, fmt.Errorf("world: the boot server: %w", err)
	}
	var hosts *host.Reconciler // set before any agent can come up
	agents, err := inband.New(inband.Config{
		Key: c.Identity.Key, CA: c.Identity.CA, URL: "https://" + s.inband.Addr().String(),
		Clock: c.Clock, Enter: c.Enter, Changed: func(uid string) { hosts.Wake(uid) },
	})
	if err != nil {
		return nil, err
	}
	media, err := netboot.New(netboot.Config{
		Key: c.Identity.Key, URL: "http://" + s.boot.Addr().String(), Media: agents.Media, Enter: c.Enter,
	})
	if err != nil {
		return nil, err
	}
	mgr, err := s.manager()
	if err != nil {
		return nil, err
	}
	hosts, err = host.New(host.Config{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), BMCs: s.pool, Inband: agents, Boot: media,
		Clock: c.Clock, Chance: c.Chance, RootCAs: c.RootCAs, Enter: c.Enter, Workers: 8,
	})
	if err != nil {
		return nil, err
	}
	if err := hosts.Setup(ctx, mgr); err != nil {
		return nil, fmt.Errorf("world: %w", err)
	}
	if err := webhook.Register(ctx, mgr.GetClient(), "https://"+s.inband.Addr().String(), c.Identity.CA); err != nil {
		return nil, err
	}
	secure := http.NewServeMux()
	secure.Handle("/", agents)
	secure.Handle(webhook.Path, webhook.Handler())
	go s.run(ctx, mgr, secure, media)
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		s.stop()
		<-s.ended
		return nil, fmt.Errorf("world: the controllers did not come up: %w", s.err)
	}
	return s, nil
}

func (s *controllers) manager() (ctrl.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	api := rest.CopyConfig(s.cfg.API)
	api.QPS = -1 // one user on this machine: nothing to be fair to
	api.Dial = s.conns.dial
	mgr, err := ctrl.NewManager(api, ctrl.Options{
		Scheme:                  scheme,
		Logger:                  logr.FromSlogHandler(s.cfg.Log.Handler()),
		Metrics:                 server.Options{BindAddress: "0"},
		GracefulShutdownTimeout: ptr.To(10 * time.Second),
		Cache:                   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		return nil, fmt.Errorf("world: controller manager: %w", err)
	}
	return mgr, nil
}

// run serves until ctx ends or one of the parts fails.
func (s *controllers) run(ctx context.Context, mgr ctrl.Manager, agents, media http.Handler) {
	defer close(s.ended)
	defer s.stop() // a part that fails ends the whole, and whoever waits for it
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug)
	secure := &http.Server{Handler: agents, ReadHeaderTimeout: 30 * time.Second, ErrorLog: quiet,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{s.cfg.Identity.Certificate}, MinVersion: tls.VersionTLS12}}
	plain := &http.Server{Handler: media, ReadHeaderTimeout: 30 * time.Second, ErrorLog: quiet}
	var wg sync.WaitGroup
	wg.Go(func() { cancel(secure.ServeTLS(s.inband, "", "")) })
	wg.Go(func() { cancel(plain.Serve(s.boot)) })
	wg.Go(func() { cancel(mgr.Start(ctx)) })
	<-ctx.Done()
	// Close, not Shutdown: agents and BMCs are used to controllers that go.
	secure.Close()
	plain.Close()
	wg.Wait()
	s.pool.Close()
	s.err = context.Cause(ctx)
}

// Stop ends the controllers in good order.
func (s *controllers) Stop() {
	s.stop()
	<-s.ended
}

// Kill is the nearest thing to kill -9 in one process: every connection is cut
// first, so that nothing that is still said arrives anywhere.
func (s *controllers) Kill() {
	s.cut()
	s.stop()
	<-s.ended
}

func (s *controllers) cut() {
	s.conns.cut()
	for _, l := range []net.Listener{s.inband, s.boot} {
		if l != nil {
			l.Close()
		}
	}
	s.pool.Close()
}

// connections are the open connections to the Kubernetes API.
type connections struct {
	mu   sync.Mutex
	down bool
	open map[net.Conn]bool
}

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		conn.Close()
		return nil, net.ErrClosed
	}
	if c.open == nil {
		c.open = map[net.Conn]bool{}
	}
	t := &tracked{Conn: conn, of: c}
	c.open[t] = true
	return t, nil
}

func (c *connections) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = true
	for conn := range c.open {
		conn.(*tracked).Conn.Close()
	}
}

type tracked struct {
	net.Conn
	of *connections
}

func (t *tracked) Close() error {
	t.of.mu.Lock()
	delete(t.of.open, t)
	t.of.mu.Unlock()
	return t.Conn.Close()
}
