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
		{URI: "/redfish/v1/Chassis/{chassis}/Controls", Schema: "ControlCollection", When: hasSensors, collectionName: "Controls", memberVariable: "control"},
		{URI: "/redfish/v1/Chassis/{chassis}/Controls/{control}", Schema: "Control.v1_7_0", DependsOn: sensorParts, Read: control,
			Patch: &controlPatch, Actions: controlActions},
	}
}

// powerInterval is the period over which power is averaged.
const powerInterval = thermal.Window

// powerLimit is the ID of the only Control: the power limit.
const powerLimit = "PowerLimit"

func controlIDs(View) []string { return []string{powerLimit} }

// totalSensor returns the chassis sensor for the total of a kind: power or
// energy.
func (v View) totalSensor(k thermal.Kind) thermal.Sensor { return v.partSensor(k, thermal.Chassis, 0) }

func environment(v View) Object {
	o := Object{
		"Name": "Chassis Environment Metrics", "PowerWatts": v.excerpt(v.totalSensor(thermal.Power)), "EnergykWh": v.excerpt(v.totalSensor(thermal.Energy)),
		"PowerLimitWatts": v.powerLimitExcerpt(),
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

// powerLimitExcerpt returns the excerpt of the power limit's Control.
func (v View) powerLimitExcerpt() Object {
	least, most := v.Machine.Profile.Thermal.Limits()
	o := Object{
		"SetPoint": powerLimitWatts(v.Machine.Thermal), "ControlMode": powerLimitMode(v), "AllowableMin": least, "AllowableMax": most, "DefaultSetPoint": nil,
		"Reading": v.reading(v.totalSensor(thermal.Power)), "DataSourceUri": v.chassis("Controls", powerLimit),
	}
	return o
}

func powerLimitMode(v View) string {
	if v.Machine.Thermal.Limit() > 0 {
		return "Automatic"
	}
	return "Disabled"
}

func control(v View) Object {
	o := v.powerLimitExcerpt()
	delete(o, "DataSourceUri")
	delete(o, "Reading")
	total := v.totalSensor(thermal.Power)
	o["Name"], o["ControlType"], o["SetPointType"], o["SetPointUnits"] = "Chassis Power Limit", "Power", "Single", "W"
	o["Implementation"], o["PhysicalContext"], o["Increment"], o["Status"] = "Programmable", "Chassis", 1, status("Enabled")
	o["Sensor"] = v.excerpt(total)
	o["AssociatedSensors"], o["AssociatedSensors@odata.count"] = refs(v.chassis("Sensors", total.ID)), 1
	o["RelatedItem"], o["RelatedItem@odata.count"] = refs(v.chassis()), 1
	return o
}

func controlModes(View) []string { return []string{"Automatic", "Disabled"} }

// powerLimitInputs are the writable properties of the power limit.
var powerLimitInputs = []Input{
	{Name: "SetPoint", Kind: Number, nullable: true},
	{Name: "ControlMode", Kind: Text, Allowed: controlModes},
}

// patchPowerLimit applies a client's changes of the power limit. prefix is the
// path of the properties in the request.
func patchPowerLimit(ctx context.Context, c Call, prefix string) error {
	watts, sent := c.Values[prefix+"SetPoint"]
	mode := Value(c.Values, prefix+"ControlMode", "")
	switch {
	case mode == "Disabled" && watts != nil:
		return Reject(http.StatusBadRequest, message.PropertyValueConflict.With("SetPoint", "ControlMode").About("#/"+prefix+"SetPoint"))
	case mode == "Disabled":
		watts = nil
	case mode == "Automatic" && watts == nil && (sent || c.View.Machine.Thermal.Limit() == 0):
		return Reject(http.StatusBadRequest, message.PropertyValueConflict.With("ControlMode", "SetPoint").About("#/"+prefix+"ControlMode"))
	case !sent:
		return nil
	}
	return setPowerLimit(ctx, c, watts, "SetPoint", "#/"+prefix+"SetPoint")
}

// setPowerLimit limits the power to a float64 in watts; nil removes the limit.
// It rejects a value outside the machine's limits.
func setPowerLimit(ctx context.Context, c Call, watts any, property, pointer string) error {
	w, _ := watts.(float64)
	least, most := c.View.Machine.Profile.Thermal.Limits()
	if watts != nil && (w < least || w > most) {
		return Reject(http.StatusBadRequest, message.PropertyValueOutOfRange.With(fmt.Sprint(w), property).About(pointer))
	}
	return c.Host.Apply(ctx, machine.Thermal{Command: thermal.SetLimit{Watts: w}})
}

var environmentPatch = Patch{
	Inputs: []Input{{Name: "PowerLimitWatts", Kind: Group, Of: powerLimitInputs}},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		return Result{}, patchPowerLimit(ctx, c, "PowerLimitWatts/")
	},
}

var controlPatch = Patch{
	Inputs: powerLimitInputs,
	Apply:  func(ctx context.Context, c Call) (Result, error) { return Result{}, patchPowerLimit(ctx, c, "") },
}

// removePowerLimit removes the power limit, as ResetToDefaults does: by default
// there is none.
func removePowerLimit(ctx context.Context, c Call) (Result, error) {
	return Result{}, c.Host.Apply(ctx, machine.Thermal{Command: thermal.SetLimit{}})
}

var (
	controlActions     = []Action{{Name: "Control.ResetToDefaults", Apply: removePowerLimit}}
	environmentActions = []Action{{Name: "EnvironmentMetrics.ResetToDefaults", Apply: removePowerLimit}}
)
