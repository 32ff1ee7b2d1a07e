// Package kube runs a Kubernetes API inside the process, for a lab without a cluster. The
// API is upstream's generic control plane (namespaces, secrets, config maps, events,
// leases, service accounts, RBAC, admission, server-side apply and custom resources) over
// an embedded etcd, with upstream's controllers for garbage collection, namespaces and
// service accounts. With Config.Nodes it has the kinds of a cluster that has nodes, too. The
// package writes a kubeconfig for the API. Install applies the definitions and policies of
// controller/config to this API or to any cluster.
//
// The package does not know what the resources mean. It is the only one that links
// k8s.io/kubernetes, which takes minutes to build from scratch: a package that is only a
// client of an API must not import it.
//
// upstream.go lists the details of Kubernetes and etcd that the package depends on, and
// what to check at an upgrade. The code that exists for speed alone is in the files
// fastpath*.go, behind Config.FastPaths.
package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/client-go/rest"

	"github.com/metalab-dev/metalab/controller/config"
)

// Config configures an API.
type Config struct {
	// Dir is the state folder: it holds etcd's data, the keys and the kubeconfig. Start
	// creates it with mode 0700 if it does not exist. Only its owner can read its files.
	Dir string

	// Fsync makes every write reach the disk before its response is sent. Without it
	// the state survives kill -9, but not a power cut.
	Fsync bool

	// Listen is the TCP address of the API, 127.0.0.1:0 when empty. For port 0 Start
	// reuses the port of the last run on Dir, so that older kubeconfigs stay valid, or
	// chooses a free one when that port is in use.
	Listen string

	// Space, if not nil, returns an error while there is too little space on the disk. The
	// API then refuses requests that change something, with that error's text and status
	// 507: etcd cannot go on when a write fails.
	Space func() error

	// Fatal, if not nil, is called with the reason when etcd cannot go on, such as a disk
	// that does not take its writes any more. It must end the process: etcd would. Without
	// Fatal the process panics.
	Fatal func(error)

	// FastPaths serves custom resources with the code in fastpath*.go. Without it the API
	// is upstream's: it behaves the same, but takes more processor time and memory.
	FastPaths bool

	// Families are the kinds that are installed beside those of hosts: see config.Families.
	Families []string

	// Workload makes the API that of a cluster which LCM deploys: config.WorkloadCRDs are installed
	// in place of the kinds and policies of hosts and Families.
	Workload bool

	// Nodes serves the kinds of a cluster that has nodes, too: Node, Pod with its status,
	// binding and eviction, Service, PersistentVolume and PersistentVolumeClaim, and apps,
	// batch, policy and networking v1, with the controller of PodDisruptionBudgets. There is
	// no scheduler, kubelet or controller of workloads: what a client does not bind does
	// not run.
	Nodes bool // see config.NeedNodes

	// Log gets the errors of etcd and of the Kubernetes components, and at verbosity 1
	// their errors while the API starts and stops; the zero Logger drops them. Upstream
	// has one logger per process: of several APIs, the one started last gets the errors
	// that do not say which API they belong to.
	Log logr.Logger
}

// API is a running Kubernetes API.
type API struct {
	rest       *rest.Config
	kubeconfig string
	etcd       *embed.Etcd
	server     *apiServer
	errors     *reporter

	undo []func() error // closes the parts that Start has opened, in the order of their start
	stop context.CancelFunc
	done chan struct{}
	err  error // written before done is closed
}

// bootTimeout limits each wait of Start. A start takes about 2 s on a quiet machine, but
// much longer on a loaded one.
const bootTimeout = 2 * time.Minute

// Start starts an API and returns when it is ready: /readyz succeeds, the namespace
// default exists, the definitions of controller/config are established, their policies
// are in force, and the controllers run.
//
// The API stops when ctx ends, as with Stop. When ctx ends during Start, Start returns
// only after upstream's start hooks have ended, because upstream exits the process when
// one of them is interrupted.
func Start(ctx context.Context, c Config) (*API, error) {
	ctx, stop := context.WithCancel(ctx)
	a := &API{errors: &reporter{log: c.Log, fatal: c.Fatal, dir: c.Dir}, stop: stop, done: make(chan struct{})}
	if err := a.open(ctx, c); err != nil {
		stop()
		return nil, errors.Join(err, a.close())
	}
	a.errors.ready.Store(true)
	go a.supervise(ctx)
	return a, nil
}

