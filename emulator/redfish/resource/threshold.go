package resource

import (
	"context"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// thresholdKind is a threshold of a Sensor with its names in resources.
type thresholdKind struct {
	name string // Sensor.Thresholds
	on   string // Activation
	of   func(*thermal.Limits) **float64
}

var thresholdKinds = []thresholdKind{
	{"LowerCritical", "Decreasing", func(l *thermal.Limits) **float64 { return &l.LowCritical }},
	{"LowerCaution", "Decreasing", func(l *thermal.Limits) **float64 { return &l.LowCaution }},
	{"UpperCaution", "Increasing", func(l *thermal.Limits) **float64 { return &l.Caution }},
	{"UpperCritical", "Increasing", func(l *thermal.Limits) **float64 { return &l.Critical }},
	{"UpperFatal", "Increasing", func(l *thermal.Limits) **float64 { return &l.Fatal }},
}

// hysteresis returns by how much a reading must be better than the threshold to leave it.
func (t *thresholdKind) hysteresis(l *thermal.Limits) float64 {
	if t.on == "Decreasing" && l.LowHysteresis != nil {
		return *l.LowHysteresis
	}
	return l.Hysteresis
}

// sensorPatch enables and disables a sensor and sets its thresholds. The hysteresis is not
// writable: thresholds share one.
var sensorPatch = Patch{
	Inputs: []Input{{Name: "Enabled", Kind: Boolean}, {Name: "Thresholds", Kind: Group, Of: thresholdInputs()}},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		v := c.View
		s := Find(v.Machine.Profile.Thermal.Sensors, v.IDs["sensor"], sensorID)
		set := v.Machine.Thermal.Setting(s.ID)
		limits, moved := *v.Machine.Thermal.Thresholds(s.ID), false
		for _, t := range thresholdKinds {
			at := "Thresholds/" + t.name + "/Reading"
			x, sent := c.Values[at].(float64)
			if !sent {
				continue
			}
			if *t.of(&limits) == nil {
				return Result{}, Reject(http.StatusBadRequest, message.PropertyNotWritable.With("Reading").About("#/"+at))
			}
			if x != v.toResourceUnits(s, **t.of(&limits)) { // an unchanged value keeps its exact reading
				x = v.fromResourceUnits(s, x)
				*t.of(&limits), moved = &x, true
			}
		}
		if moved {
			set.Limits = &limits
		}
		set.Off = !Value(c.Values, "Enabled", !set.Off)
		return Result{}, c.Host.Apply(ctx, machine.Thermal{Command: thermal.Adjust{Setting: set}})
	},
}

func thresholdInputs() []Input {
	return Map(thresholdKinds, func(t thresholdKind) Input {
		return Input{Name: t.name, Kind: Group, Of: []Input{{Name: "Reading", Kind: Number}}}
	})
}

// fromResourceUnits is the inverse of toResourceUnits.
func (v View) fromResourceUnits(s thermal.Sensor, x float64) float64 {
	if s.Kind == thermal.Speed {
		return x * v.Machine.Profile.Thermal.Fans.RPM / 100
	}
	return x
}
