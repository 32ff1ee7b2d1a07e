package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	apiextensionsoptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/options"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/samples/generic/server"
)

// gitVersion is what the API says its version is. Upstream stamps it into its
// binaries while linking; without a stamp kubectl cannot parse the version, and
// go install takes no stamps. A test keeps it to the version in go.mod.
const gitVersion = "v1.37.1+metalab"

// issuer names the API in service-account tokens. It is the usual name, and
// stays the same when the port does not.
const issuer = "https://kubernetes.default.svc"

// watchGrace is how long watches get to end at a stop. They are told at once; a
// value of 0 means that they are not, and the stop waits a minute for them.
const watchGrace = time.Second

// apiServer is upstream's generic control plane, running.
type apiServer struct {
	built
	cancel context.CancelFunc
	done   chan struct{}
	err    error // written before done is closed
}

// serverOptions returns the options of a server that keeps its state in the etcd
// at address and answers on ln.
func serverOptions(address string, ln net.Listener, keys *pki) *options.Options {
	addr := ln.Addr().(*net.TCPAddr)
	o := server.NewOptions()
	o.Etcd.StorageConfig.Transport.ServerList = []string{address}

	o.SecureServing.Listener = ln
	o.SecureServing.BindAddress = addr.IP
	o.SecureServing.BindPort = addr.Port
	o.SecureServing.ExternalAddress = reachable(addr.IP)
	o.SecureServing.ServerCert.CertKey.CertFile = keys.serving.file
	o.SecureServing.ServerCert.CertKey.KeyFile = keys.serving.file

	// Anonymous requests stay allowed, as upstream has it: they are for health
	// checks, and RBAC shuts all else to them.
	o.Authentication.ClientCert.ClientCA = keys.ca.file
	o.Authentication.ServiceAccounts.Issuers = []string{issuer}
	o.Authentication.ServiceAccounts.KeyFiles = []string{keys.accountKey}
	o.ServiceAccountSigningKeyFile = keys.accountKey
	o.Authorization.Modes = []string{"RBAC"}

	// Nobody has to be protected from anybody else here, and fair queues take
	// processor time from the few clients there are.
	o.Features.EnablePriorityAndFairness = false
	o.Features.EnableProfiling = false
	o.GenericServerRunOptions.MaxRequestsInFlight = 0
	o.GenericServerRunOptions.MaxMutatingRequestsInFlight = 0
	o.GenericServerRunOptions.ShutdownWatchTerminationGracePeriod = watchGrace
	o.Metrics = nil // applying them complains of a file that nobody named
	return o
}

// building serialises what comes before a server runs: upstream registers
// metrics and feature gates of the process on the way.
var building sync.Mutex

// startServer starts a server, which takes requests some time later; see
// waitReady. Its kinds call etcd directly where they can, else at address. Of ctx
// it takes the values alone: it ends by stop.
func startServer(ctx context.Context, address string, db store, ln net.Listener, keys *pki, r *reporter) (*apiServer, error) {
	ctx, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), r.logger()))
	b, err := buildServer(ctx, serverOptions(address, ln, keys), db)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("kube: API server: %w", err)
	}
	s := &apiServer{built: b, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		if err := s.run(ctx); err != nil {
			s.err = fmt.Errorf("kube: API server: %w", err)
		}
	}()
	return s, nil
}

// built is a server that does not run yet.
type built struct {
	run     func(context.Context) error
	handler http.Handler // of all requests
	token   string       // of the server's own clients, who may do everything
}

func buildServer(ctx context.Context, o *options.Options, db store) (built, error) {
	building.Lock()
	defer building.Unlock()
	complete, err := o.Complete(ctx, nil, nil)
	if err != nil {
		return built{}, err
	}
	if errs := complete.Validate(); len(errs) > 0 {
		return built{}, utilerrors.NewAggregate(errs)
	}
	c, err := server.NewConfig(complete)
	if err != nil {
		return built{}, err
	}
	for _, v := range []*compatibility.EffectiveVersion{
		&c.ControlPlane.Generic.EffectiveVersion,
		&c.Aggregator.GenericConfig.EffectiveVersion,
		&c.APIExtensions.GenericConfig.EffectiveVersion,
	} {
		*v = stampedVersion{*v}
	}
	// The sample says 3. With more than one server every definition would wait
	// 5 s for the others to have seen it.
	c.APIExtensions.ExtraConfig.MasterCount = 1
	// A watch cache holds what became of every object in the last 75 s, decoded:
	// of hosts that are provisioned that is a megabyte each. Here the store is in
	// the same process, and there is hardly more than one watcher of a kind.
	uncached := *complete.Etcd
	uncached.EnableWatchCache, uncached.SkipHealthEndpoints = false, true
	generic := c.APIExtensions.GenericConfig
	c.APIExtensions.ExtraConfig.CRDRESTOptionsGetter = db.customKinds(apiextensionsoptions.NewCRDRESTOptionsGetter(
		uncached, generic.ResourceTransformers, generic.StorageObjectCountTracker))
	c.ControlPlane.Generic.RESTOptionsGetter = db.events(c.ControlPlane.Generic.RESTOptionsGetter)
	completed, err := c.Complete()
	if err != nil {
		return built{}, err
	}
	chain, err := server.CreateServerChain(completed)
	if err != nil {
		return built{}, err
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return built{}, err
	}
	return built{
		run:     prepared.Run,
		handler: chain.GenericAPIServer.Handler,
		token:   c.ControlPlane.Generic.LoopbackClientConfig.BearerToken,
	}, nil
}

// waitReady waits until the server serves and its start hooks are through. It
// does so even when ctx ends, and reports that afterwards: a hook that fails
// because the server is stopped under it exits the process.
func (s *apiServer) waitReady(ctx context.Context, c *rest.Config) error {
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return fmt.Errorf("kube: %w", err)
	}
	var last error
	err = wait.PollUntilContextTimeout(context.WithoutCancel(ctx), 20*time.Millisecond, bootTimeout, true,
		func(ctx context.Context) (bool, error) {
			select {
			case <-s.done:
				return false, errors.Join(errors.New("ended while starting"), s.err)
			default:
			}
			if _, last = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); last != nil {
				return false, nil
			}
			_, last = client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
			return last == nil, nil
		})
	switch {
	case wait.Interrupted(err):
		return fmt.Errorf("kube: API server: not ready after %s: %w", bootTimeout, last)
	case err != nil:
		return fmt.Errorf("kube: API server: %w", err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("kube: API server: %w", context.Cause(ctx))
	}
	return nil
}

// stop ends the server and returns when it is gone.
func (s *apiServer) stop() error {
	s.cancel()
	<-s.done
	return s.err
}

// stampedVersion is a version as it would be had upstream linked the binary.
type stampedVersion struct{ compatibility.EffectiveVersion }

func (v stampedVersion) Info() *apimachineryversion.Info {
	info := v.EffectiveVersion.Info()
	info.GitVersion = gitVersion
	return info
}
