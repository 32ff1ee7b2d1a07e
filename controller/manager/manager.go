// Package manager runs our controllers against a Kubernetes API: which there
// are, what each is made with, the BMC drivers, the servers that agents and
// BMCs reach, leader election, metrics and probes. lab-controller is this
// package with flags; the lab runs the same on its own time.
//
// It refuses to know where the API is from and what time it is; and it does
// nothing to a host itself.
package manager

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/ipmi"
	"github.com/metalab-dev/metalab/controller/bmc/redfish"
	"github.com/metalab-dev/metalab/controller/host"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/netboot"
)

// Scheme knows every kind that the controllers work with.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(corev1.AddToScheme(s), admissionv1.AddToScheme(s), metal3.AddToScheme(s))
}

// BMCs makes the pool of connections to BMCs, with all drivers.
func BMCs() *bmc.Pool {
	return &bmc.Pool{Drivers: map[string]bmc.Open{"ipmi": ipmi.Open, "redfish": redfish.Open}}
}

// Config is what the controllers are run with.
type Config struct {
	API *rest.Config
	// Controllers are names out of Names; nil are all.
	Controllers []string
	Workers     int // objects that each controller works on at a time; 0 is 8
	Limit       int // as host.Config.Limit

	// Identity is what agents know us by. It outlives the process.
	Identity inband.Identity
	Agents   Endpoint // of agents, HTTPS
	Media    Endpoint // of boot media, HTTP: not every BMC fetches by HTTPS
	// Secure is that of the same boot media by HTTPS, for BMCs that fetch by
	// nothing else; the zero Endpoint is none.
	Secure Endpoint
	// Image is what servers boot; nil is one without a kernel, for emulated
	// servers.
	Image   *netboot.Image
	Network *Network // the provisioning network; nil: there is none

	// BuildPreprovisioningImage has an image built for the agent of each host
	// before it is booted (B-240).
	BuildPreprovisioningImage bool

	BMCs    *bmc.Pool      // nil is a pool of our own
	RootCAs *x509.CertPool // trusted for BMCs; nil are the system's

	Clock  clock.WithTicker // waits and backoffs; nil is the real one
	Chance func() float64   // in [0,1[; spreads backoffs; nil is random
	// Enter, when set, is called around each pass and each request; see the
	// lab's clock.
	Enter func() (leave func())

	// Election, when set, lets one of several processes work and the others
	// stand by.
	Election *Election
	Metrics  string // address to serve metrics on, HTTP; "" for nowhere
	Health   string // address to serve probes on, HTTP; "" for nowhere

	Log logr.Logger
}

// Election names the lease that the working process holds.
type Election struct {
	Namespace, Name string
	// How long a leader that is not heard of is waited for; 0 is 15 s.
	Patience time.Duration
}

// Set is the controllers that were asked for, with what belongs to them.
type Set struct {
	cfg    Config
	mgr    ctrl.Manager
	synced atomic.Bool
	hosts  *host.Reconciler // nil: not asked for
	media  *netboot.Server  // nil with it
	onLead []func(context.Context) error
	works  chan struct{} // closed when this process works and can be reached
}

// shutdown is how long what is under way gets at the end.
const shutdown = 10 * time.Second

// New makes the controllers. They do nothing before Run.
func New(ctx context.Context, c Config) (*Set, error) {
	chosen, err := choose(c.Controllers)
	if err != nil {
		return nil, err
	}
	if c.API == nil {
		return nil, errors.New("manager: Config.API is nil")
	}
	c.defaults()
	s := &Set{cfg: c, works: make(chan struct{})}
	if s.mgr, err = newManager(c); err != nil {
		return nil, err
	}
	if err := s.addProbes(); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	for _, kind := range chosen {
		if err := kind.add(ctx, s); err != nil {
			return nil, fmt.Errorf("manager: controller %s: %w", kind.name, err)
		}
	}
	if err := s.mgr.Add(ctrlmanager.RunnableFunc(s.announce)); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	return s, nil
}

// Cache is what the controllers know of the API's objects. Reading it costs the
// API nothing.
func (s *Set) Cache() client.Reader { return s.mgr.GetClient() }

func (c *Config) defaults() {
	if c.Workers == 0 {
		c.Workers = 8
	}
	if c.BMCs == nil {
		c.BMCs = BMCs()
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Chance == nil {
		c.Chance = rand.Float64
	}
}

func newManager(c Config) (ctrl.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	api := rest.CopyConfig(c.API)
	api.QPS = -1 // the API has fair queues of its own, where it needs any
	o := ctrl.Options{
		Scheme:                  scheme,
		Logger:                  c.Log,
		Metrics:                 server.Options{BindAddress: "0"},
		HealthProbeBindAddress:  c.Health,
		GracefulShutdownTimeout: ptr.To(shutdown),
		Cache:                   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	}
	if c.Metrics != "" {
		o.Metrics.BindAddress = c.Metrics
	}
	if e := c.Election; e != nil {
		o.LeaderElection, o.LeaderElectionNamespace, o.LeaderElectionID = true, e.Namespace, e.Name
		// Whoever runs the Set ends with it, or begins anew.
		o.LeaderElectionReleaseOnCancel = true
		if e.Patience > 0 { // in upstream's proportions of 15, 10 and 2 s
			o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = ptr.To(e.Patience), ptr.To(e.Patience*2/3), ptr.To(e.Patience*2/15)
		}
	}
	mgr, err := ctrl.NewManager(api, o)
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	return mgr, nil
}

// registry is where the controllers' own metrics go; nil where nobody reads
// them.
func (c *Config) registry() prometheus.Registerer {
	if c.Metrics == "" {
		return nil
	}
	return metrics.Registry
}

// addProbes answers /healthz while the process serves, and /readyz once it
// knows the API's objects. One that stands by is ready too: it is ready to take
// over.
func (s *Set) addProbes() error {
	if err := s.mgr.AddHealthzCheck("serves", healthz.Ping); err != nil {
		return err
	}
	return s.mgr.AddReadyzCheck("objects", s.ready)
}

// standby runs whether this process works or stands by.
type standby struct{ ctrlmanager.RunnableFunc }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (standby) NeedLeaderElection() bool { return false }

// Run works until ctx ends, or until what it needs is lost: the API's objects
// cannot be had, an endpoint cannot be opened, or another process leads.
func (s *Set) Run(ctx context.Context) error {
	defer s.cfg.BMCs.Close()
	err := s.mgr.Add(standby{func(ctx context.Context) error {
		s.synced.Store(s.mgr.GetCache().WaitForCacheSync(ctx))
		return nil
	}})
	if err == nil {
		err = s.mgr.Start(ctx)
	}
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	return nil
}

// Wait returns true when this process works, and false when ctx ends before
// that.
func (s *Set) Wait(ctx context.Context) bool {
	select {
	case <-s.works:
		return true
	case <-ctx.Done():
		return false
	}
}
