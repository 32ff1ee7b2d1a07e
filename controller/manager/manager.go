// Package manager wires the controllers and runs them against a Kubernetes API. It
// holds the table of controllers, and sets up the BMC drivers, the HTTP servers for
// agents and BMCs, leader election, metrics and health probes. lab-controller is this
// package with flags; a lab runs it on the lab's clock.
//
// The package does not choose the API or the clock: both are in its Config. It does not
// work on hosts itself: its controllers do.
package manager

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
	iamv1 "github.com/metalab-dev/metalab/controller/api/iam/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/ipmi"
	"github.com/metalab-dev/metalab/controller/bmc/redfish"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/metal3/host"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Scheme returns a scheme with every kind that the controllers read or write.
func Scheme() (*kuberuntime.Scheme, error) {
	s := kuberuntime.NewScheme()
	return s, errors.Join(
		corev1.AddToScheme(s), rbacv1.AddToScheme(s), authenticationv1.AddToScheme(s), admissionv1.AddToScheme(s), metal3.AddToScheme(s),
		coordinationv1.AddToScheme(s), policyv1.AddToScheme(s), // kinds for the drains of nodes
		kaasv1.AddToScheme(s), lcmv1.AddToScheme(s), iamv1.AddToScheme(s), clusterv1.AddToScheme(s), ipamv1.AddToScheme(s), hostprofilev1.AddToScheme(s),
		mcv1.Install(s), operatorv1.Install(s), batchv1.AddToScheme(s), // kinds for machine configuration
		elementalv1.AddToScheme(s), capi.AddToScheme(s),
	)
}

// BMCs returns an empty pool of BMC connections with all drivers.
func BMCs() *bmc.Pool {
	return &bmc.Pool{Drivers: map[string]bmc.Open{"ipmi": ipmi.Open, "redfish": redfish.Open}}
}

// Config configures a Set.
type Config struct {
	API *rest.Config
	// Requests limits the requests to the API; the zero value means no limit.
	Requests RequestLimit
	// Controllers selects controllers by their Names; nil selects those of hosts.
	Controllers []string
	// Namespaces are those whose objects the controllers work on; empty means all.
	Namespaces []string
	Workers    int // objects that each controller reconciles at a time; 0 means DefaultWorkers
	Limit      int // see host.Config.Limit

	// Identity holds the key and certificate by which agents know the controllers. It
	// is the same for every process of a cluster.
	Identity inband.Identity
	Agents   Endpoint // HTTPS server for agents
	Media    Endpoint // HTTP server for boot media: some BMCs do not fetch over HTTPS
	// Secure is the HTTPS server for the same boot media, for BMCs that do not fetch
	// over HTTP. The zero Endpoint means none.
	Secure Endpoint
	// Image is the agent image that servers boot. Nil means an image without a kernel,
	// which only emulated servers boot.
	Image   *netboot.Image
	Network *Network // the provisioning network; nil means none

	// BuildPreprovisioningImage makes a PreprovisioningImage for each host before its
	// agent is booted (B-240).
	BuildPreprovisioningImage bool

	// ModuleIndex is the file or URL of the vendor's index of host OS modules; "" means none.
	ModuleIndex string

	// HelmChart is the URL of the chart of the Helm controllers of Clusters whose ClusterRelease
	// names none: see clusters.Config.
	HelmChart string

	// Helm, if not nil, makes the controller helm that of one cluster.
	Helm *HelmOfCluster

	Elemental *Elemental // the API for servers that register themselves; nil means none

	LoadBalancer *LoadBalancer // nil means that others make those of Clusters

	// BuildImages makes the controllers do the Jobs of operating system images themselves:
	// no node of the API runs pods.
	BuildImages bool

	// MachineAPI is the API as the agents on machines reach it. The zero value means as
	// these controllers do.
	MachineAPI MachineAPI

	BMCs    *bmc.Pool      // nil means the pool that BMCs returns
	RootCAs *x509.CertPool // trusted for BMCs; nil means the system's

	Clock clock.WithTicker // for waits and backoffs; nil means the real clock
	// ClientClock bounds what fails and is tried again, see queue.Config; nil means the
	// real clock.
	ClientClock queue.ClientClock
	Chance      func() float64 // returns a number in [0,1) to spread backoffs; nil means random
	// Enter, when set, is called before each reconcile and each HTTP request, and its
	// result after it. A lab's virtual clock counts the work in progress this way.
	Enter func() (leave func())
	// Queues, when set, knows the controllers' work queues: see queue.Monitor.
	Queues *queue.Monitor

	// Election, when set, makes one of several processes the leader. The others stand
	// by.
	Election *Election
	// Metrics and Health are the addresses of the metrics and of the health probes; ""
	// means none. They are served by HTTP on loopback, and elsewhere by HTTPS to accounts of
	// the cluster that may get their paths.
	Metrics, Health string
	// Registry gets the controllers' metrics; nil means controller-runtime's when Metrics is
	// set, else none.
	Registry prometheus.Registerer
	writes   *apiWrites // nil without metrics
	// Traces, if not nil, gets traces of the work on hosts: see controller/tracing.
	Traces trace.TracerProvider
	// ProtectLoopback makes loopback an address like any other.
	ProtectLoopback bool

	Log logr.Logger
}

// RequestLimit limits the requests of a client to an API server.
type RequestLimit struct {
	PerSecond float32 // on average; 0 means no limit
	Burst     int     // at once, before the average counts
}

// DefaultWorkers returns how many objects a controller reconciles at a time on a machine
// with so many processors: as many, but at least two and at most eight (B-07).
func DefaultWorkers(processors int) int { return min(max(processors, 2), 8) }

