package lab

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/lab/helmpods"
)

// runsHelmPods reports whether the pods of Helm controllers are the lab's to make. A cluster of the
// user's makes those of its Deployments itself.
func (l *Lab) runsHelmPods() bool {
	s := l.cfg.Settings
	return s.Kube && s.Kubeconfig == "" && slices.Contains(s.Families(), config.HOC)
}

// helmChart returns the URL of the chart that Clusters have whose ClusterRelease names no chart of a
// Helm controller; "" in a lab that makes no pods of it.
func (l *Lab) helmChart() string {
	if !l.runsHelmPods() {
		return ""
	}
	return l.ChartsURL() + helmcontroller.Archive
}

// startHelmPods makes the pods of the Helm controllers of Clusters that share the lab's API.
func (l *Lab) startHelmPods(context.Context) error {
	if !l.runsHelmPods() {
		return nil
	}
	run, err := l.helmPods(l.kube.api)
	if err == nil {
		l.run(run)
	}
	return err
}

// helmPods returns the function that makes the pods of the Helm controllers in an API.
func (l *Lab) helmPods(api *rest.Config) (run func(context.Context) error, err error) {
	p, err := helmpods.New(helmpods.Config{
		API: api, Process: &l.process, Log: logr.FromSlogHandler(l.cfg.Log.Handler()),
		Work: queue.Work{Clock: labClock{l.clock}, Enter: l.clock.Enter, ClientClock: clientClock{l.clock}},
	})
	if err != nil {
		return nil, err
	}
	return p.Run, nil
}

// prepareWorkload gives the API of a Cluster the rights of node agents. The function that it returns
// runs beside the API: it keeps the lifecycle of the nodes, and the pods of the Helm controller.
func (l *Lab) prepareWorkload(ctx context.Context, api *rest.Config) (run func(context.Context) error, err error) {
	lifecycle, err := l.prepareNodes(ctx, api, config.NodeAgents)
	if err != nil {
		return nil, err
	}
	pods, err := l.helmPods(api)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			defer cancel() // so that the failure of one ends both
			ended <- lifecycle(ctx)
		}()
		err := pods(ctx)
		cancel()
		if first := <-ended; first != nil {
			return first
		}
		return err
	}, nil
}
