package lab

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/controller/mosk/provider/loadbalancer"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/lab/pxe"
)

// workers is how many objects each controller reconciles at a time, whatever the processors:
// reconciles mostly wait for emulated BMCs.
const workers = 8

// Scheme returns a scheme with every kind that the controllers read or write.
func Scheme() (*runtime.Scheme, error) { return manager.Scheme() }

// controllerConfig configures a set of controllers.
type controllerConfig struct {
	API      *rest.Config
	Identity inband.Identity
	RootCAs  *x509.CertPool // trusted for BMCs
	Clock    labClock
	Enter    func() func()
	Chance   func() float64
	Log      *slog.Logger
	Patience time.Duration // to wait for addresses that are in use
	Inband   string        // TCP address of the HTTPS server for agents
	Boot     string        // TCP address of the HTTP server for boot media
	// SecureBoot is the TCP address of the HTTPS server for boot media, and Certificate its
	// certificate.
	SecureBoot  string
	Certificate *tls.Certificate

	BuildPreprovisioningImage bool // see manager.Config
	Image                     *netboot.Image
	Net                       *pxe.Network        // the network that servers boot from
	Drivers                   map[string]bmc.Open // drivers of BMCs, by scheme; nil means all
	// DialControl connects to the Kubernetes API of a control machine.
	DialControl          func(context.Context, loadbalancer.Backend) (net.Conn, error)
	Registry             prometheus.Registerer // registers the controllers' metrics
	Traces               trace.TracerProvider  // see manager.Config
	Families             []string              // whose controllers run beside those of hosts
	Elemental            string                // TCP address of the Elemental API; "" means none
	LabCA                string                // PEM of the authority that has signed ElementalCertificate
	ElementalCertificate *tls.Certificate
	ModuleIndex          string // see manager.Config
	HelmChart            string // see manager.Config
	BuildImages          bool   // see manager.Config
}

// controllers are a running set of the controllers of controller/manager, with their
// connections, which Kill cuts.
type controllers struct {
	api    *rest.Config // wrapped in link
	link   apiConnection
	pool   *bmc.Pool
	set    *manager.Set
	queues *queue.Monitor
	inband net.Listener
	boot   net.Listener
	secure net.Listener // listens for requests of boot media over HTTPS
	// elemental is that of the Elemental API; nil means none.
	elemental net.Listener
	net       *netboot.Sockets
	stop      context.CancelFunc
	ended     chan struct{}
	err       error // result of the set's Run; read it after ended is closed
}

// startControllers starts a set of controllers. It returns when all its servers listen and
// its manager runs.
func startControllers(ctx context.Context, c controllerConfig) (_ *controllers, err error) {
	s := &controllers{ended: make(chan struct{}), pool: manager.BMCs(), queues: &queue.Monitor{}}
	if c.Drivers != nil {
		s.pool.Drivers = maps.Clone(c.Drivers)
	}
	for scheme, open := range s.pool.Drivers {
		s.pool.Drivers[scheme] = driverClock{c.Clock}.wrap(open)
	}
	ctx, s.stop = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			s.cut()
			s.stop()
		}
	}()
	if s.inband, err = listenPatiently(ctx, c.Patience, c.Inband, c.Log); err != nil {
		return nil, fmt.Errorf("the server for agents: %w", err)
	}
	if s.boot, err = listenPatiently(ctx, c.Patience, c.Boot, c.Log); err != nil {
		return nil, fmt.Errorf("the boot media server: %w", err)
	}
	if s.secure, err = listenPatiently(ctx, c.Patience, c.SecureBoot, c.Log); err != nil {
		return nil, fmt.Errorf("the boot media server (HTTPS): %w", err)
	}
	if s.net, err = (netboot.Ports{DHCP: loopback, TFTP: loopback}).Listen(ctx); err != nil {
		return nil, fmt.Errorf("the provisioning network: %w", err)
	}
	c.Net.Serve(portOf(s.net.DHCP), portOf(s.net.TFTP).Port())
	var elemental *manager.Elemental
	if c.Elemental != "" {
		if s.elemental, err = listenPatiently(ctx, c.Patience, c.Elemental, c.Log); err != nil {
			return nil, fmt.Errorf("the Elemental API: %w", err)
		}
		elemental = &manager.Elemental{
			Endpoint: manager.Endpoint{URL: "https://" + s.elemental.Addr().String(), Listener: s.elemental, Certificate: c.ElementalCertificate}, CA: c.LabCA, Seed: Seed,
		}
	}
	s.api = rest.CopyConfig(c.API)
	s.api.Wrap(s.link.wrap)
	s.set, err = manager.New(ctx, manager.Config{
		Workers: workers, Controllers: manager.NamesOf(c.Families...), ModuleIndex: c.ModuleIndex, HelmChart: c.HelmChart, BuildImages: c.BuildImages,
		API: s.api, Identity: c.Identity, BMCs: s.pool, RootCAs: c.RootCAs,
		Agents:   manager.Endpoint{URL: "https://" + s.inband.Addr().String(), Listener: s.inband},
		Media:    manager.Endpoint{URL: "http://" + s.boot.Addr().String(), Listener: s.boot},
		Secure:   manager.Endpoint{URL: "https://" + s.secure.Addr().String(), Listener: s.secure, Certificate: c.Certificate},
		Registry: c.Registry, Traces: c.Traces,
		Clock: c.Clock, ClientClock: clientClock{c.Clock.c}, Enter: c.Enter, Queues: s.queues, Chance: c.Chance, Log: logr.FromSlogHandler(c.Log.Handler()),
		BuildPreprovisioningImage: c.BuildPreprovisioningImage, Elemental: elemental,
		LoadBalancer: &manager.LoadBalancer{Networks: []netip.Prefix{balancerAddresses}, Dial: c.DialControl},
		Image:        c.Image, Network: &manager.Network{
			Network: netboot.Network{Server: loopback.Addr(), Pool: addresses}, Sockets: s.net, OnDHCP: c.Net.ReportExchange,
		},
	})
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(s.ended)
		defer s.stop() // also ends Wait below when the set fails
		s.err = s.set.Run(ctx)
	}()
	if !s.set.Wait(ctx) {
		s.stop()
		<-s.ended
		return nil, fmt.Errorf("the controllers did not start: %w", cmp.Or(s.err, context.Cause(ctx)))
	}
	return s, nil
}

