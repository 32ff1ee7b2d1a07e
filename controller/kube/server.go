package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/options"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/samples/generic/server"
)

// issuer is the issuer in service-account tokens. It is the name that clusters usually
// have, and does not change with the port.
const issuer = "https://kubernetes.default.svc"

// apiServer is upstream's generic control plane, running.
type apiServer struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // written before done is closed
}

// serverOptions returns the options of a server that stores its objects in the etcd at
// address and serves on ln.
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

	// Anonymous requests stay enabled, as in upstream: they serve health checks, and RBAC
	// forbids everything else to them.
	o.Authentication.ClientCert.ClientCA = keys.ca.file
	o.Authentication.ServiceAccounts.Issuers = []string{issuer}
	o.Authentication.ServiceAccounts.KeyFiles = []string{keys.accountKey}
	o.ServiceAccountSigningKeyFile = keys.accountKey
	o.Authorization.Modes = []string{"RBAC"}

	// The few clients of a lab need no protection from each other, and fair queues take
	// processor time.
	o.Features.EnablePriorityAndFairness = false
	o.Features.EnableProfiling = false
	o.GenericServerRunOptions.MaxRequestsInFlight = 0
	o.GenericServerRunOptions.MaxMutatingRequestsInFlight = 0
	tuneOptions(o)
	return o
}

// startServer starts a server that stores its objects in the etcd at address and serves
// on ln. It serves requests some time later; see waitReady. fast is nil
// without Config.FastPaths; nodes is Config.Nodes. The server ends by stop: of ctx it uses the values only.
func startServer(ctx context.Context, address string, fast *inProcessStore, nodes bool, ln net.Listener, keys *pki, r *reporter, space func() error) (*apiServer, error) {
	ctx, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), r.logger()))
	o := serverOptions(address, ln, keys)
	client, err := kubernetes.NewForConfig(keys.restConfig(ln.Addr().(*net.TCPAddr)))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("API server: %w", err)
	}
	readLateAccounts(o, client)
	var reader kubernetes.Interface // of Nodes
	if nodes {
		restrictNodeAgents(o, client)
		reader = client
	}
	run, err := buildServer(ctx, o, fast, reader, space)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("API server: %w", err)
	}
	s := &apiServer{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		if err := run(ctx); err != nil {
			s.err = fmt.Errorf("API server: %w", err)
		}
	}()
	return s, nil
}

// waitReady returns when the server serves and its start hooks have ended. It waits for
// them even after ctx has ended, and returns ctx's error then: upstream exits the process
// when a start hook fails because the server is stopping.
func (s *apiServer) waitReady(ctx context.Context, c *rest.Config) error {
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return err
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
		return fmt.Errorf("API server: not ready after %s: %w", bootTimeout, last)
	case err != nil:
		return fmt.Errorf("API server: %w", err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("API server: %w", context.Cause(ctx))
	}
	return nil
}

// stop stops the server and returns when it has ended.
func (s *apiServer) stop() error {
	s.cancel()
	<-s.done
	return s.err
}
