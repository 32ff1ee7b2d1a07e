package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/guest/elementalsim"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// registerElementalFailures binds the steps on what goes wrong around servers that register
// themselves.
func (s *scenario) registerElementalFailures(sc *stepRegistry) {
	sc.Step(`^the token of the registration "([^"]*)" expires$`, "waits, in real time, until the end of the token", s.tokenExpires)
	sc.Step(`^the operator gives the registration "([^"]*)" a token without end$`, "sets tokenDuration to 0 and the token to empty, and waits until there is another", s.endlessToken)
	sc.Step(`^the operator gives the registration "([^"]*)" the authority of the registration server$`, "sets caCert to empty, and waits until the controller has filled it in", s.renewAuthority)
	sc.Step(`^the registration server gets a certificate of (the lab's|another) authority$`, "kills the controller, and starts one whose registration API has another certificate", func(ctx context.Context, authority string) error {
		s.lab.KillControllers()
		if err := s.lab.ReplaceElementalCertificate(authority == "another"); err != nil {
			return err
		}
		return s.lab.StartControllers(context.WithoutCancel(ctx))
	})
	sc.Step(`^the clock of the server "([^"]*)" is (\d+) minutes (behind|ahead)$`, "lets the agent of the server date its tokens so", func(server string, minutes int, way string) {
		skew := time.Duration(minutes) * time.Minute
		if way == "behind" {
			skew = -skew
		}
		s.lab.Trouble(server, lab.Trouble{Skew: skew})
	})
	sc.Step(`^the file systems of the server "([^"]*)" are full$`, "lets each write of the agent of the server fail with ENOSPC", func(server string) { s.lab.Trouble(server, lab.Trouble{Full: true}) })
	sc.Step(`^nothing is wrong with the server "([^"]*)" any more$`, "ends the steps on clocks and full file systems", func(server string) { s.lab.Trouble(server, lab.Trouble{}) })
	sc.Step(`^the (agent|controller) of the server "([^"]*)" will be killed in the phases "([^"]*)"$`, "kills the agent, or the controllers, and starts it again, as soon as the ElementalHost is in each of these phases", s.killInPhases)
	sc.Step(`^the server "([^"]*)" will have (a clock that is late|full file systems|a wrong certificate of the registration server) in the phases "([^"]*)"$`, "lets this be so for some reconciliations, as soon as the ElementalHost is in each of these phases; unless file systems are full, the phase must not change meanwhile", s.faultInPhases)
	sc.Step(`^(?:it has been killed|that was so) in all these phases$`, "waits until each of the phases was seen, and the step has done what it does in it", s.doneInPhases)
}

func (s *scenario) tokenExpires(ctx context.Context, name string) error {
	r, err := s.readRegistration(ctx, name)
	if err != nil {
		return err
	}
	c := jwt.RegisteredClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(r.Spec.Config.Elemental.Registration.Token, &c); err != nil {
		return err
	}
	if c.ExpiresAt == nil {
		return fmt.Errorf("the token of %s has no end", name)
	}
	return eventually(ctx, "the token has expired", func(context.Context) (bool, string, error) {
		return time.Now().After(c.ExpiresAt.Time), c.ExpiresAt.String(), nil
	})
}

func (s *scenario) endlessToken(ctx context.Context, name string) error {
	r, err := s.readRegistration(ctx, name)
	if err != nil {
		return err
	}
	if err := s.changeRegistration(ctx, name, func(r *elementalv1.ElementalRegistration) error {
		r.Spec.Config.Elemental.Registration.TokenDuration, r.Spec.Config.Elemental.Registration.Token = 0, ""
		return nil
	}); err != nil {
		return err
	}
	return s.hasToken(ctx, name, r.Spec.Config.Elemental.Registration.Token)
}

func (s *scenario) renewAuthority(ctx context.Context, name string) error {
	if err := s.changeRegistration(ctx, name, func(r *elementalv1.ElementalRegistration) error {
		r.Spec.Config.Elemental.Registration.CACert = ""
		return nil
	}); err != nil {
		return err
	}
	return eventually(ctx, "the registration has an authority", func(ctx context.Context) (bool, string, error) {
		r, err := s.readRegistration(ctx, name)
		return r.Spec.Config.Elemental.Registration.CACert != "", fmt.Sprint(r.Status.Conditions), err
	})
}

// phaseActs does something once in each of some phases of the ElementalHost of a server.
type phaseActs struct {
	watch watch.Interface
	ended sync.WaitGroup

	mu   sync.Mutex
	left []string // phases
	err  error    // error of an act
}

// units are those of the agent in which it is in a phase; in others it is RunUnit.
var units = map[string]string{
	string(elementalv1.PhaseRegistering): elementalsim.SeedUnit, string(elementalv1.PhaseFinalizingRegistration): elementalsim.SeedUnit,
	string(elementalv1.PhaseInstalling): elementalsim.SeedUnit, string(elementalv1.PhaseResetting): elementalsim.ResetUnit,
}

