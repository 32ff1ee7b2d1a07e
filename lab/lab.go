// Package lab wires the emulated rack, the Kubernetes API, the controllers and,
// on servers that boot it, the agent: with one seed, one clock and one state
// directory. `labctl up` is Start. The package alone knows both sides of the wire,
// and it decides nothing that either side could decide.
package lab

import (
	"archive/zip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/outbound"
	"github.com/metalab-dev/metalab/emulator/rack/space"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/lab/helmpods"
	"github.com/metalab-dev/metalab/lab/ownapi"
	"github.com/metalab-dev/metalab/scenarios/images"
	"github.com/metalab-dev/metalab/scenarios/registry"
	"github.com/metalab-dev/metalab/scenarios/view"
)

const (
	// ImagesDir is the directory, in the state directory, whose files the lab
	// serves over HTTP.
	ImagesDir = "images"
	// ChartsDir is the directory, in the state directory, of Helm charts that a lab of the
	// family hoc serves beside the built-in ones.
	ChartsDir = "charts"
	// DemoImage is the name of the image that every lab serves.
	DemoImage = images.DemoRaw

	// KubeDir is the directory, in the state directory, of the Kubernetes API.
	KubeDir = "kube"

	controllerDir  = "controller"
	networkBootDir = "memory"
)

// AnyPort is a Config.Listen for tests: each lab's BMCs listen on a free port.
const AnyPort = "lo:0"

// Config configures a Lab.
type Config struct {
	Dir      string
	Settings Settings
	Fsync    bool // state survives a power cut, not only kill -9
	// AcceptLoss has the meaning of rack.Config.
	AcceptLoss bool
	Listen     string // address of the BMCs: see rack.Config
	Log        *slog.Logger
	// Schemas is the file name of DMTF's DSP8010 archive (zip), which the BMCs
	// serve; "" for none.
	Schemas string
	HTTP2   bool   // BMCs accept HTTP/2
	SSDP    string // network device on which BMCs answer SSDP; "" for none
	// Image is the agent's boot image. nil is one without a kernel: emulated
	// servers run the agent in this process.
	Image *netboot.Image
	// BuildPreprovisioningImage has the meaning of manager.Config.
	BuildPreprovisioningImage bool
	// Fatal, if not nil, is called with the reason when a part of the lab cannot go on
	// and ends the process. It must do that.
	Fatal func(error)
	// Progress, when set, is called with the name of each part, for people, before the part is
	// started.
	Progress func(text string)
	// Traces, if not nil, gets traces of the controllers' work on hosts.
	Traces trace.TracerProvider
	// Recording is the name of a file that gets a recording of the lab for its page, in gzip;
	// "" for none.
	Recording string
	// RecordingSnapshots saves snapshots of the lab at the beginning and at the end of the
	// recording in a directory beside it. They have all secrets of the lab.
	RecordingSnapshots bool
	// Fleet, if not nil, runs the hosts, and the lab runs what stands beside them. The
	// settings say that the lab is in shards then.
	Fleet Fleet
	// Gateway, if not nil, is the address that all BMCs of a shard share. Advertise is the DNS
	// name of the address of their own ports; "" for none.
	Gateway   *Gateway
	Advertise string
	// Remote, if not nil, is where programs elsewhere use the control API of a shard.
	Remote *Remote
	// Images, when set, wraps the handler of the image server.
	Images func(http.Handler) http.Handler
}

// Lab is a running lab with its Kubernetes API, controllers and agents.
type Lab struct {
	cfg      Config
	clock    *clock.Clock
	space    *space.Watch
	rack     *rack.Rack
	agents   *agents
	ports    ports
	identity inband.Identity
	images   net.Listener
	// kubeStarted is closed when the Kubernetes API answers.
	kubeStarted chan struct{}
	page        string           // URL of the lab's page, without a token; guarded by mu
	registry    *registry.Server // registry of OS images; nil without the family machineconfig
	process     helmpods.Process // that of the controllers, as the pods of Helm controllers have it
	view        *view.Server

	mu          sync.Mutex   // guards what others read while the lab starts
	kube        cluster      // zero without a Kubernetes API
	workloads   *ownapi.APIs // the APIs of Clusters; nil without their kinds
	controllers *controllers // nil while none run
	// elementalServer replaces the certificate of the Elemental API; nil means the lab's.
	elementalServer *elementalServer
	metrics         prometheus.Gatherer // metrics of the latest controllers; nil before the first
	started         bool                // controllers have had their ports
	drivers         map[string]bmc.Open // drivers of BMCs, by scheme; tests wrap them

	scaling    sync.Mutex // held while the number of shards changes
	stop       context.CancelCauseFunc
	goroutines sync.WaitGroup
	done       <-chan struct{}
	ctx        context.Context // context of all goroutines: Start's, with a cause
	stopOnce   sync.Once
	closers    []func() error // called in reverse order
}

var errStopped = errors.New("the lab has stopped")

