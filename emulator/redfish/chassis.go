package redfish

import (
	"context"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func chassisRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Chassis", schema: "ChassisCollection", name: "Chassis", of: "chassis"},
		{uri: "/redfish/v1/Chassis/{chassis}", schema: "Chassis.v1_28_0",
			shows: disksShow | PartPower | PartAsset | PartThermal | PartPhysicalSecurity, read: chassis, patch: &chassisPatch},
	}
}

func chassis(v view) object {
	p, id := v.m.Profile, v.m.Identity
	var subsystems []object
	for _, c := range id.Storage {
		subsystems = append(subsystems, ref(v.system("Storage", c.ID)))
	}
	o := object{
		"Name": "Chassis", "ChassisType": "RackMount", "AssetTag": v.m.Asset.ChassisTag,
		"Manufacturer": id.Manufacturer, "Model": id.Model, "SKU": p.SKU, "PartNumber": id.ChassisPart,
		"SerialNumber": id.ChassisSerial, "UUID": id.UUID, "PowerState": string(v.m.Power), "PoweredByParent": false, "ThermalDirection": "FrontToBack",
		"Status": object{"State": "Enabled", "Health": "OK", "HealthRollup": worst(v.boxHealth(), v.disksHealth())},
		"Links": object{
			"ComputerSystems": refs(v.system()), "ManagedBy": refs(v.manager()), "ManagersInChassis": refs(v.manager()),
			"Drives": v.drives(), "Storage": append([]object{}, subsystems...),
			"Processors": list(cpuIDs(p), func(id string) object { return ref(v.system("Processors", id)) }),
			"Fans":       list(fanIDs(v), func(id string) object { return ref(v.chassis("ThermalSubsystem", "Fans", id)) }),
			"PowerSupplies": list(supplyIDs(v), func(id string) object {
				return ref(v.chassis("PowerSubsystem", "PowerSupplies", id))
			}),
		},
	}
	if hasSensors(v) {
		o["MinPowerWatts"], o["MaxPowerWatts"] = p.Thermal.Limits()
	}
	showLight(v, o)
	l := v.m.PhysicalSecurity
	o["PhysicalSecurity"] = object{
		"IntrusionSensor": intrusion[l.Intrusion], "IntrusionSensorReArm": rearming[l.AutoRearm],
		"IntrusionSensorReArm@Redfish.AllowableValues": []string{rearming[false], rearming[true]},
	}
	return o
}

// How Chassis.PhysicalSecurity tells whether the cover was opened, and whether
// closing it is enough.
var (
	intrusion = map[bool]string{false: "Normal", true: "HardwareIntrusion"}
	rearming  = map[bool]string{false: "Manual", true: "Automatic"}
)

// lidOf is what a client wants of the sensor of the cover.
func lidOf(c operation) (machine.SetIntrusionSensor, bool) {
	_, sensor := c.set["PhysicalSecurity/IntrusionSensor"]
	_, rearm := c.set["PhysicalSecurity/IntrusionSensorReArm"]
	is := c.view.m.PhysicalSecurity
	l := machine.SetIntrusionSensor{Intrusion: is.Intrusion && !sensor, AutoRearm: is.AutoRearm}
	l.AutoRearm = value(c.set, "PhysicalSecurity/IntrusionSensorReArm", rearming[l.AutoRearm]) == rearming[true]
	return l, sensor && is.Intrusion || rearm && l.AutoRearm != is.AutoRearm
}

// boxHealth is the worst of what cools and feeds the server.
func (v view) boxHealth() string {
	g := v.supplyGroup(func(id string) string { return id })
	return worst(v.coolingHealth(), v.supplyHealth(), g.health())
}

var chassisPatch = patch{
	inputs: []input{
		{name: "AssetTag", kind: text, nullable: true, form: machine.ValidText},
		{name: "LocationIndicatorActive", kind: boolean},
		{name: "IndicatorLED", kind: text, values: lights},
		{name: "PhysicalSecurity", kind: group, of: []input{
			{name: "IntrusionSensor", kind: text, values: oneOf(intrusion[false])},
			{name: "IntrusionSensorReArm", kind: text, values: oneOf(rearming[false], rearming[true])},
		}},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		a := assetOf(c)
		a.ChassisTag = text0(c.set, "AssetTag", a.ChassisTag)
		all := []machine.Command{machine.SetAsset{Asset: a}}
		l, changed := lidOf(c)
		if is := c.view.m.PhysicalSecurity; changed && is.CoverOpen && !l.Intrusion {
			return reply{}, decline(http.StatusConflict, message.ResourceInUse.With())
		}
		if changed {
			all = append(all, l)
		}
		return reply{}, applyAll(ctx, c, all)
	},
}
