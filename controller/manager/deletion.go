package manager

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/mosk/lcm/deletion"
)

// addDeletions adds the controller that takes the nodes of machines out of their cluster
// before the machines are deleted. api is that of the nodes.
func addDeletions(s *Set, api client.Client) error {
	r, err := deletion.New(deletion.Config{
		Client: s.mgr.GetClient(), Workload: func(context.Context, string, string) (client.Client, error) { return api, nil },
		Work: s.cfg.work(),
	})
	if err != nil {
		return err
	}
	return r.Setup(s.mgr)
}
