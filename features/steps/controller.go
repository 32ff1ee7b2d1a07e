package steps

import (
	"context"
)

func (s *scene) registerControllers(sc *book) {
	sc.Step(`^the controller is killed$`, "cuts all of its connections and ends it, as kill -9 does", func() { s.world.KillControllers() })
	sc.Step(`^another controller starts$`, "starts the controllers anew, with no memory of the former", func(ctx context.Context) error { return s.world.StartControllers(context.WithoutCancel(ctx)) })
}
