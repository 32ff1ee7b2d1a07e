package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/controller/netboot"
)

// options are the flags.
type options struct {
	kubeconfig    string
	namespace     string
	controllers   []string
	watched       []string // namespaces
	provisioning  string
	listen        string
	flags         *pflag.FlagSet
	concurrency   int
	limit         int
	requests      manager.RequestLimit
	ca            string
	secure        bool
	certificate   string
	elect         bool
	leaseDuration time.Duration
	metrics       string
	health        string
	identity      string
	verbose       bool
	image         string
	dhcp          networkFlags
	preprov       bool
	moduleIndex   string
	machineAPI    string
	machineAPICA  string
	elemental     elementalFlags
	helm          helmFlags

	// Set by resolve.
	network    *manager.Network // from dhcp
	at         netip.AddrPort   // from provisioning
	listenAddr netip.AddrPort   // from listen; at when listen is empty
}

const (
	// agentPort is the default port for agents. The next port serves boot media over HTTP,
	// and the one after over HTTPS.
	agentPort = 6385

	leaseName        = "lab-controller"
	defaultNamespace = "metalab-system"
	// namespaceFile contains a pod's namespace.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

func defaults() *options {
	return &options{
		controllers: manager.NamesOf(), concurrency: manager.DefaultWorkers(runtime.NumCPU()), limit: 20, requests: manager.RequestLimit{PerSecond: 20, Burst: 30}, elect: true, secure: true, leaseDuration: 15 * time.Second,
		metrics: "127.0.0.1:8085", health: "127.0.0.1:9440", identity: "lab-controller-identity",
	}
}

func (o *options) bind(f *pflag.FlagSet) {
	o.flags = f
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default: $KUBECONFIG, else that of the pod)")
	f.StringVar(&o.namespace, "namespace", "", "namespace of the lease and of the identity Secret (default: the pod's, else "+defaultNamespace+")")
	f.StringSliceVar(&o.watched, watchFlag, nil, "namespaces of the hosts to work on, also $"+watchEnv+" (default: all); the account needs rights in no other")
	f.StringSliceVar(&o.controllers, "controllers", o.controllers, "controllers to run, of "+strings.Join(manager.Names(), ", ")+"; those that are not in the default need the definitions of their family: controller/config/hoc, controller/config/elemental")
	f.StringVar(&o.provisioning, "provisioning-address", "", fmt.Sprintf("IP[:PORT] at which servers reach this process; agents use PORT (default: %d), BMCs the next two", agentPort))
	f.StringVar(&o.listen, "listen", "", "IP[:PORT] to listen on for servers, where it differs (default: the provisioning address)")
	f.IntVar(&o.concurrency, concurrencyFlag, o.concurrency, "objects that each controller reconciles at a time, also $"+concurrencyEnv)
	f.IntVar(&o.limit, limitFlag, o.limit, "hosts that boot by the network at a time, also $"+limitEnv+"; the others are delayed (-1: no limit)")
	f.Float32Var(&o.requests.PerSecond, "kube-api-qps", o.requests.PerSecond, "requests to the cluster's API per second, on average (0: no limit)")
	f.IntVar(&o.requests.Burst, "kube-api-burst", o.requests.Burst, "requests to the cluster's API at once, before the average counts")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "concurrency" { // its former name
			name = concurrencyFlag
		}
		return pflag.NormalizedName(name)
	})
	f.StringVar(&o.ca, "ca", "", "file of PEM certificates that are trusted for BMCs in addition to the system's")
	f.BoolVar(&o.secure, "media-https", o.secure, "serve boot media by HTTPS, too, for BMCs that do not fetch over HTTP: two ports after the agents'")
	f.StringVar(&o.certificate, "media-certificate", "", "PEM file with the certificate and key of that server (default: a certificate of the controller's own authority, for BMCs that do not verify it)")
	f.BoolVar(&o.elect, "leader-elect", o.elect, "elect a leader among several processes; the others stand by")
	f.DurationVar(&o.leaseDuration, "lease-duration", o.leaseDuration, "how long to wait for a leader that does not renew its lease")
	f.StringVar(&o.metrics, "metrics-address", o.metrics, "address of /metrics: by HTTP on loopback, elsewhere by HTTPS for accounts of the cluster that may get the path; 0 for none")
	f.StringVar(&o.health, "health-address", o.health, "address of /healthz and /readyz, likewise; 0 for none")
	f.StringVar(&o.identity, "identity-secret", o.identity, "Secret with the controllers' identity for agents; it is created if it does not exist")
	f.StringVar(&o.image, "agent-image", "", "directory that labctl image build agent has made; without it only emulated servers run an agent")
	o.dhcp.bind(f)
	f.BoolVar(&o.preprov, "build-preprov-image", false, "create a PreprovisioningImage for each host before its agent is booted")
	f.StringVar(&o.moduleIndex, "module-index", "", "URL or file of the vendor's index of host OS modules, which the controller hostos makes its list of; modules without url are beside it")
	f.StringVar(&o.machineAPI, "machine-api-url", "", "HTTPS URL at which the agents on machines reach the cluster's API (default: the URL that this process uses)")
	f.StringVar(&o.machineAPICA, "machine-api-ca", "", "file of PEM certificates that these agents trust for it (default: those that this process trusts)")
	o.elemental.bind(f)
	o.helm.bind(f)
	f.BoolVar(&o.verbose, "verbose", false, "log each decision")
}