// The provisioning network of a lab is on loopback. Its addresses are reserved for
// benchmarks of network devices (RFC 2544), so no real machine has them.
var (
	loopback  = netip.MustParseAddrPort("127.0.0.1:0")
	addresses = netip.MustParsePrefix("198.18.0.0/15")
)

func portOf(c *net.UDPConn) netip.AddrPort { return c.LocalAddr().(*net.UDPAddr).AddrPort() }

// Stop stops the controllers and waits until they have ended.
func (s *controllers) Stop() {
	s.stop()
	<-s.ended
}

// Kill ends the controllers as kill -9 would, as far as possible within one process: it
// first cuts every connection, so that nothing that the controllers still send arrives,
// and then stops them.
func (s *controllers) Kill() {
	s.cut()
	s.stop()
	<-s.ended
}

func (s *controllers) cut() {
	s.link.sever()
	if s.net != nil {
		s.net.Close()
	}
	for _, l := range []net.Listener{s.inband, s.boot, s.secure, s.elemental} {
		if l != nil {
			l.Close()
		}
	}
	s.pool.Close()
}

// StartControllers starts the controllers. It fails when they run already.
func (l *Lab) StartControllers(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.controllers != nil {
		return errors.New("the controllers run already")
	}
	l.cfg.Progress("the controllers")
	if l.identity.Key == nil {
		dir := filepath.Join(l.cfg.Dir, controllerDir)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		var err error
		if l.identity, err = inband.LoadIdentity(dir, clock.Wall(), net.IPv4(127, 0, 0, 1)); err != nil {
			return err
		}
	}
	cert, err := l.certificate("boot media")
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(l.rack.CAFile())
	if err != nil {
		return err
	}
	registrations := "" // no Elemental API
	if slices.Contains(l.cfg.Settings.Families(), config.Elemental) {
		registrations = cmp.Or(l.ports.Elemental, anyPort)
	}
	api := elementalServer{cert, string(ca)}
	if l.elementalServer != nil {
		api = *l.elementalServer
	}
	chance := rand.New(rand.NewPCG(l.rack.Definition().Seed, 0))
	var lock sync.Mutex
	var patience time.Duration
	if l.started {
		patience = portPatience
	}
	metrics := prometheus.NewRegistry()
	s, err := startControllers(ctx, controllerConfig{
		Registry: metrics, Traces: l.cfg.Traces,
		API: l.kube.api, Identity: l.identity, RootCAs: l.bmcCAs(), Clock: labClock{l.clock}, Enter: l.clock.Enter,
		Chance: func() float64 { lock.Lock(); defer lock.Unlock(); return chance.Float64() },
		Log:    l.cfg.Log, Patience: patience, Inband: l.ports.Inband, Boot: l.ports.Boot, SecureBoot: l.ports.SecureBoot, Certificate: cert, Image: l.cfg.Image, Net: l.agents.net,
		BuildPreprovisioningImage: l.cfg.BuildPreprovisioningImage, Drivers: l.drivers, DialControl: l.dialControl, Families: l.cfg.Settings.Families(), ModuleIndex: l.cfg.Settings.ModuleIndex,
		HelmChart: l.helmChart(),
		Elemental: registrations, ElementalCertificate: api.certificate, LabCA: api.ca, BuildImages: l.servesMachineConfig(),
	})
	if err != nil {
		return err
	}
	l.controllers, l.started, l.metrics = s, true, metrics
	l.process.Set(true)
	if s.elemental != nil {
		l.ports.Elemental = s.elemental.Addr().String()
	}
	l.ports.Inband, l.ports.Boot, l.ports.SecureBoot = s.inband.Addr().String(), s.boot.Addr().String(), s.secure.Addr().String()
	l.goroutines.Go(func() {
		<-s.ended
		l.mu.Lock()
		current := l.controllers == s
		l.mu.Unlock()
		if current && l.ctx.Err() == nil {
			l.stop(fmt.Errorf("the controllers have ended: %w", s.err))
		}
	})
	return nil
}

// KillControllers ends the controllers as kill -9 does: they finish nothing and
// write nothing more.
func (l *Lab) KillControllers() {
	if s := l.detachControllers(); s != nil {
		s.Kill()
		l.process.Set(l.ControllersRunning()) // not when the lab stops: its pods keep their state until it runs again
	}
}

// ControllersRunning reports whether controllers run.
func (l *Lab) ControllersRunning() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.controllers != nil
}

func (l *Lab) detachControllers() *controllers {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.controllers
	l.controllers = nil
	return s
}
