package steps

import (
	"context"

	"github.com/cucumber/godog"
)

func (s *scene) registerControllers(sc *godog.ScenarioContext) {
	sc.Step(`^the controller is killed$`, func() { s.world.KillControllers() })
	sc.Step(`^another controller starts$`, func(ctx context.Context) error { return s.world.StartControllers(context.WithoutCancel(ctx)) })
}
