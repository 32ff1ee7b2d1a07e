package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/scenarios/cluster"
)

// clusterFlags say which lab in a cluster the commands are for, in place of the one in the
// state directory.
type clusterFlags struct {
	name, namespace, kubeconfig string

	leave func() error // ends what enter has begun; nil before
}

func (f *clusterFlags) bind(fl *pflag.FlagSet) {
	fl.StringVar(&f.name, "cluster", "", "use the lab in a Kubernetes cluster whose StatefulSet has this name")
	fl.Lookup("cluster").NoOptDefVal = cluster.Name
	fl.StringVar(&f.namespace, "cluster-namespace", cluster.Namespace, "namespace of that StatefulSet")
	fl.StringVar(&f.kubeconfig, "cluster-kubeconfig", "", "kubeconfig of the cluster (default: KUBECONFIG, or ~/.kube/config)")
}

// notInCluster are the commands that make, end or read a state directory.
var notInCluster = map[string]string{
	"labctl up":               "kubectl apply -k controller/config/racks makes a lab in a cluster",
	"labctl down":             "kubectl scale or kubectl delete ends the shards of a cluster",
	"labctl shard":            "it runs in the pods of the cluster",
	"labctl kube":             "the cluster has an API",
	"labctl view":             "the page is on loopback in each pod: kubectl port-forward reaches it",
	"labctl snapshot save":    "take snapshots of the volumes of the shards",
	"labctl snapshot restore": "restore the volumes of the shards",
}

// enter makes the commands of this process control a lab in a cluster: it serves the control
// API of that lab in a directory of its own, and returns that.
func (f *clusterFlags) enter(c *cobra.Command) (dir string, err error) {
	if why := notInCluster[c.CommandPath()]; why != "" {
		return "", usage.New(fmt.Errorf("%s takes no --cluster: %s", c.CommandPath(), why))
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	api, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return "", fmt.Errorf("--cluster: %w", err)
	}
	shards, err := cluster.Shards(c.Context(), cluster.Config{API: api, Namespace: f.namespace, Name: f.name})
	if err != nil {
		return "", fmt.Errorf("--cluster: %w", err)
	}
	if dir, err = os.MkdirTemp("", "metalab-cluster"); err != nil {
		return "", err
	}
	s, err := control.NewFleet(control.FleetConfig{Dir: dir, Shards: func() []control.Shard { return shards }})
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(c.Context()))
	var serving sync.WaitGroup
	var served error
	serving.Go(func() { served = s.Serve(ctx) })
	f.leave = func() error {
		stop()
		serving.Wait()
		return errors.Join(served, os.RemoveAll(dir))
	}
	return dir, nil
}

// leaveCluster makes all commands end what enter has begun.
func (o *options) leaveCluster(c *cobra.Command) {
	if do := c.RunE; do != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			err := do(c, args)
			if leave := o.cluster.leave; leave != nil {
				err = errors.Join(err, leave())
			}
			return err
		}
	}
	for _, sub := range c.Commands() {
		o.leaveCluster(sub)
	}
}
