package manager

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/hostos"
	"github.com/metalab-dev/metalab/controller/mosk/lcm"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/maintenance"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/reboot"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/update"
	"github.com/metalab-dev/metalab/controller/mosk/provider/clusters"
	"github.com/metalab-dev/metalab/controller/mosk/provider/hoc"
	"github.com/metalab-dev/metalab/controller/mosk/provider/inventory"
	"github.com/metalab-dev/metalab/controller/mosk/provider/machines"
	"github.com/metalab-dev/metalab/controller/mosk/provider/network"
	"github.com/metalab-dev/metalab/controller/mosk/provider/plans"
	"github.com/metalab-dev/metalab/controller/mosk/provider/release"
	"github.com/metalab-dev/metalab/controller/mosk/unapplied"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/webhook"
)

// addHostOS adds the controllers that load host OS modules and validate
// HostOSConfigurations.
//
// The webhook for modules is at the server of the controller host: without that controller,
// modules that are in use can be removed.
func addHostOS(_ context.Context, s *Set) error {
	c := hostos.Config{
		Index: s.cfg.ModuleIndex, Namespaces: s.cfg.Namespaces,
		Client: s.mgr.GetClient(), Work: s.cfg.work(),
	}
	modules, err := hostos.NewModules(c)
	if err != nil {
		return err
	}
	configurations, err := hostos.NewConfigurations(c)
	if err != nil {
		return err
	}
	if s.hooks != nil {
		reader := s.mgr.GetAPIReader() // a configuration that was made just now counts
		s.addHook(webhook.Modules, webhook.ModulesHandler(func(ctx context.Context, before, after *kaasv1.HostOSConfigurationModules) error {
			return hostos.CheckChange(ctx, reader, c.Namespaces, before, after)
		}))
	}
	if c.Index == "" {
		return errors.Join(modules.Setup(s.mgr), configurations.Setup(s.mgr))
	}
	index, err := hostos.NewVendorIndex(c)
	if err != nil {
		return err
	}
	return errors.Join(modules.Setup(s.mgr), configurations.Setup(s.mgr), index.Setup(s.mgr))
}

// MachineAPI is a Kubernetes API as the agents on machines reach it.
type MachineAPI struct {
	URL string // "" means that of Config.API
	CA  []byte // PEM certificates to trust; nil means those of Config.API
}

// machineAPI returns the API of agents. A pod's address of it, which Config.API has in a
// cluster, is one that no server can reach.
func (c *Config) machineAPI() (MachineAPI, error) {
	out, api := c.MachineAPI, rest.CopyConfig(c.API)
	if err := rest.LoadTLSFiles(api); err != nil {
		return out, err
	}
	if out.CA == nil {
		out.CA = api.CAData
	}
	if out.URL == "" {
		server, _, err := rest.DefaultServerUrlFor(api)
		if err != nil {
			return out, err
		}
		out.URL = server.String()
	}
	return out, nil
}

// addProvider adds the controllers of the bare metal provider. The webhook for Clusters is
// at the server of the controller host: without that controller, the condition Release
// reports an upgrade off the supported paths, which is not begun.
func addProvider(_ context.Context, s *Set) error {
	c := s.cfg
	api, err := c.machineAPI()
	if err != nil {
		return err
	}
	configurations, err := hoc.New(hoc.Config{
		Client: s.mgr.GetClient(), Work: s.cfg.work(),
	})
	if err != nil {
		return err
	}
	balancer, err := s.balancer()
	if err != nil {
		return err
	}
	apis, err := s.workloads()
	if err != nil {
		return err
	}
	ofClusters, err := clusters.New(clusters.Config{
		Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Server: api.URL, CA: api.CA, Workload: apis.Of, HelmChart: c.HelmChart, Balancer: balancer, Work: s.cfg.work(),
	})
	if err != nil {
		return err
	}
	ofMachines, err := machines.New(machines.Config{
		Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Server: api.URL, CA: api.CA, Workload: apis.Of,
		Work: s.cfg.work(),
	})
	if err != nil {
		return err
	}
	servers, err := inventory.New(inventory.Config{
		Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Work: s.cfg.work(),
	})
	if err != nil {
		return err
	}
	networks, err := network.New(network.Config{
		Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Work: s.cfg.work(),
	})
	if err != nil {
		return err
	}
	if s.hooks != nil {
		reader := s.mgr.GetAPIReader() // what was deployed just now counts
		s.addHook(webhook.Clusters, webhook.ClustersHandler(func(ctx context.Context, after *clusterv1.Cluster) error {
			return release.Admit(ctx, reader, after)
		}), c.Namespaces...)
		s.addHook(webhook.Fields, webhook.FieldsHandler(func(kind string, object any) string {
			return unapplied.Message(unapplied.Set(kind, object))
		}), c.Namespaces...)
	}
	ofPlans, err := plans.New(plans.Config{
		Client: s.mgr.GetClient(), Work: s.cfg.work(),
	})
	if err != nil {
		return err
	}
	return errors.Join(ofPlans.Setup(s.mgr), configurations.Setup(s.mgr), ofClusters.Setup(s.mgr), ofMachines.Setup(s.mgr), servers.Setup(s.mgr), networks.Setup(s.mgr))
}

// addLCM adds the LCM controller, and those that drain, reboot and update nodes.
func addLCM(_ context.Context, s *Set) error {
	config := lcm.Config{
		Client: s.mgr.GetClient(), Work: s.cfg.work(),
	}
	machines, err := lcm.NewMachines(config)
	if err != nil {
		return err
	}
	clusters, err := lcm.NewClusters(config)
	if err != nil {
		return err
	}
	apis, err := s.workloads()
	if err != nil {
		return err
	}
	if err := addDeletions(s, apis.Of); err != nil {
		return err
	}
	service := maintenance.Service{Client: s.mgr.GetClient(), Workload: apis.Of}
	c := reboot.Config{Client: s.mgr.GetClient(), Maintenance: service, Work: s.cfg.work()}
	reboots, err := reboot.NewMachines(c)
	if err != nil {
		return err
	}
	requests, err := reboot.NewRequests(c)
	if err != nil {
		return err
	}
	states, err := maintenance.NewStates(maintenance.Config{
		Client: s.mgr.GetClient(), Workload: apis.Of,
		Work: s.cfg.work(),
	})
	if err != nil {
		return err
	}
	updates, err := update.New(update.Config{
		Client: s.mgr.GetClient(), Maintenance: service,
		Work: s.cfg.work(),
	})
	if err != nil {
		return err
	}
	return errors.Join(machines.Setup(s.mgr), clusters.Setup(s.mgr), reboots.Setup(s.mgr), requests.Setup(s.mgr), states.Setup(s.mgr), updates.Setup(s.mgr))
}

// workloads returns the APIs that the nodes of clusters are in. They are the same for all
// controllers, which share their clients.
func (s *Set) workloads() (*workload.APIs, error) {
	if s.apis != nil {
		return s.apis, nil
	}
	c, err := s.uncached()
	if err != nil {
		return nil, err
	}
	s.apis, err = workload.New(s.mgr.GetClient(), s.mgr.GetAPIReader(), s.mgr.GetScheme(), workload.API{Client: c, Config: s.cfg.api()})
	return s.apis, err
}

// uncached returns a client of the API that the nodes of clusters without an API of their own are
// in, the management cluster's. A drain reads past the cache, which would watch all pods: see
// drain.Service.
func (s *Set) uncached() (client.Client, error) {
	return client.New(s.cfg.api(), client.Options{Scheme: s.mgr.GetScheme(), Mapper: s.mgr.GetRESTMapper()})
}
