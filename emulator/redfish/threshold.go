package redfish

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
var sensorPatch = patch{
	inputs: []input{{name: "Enabled", kind: boolean}, {name: "Thresholds", kind: group, of: thresholdInputs()}},
	apply: func(ctx context.Context, c operation) (reply, error) {
		v := c.view
		s := pick(v.m.Profile.Thermal.Sensors, v.ids["sensor"], sensorID)
		set := v.m.Thermal.Setting(s.ID)
		limits, moved := *v.m.Thermal.Thresholds(s.ID), false
		for _, t := range thresholdKinds {
			at := "Thresholds/" + t.name + "/Reading"
			x, sent := c.set[at].(float64)
			if !sent {
				continue
			}
			if *t.of(&limits) == nil {
				return reply{}, decline(http.StatusBadRequest, message.PropertyNotWritable.With("Reading").About("#/"+at))
			}
			if x != v.shown(s, **t.of(&limits)) { // else it stays as exact as it is
				x = v.raw(s, x)
				*t.of(&limits), moved = &x, true
			}
		}
		if moved {
			set.Limits = &limits
		}
		set.Off = !value(c.set, "Enabled", !set.Off)
		return reply{}, c.host.Apply(ctx, machine.Thermal{Command: thermal.Adjust{Setting: set}})
	},
}

func thresholdInputs() []input {
	return list(thresholdKinds, func(t thresholdKind) input {
		return input{name: t.name, kind: group, of: []input{{name: "Reading", kind: number}}}
	})
}

// raw is the inverse of shown.
func (v view) raw(s thermal.Sensor, x float64) float64 {
	if s.Kind == thermal.Speed {
		return x * v.m.Profile.Thermal.Fans.RPM / 100
	}
	return x
}
