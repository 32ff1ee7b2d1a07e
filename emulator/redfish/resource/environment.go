package resource

import (
	"context"
	"fmt"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func environmentRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Chassis/{chassis}/EnvironmentMetrics", Schema: "EnvironmentMetrics.v1_5_0", When: hasSensors, DependsOn: sensorParts,
			Read: environment, Patch: &environmentPatch, Actions: environmentActions},
		{URI: "/redfish/v1/Systems/{system}/Processors/{processor}/EnvironmentMetrics", Schema: "EnvironmentMetrics.v1_5_0", When: hasSensors,
			DependsOn: sensorParts, Read: processorEnvironment},
		{URI: "/redfish/v1/Systems/{system}/Memory/{dimm}/EnvironmentMetrics", Schema: "EnvironmentMetrics.v1_5_0", When: hasSensors,
			DependsOn: sensorParts, Read: memoryEnvironment},
		{URI: "/redfish/v1/Chassis/{chassis}/Controls", Schema: "ControlCollection", When: hasSensors, Name: "Controls", MemberVariable: "control"},
		{URI: "/redfish/v1/Chassis/{chassis}/Controls/{control}", Schema: "Control.v1_7_0", DependsOn: sensorParts, Read: control,
			Patch: &controlPatch, Actions: controlActions},
	}
}

// powerInterval is over how long power is averaged.
const powerInterval = thermal.Window

// powerLimit is the control of the power limit, the only one there is.
const powerLimit = "PowerLimit"

func controlIDs(View) []string { return []string{powerLimit} }

func (v View) total(k thermal.Kind) thermal.Sensor { return v.partSensor(k, thermal.Chassis, 0) }

func environment(v View) Object {
	o := Object{
		"Name": "Chassis Environment Metrics", "PowerWatts": v.excerpt(v.total(thermal.Power)), "EnergykWh": v.excerpt(v.total(thermal.Energy)),
		"PowerLimitWatts": v.limitExcerpt(),
	}
	for _, s := range v.sensors(thermal.Temperature, thermal.Chassis) {
		if s.Context == "Intake" {
			o["TemperatureCelsius"] = v.excerpt(s)
		}
	}
	fans := Map(v.sensors(thermal.Speed), func(s thermal.Sensor) Object {
		o := v.excerpt(s).(Object)
		o["DeviceName"], o["PhysicalContext"] = s.Name, s.Context
		return o
	})
	o["FanSpeedsPercent"], o["FanSpeedsPercent@odata.count"] = fans, len(fans)
	return o
}

func processorEnvironment(v View) Object {
	n := ordinal("CPU", v.IDs["processor"])
	return Object{
		"Name":               fmt.Sprintf("Processor %d Environment Metrics", n+1),
		"TemperatureCelsius": v.excerpt(v.partSensor(thermal.Temperature, thermal.Processor, n)), "PowerWatts": v.excerpt(v.partSensor(thermal.Power, thermal.Processor, n)),
		"Voltage": v.excerpt(v.partSensor(thermal.Voltage, thermal.Processor, n)),
	}
}

func memoryEnvironment(v View) Object {
	id := v.IDs["dimm"]
	return Object{
		"Name": id + " Environment Metrics", "TemperatureCelsius": v.excerpt(v.partSensor(thermal.Temperature, thermal.Memory, dimmSocket(v.Machine.Profile, id))),
	}
}

// limitExcerpt is what is repeated of the control of the power limit.
func (v View) limitExcerpt() Object {
	least, most := v.Machine.Profile.Thermal.Limits()
	o := Object{
		"SetPoint": powerLimitWatts(v.Machine.Thermal), "ControlMode": limitMode(v), "AllowableMin": least, "AllowableMax": most, "DefaultSetPoint": nil,
		"Reading": v.reading(v.total(thermal.Power)), "DataSourceUri": v.chassis("Controls", powerLimit),
	}
	return o
}

func limitMode(v View) string {
	if v.Machine.Thermal.Limit() > 0 {
		return "Automatic"
	}
	return "Disabled"
}

func control(v View) Object {
	o := v.limitExcerpt()
	delete(o, "DataSourceUri")
	delete(o, "Reading")
	total := v.total(thermal.Power)
	o["Name"], o["ControlType"], o["SetPointType"], o["SetPointUnits"] = "Chassis Power Limit", "Power", "Single", "W"
	o["Implementation"], o["PhysicalContext"], o["Increment"], o["Status"] = "Programmable", "Chassis", 1, status("Enabled")
	o["Sensor"] = v.excerpt(total)
	o["AssociatedSensors"], o["AssociatedSensors@odata.count"] = Refs(v.chassis("Sensors", total.ID)), 1
	o["RelatedItem"], o["RelatedItem@odata.count"] = Refs(v.chassis()), 1
	return o
}

func limitModes(View) []string { return []string{"Automatic", "Disabled"} }

// limitInputs are what can be written of the power limit.
var limitInputs = []Input{
	{Name: "SetPoint", Kind: Number, Nullable: true},
	{Name: "ControlMode", Kind: Text, Allowed: limitModes},
}

// changeLimit sets the power limit as a client wants it; prefix is where its
// properties stand.
func changeLimit(ctx context.Context, c Call, prefix string) error {
	watts, sent := c.Values[prefix+"SetPoint"]
	mode := Value(c.Values, prefix+"ControlMode", "")
	switch {
	case mode == "Disabled" && watts != nil:
		return Decline(http.StatusBadRequest, message.PropertyValueConflict.With("SetPoint", "ControlMode").About("#/"+prefix+"SetPoint"))
	case mode == "Disabled":
		watts = nil
	case mode == "Automatic" && watts == nil && (sent || c.View.Machine.Thermal.Limit() == 0):
		return Decline(http.StatusBadRequest, message.PropertyValueConflict.With("ControlMode", "SetPoint").About("#/"+prefix+"ControlMode"))
	case !sent:
		return nil
	}
	return setLimit(ctx, c, watts, "SetPoint", "#/"+prefix+"SetPoint")
}

// setLimit limits the power to a float64, or ends that with nil.
func setLimit(ctx context.Context, c Call, watts any, property, pointer string) error {
	w, _ := watts.(float64)
	least, most := c.View.Machine.Profile.Thermal.Limits()
	if watts != nil && (w < least || w > most) {
		return Decline(http.StatusBadRequest, message.PropertyValueOutOfRange.With(fmt.Sprint(w), property).About(pointer))
	}
	return c.Host.Apply(ctx, machine.Thermal{Command: thermal.SetLimit{Watts: w}})
}

var environmentPatch = Patch{
	Inputs: []Input{{Name: "PowerLimitWatts", Kind: Group, Of: limitInputs}},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		return Result{}, changeLimit(ctx, c, "PowerLimitWatts/")
	},
}

var controlPatch = Patch{
	Inputs: limitInputs,
	Apply:  func(ctx context.Context, c Call) (Result, error) { return Result{}, changeLimit(ctx, c, "") },
}

// unlimited ends the power limit: there is none until somebody sets it.
func unlimited(ctx context.Context, c Call) (Result, error) {
	return Result{}, c.Host.Apply(ctx, machine.Thermal{Command: thermal.SetLimit{}})
}

var (
	controlActions     = []Action{{Name: "Control.ResetToDefaults", Apply: unlimited}}
	environmentActions = []Action{{Name: "EnvironmentMetrics.ResetToDefaults", Apply: unlimited}}
)
