package resource

import (
	"context"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// thresholdKind is a threshold as resources name it.
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

// slack is by how much a reading must be better to leave the threshold behind.
func (t *thresholdKind) slack(l *thermal.Limits) float64 {
	if t.on == "Decreasing" && l.LowHysteresis != nil {
		return *l.LowHysteresis
	}
	return l.Hysteresis
}

// sensorPatch switches a sensor on and off, and moves its thresholds. The
// hysteresis is not to be written: that of one threshold is that of others.
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
				return Result{}, Decline(http.StatusBadRequest, message.PropertyNotWritable.With("Reading").About("#/"+at))
			}
			if x != v.shown(s, **t.of(&limits)) { // else it stays as exact as it is
				x = v.raw(s, x)
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

// raw is the inverse of shown.
func (v View) raw(s thermal.Sensor, x float64) float64 {
	if s.Kind == thermal.Speed {
		return x * v.Machine.Profile.Thermal.Fans.RPM / 100
	}
	return x
}
