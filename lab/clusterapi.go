package lab

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	k8sclock "k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/lab/clusterapi"
)

// startClusterAPI starts the stand-in for Cluster API, in a lab that serves the kinds of its
// core. It outlives the controllers, as Cluster API would.
func (w *World) startClusterAPI(context.Context) error {
	if !w.cfg.Settings.Kube || w.cfg.Settings.NoController || !slices.Contains(w.cfg.Settings.installed(), config.ClusterAPI) {
		return nil
	}
	core, err := clusterapi.New(clusterapi.Config{
		API: w.kube.api, Wall: k8sclock.RealClock{}, Log: logr.FromSlogHandler(w.cfg.Log.Handler()),
		Work: queue.Work{Clock: labClock{w.clock}, Workers: 2, Enter: w.clock.Enter, ClientClock: clientClock{w.clock}},
	})
	if err != nil {
		return fmt.Errorf("world: %w", err)
	}
	w.run(core.Run)
	return nil
}
