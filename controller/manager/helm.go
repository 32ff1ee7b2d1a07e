package manager

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/helm"
	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
)

// helmController is the controller of HelmBundles.
const helmController = "helm"

// HelmOfCluster makes the controller helm that of one cluster, which a chart has installed in it. It
// needs rights to one HelmBundle of Config.API, and its process an election by HelmElection: the
// controller of the management cluster leaves the bundle alone while this process leads.
type HelmOfCluster struct {
	Bundle client.ObjectKey // it has the name of its Cluster
	Target *rest.Config     // API of the cluster, in which charts are installed
}

// HelmElection returns the election of the Helm controller of a Cluster. The provider makes its
// Lease.
func HelmElection(cluster client.ObjectKey) *Election {
	return &Election{Namespace: cluster.Namespace, Name: helmcontroller.Name(cluster.Name)}
}

// addHelm adds the controller of HelmBundles. It installs the charts of a Cluster in the API that
// the Cluster's nodes are in.
func addHelm(_ context.Context, s *Set) error {
	c := helm.Config{Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Work: s.cfg.work()}
	if of := s.cfg.Helm; of != nil {
		c.Target = func(context.Context, string, string) (helm.API, error) { return helm.API{Config: of.Target}, nil }
	} else {
		apis, err := s.workloads()
		if err != nil {
			return err
		}
		c.Target = func(ctx context.Context, namespace, name string) (helm.API, error) {
			api, err := apis.Of(ctx, namespace, name)
			return helm.API{Config: api.Config, Shared: !api.Own}, err
		}
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		c.Leases = &helmcontroller.Leases{
			Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Clock: clock.RealClock{}, Holder: host + "_" + string(uuid.NewUUID()),
		}
	}
	bundles, err := helm.New(c)
	if err != nil {
		return err
	}
	return bundles.Setup(s.mgr)
}

// checkHelm validates Config.Helm.
func (c *Config) checkHelm(selected []controller) error {
	of := c.Helm
	switch {
	case of == nil:
		return nil
	case of.Target == nil || of.Bundle.Namespace == "" || of.Bundle.Name == "":
		return errors.New("Config.Helm needs a Bundle and a Target")
	case len(selected) != 1 || selected[0].name != helmController:
		return fmt.Errorf("Config.Helm: select the controller %s alone", helmController)
	case c.Election == nil || c.Election.Namespace != of.Bundle.Namespace || c.Election.Name != helmcontroller.Name(of.Bundle.Name):
		return errors.New("Config.Helm needs the election of HelmElection")
	}
	return nil
}

// helmCache restricts a cache to the one bundle: the account may watch no other.
func (c *Config) helmCache(o *cache.Options) {
	if c.Helm == nil {
		return
	}
	one := fields.OneTermEqualSelector("metadata.name", c.Helm.Bundle.Name)
	o.ByObject = map[client.Object]cache.ByObject{
		&lcmv1.HelmBundle{}: {Namespaces: map[string]cache.Config{c.Helm.Bundle.Namespace: {FieldSelector: one}}},
	}
}
