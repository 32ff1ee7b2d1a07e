package steps

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	simbmc "github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/lab"
)

func (s *scenario) registerPreparation(sc *stepRegistry) {
	sc.Step(`^the operator sets RAID level (\S+), the settings "([^"]*)" and the firmware "([^"]*)" together$`,
		"writes all three while no controller runs, so that the next one finds them together", s.requestPreparation)
	sc.Step(`^controllers are killed and the BMC restarts, (\d+) times, at points drawn from the seed (\d+)$`,
		"starts a controller; after a number of requests to the BMC kills it and starts another, or restarts the BMC, or both", s.injectFaults)
	sc.Step(`^the host has the RAID, the settings and the firmware$`, "waits until the host is available and the server has RAID, settings and firmware", s.preparationDone)
	sc.NegativeStep(`^it was never available with only some of them$`,
		"asserts, once each controller has reconciled every object, that the server had none of them while the host was available before, and all of them after", s.preparationNeverPartial)
}

// preparation is a change of RAID, settings and firmware. Whenever the host is
// available, the server must have none of the three or all.
type preparation struct {
	parts []preparationPart
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu       sync.Mutex
	complete int // how often the host was seen available with all parts
	started  bool
	failed   error
}

// preparationPart is RAID, settings or firmware.
type preparationPart struct {
	name  string
	check func() error // returns nil when the server has it
}

func (s *scenario) requestPreparation(ctx context.Context, level, settings, updates string) error {
	s.lab.KillControllers()
	if err := errors.Join(
		s.requestRAID(ctx, "hardware", fmt.Sprintf("- {level: %q}", level)),
		s.setSettings(ctx, settings), s.updateFirmware(ctx, updates),
	); err != nil {
		return err
	}
	s.preparation = &preparation{parts: []preparationPart{
		{"RAID", func() error { return s.hasVolumes(level) }},
		{"the settings", func() error { return s.biosHas(settings) }},
		{"the firmware", func() error { return s.hasVersions(updates) }},
	}}
	ctx, s.preparation.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.preparation.done.Go(func() { s.preparation.watch(ctx, s) })
	return nil
}

// hasVersions compares firmware versions with those of the server.
func (s *scenario) hasVersions(list string) error {
	all, err := pairs(list)
	if err != nil {
		return err
	}
	for _, p := range all {
		if x, _ := s.running(p[0]); x.Active.Version != p[1] || x.Broken {
			return fmt.Errorf("%s is %s, want %s", p[0], x.Active.Version, p[1])
		}
	}
	return nil
}

// watch checks the host and its server until the host deviates or ctx ends.
func (c *preparation) watch(ctx context.Context, s *scenario) {
	_ = wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		switch h := s.recorder.host(); {
		case h == nil:
			return false, nil
		case h.Status.Provisioning.State != metal3.StateAvailable: // the server may have any of the parts
			c.mu.Lock()
			defer c.mu.Unlock()
			c.started = true
			return false, nil
		}
		if err := c.check(ctx, s); err != nil && ctx.Err() == nil {
			c.mu.Lock()
			c.failed = errors.Join(c.failed, err)
			c.mu.Unlock()
			return true, nil
		}
		return false, nil
	})
}

// check compares the server with the state of its host. A host of the same version
// before and after did not change in between: a controller writes the state before
// it acts.
func (c *preparation) check(ctx context.Context, s *scenario) error {
	var before, after metal3.BareMetalHost
	key := client.ObjectKey{Namespace: lab.Namespace, Name: s.server.Name}
	if err := s.kube.Get(ctx, key, &before); err != nil {
		return client.IgnoreNotFound(err)
	}
	var have, lack []string
	for _, p := range c.parts {
		if err := p.check(); err != nil {
			lack = append(lack, fmt.Sprintf("%s (%v)", p.name, err))
		} else {
			have = append(have, p.name)
		}
	}
	if err := s.kube.Get(ctx, key, &after); err != nil {
		return client.IgnoreNotFound(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case before.ResourceVersion != after.ResourceVersion, after.Status.Provisioning.State != metal3.StateAvailable:
	case len(lack) == 0:
		c.complete++
	case len(have) > 0 || c.started:
		return fmt.Errorf("the host says that it is available; it has %s and lacks %s", strings.Join(have, ", "), strings.Join(lack, ", "))
	}
	return nil
}

// disruptions lists the faults from which injectFaults draws.
var disruptions = []struct{ controller, bmc bool }{{true, false}, {false, true}, {true, true}}

// injectFaults kills controllers and restarts the BMC, each time after a number of
// requests that the seed draws. It waits for them for 3 s of real time at most: the
// work may be done, or wait for something slow.
func (s *scenario) injectFaults(ctx context.Context, times int, seed uint64) error {
	chance := rand.New(rand.NewPCG(seed, 0))
	if err := s.lab.StartControllers(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	for range times {
		since, after := s.mark(), 1+chance.IntN(60)
		what := disruptions[chance.IntN(len(disruptions))]
		patient, cancel := context.WithTimeout(ctx, 3*time.Second)
		_ = wait.PollUntilContextCancel(patient, 10*time.Millisecond, true, func(context.Context) (bool, error) {
			return len(s.requests(since, journal.Query{})) >= after, nil
		})
		cancel()
		if what.controller {
			s.lab.KillControllers()
		}
		if what.bmc {
			_, err := s.host().ApplyBMC(ctx, simbmc.Restart{Kind: simbmc.ForceRestart})
			if err != nil && !errors.Is(err, simbmc.ErrDown) { // it restarts already, for its new firmware or the last disruption
				return err
			}
		}
		if what.controller {
			if err := s.lab.StartControllers(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scenario) preparationDone(ctx context.Context) error {
	if err := s.isPrepared(ctx); err != nil {
		return err
	}
	if err := s.settingsApplied(ctx); err != nil {
		return err
	}
	if err := s.firmwareUpdated(ctx); err != nil {
		return err
	}
	lacks := slices.ContainsFunc(s.preparation.parts, func(p preparationPart) bool { return p.check() != nil })
	if lacks {
		return fmt.Errorf("it lacks something: %w", errors.Join(s.preparation.parts[0].check(), s.preparation.parts[1].check(), s.preparation.parts[2].check()))
	}
	return eventually(ctx, "the host has been seen so", func(context.Context) (bool, string, error) {
		s.preparation.mu.Lock()
		defer s.preparation.mu.Unlock()
		return s.preparation.complete > 0 || s.preparation.failed != nil, "", nil
	})
}

func (s *scenario) preparationNeverPartial(ctx context.Context) error {
	if err := s.letControllersAct(ctx); err != nil {
		return err
	}
	s.preparation.stop()
	s.preparation.done.Wait()
	if s.preparation.failed == nil && !s.preparation.started {
		return errors.New("the host was never seen at work")
	}
	return s.preparation.failed
}