// resolve validates the flags and sets the fields that are derived from them.
func (o *options) resolve() error {
	if err := manager.Check(o.controllers); err != nil {
		return fmt.Errorf("--controllers: %w", err)
	}
	if err := o.resolveHelm(); err != nil {
		return err
	}
	if o.helm.bundle == "" {
		if err := o.resolveAddresses(); err != nil {
			return err
		}
	}
	if err := o.resolveLimits(); err != nil {
		return err
	}
	if err := o.resolveWatched(); err != nil {
		return err
	}
	if err := checkMachineAPI(o.machineAPI); err != nil {
		return err
	}
	if err := o.elemental.check(o.controllers, o.at, o.listenAddr); err != nil {
		return err
	}
	if o.certificate != "" && !o.secure {
		return errors.New("--media-certificate needs HTTPS: remove --media-https=false")
	}
	if o.leaseDuration < 3*time.Second {
		return fmt.Errorf("--lease-duration %s: use 3s or more", o.leaseDuration)
	}
	if o.metrics == "0" {
		o.metrics = ""
	}
	if o.health == "0" {
		o.health = ""
	}
	if o.namespace == "" {
		switch b, err := os.ReadFile(namespaceFile); {
		case err == nil:
			o.namespace = strings.TrimSpace(string(b))
		case errors.Is(err, fs.ErrNotExist):
			o.namespace = defaultNamespace
		default:
			return fmt.Errorf("--namespace: %w", err)
		}
	}
	return nil
}

// resolveAddresses validates the addresses at which servers reach this process.
func (o *options) resolveAddresses() (err error) {
	if o.provisioning == "" {
		return errors.New("--provisioning-address is missing: name the address at which servers reach this machine")
	}
	if o.at, err = parseAddress(o.provisioning); err != nil {
		return fmt.Errorf("--provisioning-address %w", err)
	}
	if o.at.Addr().IsUnspecified() {
		return fmt.Errorf("--provisioning-address %s: servers cannot reach that: name an address of this machine", o.provisioning)
	}
	if o.listenAddr = o.at; o.listen != "" {
		if o.listenAddr, err = parseAddress(o.listen); err != nil {
			return fmt.Errorf("--listen %w", err)
		}
	}
	o.network, err = o.dhcp.network(o.at.Addr(), o.listenAddr.Addr())
	return err
}

