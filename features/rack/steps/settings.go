package steps

import (
	"fmt"

	"github.com/cucumber/godog"
)

const biosURI = systemURI + "/Bios"

func (s *scenario) registerSettings(sc *godog.ScenarioContext) {
	set := func(name string, value any) error {
		err := s.send("PATCH", biosURI+"/Settings", object{"Attributes": object{name: value}})
		s.lab.Settle()
		return err
	}
	runs := func(name string, want any) error {
		a, err := s.get(biosURI)
		if err != nil {
			return err
		}
		return equal(name, a.at("Attributes/"+name), want)
	}
	sc.Step(`^the operator turns hyper-threading off$`, func() error { return set("ProcHyperThreading", "Disabled") })
	sc.Step(`^the operator sets a BIOS attribute that there is not$`, func() error { return set("NotAnAttribute", "Disabled") })
	sc.Step(`^the operator sets the set-up prompt to an hour$`, func() error { return set("SetupPromptSeconds", 3600) })
	sc.Step(`^the operator sets the serial number of the server$`, func() error { return set("SystemSerialNumber", "mine") })
	sc.Step(`^the BIOS refuses it$`, func() error {
		if s.response.status != 400 || len(s.response.messageKeys()) == 0 {
			return fmt.Errorf("the answer is %s", s.response)
		}
		return nil
	})
	sc.Step(`^the BIOS runs with hyper-threading (on|off)$`, func(how string) error {
		return runs("ProcHyperThreading", map[string]string{"on": "Enabled", "off": "Disabled"}[how])
	})
	sc.Step(`^hyper-threading waits to be turned off$`, func() error {
		a, err := s.get(biosURI + "/Settings")
		if err != nil {
			return err
		}
		return equal("what waits", a.at("Attributes/ProcHyperThreading"), "Disabled")
	})
	sc.Step(`^nothing waits to be applied$`, func() error {
		a, err := s.get(biosURI + "/Settings")
		if err != nil {
			return err
		}
		waiting, _ := a.body["Attributes"].(map[string]any)
		return equal("the number of settings that wait", len(waiting), 0)
	})
	sc.Step(`^the operator resets the BIOS to its defaults$`, func() error {
		return s.sendOK("POST", biosURI+"/Actions/Bios.ResetBios", object{})
	})
	sc.Step(`^the BIOS tells what every attribute takes$`, func() error {
		a, err := s.get(biosURI)
		if err != nil {
			return err
		}
		id := fmt.Sprint(a.body["AttributeRegistry"])
		if a, err = s.get(root + "/Registries/" + id); err != nil {
			return err
		}
		where, _ := a.body["Location"].([]any)[0].(map[string]any)
		if a, err = s.get(fmt.Sprint(where["Uri"])); err != nil {
			return err
		}
		all, _ := a.at("RegistryEntries/Attributes").([]any)
		if len(all) < 20 {
			return fmt.Errorf("there are %d", len(all))
		}
		return nil
	})
}
