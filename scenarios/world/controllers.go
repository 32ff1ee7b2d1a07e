package world

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/controller/provider/loadbalancer"
	"github.com/metalab-dev/metalab/controller/queue"
	"github.com/metalab-dev/metalab/scenarios/world/pxe"
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
	Drivers                   map[string]bmc.Open // of BMCs, by scheme; nil means all
	// DialControl connects to the Kubernetes API of a control machine.
	DialControl func(context.Context, loadbalancer.Backend) (net.Conn, error)
	Families    []string // whose controllers run beside those of hosts
	ModuleIndex string   // see manager.Config
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
	secure net.Listener // of boot media over HTTPS
	net    *netboot.Sockets
	stop   context.CancelFunc
	ended  chan struct{}
	err    error // of the set's Run; read it after ended is closed
}

// portPatience is how long controllers that start again wait for their ports. A client of
// another lab may have got one for its connection meanwhile.
const portPatience = 20 * time.Second

// listen listens on a TCP address. It waits for one that is in use.
func listen(ctx context.Context, patience time.Duration, address string) (l net.Listener, err error) {
	const poll = 50 * time.Millisecond
	_ = wait.PollUntilContextTimeout(ctx, poll, patience, true, func(context.Context) (bool, error) {
		l, err = net.Listen("tcp", address)
		return !errors.Is(err, syscall.EADDRINUSE), nil
	})
	return l, err
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
	if s.inband, err = listen(ctx, c.Patience, c.Inband); err != nil {
		return nil, fmt.Errorf("world: the server for agents: %w", err)
	}
	if s.boot, err = listen(ctx, c.Patience, c.Boot); err != nil {
		return nil, fmt.Errorf("world: the boot media server: %w", err)
	}
	if s.secure, err = listen(ctx, c.Patience, c.SecureBoot); err != nil {
		return nil, fmt.Errorf("world: the boot media server (HTTPS): %w", err)
	}
	if s.net, err = (netboot.Ports{DHCP: loopback, TFTP: loopback}).Listen(ctx); err != nil {
		return nil, fmt.Errorf("world: the provisioning network: %w", err)
	}
	c.Net.Serve(portOf(s.net.DHCP), portOf(s.net.TFTP).Port())
	s.api = rest.CopyConfig(c.API)
	s.api.Wrap(s.link.wrap)
	s.set, err = manager.New(ctx, manager.Config{
		Workers: workers, Controllers: manager.NamesOf(c.Families...), ModuleIndex: c.ModuleIndex,
		API: s.api, Identity: c.Identity, BMCs: s.pool, RootCAs: c.RootCAs,
		Agents: manager.Endpoint{URL: "https://" + s.inband.Addr().String(), Listener: s.inband},
		Media:  manager.Endpoint{URL: "http://" + s.boot.Addr().String(), Listener: s.boot},
		Secure: manager.Endpoint{URL: "https://" + s.secure.Addr().String(), Listener: s.secure, Certificate: c.Certificate},
		Clock:  c.Clock, ClientClock: clientClock{c.Clock.c}, Enter: c.Enter, Queues: s.queues, Chance: c.Chance, Log: logr.FromSlogHandler(c.Log.Handler()),
		BuildPreprovisioningImage: c.BuildPreprovisioningImage,
		LoadBalancer:              &manager.LoadBalancer{Networks: []netip.Prefix{balancerAddresses}, Dial: c.DialControl},
		Image:                     c.Image, Network: &manager.Network{
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
		return nil, fmt.Errorf("world: the controllers did not start: %w", cmp.Or(s.err, context.Cause(ctx)))
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
	for _, l := range []net.Listener{s.inband, s.boot, s.secure} {
		if l != nil {
			l.Close()
		}
	}
	s.pool.Close()
}
