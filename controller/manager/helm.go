package manager

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/metalab-dev/metalab/controller/mosk/helm"
)

// addHelm adds the controller of HelmBundles. It installs the charts of a Cluster in the API that
// the Cluster's nodes are in.
func addHelm(_ context.Context, s *Set) error {
	apis, err := s.workloads()
	if err != nil {
		return err
	}
	bundles, err := helm.New(helm.Config{
		Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Work: s.cfg.work(),
		Target: func(ctx context.Context, namespace, name string) (*rest.Config, error) {
			api, err := apis.Of(ctx, namespace, name)
			return api.Config, err
		},
	})
	if err != nil {
		return err
	}
	return bundles.Setup(s.mgr)
}
