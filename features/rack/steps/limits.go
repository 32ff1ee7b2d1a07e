package steps

import (
	"fmt"
	"math"
	"strconv"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

const chassisURI = root + "/Chassis/1"

// limits are where the limit of the power is told.
var limits = map[string]func(response) any{
	chassisURI + "/Controls/PowerLimit": func(a response) any { return a.body["SetPoint"] },
	chassisURI + "/EnvironmentMetrics":  func(a response) any { return a.at("PowerLimitWatts/SetPoint") },
	chassisURI + "/Power": func(a response) any {
		all, _ := a.body["PowerControl"].([]any)
		if len(all) == 0 {
			return "absent"
		}
		o, _ := all[0].(map[string]any)
		return response{body: o}.at("PowerLimit/LimitInWatts")
	},
}

func (s *scenario) registerLimits(sc *godog.ScenarioContext) {
	limit := func(watts any) error {
		return s.send("PATCH", chassisURI+"/Controls/PowerLimit", object{"SetPoint": watts})
	}
	told := func(want any) error {
		for uri, of := range limits {
			a, err := s.get(uri)
			if err != nil {
				return err
			}
			if err := equal("the limit at "+uri, of(a), want); err != nil {
				return err
			}
		}
		return nil
	}
	sc.Step(`^the server works as hard as it can$`, func() error {
		return s.server(1).Apply(s.t.Context(), machine.Thermal{Command: thermal.SetLoad{Load: new(float64(1))}})
	})
	sc.Step(`^the operator limits its power to (\d+) W$`, func(watts int) error { return limit(watts) })
	sc.Step(`^the operator limits its power to (\d+) W as older tools do$`, func(watts int) error {
		return s.sendOK("PATCH", chassisURI+"/Power", object{"PowerControl": []object{{"PowerLimit": object{"LimitInWatts": watts}}}})
	})
	sc.Step(`^the operator lifts the limit$`, func() error {
		return s.sendOK("POST", chassisURI+"/Controls/PowerLimit/Actions/Control.ResetToDefaults", object{})
	})
	sc.Step(`^everybody is told of a limit of (\d+) W$`, func(watts int) error { return told(watts) })
	sc.Step(`^nobody is told of a limit$`, func() error { return told(nil) })
	sc.Step(`^the server takes (\d+) W$`, func(watts int) error {
		got, err := s.watts()
		if err != nil || math.Abs(got-float64(watts)) > 1 {
			return fmt.Errorf("it takes %v W: %w", got, err)
		}
		return nil
	})
	sc.Step(`^the server takes more than (\d+) W$`, func(watts int) error {
		got, err := s.watts()
		if err != nil || got <= float64(watts) {
			return fmt.Errorf("it takes %v W: %w", got, err)
		}
		return nil
	})
	sc.Step(`^the operator tries to limit its power to less than it can be limited to$`, func() error {
		a, err := s.get(chassisURI + "/Controls/PowerLimit")
		if err != nil {
			return err
		}
		least, _ := a.body["AllowableMin"].(float64)
		if least < 2 {
			return fmt.Errorf("the least is %v W", least)
		}
		return limit(least - 1)
	})
}

// watts is what the server takes from the mains.
func (s *scenario) watts() (float64, error) {
	a, err := s.get(chassisURI + "/Sensors/TotalPower")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(fmt.Sprint(a.body["Reading"]), 64)
}