func (s *scenario) killInPhases(_ context.Context, what, server, phases string) error {
	return s.actInPhases(server, phases, func(phase string) error {
		// Without the API the agent does not leave the phase before it is killed.
		s.lab.KillControllers()
		var err error
		if what == "agent" {
			err = s.restartUnit(server, phase)
		}
		return errors.Join(err, s.lab.StartControllers(context.Background()))
	})
}

// lateness is more than the minute for which an agent's token holds.
const lateness = 5 * time.Minute

// fullFileSystems is the only one of serverFaults whose reports reach the API.
const fullFileSystems = "full file systems"

// serverFaults begin or end while the controllers do not run.
var serverFaults = map[string]func(w *lab.Lab, server string, begins bool) error{
	"a clock that is late": func(w *lab.Lab, server string, begins bool) error {
		t := lab.Trouble{}
		if begins {
			t.Skew = -lateness
		}
		w.Trouble(server, t)
		return nil
	},
	fullFileSystems: func(w *lab.Lab, server string, begins bool) error {
		w.Trouble(server, lab.Trouble{Full: begins})
		return nil
	},
	"a wrong certificate of the registration server": func(w *lab.Lab, _ string, begins bool) error {
		return w.ReplaceElementalCertificate(begins)
	},
}

// faultTime, in the slower of lab time and real time, is several reconciliations.
const faultTime = 2 * time.Second

func (s *scenario) faultInPhases(_ context.Context, server, what, phases string) error {
	return s.actInPhases(server, phases, func(string) error {
		before, err := s.setServerFault(server, what, true)
		if err != nil {
			return err
		}
		passed := make(chan struct{})
		s.lab.Clock().ClientFunc(faultTime, func() { close(passed) })
		<-passed
		after, err := s.setServerFault(server, what, false)
		if err == nil && what != fullFileSystems && before != after {
			err = fmt.Errorf("the agent has gone from the phase %q to %q, though its server has %s", before, after, what)
		}
		return err
	})
}

// setServerFault begins or ends a fault, and returns the phase of the ElementalHost at that time.
func (s *scenario) setServerFault(server, what string, begins bool) (phase string, err error) {
	s.lab.KillControllers()
	h, err := s.elementalHost(context.Background(), server)
	if h != nil {
		phase = string(h.Status.Phase)
	}
	return phase, errors.Join(err, serverFaults[what](s.lab, server, begins), s.lab.StartControllers(context.Background()))
}

// actInPhases does something as soon as the ElementalHost of a server is in each of some phases.
func (s *scenario) actInPhases(server, phases string, act func(phase string) error) error {
	w, err := s.kube.Watch(context.Background(), &elementalv1.ElementalHostList{}, client.InNamespace(lab.Namespace)) // until stop
	if err != nil {
		return err
	}
	k := &phaseActs{watch: w, left: strings.Split(phases, ", ")}
	s.phaseActs = k
	k.ended.Go(func() {
		for e := range w.ResultChan() {
			if h, ok := e.Object.(*elementalv1.ElementalHost); ok && h.Name == server && k.due(string(h.Status.Phase)) {
				k.did(string(h.Status.Phase), act(string(h.Status.Phase)))
			}
		}
	})
	return nil
}

// restartUnit kills the agent in the unit of a phase, and starts it again. A system that shuts
// down has killed it.
func (s *scenario) restartUnit(server, phase string) error {
	unit := units[phase]
	if unit == "" {
		unit = elementalsim.RunUnit
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience.Limit())
	defer cancel()
	_, err := s.lab.Control().Exec(ctx, server, control.Command{Args: []string{"systemctl", "restart", "--no-block", unit}})
	if err != nil && (strings.Contains(err.Error(), "has stopped") || strings.Contains(err.Error(), "runs no operating system")) {
		return nil
	}
	return err
}

// due reports whether something is due in a phase.
func (k *phaseActs) due(phase string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Contains(k.left, phase)
}

func (k *phaseActs) did(phase string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left = slices.DeleteFunc(k.left, func(p string) bool { return p == phase })
	if err != nil {
		k.err = errors.Join(k.err, fmt.Errorf("in the phase %s: %w", phase, err))
	}
}

func (k *phaseActs) stop() {
	k.watch.Stop()
	k.ended.Wait()
}

func (s *scenario) doneInPhases(ctx context.Context) error {
	return eventually(ctx, "it was done in each phase", func(context.Context) (bool, string, error) {
		k := s.phaseActs
		k.mu.Lock()
		defer k.mu.Unlock()
		return len(k.left) == 0, strings.Join(k.left, ", ") + " are left", k.err
	})
}
