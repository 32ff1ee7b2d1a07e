package steps

import (
	"fmt"
	"strings"

	"github.com/cucumber/godog"
)

const managerURI = root + "/Managers/1"

func (s *scenario) registerTime(sc *godog.ScenarioContext) {
	sc.Step(`^the operator sets the BMC's clock to "([^"]*)"$`, func(at string) error {
		return s.send("PATCH", managerURI, object{"DateTime": at})
	})
	sc.Step(`^the operator sets the BMC's time zone to "([^"]*)"$`, func(offset string) error {
		return s.sendOK("PATCH", managerURI, object{"DateTimeLocalOffset": offset})
	})
	sc.Step(`^the BMC's clock shows "([^"]*)"$`, func(want string) error {
		a, err := s.get(managerURI)
		if err != nil {
			return err
		}
		return equal("the clock", a.body["DateTime"], want)
	})
	sc.Step(`^the operator has the BMC's clock follow a time server$`, func() error {
		return s.sendOK("PATCH", protocolsURI, object{"NTP": object{"ProtocolEnabled": true, "NTPServers": []string{"192.0.2.1"}}})
	})
	sc.Step(`^the BMC's clock shows the time$`, func() error {
		a, err := s.get(managerURI)
		if err != nil {
			return err
		}
		return equal("the clock", a.body["DateTime"], s.lab.Clock().Now().UTC().Format("2006-01-02T15:04:05Z"))
	})
	sc.Step(`^the manager's log tells that it was made at "([^"]*)"$`, func(want string) error {
		a, err := s.get(managerURI + "/LogServices")
		if err != nil {
			return err
		}
		logs := links(a.body["Members"])
		if len(logs) == 0 {
			return fmt.Errorf("there is no log: %s", a)
		}
		if a, err = s.get(logs[0] + "/Entries"); err != nil {
			return err
		}
		all, _ := a.body["Members"].([]any)
		for _, x := range all {
			o, _ := x.(map[string]any)
			if id, _ := o["MessageId"].(string); strings.HasSuffix(id, ".AccountCreated") {
				return equal("its time", o["Created"], want)
			}
		}
		return fmt.Errorf("the log is %s", a)
	})
}
