package manager

import (
	"context"
	"errors"

	"github.com/metalab-dev/metalab/controller/drain"
	"github.com/metalab-dev/metalab/controller/machineconfig/build"
	"github.com/metalab-dev/metalab/controller/machineconfig/builder"
	nodedrain "github.com/metalab-dev/metalab/controller/machineconfig/drain"
	"github.com/metalab-dev/metalab/controller/machineconfig/node"
	"github.com/metalab-dev/metalab/controller/machineconfig/render"
)

const machineConfigController = "machineconfig"

// addMachineConfig adds the controllers of machine configuration.
func addMachineConfig(_ context.Context, s *Set) error {
	api, err := s.uncached()
	if err != nil {
		return err
	}
	configurations, err := render.New(render.Config{Client: s.mgr.GetClient(), Work: s.cfg.work()})
	if err != nil {
		return err
	}
	nodes, err := node.New(node.Config{Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Work: s.cfg.work()})
	if err != nil {
		return err
	}
	drains, err := nodedrain.New(nodedrain.Config{
		Client: s.mgr.GetClient(), Drains: &drain.Service{Client: api, Clock: s.cfg.Clock}, Metrics: s.cfg.registry(), Work: s.cfg.work(),
	})
	if err != nil {
		return err
	}
	builds, err := build.New(build.Config{Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Work: s.cfg.work()})
	if err != nil {
		return err
	}
	if err := errors.Join(configurations.Setup(s.mgr), nodes.Setup(s.mgr), drains.Setup(s.mgr), builds.Setup(s.mgr)); err != nil || !s.cfg.BuildImages {
		return err
	}
	jobs, err := builder.New(builder.Config{Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Work: s.cfg.work()})
	if err != nil {
		return err
	}
	return jobs.Setup(s.mgr)
}