// open starts the parts one after the other. After an error the caller closes the parts
// that have been started.
func (a *API) open(ctx context.Context, c Config) error {
	redirectLogs(a.errors)
	dir, sockets, err := a.claim(ctx, c.Dir)
	if err != nil {
		return err
	}
	ln, err := listen(dir, c.Listen)
	if err != nil {
		return err
	}
	// The server closes its listener itself, but only after it has started to serve.
	a.onClose(func() error { _ = ln.Close(); return nil })
	addr := ln.Addr().(*net.TCPAddr)
	keys, err := openPKI(dir, reachable(addr.IP), time.Now())
	if err != nil {
		return err
	}
	a.kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := keys.writeKubeconfig(a.kubeconfig, addr); err != nil {
		return err
	}

	data := filepath.Join(dir, "etcd")
	if err := checkEtcd(data); err != nil {
		return err
	}
	a.etcd, err = startEtcd(ctx, etcdConfig(data, sockets, c.Fsync, a.errors))
	if err != nil {
		return err
	}
	a.onClose(func() error { a.etcd.Close(); return nil })
	room := newEtcdRoom(data, c.Space)
	a.onClose(room.stop)
	var fast *inProcessStore
	if c.FastPaths {
		fast = newInProcessStore(a.etcd)
		a.onClose(fast.close)
	}
	a.server, err = startServer(ctx, a.etcd.Config().AdvertiseClientUrls[0].String(), fast, c.Nodes, ln, keys, a.errors, room.err)
	if err != nil {
		return err
	}
	a.onClose(a.server.stop)
	a.rest = keys.restConfig(addr)
	if err := a.server.waitReady(ctx, a.rest); err != nil {
		return err
	}
	if err := c.install(ctx, a.rest); err != nil {
		return err
	}
	stop, err := startControllers(ctx, a.rest, c.Nodes, a.errors)
	if err != nil {
		return err
	}
	a.onClose(stop)
	return nil
}

// install installs the definitions and policies of an API, and returns when they are in force.
func (c Config) install(ctx context.Context, api *rest.Config) error {
	if c.Workload {
		crds, err := config.WorkloadCRDs()
		if err != nil {
			return fmt.Errorf("install: %w", err)
		}
		if err := installDefinitions(ctx, api, crds, func(*rest.Config) error { return nil }); err != nil {
			return err
		}
		return backdateDefinitions(ctx, api)
	}
	if err := Install(ctx, api, c.Families...); err != nil {
		return err
	}
	if err := backdateDefinitions(ctx, api); err != nil {
		return err
	}
	return awaitPolicies(ctx, api, c.Families)
}

// claim creates and locks the state folder dir, and creates the folder for etcd's sockets.
func (a *API) claim(ctx context.Context, dir string) (state, sockets string, err error) {
	if dir == "" {
		return "", "", errors.New("Config.Dir is empty: name the state folder")
	}
	if state, err = filepath.Abs(dir); err != nil {
		return "", "", fmt.Errorf("state folder: %w", err)
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return "", "", fmt.Errorf("state folder: %w", err)
	}
	unlock, err := lock(ctx, state)
	if err != nil {
		return "", "", err
	}
	a.onClose(unlock)
	if sockets, err = socketDir(state); err != nil {
		return "", "", err
	}
	a.onClose(func() error { return os.RemoveAll(sockets) })
	return state, sockets, nil
}

// supervise waits until the context ends or a part fails, and closes all parts.
func (a *API) supervise(ctx context.Context) {
	defer close(a.done)
	var cause error
	select {
	case <-ctx.Done():
	case err := <-a.etcd.Err():
		cause = fmt.Errorf("etcd stopped unexpectedly: %w", err)
	case <-a.server.done:
		cause = errors.New("API server stopped unexpectedly")
	}
	a.errors.ready.Store(false)
	a.stop()
	a.err = errors.Join(cause, a.close())
}

func (a *API) onClose(f func() error) { a.undo = append(a.undo, f) }

// close stops the parts in the reverse order of their start: the controllers before the
// API server, the API server before etcd, and the lock last, because an etcd that is
// still closing removes the sockets of its successor.
func (a *API) close() error {
	var errs []error
	for _, f := range slices.Backward(a.undo) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// RESTConfig returns a new configuration for clients with all rights and without a rate
// limit.
func (a *API) RESTConfig() *rest.Config {
	return rest.CopyConfig(a.rest)
}

// Kubeconfig returns the path of a kubeconfig with the same rights. The file has mode
// 0600.
func (a *API) Kubeconfig() string { return a.kubeconfig }

// Stop stops the API and returns when all its parts have ended. The error is that of Err.
// It may be called more than once.
func (a *API) Stop() error {
	a.stop()
	<-a.done
	return a.err
}

// Done returns a channel that is closed when the API has ended: after Stop, after the end
// of its context, or after a failure.
func (a *API) Done() <-chan struct{} { return a.done }

// Err returns the error with which the API ended, nil while it runs and after an orderly
// stop.
func (a *API) Err() error {
	select {
	case <-a.done:
		return a.err
	default:
		return nil
	}
}