// Start starts a Lab. It returns when the BMCs answer, the Kubernetes API is
// ready and the controllers run.
func Start(ctx context.Context, c Config) (_ *Lab, err error) {
	if err := c.Settings.Validate(); err != nil {
		return nil, err
	}
	if c.Recording != "" {
		if err := view.CheckFree(c.Recording, c.recordedSnapshots()); err != nil {
			return nil, fmt.Errorf("the recording: %w", err)
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	w := &Lab{cfg: c, kubeStarted: make(chan struct{})}
	w.ctx, w.stop = context.WithCancelCause(ctx)
	w.done = w.ctx.Done()
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Stop())
		}
	}()
	for _, start := range []func(context.Context) error{w.startLab, w.startGateway, w.startFleet, w.startImages, w.startControl, w.startView, w.startKube, w.startObjects, w.startNodes, w.startHelmPods, w.startMachineConfig, w.startClusterAPI, w.startWorkloads, w.startAgents} {
		if err := start(w.ctx); err != nil {
			return nil, err
		}
	}
	if c.Settings.Kube && !c.Settings.NoController {
		if err := w.StartControllers(w.ctx); err != nil {
			return nil, err
		}
	}
	w.process.Set(w.ControllersRunning())
	if err := w.writeFiles(); err != nil {
		return nil, err
	}
	return w, w.rack.SealFiles()
}

// startLab opens the lab and serves its BMCs.
func (l *Lab) startLab(ctx context.Context) error {
	l.cfg.Progress("the servers and their BMCs")
	last, err := rack.LastTime(l.cfg.Dir)
	if err != nil {
		return err
	}
	origin := clock.Wall()
	if last.After(origin) {
		origin = last
	}
	definition := l.cfg.Settings.Definition()
	factor, maxSpeed, err := definition.Speed.Factor()
	if err != nil {
		return err
	}
	if l.clock = clock.NewScaled(origin, factor); maxSpeed {
		l.clock = clock.NewJumping(origin)
	}
	l.cfg.Log = slog.New(labTimeHandler{Handler: l.cfg.Log.Handler(), clock: l.clock})
	ctrl.SetLogger(logr.FromSlogHandler(l.cfg.Log.Handler()))
	if l.cfg.Settings.Shards > 0 {
		l.cfg.Listen = AnyPort // at which no BMC is
	}
	systems := newSystems(l.clock, l.cfg.Log, filepath.Join(l.cfg.Dir, systemsDir), definition.Each(), sandbox.CheckLimits())
	systems.realTime = factor == 1 && !maxSpeed
	l.agents = newAgents(l.clock, l.cfg.Log, filepath.Join(l.cfg.Dir, networkBootDir), systems)
	if err := rack.KeepModels(l.cfg.Dir, l.cfg.Settings.Models); err != nil {
		return err
	}
	if err := l.watchSpace(); err != nil {
		return err
	}
	c := rack.Config{
		Space: l.space, Dir: l.cfg.Dir, Rack: &definition, Clock: l.clock, Fsync: l.cfg.Fsync, AcceptLoss: l.cfg.AcceptLoss,
		Listen: l.cfg.Listen, Media: outbound.Config{}, Events: l.agents.event, Log: l.cfg.Log,
		Advertise: l.cfg.Advertise, HTTP2: l.cfg.HTTP2, SSDP: l.cfg.SSDP, Files: stateFiles,
	}
	if l.cfg.Schemas != "" {
		schemas, err := zip.OpenReader(l.cfg.Schemas)
		if err != nil {
			return fmt.Errorf("schemas: %s: %w", l.cfg.Schemas, err)
		}
		l.closers = append(l.closers, schemas.Close)
		c.Schemas = schemas
	}
	if l.rack, err = rack.Open(ctx, c); err != nil {
		return err
	}
	l.closers = append(l.closers, l.rack.Close)
	if err := l.cfg.Settings.save(l.cfg.Dir); err != nil {
		return err
	}
	if l.ports, err = loadPorts(l.cfg.Dir); err != nil {
		return err
	}
	recorded, err := readRestore(l.cfg.Dir)
	if err != nil {
		return err
	}
	l.ports.keepImages(recorded)
	l.run(l.rack.Serve)
	return nil
}

// run calls serve in a goroutine until the lab ends. If serve returns before
// that, the lab ends with its error.
func (l *Lab) run(serve func(context.Context) error) {
	l.goroutines.Go(func() {
		err := serve(l.ctx)
		if l.ctx.Err() == nil {
			l.stop(err)
		}
	})
}

// startAgents starts the clock and the agents, after the controllers' servers that
// the agents connect to. What servers did when the lab was last stopped goes on.
func (l *Lab) startAgents(context.Context) error {
	l.run(l.clock.Run)
	l.agents.start()
	l.closers = append(l.closers, func() error { l.agents.stop(); return nil })
	return nil
}

