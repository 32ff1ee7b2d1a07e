package lab

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	k8sclock "k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/lab/clusterapi"
)

// startClusterAPI starts the stand-in for Cluster API, in a lab that serves the kinds of its
// core. It outlives the controllers, as Cluster API would.
func (l *Lab) startClusterAPI(context.Context) error {
	if !l.cfg.Settings.Kube || l.cfg.Settings.NoController || !slices.Contains(l.cfg.Settings.installed(), config.ClusterAPI) {
		return nil
	}
	core, err := clusterapi.New(clusterapi.Config{
		API: l.kube.api, Wall: k8sclock.RealClock{}, Log: logr.FromSlogHandler(l.cfg.Log.Handler()),
		Work: queue.Work{Clock: labClock{l.clock}, Workers: 2, Enter: l.clock.Enter, ClientClock: clientClock{l.clock}},
	})
	if err != nil {
		return err
	}
	l.run(core.Run)
	return nil
}
