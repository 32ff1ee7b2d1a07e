package manager

import (
	"context"
	"errors"

	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/controller/hostos"
	"github.com/metalab-dev/metalab/controller/lcm"
	"github.com/metalab-dev/metalab/controller/provider/hoc"
)

// addHostOS adds the controllers that load host OS modules and validate
// HostOSConfigurations.
func addHostOS(_ context.Context, s *Set) error {
	c := hostos.Config{
		Client: s.mgr.GetClient(), Clock: s.cfg.Clock, Wall: clock.RealClock{}, Enter: s.cfg.Enter, ClientClock: s.cfg.ClientClock, Queues: s.cfg.Queues, Workers: s.cfg.Workers,
	}
	modules, err := hostos.NewModules(c)
	if err != nil {
		return err
	}
	configurations, err := hostos.NewConfigurations(c)
	if err != nil {
		return err
	}
	return errors.Join(modules.Setup(s.mgr), configurations.Setup(s.mgr))
}

// addProvider adds the controllers of the bare metal provider.
func addProvider(_ context.Context, s *Set) error {
	r, err := hoc.New(hoc.Config{
		Client: s.mgr.GetClient(), Clock: s.cfg.Clock, Enter: s.cfg.Enter, ClientClock: s.cfg.ClientClock, Queues: s.cfg.Queues, Workers: s.cfg.Workers,
	})
	if err != nil {
		return err
	}
	return r.Setup(s.mgr)
}

// addLCM adds the LCM controller.
func addLCM(_ context.Context, s *Set) error {
	machines, err := lcm.NewMachines(lcm.Config{
		Client: s.mgr.GetClient(), Clock: s.cfg.Clock, Enter: s.cfg.Enter, ClientClock: s.cfg.ClientClock, Queues: s.cfg.Queues, Workers: s.cfg.Workers,
	})
	if err != nil {
		return err
	}
	return machines.Setup(s.mgr)
}
