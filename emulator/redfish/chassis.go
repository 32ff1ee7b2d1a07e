package redfish

import (
	"context"

	"github.com/metalab-dev/metalab/emulator/machine"
)

func chassisRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Chassis", schema: "ChassisCollection", needs: ofComponents, name: "Chassis", of: "chassis"},
		{uri: "/redfish/v1/Chassis/{chassis}", schema: "Chassis.v1_28_0", needs: ofComponents,
			shows: disksShow | showsPower | showsAsset | showsThermal, read: chassis, patch: &chassisPatch},
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
		"Manufacturer": p.Manufacturer, "Model": p.Model, "SKU": p.SKU, "PartNumber": p.PartNumber,
		"SerialNumber": id.Serial, "UUID": id.UUID, "PowerState": string(v.m.Power), "PoweredByParent": false, "ThermalDirection": "FrontToBack",
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
	return o
}

// boxHealth is the worst of what cools and feeds the server.
func (v view) boxHealth() string {
	g := v.supplyGroup(func(id string) string { return id })
	return worst(v.coolingHealth(), v.supplyHealth(), g.health())
}

var chassisPatch = patch{
	inputs: []input{
		{name: "AssetTag", kind: text, nullable: true, form: machine.Writable},
		{name: "LocationIndicatorActive", kind: boolean},
		{name: "IndicatorLED", kind: text, values: lights},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		a := assetOf(c)
		a.ChassisTag = text0(c.set, "AssetTag", a.ChassisTag)
		return reply{}, c.host.Apply(ctx, machine.SetAsset{Asset: a})
	},
}
