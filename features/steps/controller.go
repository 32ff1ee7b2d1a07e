package steps

import (
	"context"
	"fmt"
)

func (s *scenario) registerControllers(sc *stepRegistry) {
	sc.Step(`^the controller is killed$`, "cuts the controller's connections and ends it, as kill -9 does", func() { s.lab.KillControllers() })
	sc.Step(`^the controller will be killed when the host becomes "([^"]*)"$`, "kills the controller when the host is next seen in this provisioning state",
		func(state string) error {
			return s.trap(state, func() error { s.lab.KillControllers(); return nil })
		})
	sc.Step(`^another controller starts$`, "waits until the former controller is dead, and starts one without its memory", func(ctx context.Context) error {
		err := eventually(ctx, "the controller is dead", func(context.Context) (bool, string, error) {
			return !s.recorder.trapsPending() && !s.lab.ControllersRunning(), s.recorder.String(), nil
		})
		if err != nil {
			return err
		}
		return s.lab.StartControllers(context.WithoutCancel(ctx))
	})
	sc.NegativeStep(`^the server has booted (\d+) times in total$`, "asserts, once each controller has reconciled every object, how many boots the server has begun in all", func(ctx context.Context, n int) error {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		if got := s.machine().Boots; got != uint64(n) {
			return fmt.Errorf("it came up %d times", got)
		}
		return nil
	})
}