// Flags, and the variables of the environment that upstream's controller reads for them.
const (
	concurrencyFlag, concurrencyEnv = "controller-concurrency", "BMO_CONCURRENCY"
	limitFlag, limitEnv             = "provisioning-limit", "PROVISIONING_LIMIT"
)

// resolveLimits validates the limits, which the environment sets where a flag does not (B-07,
// B-73).
func (o *options) resolveLimits() error {
	for flag, env := range map[string]string{concurrencyFlag: concurrencyEnv, limitFlag: limitEnv} { // in any order: each flag is resolved alone
		text := os.Getenv(env)
		if text == "" || o.flags.Changed(flag) {
			continue
		}
		if err := o.flags.Set(flag, text); err != nil {
			return fmt.Errorf("%s=%s in the environment is no number, as --%s needs one", env, text, flag)
		}
	}
	if o.concurrency < 1 {
		return fmt.Errorf("--%s %d: use 1 or more", concurrencyFlag, o.concurrency)
	}
	if o.limit == 0 || o.limit < -1 {
		return fmt.Errorf("--%s %d: use 1 or more, or -1 for no limit", limitFlag, o.limit)
	}
	if o.requests.PerSecond < 0 || o.requests.PerSecond > 0 && o.requests.Burst < 1 {
		return fmt.Errorf("--kube-api-qps %v, --kube-api-burst %d: use 1 or more of both, or --kube-api-qps 0 for no limit", o.requests.PerSecond, o.requests.Burst)
	}
	return nil
}

// The flag, and the variable of the environment that upstream's controller reads for it.
const watchFlag, watchEnv = "watch-namespaces", "WATCH_NAMESPACE"

// resolveWatched validates the namespaces, which the environment names where the flag does
// not.
func (o *options) resolveWatched() error {
	from, names := "--"+watchFlag, o.watched
	if text := os.Getenv(watchEnv); text != "" && !o.flags.Changed(watchFlag) {
		from, names = watchEnv+" in the environment", strings.Split(text, ",")
	}
	o.watched = nil
	for _, name := range names {
		name = strings.TrimSpace(name)
		if len(validation.IsDNS1123Label(name)) > 0 {
			return fmt.Errorf("%s: %q is not the name of a namespace: use names of lower-case letters, digits and -, separated by commas", from, name)
		}
		if !slices.Contains(o.watched, name) {
			o.watched = append(o.watched, name)
		}
	}
	if o.flags.Changed(watchFlag) && len(o.watched) == 0 { // not all: the flag restricts
		return fmt.Errorf("--%s names no namespace: leave it out to watch all", watchFlag)
	}
	return nil
}

// parseAddress parses IP[:PORT]. The two ports after PORT have to be valid, too.
func parseAddress(s string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(s)
	if err != nil {
		var ip netip.Addr
		if ip, err = netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")); err != nil {
			return at, fmt.Errorf("%q: use IP or IP:PORT", s)
		}
		at = netip.AddrPortFrom(ip, agentPort)
	}
	if at.Port() == 0 || at.Port() > 65533 {
		return at, fmt.Errorf("%q: use a port from 1 to 65533: the next two are used, too", s)
	}
	if at.Addr().Zone() != "" || at.Addr().IsMulticast() {
		return at, fmt.Errorf("%q: use an address that servers can reach", s)
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), nil
}

func next(at netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(at.Addr(), at.Port()+1) }

// endpoints returns the addresses of the servers for agents and for boot media over HTTP
// and HTTPS. secure has no URL when --media-https is false.
func (o *options) endpoints() (agents, media, secure manager.Endpoint) {
	agents = manager.Endpoint{URL: "https://" + o.at.String(), Address: o.listenAddr.String()}
	media = manager.Endpoint{URL: "http://" + next(o.at).String(), Address: next(o.listenAddr).String()}
	if o.secure {
		secure = manager.Endpoint{URL: "https://" + next(next(o.at)).String(), Address: next(next(o.listenAddr)).String()}
	}
	return agents, media, secure
}

