package steps

import (
	"fmt"
	"slices"

	"github.com/cucumber/godog"
)

// resets are what an operator calls the kinds of a reset.
var resets = map[string]string{
	"on": "On", "off": "ForceOff", "off and on again": "ForceRestart", "off by its operating system": "GracefulShutdown",
	"off and on again by its operating system": "GracefulRestart", "by its button": "PushPowerButton",
}

func (s *scenario) registerPower(sc *godog.ScenarioContext) {
	sc.Step(`^the operator switches the server (on|off|off and on again|off by its operating system|off and on again by its operating system|by its button)$`,
		func(how string) error { return s.reset(resets[how]) })
	sc.Step(`^the operator asks for a reset of the kind "([^"]*)"$`, func(kind string) error {
		return s.send("POST", systemURI+"/Actions/ComputerSystem.Reset", object{"ResetType": kind})
	})
	sc.Step(`^the server is (on|off|being switched on)$`, func(state string) error {
		return s.power(1, map[string]string{"on": "On", "off": "Off", "being switched on": "PoweringOn"}[state])
	})
	sc.Step(`^the other server is (on|off)$`, func(state string) error {
		return s.power(2, map[string]string{"on": "On", "off": "Off"}[state])
	})
	sc.Step(`^the server's start has passed through "([^"]*)"$`, s.progress)
	sc.Step(`^the server has found nothing to boot$`, func() error {
		a, err := s.get(systemURI)
		if err != nil {
			return err
		}
		if state := a.at("BootProgress/LastState"); state == "OSRunning" {
			return fmt.Errorf("it runs something: %v", state)
		}
		return nil
	})
}

func (s *scenario) reset(kind string) error {
	return s.sendOK("POST", systemURI+"/Actions/ComputerSystem.Reset", object{"ResetType": kind})
}

func (s *scenario) power(server int, want string) error {
	if err := s.sendTo(server, "GET", systemURI, nil); err != nil {
		return err
	}
	return equal("its power", s.response.body["PowerState"], want)
}

// progress watches a start second by second.
func (s *scenario) progress(last string) error {
	var seen []string
	for range 600 {
		a, err := s.get(systemURI)
		if err != nil {
			return err
		}
		state, _ := a.at("BootProgress/LastState").(string)
		if !slices.Contains(seen, state) {
			seen = append(seen, state)
		}
		if state == last {
			break
		}
		s.advance(1, "second")
	}
	if len(seen) < 3 || seen[len(seen)-1] != last {
		return fmt.Errorf("it has passed through %q", seen)
	}
	return nil
}
