// Package kube owns the Kubernetes API that a lab without a cluster runs inside
// its own process: upstream's generic control plane (namespaces, secrets, config
// maps, events, leases, service accounts, RBAC, admission, server-side apply and
// custom resources) over an embedded etcd, the controllers that collect garbage,
// empty namespaces and make service accounts, and the kubeconfig that reaches
// it. It also installs the definitions of controller/config, there or into any
// other cluster.
//
// The package refuses to know hosts, BMCs and what the resources mean. It is the
// only one that links k8s.io/kubernetes, which takes minutes to build cold;
// whatever merely speaks to an API must not import it.
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
)

// Config says where an API keeps its state, and where it listens.
type Config struct {
	// Dir holds etcd's data, the keys and the kubeconfig. It is made, with mode
	// 0700, when it is not there; all that is put into it is for its owner only.
	Dir string

	// Fsync makes every write reach the disk before it is answered. Without it
	// the state survives kill -9, but not a power cut.
	Fsync bool

	// Listen is the address of the API, 127.0.0.1:0 when empty. With port 0 the
	// port of the last run on Dir is taken again, so that kubeconfigs handed
	// out earlier stay good; when somebody else holds it now, a free one.
	Listen string

	// Log gets the errors of etcd and of the Kubernetes components, and at
	// verbosity 1 those from before the API is ready and after its end is
	// decided; the zero Logger drops them. Upstream's logger is one per process:
	// of several APIs, the one started last gets what cannot be told apart.
	Log logr.Logger
}

// API is a running Kubernetes API.
type API struct {
	rest       *rest.Config
	kubeconfig string
	etcd       *embed.Etcd
	server     *apiServer
	errors     *reporter

	undo []func() error // closes what Start has opened, last first
	stop context.CancelFunc
	done chan struct{}
	err  error // written before done is closed
}

// bootTimeout bounds each wait of Start. What it waits for takes about 2 s, but
// shares the processor with whatever else a test machine does.
const bootTimeout = 2 * time.Minute

// Start runs an API and returns when it is ready: it answers /readyz, the
// namespace default is there, the definitions of controller/config are
// established, its policies in force and its controllers run.
//
// The API stops when ctx ends, as by Stop. A ctx that ends during Start is
// noticed only once upstream's start hooks are through: upstream exits the
// process when one of them is interrupted.
func Start(ctx context.Context, c Config) (*API, error) {
	ctx, stop := context.WithCancel(ctx)
	a := &API{errors: &reporter{log: c.Log}, stop: stop, done: make(chan struct{})}
	if err := a.open(ctx, c); err != nil {
		stop()
		return nil, errors.Join(err, a.close())
	}
	a.errors.ready.Store(true)
	go a.supervise(ctx)
	return a, nil
}

// open starts one part after the other. When it fails, the caller closes those
// that run.
func (a *API) open(ctx context.Context, c Config) error {
	hush(a.errors)
	dir, sockets, err := a.claim(ctx, c.Dir)
	if err != nil {
		return err
	}
	ln, err := listen(dir, c.Listen)
	if err != nil {
		return err
	}
	// The server closes its listener itself, but only once it runs.
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

	a.etcd, err = startEtcd(ctx, etcdConfig(filepath.Join(dir, "etcd"), sockets, c.Fsync, a.errors))
	if err != nil {
		return err
	}
	a.onClose(func() error { a.etcd.Close(); return nil })
	db := newStore(a.etcd)
	a.onClose(db.close)
	a.server, err = startServer(ctx, a.etcd.Config().AdvertiseClientUrls[0].String(), db, ln, keys, a.errors)
	if err != nil {
		return err
	}
	a.onClose(a.server.stop)
	a.rest = keys.restConfig(addr, a.server.token)
	if err := a.server.waitReady(ctx, a.rest); err != nil {
		return err
	}
	if err := Install(ctx, a.rest); err != nil {
		return err
	}
	if err := age(ctx, a.rest); err != nil {
		return err
	}
	if err := awaitPolicies(ctx, a.rest); err != nil {
		return err
	}
	stop, err := startControllers(ctx, a.rest, a.errors)
	if err != nil {
		return err
	}
	a.onClose(stop)
	return nil
}

// claim takes the state folder dir for this API alone and makes the folder for
// its sockets.
func (a *API) claim(ctx context.Context, dir string) (state, sockets string, err error) {
	if dir == "" {
		return "", "", errors.New("kube: no state folder given")
	}
	if state, err = filepath.Abs(dir); err != nil {
		return "", "", fmt.Errorf("kube: state folder: %w", err)
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return "", "", fmt.Errorf("kube: state folder: %w", err)
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

// supervise waits for the end, whatever brings it, and closes all parts.
func (a *API) supervise(ctx context.Context) {
	defer close(a.done)
	var cause error
	select {
	case <-ctx.Done():
	case err := <-a.etcd.Err():
		cause = fmt.Errorf("kube: etcd stopped by itself: %w", err)
	case <-a.server.done:
		cause = errors.New("kube: API server stopped by itself")
	}
	a.errors.ready.Store(false)
	a.stop()
	a.err = errors.Join(cause, a.close())
}

func (a *API) onClose(f func() error) { a.undo = append(a.undo, f) }

// close stops the parts in the reverse order of their start: controllers before
// the API, the API before etcd, and the lock at last, because an etcd that is
// still going down removes the sockets of its successor.
func (a *API) close() error {
	var errs []error
	for _, f := range slices.Backward(a.undo) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// RESTConfig returns a configuration for clients that may do everything, and as
// fast as they like. It is the caller's own.
func (a *API) RESTConfig() *rest.Config {
	return rest.CopyConfig(a.rest)
}

// Kubeconfig returns the path of a file, with mode 0600, that gives the same
// rights to kubectl.
func (a *API) Kubeconfig() string { return a.kubeconfig }

// Stop stops the API and returns when all it started has ended, with the reason
// if that was not in good order. It may be called more than once.
func (a *API) Stop() error {
	a.stop()
	<-a.done
	return a.err
}

// Done returns a channel that is closed when the API has ended, by Stop, by the
// end of its context or by itself.
func (a *API) Done() <-chan struct{} { return a.done }

// Err returns why the API ended: nil while it runs and after a stop in good
// order.
func (a *API) Err() error {
	select {
	case <-a.done:
		return a.err
	default:
		return nil
	}
}
