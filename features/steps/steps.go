// Package steps binds the phrases of the feature files to a live lab, by noun:
// hosts (what an operator sees in the Kubernetes API), servers (what stands in
// the rack), images and controllers. Each scenario has a lab of its own, at the
// speed at which there is work.
package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/cucumber/godog"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/emulator/lab/control"
	"github.com/metalab-dev/metalab/scenarios/world"
)

// patience is how long, in real time, a step waits for what must come.
const patience = 60 * time.Second

// scene is what the steps of one scenario share.
type scene struct {
	dir     string
	world   *world.World
	stop    context.CancelFunc
	kube    client.WithWatch
	server  control.Host // the one that the scenario is about
	image   gate
	watched recorder
	boots   uint64 // of the server, when it was last asked for an image
}

// Register binds all steps to a scenario.
func Register(sc *godog.ScenarioContext) {
	s := &scene{}
	sc.Step(`^a lab with (\d+) servers?$`, s.start)
	s.registerHosts(sc)
	s.registerServers(sc)
	s.registerImages(sc)
	s.registerConfig(sc)
	s.registerControllers(sc)
	sc.After(func(ctx context.Context, _ *godog.Scenario, err error) (context.Context, error) {
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, s.watched.String())
		}
		return ctx, errors.Join(err, s.end())
	})
}

func (s *scene) start(ctx context.Context, servers int) error {
	dir, err := os.MkdirTemp("", "metalab-feature-")
	if err != nil {
		return err
	}
	s.dir = dir
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.world, err = world.Start(ctx, world.Config{
		Dir:      dir,
		Settings: world.Settings{Hosts: servers, Speed: "max", Kube: true},
		Listen:   world.AnyPort,
		Log:      slog.New(slog.NewTextHandler(logOutput(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		Images:   s.image.wrap,
	})
	if err != nil {
		return err
	}
	if s.kube, err = s.world.Kubernetes(); err != nil {
		return err
	}
	s.server = s.world.Hosts()[0]
	return s.watched.start(ctx, s.kube, s.server.Name)
}

// logOutput is where the lab's warnings go: METALAB_LOG shows them.
func logOutput() io.Writer {
	if os.Getenv("METALAB_LOG") != "" {
		return os.Stderr
	}
	return io.Discard
}

func (s *scene) end() error {
	if s.stop == nil {
		return nil
	}
	s.image.open()
	var err error
	if s.world != nil {
		err = s.world.Stop()
	}
	s.stop()
	s.watched.wait()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// eventually waits until ok is true. What ok last said is part of the error.
func eventually(ctx context.Context, what string, ok func(context.Context) (bool, string, error)) error {
	last := ""
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, patience, true, func(ctx context.Context) (done bool, err error) {
		done, last, err = ok(ctx)
		return done, err
	})
	if err != nil {
		return fmt.Errorf("%s: %w (last: %s)", what, err, last)
	}
	return nil
}
