package manager

import (
	"github.com/metalab-dev/metalab/controller/mosk/lcm/deletion"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/maintenance"
)

// addDeletions adds the controller that takes the nodes of machines out of their cluster
// before the machines are deleted.
func addDeletions(s *Set, of maintenance.Workload) error {
	r, err := deletion.New(deletion.Config{
		Client: s.mgr.GetClient(), Workload: of, Work: s.cfg.work(),
	})
	if err != nil {
		return err
	}
	return r.Setup(s.mgr)
}
