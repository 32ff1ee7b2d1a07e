package lab

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/kube"
)

// cluster is a Kubernetes API, embedded or external.
type cluster struct {
	api        *rest.Config
	kubeconfig string // file name
}

// startKube starts the embedded Kubernetes API, or connects to the cluster that the
// settings name.
func (l *Lab) startKube(ctx context.Context) error {
	if !l.cfg.Settings.Kube {
		return nil
	}
	start := l.startEmbeddedAPI
	if l.cfg.Settings.Kubeconfig != "" {
		start = l.useCluster
	}
	c, err := start(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.kube = c
	l.mu.Unlock()
	close(l.kubeStarted)
	return nil
}

// startEmbeddedAPI starts the embedded Kubernetes API.
func (l *Lab) startEmbeddedAPI(ctx context.Context) (cluster, error) {
	l.cfg.Progress("the Kubernetes API")
	// Not ctx: the API outlives the controllers, and Stop ends it.
	api, err := kube.Start(context.WithoutCancel(ctx), kube.Config{
		Dir: filepath.Join(l.cfg.Dir, KubeDir), Fsync: l.cfg.Fsync, FastPaths: kube.FastPathsWanted(), Log: logr.FromSlogHandler(l.cfg.Log.Handler()),
		Space: l.space.Writable, Fatal: l.cfg.Fatal, Families: l.cfg.Settings.installed(),
		Nodes: config.NeedNodes(l.cfg.Settings.Families()),
	})
	if err != nil {
		l.rack.Unlist(KubeDir + "/etcd") // its message may say to put back a copy
		return cluster{}, err
	}
	l.closers = append(l.closers, api.Stop)
	l.run(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-api.Done():
			return fmt.Errorf("the Kubernetes API has ended: %w", api.Err())
		}
	})
	return cluster{api: api.RESTConfig(), kubeconfig: api.Kubeconfig()}, nil
}

// useCluster connects to a cluster and installs the CRDs there.
func (l *Lab) useCluster(ctx context.Context) (cluster, error) {
	name := l.cfg.Settings.Kubeconfig
	l.cfg.Progress("the definitions, for the cluster of " + name)
	api, err := clientcmd.BuildConfigFromFlags("", name)
	if err != nil {
		return cluster{}, fmt.Errorf("--kubeconfig %s: %w", name, err)
	}
	if err := kube.Install(ctx, api, l.cfg.Settings.installed()...); err != nil {
		return cluster{}, err
	}
	return cluster{api: api, kubeconfig: name}, nil
}
