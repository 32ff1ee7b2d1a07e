package redfish

import (
	"context"
	"fmt"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func environmentRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Chassis/{chassis}/EnvironmentMetrics", schema: "EnvironmentMetrics.v1_5_0", when: hasSensors, shows: readings,
			read: environment, patch: &environmentPatch, actions: environmentActions},
		{uri: "/redfish/v1/Systems/{system}/Processors/{processor}/EnvironmentMetrics", schema: "EnvironmentMetrics.v1_5_0", when: hasSensors,
			shows: readings, read: processorEnvironment},
		{uri: "/redfish/v1/Systems/{system}/Memory/{dimm}/EnvironmentMetrics", schema: "EnvironmentMetrics.v1_5_0", when: hasSensors,
			shows: readings, read: memoryEnvironment},
		{uri: "/redfish/v1/Chassis/{chassis}/Controls", schema: "ControlCollection", when: hasSensors, name: "Controls", of: "control"},
		{uri: "/redfish/v1/Chassis/{chassis}/Controls/{control}", schema: "Control.v1_7_0", shows: readings, read: control,
			patch: &controlPatch, actions: controlActions},
	}
}

// powerInterval is over how long power is averaged.
const powerInterval = thermal.Window

// powerLimit is the control of the power limit, the only one there is.
const powerLimit = "PowerLimit"

func controlIDs(view) []string { return []string{powerLimit} }

func (v view) total(k thermal.Kind) thermal.Sensor { return v.one(k, thermal.Chassis, 0) }

func environment(v view) object {
	o := object{
		"Name": "Chassis Environment Metrics", "PowerWatts": v.excerpt(v.total(thermal.Power)), "EnergykWh": v.excerpt(v.total(thermal.Energy)),
		"PowerLimitWatts": v.limitExcerpt(),
	}
	for _, s := range v.sensors(thermal.Temperature, thermal.Chassis) {
		if s.Context == "Intake" {
			o["TemperatureCelsius"] = v.excerpt(s)
		}
	}
	fans := list(v.sensors(thermal.Speed), func(s thermal.Sensor) object {
		o := v.excerpt(s).(object)
		o["DeviceName"], o["PhysicalContext"] = s.Name, s.Context
		return o
	})
	o["FanSpeedsPercent"], o["FanSpeedsPercent@odata.count"] = fans, len(fans)
	return o
}

func processorEnvironment(v view) object {
	n := ordinal("CPU", v.ids["processor"])
	return object{
		"Name":               fmt.Sprintf("Processor %d Environment Metrics", n+1),
		"TemperatureCelsius": v.excerpt(v.one(thermal.Temperature, thermal.Processor, n)), "PowerWatts": v.excerpt(v.one(thermal.Power, thermal.Processor, n)),
		"Voltage": v.excerpt(v.one(thermal.Voltage, thermal.Processor, n)),
	}
}

func memoryEnvironment(v view) object {
	id := v.ids["dimm"]
	return object{
		"Name": id + " Environment Metrics", "TemperatureCelsius": v.excerpt(v.one(thermal.Temperature, thermal.Memory, socketOf(v.m.Profile, id))),
	}
}

// limitExcerpt is what is repeated of the control of the power limit.
func (v view) limitExcerpt() object {
	least, most := v.m.Profile.Thermal.Limits()
	o := object{
		"SetPoint": limit(v.m.Thermal), "ControlMode": limitMode(v), "AllowableMin": least, "AllowableMax": most, "DefaultSetPoint": nil,
		"Reading": v.reading(v.total(thermal.Power)), "DataSourceUri": v.chassis("Controls", powerLimit),
	}
	return o
}

func limitMode(v view) string {
	if v.m.Thermal.Limit() > 0 {
		return "Automatic"
	}
	return "Disabled"
}

func control(v view) object {
	o := v.limitExcerpt()
	delete(o, "DataSourceUri")
	delete(o, "Reading")
	total := v.total(thermal.Power)
	o["Name"], o["ControlType"], o["SetPointType"], o["SetPointUnits"] = "Chassis Power Limit", "Power", "Single", "W"
	o["Implementation"], o["PhysicalContext"], o["Increment"], o["Status"] = "Programmable", "Chassis", 1, status("Enabled")
	o["Sensor"] = v.excerpt(total)
	o["AssociatedSensors"], o["AssociatedSensors@odata.count"] = refs(v.chassis("Sensors", total.ID)), 1
	o["RelatedItem"], o["RelatedItem@odata.count"] = refs(v.chassis()), 1
	return o
}

func limitModes(view) []string { return []string{"Automatic", "Disabled"} }

// limitInputs are what can be written of the power limit.
var limitInputs = []input{
	{name: "SetPoint", kind: number, nullable: true},
	{name: "ControlMode", kind: text, values: limitModes},
}

// changeLimit sets the power limit as a client wants it; prefix is where its
// properties stand.
func changeLimit(ctx context.Context, c operation, prefix string) error {
	watts, sent := c.set[prefix+"SetPoint"]
	mode := value(c.set, prefix+"ControlMode", "")
	switch {
	case mode == "Disabled" && watts != nil:
		return decline(http.StatusBadRequest, message.PropertyValueConflict.With("SetPoint", "ControlMode").About("#/"+prefix+"SetPoint"))
	case mode == "Disabled":
		watts = nil
	case mode == "Automatic" && watts == nil && (sent || c.view.m.Thermal.Limit() == 0):
		return decline(http.StatusBadRequest, message.PropertyValueConflict.With("ControlMode", "SetPoint").About("#/"+prefix+"ControlMode"))
	case !sent:
		return nil
	}
	return setLimit(ctx, c, watts, "SetPoint", "#/"+prefix+"SetPoint")
}

// setLimit limits the power to a float64, or ends that with nil.
func setLimit(ctx context.Context, c operation, watts any, property, pointer string) error {
	w, _ := watts.(float64)
	least, most := c.view.m.Profile.Thermal.Limits()
	if watts != nil && (w < least || w > most) {
		return decline(http.StatusBadRequest, message.PropertyValueOutOfRange.With(fmt.Sprint(w), property).About(pointer))
	}
	return c.host.Apply(ctx, machine.Thermal{Command: thermal.SetLimit{Watts: w}})
}

var environmentPatch = patch{
	inputs: []input{{name: "PowerLimitWatts", kind: group, of: limitInputs}},
	apply: func(ctx context.Context, c operation) (reply, error) {
		return reply{}, changeLimit(ctx, c, "PowerLimitWatts/")
	},
}

var controlPatch = patch{
	inputs: limitInputs,
	apply:  func(ctx context.Context, c operation) (reply, error) { return reply{}, changeLimit(ctx, c, "") },
}

// unlimited ends the power limit: there is none until somebody sets it.
func unlimited(ctx context.Context, c operation) (reply, error) {
	return reply{}, c.host.Apply(ctx, machine.Thermal{Command: thermal.SetLimit{}})
}

var (
	controlActions     = []action{{name: "Control.ResetToDefaults", apply: unlimited}}
	environmentActions = []action{{name: "EnvironmentMetrics.ResetToDefaults", apply: unlimited}}
)
