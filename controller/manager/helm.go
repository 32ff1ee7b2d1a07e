package manager

import (
	"context"

	"github.com/metalab-dev/metalab/controller/mosk/helm"
)

// addHelm adds the controller of HelmBundles. It installs charts by the API that the
// controllers use.
func addHelm(_ context.Context, s *Set) error {
	c := s.cfg
	bundles, err := helm.New(helm.Config{
		Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Target: c.api(),
		Work: s.cfg.work(),
	})
	if err != nil {
		return err
	}
	return bundles.Setup(s.mgr)
}
