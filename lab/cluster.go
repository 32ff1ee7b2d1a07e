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
func (w *World) startKube(ctx context.Context) error {
	if !w.cfg.Settings.Kube {
		return nil
	}
	start := w.startEmbeddedAPI
	if w.cfg.Settings.Kubeconfig != "" {
		start = w.useCluster
	}
	c, err := start(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.kube = c
	w.mu.Unlock()
	close(w.kubeStarted)
	return nil
}

// startEmbeddedAPI starts the embedded Kubernetes API.
func (w *World) startEmbeddedAPI(ctx context.Context) (cluster, error) {
	w.cfg.Progress("the Kubernetes API")
	// Not ctx: the API outlives the controllers, and Stop ends it.
	api, err := kube.Start(context.WithoutCancel(ctx), kube.Config{
		Dir: filepath.Join(w.cfg.Dir, KubeDir), Fsync: w.cfg.Fsync, FastPaths: kube.FastPathsWanted(), Log: logr.FromSlogHandler(w.cfg.Log.Handler()),
		Space: w.space.Writable, Fatal: w.cfg.Fatal, Families: w.cfg.Settings.installed(),
		Nodes: config.NeedNodes(w.cfg.Settings.Families()),
	})
	if err != nil {
		w.lab.Unlist(KubeDir + "/etcd") // its message may say to put back a copy
		return cluster{}, err
	}
	w.closers = append(w.closers, api.Stop)
	w.run(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-api.Done():
			return fmt.Errorf("world: the Kubernetes API has ended: %w", api.Err())
		}
	})
	return cluster{api: api.RESTConfig(), kubeconfig: api.Kubeconfig()}, nil
}

// useCluster connects to a cluster and installs the CRDs there.
func (w *World) useCluster(ctx context.Context) (cluster, error) {
	name := w.cfg.Settings.Kubeconfig
	w.cfg.Progress("the definitions, for the cluster of " + name)
	api, err := clientcmd.BuildConfigFromFlags("", name)
	if err != nil {
		return cluster{}, fmt.Errorf("--kubeconfig %s: %w", name, err)
	}
	if err := kube.Install(ctx, api, w.cfg.Settings.installed()...); err != nil {
		return cluster{}, err
	}
	return cluster{api: api, kubeconfig: name}, nil
}
