package resource

import (
	"context"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func chassisRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Chassis", Schema: "ChassisCollection", Name: "Chassis", MemberVariable: "chassis"},
		{URI: "/redfish/v1/Chassis/{chassis}", Schema: "Chassis.v1_28_0",
			DependsOn: storageParts | PartPower | PartAsset | PartThermal | PartPhysicalSecurity, Read: chassis, Patch: &chassisPatch},
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
		"Status": Object{"State": "Enabled", "Health": "OK", "HealthRollup": worst(v.boxHealth(), v.storageHealth())},
		"Links": Object{
			"ComputerSystems": Refs(v.system()), "ManagedBy": Refs(v.manager()), "ManagersInChassis": Refs(v.manager()),
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
	showLight(v, o)
	l := v.Machine.PhysicalSecurity
	o["PhysicalSecurity"] = Object{
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
func lidOf(c Call) (machine.SetIntrusionSensor, bool) {
	_, sensor := c.Values["PhysicalSecurity/IntrusionSensor"]
	_, rearm := c.Values["PhysicalSecurity/IntrusionSensorReArm"]
	is := c.View.Machine.PhysicalSecurity
	l := machine.SetIntrusionSensor{Intrusion: is.Intrusion && !sensor, AutoRearm: is.AutoRearm}
	l.AutoRearm = Value(c.Values, "PhysicalSecurity/IntrusionSensorReArm", rearming[l.AutoRearm]) == rearming[true]
	return l, sensor && is.Intrusion || rearm && l.AutoRearm != is.AutoRearm
}

// boxHealth is the worst of what cools and feeds the server.
func (v View) boxHealth() string {
	g := v.supplyRedundancy(func(id string) string { return id })
	return worst(v.coolingHealth(), v.supplyHealth(), g.health())
}

var chassisPatch = Patch{
	Inputs: []Input{
		{Name: "AssetTag", Kind: Text, Nullable: true, Form: machine.ValidText},
		{Name: "LocationIndicatorActive", Kind: Boolean},
		{Name: "IndicatorLED", Kind: Text, Allowed: lights},
		{Name: "PhysicalSecurity", Kind: Group, Of: []Input{
			{Name: "IntrusionSensor", Kind: Text, Allowed: OneOf(intrusion[false])},
			{Name: "IntrusionSensorReArm", Kind: Text, Allowed: OneOf(rearming[false], rearming[true])},
		}},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		a := assetOf(c)
		a.ChassisTag = textOrEmpty(c.Values, "AssetTag", a.ChassisTag)
		all := []machine.Command{machine.SetAsset{Asset: a}}
		l, changed := lidOf(c)
		if is := c.View.Machine.PhysicalSecurity; changed && is.CoverOpen && !l.Intrusion {
			return Result{}, Decline(http.StatusConflict, message.ResourceInUse.With())
		}
		if changed {
			all = append(all, l)
		}
		return Result{}, applyAll(ctx, c, all)
	},
}
