package steps

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

const (
	chassisURI    = root + "/Chassis/1"
	powerLimitURI = chassisURI + "/Controls/PowerLimit"
)

// powerLimits are the paths of the power limit, by the resources that show it.
var powerLimits = map[string]string{
	powerLimitURI:                      "SetPoint",
	chassisURI + "/EnvironmentMetrics": "PowerLimitWatts/SetPoint",
	chassisURI + "/Power":              "PowerControl/0/PowerLimit/LimitInWatts",
}

func (s *scenario) registerPowerLimit(sc *stepRegistry) {
	sc.Step(`^the server runs at full load$`, func() error {
		return s.server(1).Apply(s.t.Context(), machine.Thermal{Command: thermal.SetLoad{Load: new(float64(1))}})
	})
	sc.Step(`^the power limit is (null|\d+ W) in PowerLimit, EnvironmentMetrics and Power$`, func(limit string) error {
		var want any
		if limit != "null" {
			want = number(limit[:len(limit)-len(" W")])
		}
		for uri, path := range powerLimits { // in any order: each resource is checked alone
			r, err := s.get(uri)
			if err != nil {
				return err
			}
			got, ok := lookUp(r.body, path)
			if !ok {
				return fmt.Errorf("%s has no %s: %s", uri, path, r)
			}
			if err := equal(path+" of "+uri, got, want); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^TotalPower reads (\d+) W$`, func(watts int) error {
		got, err := s.totalPower()
		if err != nil || math.Abs(got-float64(watts)) > 1 {
			return fmt.Errorf("it reads %v W: %w", got, err)
		}
		return nil
	})
	sc.Step(`^TotalPower reads more than (\d+) W$`, func(watts int) error {
		got, err := s.totalPower()
		if err != nil || got <= float64(watts) {
			return fmt.Errorf("it reads %v W: %w", got, err)
		}
		return nil
	})
	sc.Step(`^the client sets SetPoint of the power limit 1 W below AllowableMin$`, func() error {
		r, err := s.get(powerLimitURI)
		if err != nil {
			return err
		}
		least, _ := r.body["AllowableMin"].(float64)
		if least < 2 {
			return fmt.Errorf("AllowableMin is %v W", least)
		}
		body, err := json.Marshal(object{"SetPoint": least - 1})
		if err != nil {
			return err
		}
		return s.do(1, "PATCH "+powerLimitURI+" "+string(body))
	})
}

// totalPower returns the Reading of the sensor TotalPower, in watts.
func (s *scenario) totalPower() (float64, error) {
	r, err := s.get(chassisURI + "/Sensors/TotalPower")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(fmt.Sprint(r.body["Reading"]), 64)
}
