package lab

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/controller/mosk/provider/loadbalancer"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/lab/ownapi"
)

// WorkloadsDir is the directory, in the state directory, of the Kubernetes APIs that Clusters have
// of their own.
const WorkloadsDir = "workloads"

// apiStarts is how many APIs start at a time: each takes seconds of two processors.
const apiStarts = 2

// startWorkloads starts what starts the Kubernetes APIs that Clusters ask for. Those outlive the
// controllers, as clusters in the field do.
func (l *Lab) startWorkloads(context.Context) error {
	if !l.cfg.Settings.Kube || !slices.Contains(l.cfg.Settings.Families(), config.HOC) {
		return nil
	}
	apis, err := ownapi.New(ownapi.Config{
		Management: l.kube.api, Log: logr.FromSlogHandler(l.cfg.Log.Handler()),
		Kube: kube.Config{
			Dir: filepath.Join(l.cfg.Dir, WorkloadsDir), Fsync: l.cfg.Fsync, FastPaths: kube.FastPathsWanted(), Log: logr.FromSlogHandler(l.cfg.Log.Handler()),
			Space: l.space.Writable, Fatal: l.cfg.Fatal, Nodes: true, Workload: true,
		},
		Prepare: l.prepareWorkload,
		Work:    queue.Work{Clock: labClock{l.clock}, Workers: apiStarts, Enter: l.clock.Enter, ClientClock: clientClock{l.clock}},
	})
	if err != nil {
		return err
	}
	l.closers = append(l.closers, apis.Stop)
	l.mu.Lock()
	l.workloads = apis
	l.mu.Unlock()
	l.run(apis.Run)
	return nil
}

// clusterAPIs returns the kubeconfigs of the Clusters that have an API of their own.
func clusterAPIs(a *ownapi.APIs) (out []control.ClusterAPI) {
	if a == nil {
		return nil
	}
	for _, key := range a.Clusters() {
		if api := a.Of(key); api != nil {
			out = append(out, control.ClusterAPI{Cluster: key.String(), Kubeconfig: api.Kubeconfig()})
		}
	}
	return out
}

// apiOf returns the Kubernetes API that answers for a control machine: its Cluster's own, or the
// lab's.
func (l *Lab) apiOf(ctx context.Context, kubernetes client.Reader, b loadbalancer.Backend) (*rest.Config, error) {
	var m clusterv1.Machine
	if err := kubernetes.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.Machine}, &m); err != nil {
		return nil, err
	}
	if l.workloads != nil {
		if api := l.workloads.Of(client.ObjectKey{Namespace: b.Namespace, Name: m.Labels[clusterv1.ClusterNameLabel]}); api != nil {
			return api.RESTConfig(), nil
		}
	}
	return l.kube.api, nil
}