// Election names the Lease that the leader holds.
type Election struct {
	Namespace, Name string
	// LeaseDuration is how long the other processes wait for a leader that does not
	// renew its lease; 0 means 15 s.
	LeaseDuration time.Duration
}

// Set is the selected controllers and the servers that belong to them.
type Set struct {
	cfg     Config
	mgr     ctrl.Manager
	synced  atomic.Bool      // the caches have been filled
	hosts   *host.Reconciler // nil when the controller host is not selected
	media   *netboot.Server  // nil when hosts is
	hooks   *http.ServeMux   // routes of the server for agents, with the webhooks; nil when hosts is
	onLead  []func(context.Context) error
	apis    *workload.APIs // nil before the first controller needs them
	leading chan struct{}  // closed once this process leads and its servers can be reached
}

// shutdownTimeout is how long reconciles in progress get when the Set stops.
const shutdownTimeout = 10 * time.Second

// New returns the selected controllers. They do nothing before Run.
func New(ctx context.Context, c Config) (*Set, error) {
	selected, err := selectControllers(c.Controllers)
	if err != nil {
		return nil, err
	}
	if c.API == nil {
		return nil, errors.New("Config.API is nil")
	}
	if err := c.checkHelm(selected); err != nil {
		return nil, err
	}
	c.defaults()
	if reg := c.registry(); reg != nil {
		c.writes = newAPIWrites()
		if err := reg.Register(c.writes.count); err != nil {
			return nil, fmt.Errorf("metrics of writes: %w", err)
		}
	}
	s := &Set{cfg: c, leading: make(chan struct{})}
	if s.mgr, err = newManager(c); err != nil {
		return nil, err
	}
	if err := s.addProbes(c.api()); err != nil {
		return nil, err
	}
	if reg := c.registry(); reg != nil && slices.ContainsFunc(selected, func(c controller) bool { return c.name == "host" }) {
		if err := newHostStates(c.Clock).watch(ctx, s.mgr.GetCache(), reg); err != nil {
			return nil, err
		}
	}
	for _, c := range selected {
		if err := c.add(ctx, s); err != nil {
			return nil, fmt.Errorf("controller %s: %w", c.name, err)
		}
	}
	if err := s.mgr.Add(ctrlmanager.RunnableFunc(s.lead)); err != nil {
		return nil, err
	}
	return s, nil
}

// Cache returns a reader of the controllers' cache of the API's objects.
func (s *Set) Cache() client.Reader { return s.mgr.GetClient() }

func (c *Config) defaults() {
	if c.Workers == 0 {
		c.Workers = DefaultWorkers(runtime.NumCPU())
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
		return nil, err
	}
	o := ctrl.Options{
		Scheme:                  scheme,
		Logger:                  c.Log,
		Metrics:                 c.metricsOptions(),
		GracefulShutdownTimeout: ptr.To(shutdownTimeout),
		Cache:                   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	}
	if slices.Contains(c.Controllers, machineConfigController) { // whose builds are in one namespace, whatever Namespaces are
		o.Cache.ByObject = map[client.Object]cache.ByObject{&batchv1.Job{}: {Namespaces: map[string]cache.Config{machineconfig.Namespace: {}}}}
	}
	c.helmCache(&o.Cache)
	if len(c.Namespaces) > 0 {
		o.Cache.DefaultNamespaces = map[string]cache.Config{}
		for _, name := range c.Namespaces {
			o.Cache.DefaultNamespaces[name] = cache.Config{}
		}
	}
	if !c.protects(c.Health) {
		o.HealthProbeBindAddress = c.Health
	}
	if e := c.Election; e != nil {
		o.LeaderElection, o.LeaderElectionNamespace, o.LeaderElectionID = true, e.Namespace, e.Name
		// Safe, because the process does nothing more for the Set after Run has returned.
		o.LeaderElectionReleaseOnCancel = true
		if d := e.LeaseDuration; d > 0 { // in upstream's proportions of 15, 10 and 2 s
			o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = ptr.To(d), ptr.To(d*2/3), ptr.To(d*2/15)
		}
	}
	mgr, err := ctrl.NewManager(c.api(), o)
	if err != nil {
		return nil, err
	}
	return mgr, nil
}

// api returns the configuration of the clients of the API.
func (c *Config) api() *rest.Config {
	api := rest.CopyConfig(c.API)
	if api.QPS, api.Burst = c.Requests.PerSecond, c.Requests.Burst; api.QPS == 0 {
		api.QPS = -1 // no client-side limit: the API server limits requests where it needs to
	}
	if c.writes != nil {
		api.Wrap(c.writes.wrap)
	}
	return api
}

// registry returns where the controllers register their own metrics, nil when metrics
// are not served.
func (c *Config) registry() prometheus.Registerer {
	switch {
	case c.Registry != nil:
		return c.Registry
	case c.Metrics == "":
		return nil
	}
	return metrics.Registry
}

// standby is a Runnable that also runs while this process does not lead.
type standby struct{ ctrlmanager.RunnableFunc }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (standby) NeedLeaderElection() bool { return false }

// Run runs the controllers until ctx ends. It returns an error when the caches cannot be
// filled, a server cannot listen, or this process loses the lease.
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
		return err
	}
	return nil
}

// Wait returns true once this process leads and its controllers run, or false when ctx
// ends before that.
func (s *Set) Wait(ctx context.Context) bool {
	select {
	case <-s.leading:
		return true
	case <-ctx.Done():
		return false
	}
}

// work returns how the controllers reconcile.
func (c *Config) work() queue.Work {
	return queue.Work{Clock: c.Clock, Workers: c.Workers, Enter: c.Enter, ClientClock: c.ClientClock, Queues: c.Queues}
}