// startImages serves the images directory, with the demo image, and the repository of
// charts by HTTP and HTTPS.
func (l *Lab) startImages(ctx context.Context) error {
	dir := filepath.Join(l.cfg.Dir, ImagesDir)
	if _, err := images.Ensure(dir); err != nil {
		return err
	}
	listener, err := listenWhereBefore(ctx, l.ports.Images, l.cfg.Log)
	if err != nil {
		return fmt.Errorf("the server of the images: %w", err)
	}
	l.images, l.ports.Images = listener, listener.Addr().String()
	l.agents.systems.image = func() string { return l.ImagesURL() + DemoImage }
	var h http.Handler = &images.Server{Dir: dir, Enter: l.clock.Enter}
	if l.cfg.Images != nil {
		h = l.cfg.Images(h)
	}
	if h, err = l.withCharts(h); err != nil {
		return err
	}
	h = l.withAgents(h)
	l.serve(listener, h)
	// Some BMCs fetch by HTTPS alone.
	cert, err := l.certificate("images")
	if err != nil {
		return err
	}
	if listener, err = listenWhereBefore(ctx, l.ports.SecureImages, l.cfg.Log); err != nil {
		return fmt.Errorf("the server of the images by HTTPS: %w", err)
	}
	l.ports.SecureImages = listener.Addr().String()
	l.serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12}), h)
	return nil
}

// certificate returns a certificate of the lab's CA for a server of the lab.
func (l *Lab) certificate(name string) (*tls.Certificate, error) {
	c, err := l.rack.Certificate(name, loopback.Addr())
	if err != nil {
		return nil, fmt.Errorf("certificate of the %s: %w", name, err)
	}
	return c, nil
}

// serve serves HTTP until the lab ends.
func (l *Lab) serve(listener net.Listener, h http.Handler) {
	srv := &http.Server{Handler: network.DefaultBodyPace.Handler(h), ReadHeaderTimeout: 30 * time.Second,
		ErrorLog: slog.NewLogLogger(l.cfg.Log.Handler(), slog.LevelDebug)}
	l.run(func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { srv.Close() })
		defer stop()
		return srv.Serve(listener)
	})
}

// bmcCAs returns the CAs that the controllers trust for BMCs: the system's and the
// lab's.
func (l *Lab) bmcCAs() *x509.CertPool { return l.rack.CAs() }

// Wait returns nil when ctx ends or the control API has stopped the lab, and the
// cause when the lab has ended because a part of it failed.
func (l *Lab) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.done:
	}
	if ctx.Err() != nil { // both have ended: w.ctx is its child
		return nil
	}
	return l.Failure()
}

// Failure returns the error of the part that has ended the lab, nil while it runs and when
// it was stopped.
func (l *Lab) Failure() error {
	err := context.Cause(l.ctx)
	if errors.Is(err, errStopped) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Stop ends all parts in the reverse order of their start, and returns when they
// have ended.
func (l *Lab) Stop() (err error) {
	l.stopOnce.Do(func() {
		if s := l.detachControllers(); s != nil {
			s.Stop()
		}
		l.stop(errStopped)
		if l.agents != nil {
			l.agents.stop()
		}
		l.goroutines.Wait()
		for i := len(l.closers) - 1; i >= 0; i-- {
			err = errors.Join(err, l.closers[i]())
		}
	})
	return err
}

// writeFiles writes the ports and the manifest of all servers to the state
// directory.
func (l *Lab) writeFiles() error {
	if err := l.ports.save(l.cfg.Dir); err != nil {
		return err
	}
	manifest := Manifest(l.Hosts())
	name := filepath.Join(l.cfg.Dir, HostsFile)
	if old, err := os.ReadFile(name); err == nil && string(old) == string(manifest) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return writeFile(name, manifest, 0o600)
}

// Rack returns the running rack.
func (l *Lab) Rack() *rack.Rack { return l.rack }

// Clock returns the lab's clock.
func (l *Lab) Clock() *clock.Clock { return l.clock }

// ImagesURL returns the base URL of the images, with a trailing slash.
func (l *Lab) ImagesURL() string { return "http://" + l.ports.Images + images.PathPrefix }

// SecureImagesURL returns the same by HTTPS.
func (l *Lab) SecureImagesURL() string {
	return "https://" + l.ports.SecureImages + images.PathPrefix
}

// APIConfig returns a configuration of clients of the Kubernetes API, with all rights.
func (l *Lab) APIConfig() (*rest.Config, error) {
	if l.kube.api == nil {
		return nil, errors.New("the lab has no Kubernetes API")
	}
	return rest.CopyConfig(l.kube.api), nil
}

// Kubernetes returns a client of the Kubernetes API with all rights.
func (l *Lab) Kubernetes() (client.WithWatch, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(rbacv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme)); err != nil { // for accounts of agents
		return nil, err
	}
	return client.NewWithWatch(l.kube.api, client.Options{Scheme: scheme})
}