// checkMachineAPI validates --machine-api-url: agents send their tokens to it.
func checkMachineAPI(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("--machine-api-url %q: use https://HOST[:PORT][/PATH]", text)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsUnspecified() {
		return fmt.Errorf("--machine-api-url %s: machines cannot reach that: name an address of the API", text)
	}
	return nil
}

// machineCA returns the certificates of --machine-api-ca, nil when the flag is not set.
func (o *options) machineCA() ([]byte, error) {
	if o.machineAPICA == "" {
		return nil, nil
	}
	b, err := os.ReadFile(o.machineAPICA)
	if err != nil {
		return nil, fmt.Errorf("--machine-api-ca: %w", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("--machine-api-ca %s: the file has no PEM certificate", o.machineAPICA)
	}
	return b, nil
}

// mediaCertificate returns the certificate of --media-certificate, nil when the flag is
// not set.
func (o *options) mediaCertificate() (*tls.Certificate, error) {
	if o.certificate == "" {
		return nil, nil
	}
	c, err := tls.LoadX509KeyPair(o.certificate, o.certificate)
	if err != nil {
		return nil, fmt.Errorf("--media-certificate %s: %w", o.certificate, err)
	}
	return &c, nil
}

// config returns the configuration of the controllers.
func (o *options) config(ctx context.Context, log logr.Logger) (manager.Config, error) {
	c := manager.Config{Controllers: o.controllers, Namespaces: o.watched, Requests: o.requests, Workers: o.concurrency, Limit: o.limit, Metrics: o.metrics, Health: o.health, Log: log}
	if o.helm.bundle != "" {
		return o.configHelm(c)
	}
	c.Agents, c.Media, c.Secure = o.endpoints()
	c.Network = o.network
	c.BuildPreprovisioningImage = o.preprov
	c.ModuleIndex = o.moduleIndex
	c.MachineAPI.URL = o.machineAPI
	var err error
	if c.MachineAPI.CA, err = o.machineCA(); err != nil {
		return c, err
	}
	if c.Secure.Certificate, err = o.mediaCertificate(); err != nil {
		return c, err
	}
	if o.image != "" {
		if c.Image, err = netboot.LoadImage(o.image); err != nil {
			return c, fmt.Errorf("--agent-image: %w", err)
		}
	}
	if c.RootCAs, err = o.trust(); err != nil {
		return c, err
	}
	if c.API, err = o.cluster(); err != nil {
		return c, err
	}
	if o.elect {
		c.Election = &manager.Election{Namespace: o.namespace, Name: leaseName, LeaseDuration: o.leaseDuration}
	}
	scheme, err := manager.Scheme()
	if err != nil {
		return c, err
	}
	kube, err := client.New(c.API, client.Options{Scheme: scheme})
	if err != nil {
		return c, fmt.Errorf("the cluster: %w", err)
	}
	at := client.ObjectKey{Namespace: o.namespace, Name: o.identity}
	if c.Identity, err = manager.Identity(ctx, kube, at, time.Now(), net.IP(o.at.Addr().AsSlice())); err != nil {
		return c, err
	}
	c.Elemental, err = o.elemental.config(o.controllers, o.at, o.listenAddr, c.Identity)
	return c, err
}

// cluster returns the configuration of clients of the cluster's API.
func (o *options) cluster() (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: o.kubeconfig}
	if env := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); o.kubeconfig == "" && env != "" {
		rules.Precedence = filepath.SplitList(env)
	} else if o.kubeconfig == "" {
		c, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("this process does not run in a pod of a cluster: give --kubeconfig")
		}
		return c, err
	}
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", o.kubeconfig, err)
	}
	return c, nil
}

// trust returns the certificate authorities that are trusted for BMCs, nil when they are
// the system's.
func (o *options) trust() (*x509.CertPool, error) {
	if o.ca == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(o.ca)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("--ca: the system's: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--ca %s: the file has no PEM certificate", o.ca)
	}
	return pool, nil
}
