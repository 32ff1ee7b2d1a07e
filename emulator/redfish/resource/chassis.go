package resource

import (
	"context"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func chassisRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Chassis", Schema: "ChassisCollection", collectionName: "Chassis", memberVariable: "chassis"},
		{URI: "/redfish/v1/Chassis/{chassis}", Schema: "Chassis.v1_28_0",
			DependsOn: storageParts | partPower | partAsset | partThermal | partPhysicalSecurity, Read: chassis, Patch: &chassisPatch},
	}
}

func chassis(v View) Object {
	p, id := v.Machine.Profile, v.Machine.Identity
	var subsystems []Object
	for _, c := range id.Storage {
		subsystems = append(subsystems, Ref(v.system("Storage", c.ID)))
	}
	o := Object{
		"Name": "Chassis", "ChassisType": "RackMount", "AssetTag": v.Machine.Asset.ChassisTag,
		"Manufacturer": id.Manufacturer, "Model": id.Model, "SKU": p.SKU, "PartNumber": id.ChassisPart,
		"SerialNumber": id.ChassisSerial, "UUID": id.UUID, "PowerState": string(v.Machine.Power), "PoweredByParent": false, "ThermalDirection": "FrontToBack",
		"Status": Object{"State": "Enabled", "Health": "OK", "HealthRollup": worstHealth(v.chassisHealth(), v.storageHealth())},
		"Links": Object{
			"ComputerSystems": refs(v.system()), "ManagedBy": refs(v.manager()), "ManagersInChassis": refs(v.manager()),
			"Drives": v.driveLinks(), "Storage": append([]Object{}, subsystems...),
			"Processors": Map(cpuIDs(p), func(id string) Object { return Ref(v.system("Processors", id)) }),
			"Fans":       Map(fanIDs(v), func(id string) Object { return Ref(v.chassis("ThermalSubsystem", "Fans", id)) }),
			"PowerSupplies": Map(supplyIDs(v), func(id string) Object {
				return Ref(v.chassis("PowerSubsystem", "PowerSupplies", id))
			}),
		},
	}
	if hasSensors(v) {
		o["MinPowerWatts"], o["MaxPowerWatts"] = p.Thermal.Limits()
	}
	addIndicator(v, o)
	l := v.Machine.PhysicalSecurity
	o["PhysicalSecurity"] = Object{
		"IntrusionSensor": intrusionStates[l.Intrusion], "IntrusionSensorReArm": rearmModes[l.AutoRearm],
		"IntrusionSensorReArm@Redfish.AllowableValues": []string{rearmModes[false], rearmModes[true]},
	}
	return o
}

// Values of Chassis.PhysicalSecurity: IntrusionSensor by whether an intrusion was
// detected, IntrusionSensorReArm by whether closing the cover resets it.
var (
	intrusionStates = map[bool]string{false: "Normal", true: "HardwareIntrusion"}
	rearmModes      = map[bool]string{false: "Manual", true: "Automatic"}
)

// patchedIntrusionSensor returns the intrusion sensor with a client's changes,
// and whether they change it.
func patchedIntrusionSensor(c Call) (machine.SetIntrusionSensor, bool) {
	_, sensor := c.Values["PhysicalSecurity/IntrusionSensor"]
	_, rearm := c.Values["PhysicalSecurity/IntrusionSensorReArm"]
	is := c.View.Machine.PhysicalSecurity
	l := machine.SetIntrusionSensor{Intrusion: is.Intrusion && !sensor, AutoRearm: is.AutoRearm}
	l.AutoRearm = Value(c.Values, "PhysicalSecurity/IntrusionSensorReArm", rearmModes[l.AutoRearm]) == rearmModes[true]
	return l, sensor && is.Intrusion || rearm && l.AutoRearm != is.AutoRearm
}

// chassisHealth returns the worst health of the fans, temperatures and power
// supplies.
func (v View) chassisHealth() string {
	g := v.supplyRedundancy(func(id string) string { return id })
	return worstHealth(v.coolingHealth(), v.supplyHealth(), g.health())
}

var chassisPatch = Patch{
	Inputs: []Input{
		{Name: "AssetTag", Kind: Text, nullable: true, form: machine.ValidText},
		{Name: "LocationIndicatorActive", Kind: Boolean},
		{Name: "IndicatorLED", Kind: Text, Allowed: indicatorStates},
		{Name: "PhysicalSecurity", Kind: Group, Of: []Input{
			{Name: "IntrusionSensor", Kind: Text, Allowed: OneOf(intrusionStates[false])},
			{Name: "IntrusionSensorReArm", Kind: Text, Allowed: OneOf(rearmModes[false], rearmModes[true])},
		}},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		a := patchedAsset(c)
		a.ChassisTag = textOrEmpty(c.Values, "AssetTag", a.ChassisTag)
		all := []machine.Command{machine.SetAsset{Asset: a}}
		l, changed := patchedIntrusionSensor(c)
		if is := c.View.Machine.PhysicalSecurity; changed && is.CoverOpen && !l.Intrusion {
			return Result{}, Reject(http.StatusConflict, message.ResourceInUse.With())
		}
		if changed {
			all = append(all, l)
		}
		return Result{}, applyAll(ctx, c, all)
	},
}
