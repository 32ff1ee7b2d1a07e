package steps

import (
	"fmt"

	"github.com/cucumber/godog"
)

func (s *scenario) registerBoot(sc *godog.ScenarioContext) {
	sc.Step(`^the operator has the next start boot from (the virtual CD|the network)$`, func(from string) error { return s.override("Once", from) })
	sc.Step(`^the operator has every start boot from (the virtual CD|the network)$`, func(from string) error { return s.override("Continuous", from) })
	sc.Step(`^the server will boot from (the virtual CD|the network) (once|always)$`, func(from, how string) error {
		return s.overridden(map[string]string{"once": "Once", "always": "Continuous"}[how], targets[from])
	})
	sc.Step(`^nothing is overridden any longer$`, func() error { return s.overridden("Disabled", "None") })
	sc.Step(`^the operator has the server boot from the moon$`, func() error {
		return s.send("PATCH", systemURI, object{"Boot": object{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Moon"}})
	})
	sc.Step(`^the server runs the live system$`, func() error {
		a, err := s.get(systemURI)
		if err != nil {
			return err
		}
		return equal("its progress", a.at("BootProgress/LastState"), "OSRunning")
	})
	sc.Step(`^the operator puts the last boot option first$`, s.turnOrder)
	sc.Step(`^the server tries it first, after the lab is restarted too$`, func() error {
		if err := s.ordered(); err != nil {
			return err
		}
		s.restart()
		return s.ordered()
	})
	sc.Step(`^the operator puts a boot option first that there is not$`, func() error {
		return s.send("PATCH", systemURI, object{"Boot": object{"BootOrder": []string{"Boot9999"}}})
	})
}

var targets = map[string]string{"the virtual CD": "Cd", "the network": "Pxe"}

func (s *scenario) override(how, from string) error {
	return s.sendOK("PATCH", systemURI, object{"Boot": object{"BootSourceOverrideEnabled": how, "BootSourceOverrideTarget": targets[from]}})
}

func (s *scenario) overridden(how, target string) error {
	a, err := s.get(systemURI)
	if err != nil {
		return err
	}
	return equal("the override", fmt.Sprint(a.at("Boot/BootSourceOverrideEnabled"), " ", a.at("Boot/BootSourceOverrideTarget")), how+" "+target)
}

func (s *scenario) order() ([]any, error) {
	a, err := s.get(systemURI)
	if err != nil {
		return nil, err
	}
	order, _ := a.at("Boot/BootOrder").([]any)
	if len(order) < 2 {
		return nil, fmt.Errorf("the boot order is %v", order)
	}
	return order, nil
}

func (s *scenario) turnOrder() error {
	order, err := s.order()
	if err != nil {
		return err
	}
	last := len(order) - 1
	order = append([]any{order[last]}, order[:last]...)
	s.save("boot order", order)
	return s.sendOK("PATCH", systemURI, object{"Boot": object{"BootOrder": order}})
}

func (s *scenario) ordered() error {
	order, err := s.order()
	if err != nil {
		return err
	}
	return s.equalsSaved("boot order", order)
}
