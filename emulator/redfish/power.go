package redfish

import (
	"context"
	"fmt"

	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

func powerRows() []resource {
	const supply = "/redfish/v1/Chassis/{chassis}/PowerSubsystem/PowerSupplies/{supply}"
	return []resource{
		{uri: "/redfish/v1/Chassis/{chassis}/Power", schema: "Power.v1_7_3", when: hasSensors, shows: readings | PartIdentity | PartFirmware,
			read: oldPower, patch: &oldPowerPatch},
		{uri: "/redfish/v1/Chassis/{chassis}/PowerSubsystem", schema: "PowerSubsystem.v1_1_3", when: hasSensors, shows: PartThermal, read: powerSubsystem},
		{uri: "/redfish/v1/Chassis/{chassis}/PowerSubsystem/PowerSupplies", schema: "PowerSupplyCollection", name: "Power Supplies", of: "supply"},
		{uri: supply, schema: "PowerSupply.v1_6_0", shows: PartThermal | PartIdentity | PartFirmware, read: powerSupply},
		{uri: supply + "/Metrics", schema: "PowerSupplyMetrics.v1_2_0", shows: readings, read: powerSupplyMetrics},
	}
}

func supplyIDs(v view) []string {
	var out []string
	for n := range v.m.Profile.Thermal.Supplies.Count {
		out = append(out, thermal.SupplyID(n))
	}
	return out
}

// supplyStates are the statuses of power supplies by what is wrong with them.
var supplyStates = map[thermal.Fault]object{
	thermal.NoFault: {"State": "Enabled", "Health": "OK"},
	thermal.Failed:  {"State": "Enabled", "Health": "Critical"},
	thermal.NoInput: {"State": "UnavailableOffline", "Health": "Warning"},
	thermal.Absent:  {"State": "Absent", "Health": nil},
}

// group is a set of parts of which some may fail.
type redundant struct {
	name   string
	parts  []string // addresses
	needed int
	is     thermal.Redundancy
}

// redundancies are the healths of groups.
var redundancies = map[thermal.Redundancy]string{thermal.Redundant: "OK", thermal.Bare: "Warning", thermal.Insufficient: "Critical"}

func (v view) supplyGroup(uri func(id string) string) redundant {
	s := v.m.Profile.Thermal.Supplies
	return redundant{"Power Supply Redundancy", list(supplyIDs(v), uri), s.Needed, v.m.Thermal.SupplyRedundancy()}
}

// health is that of a group; one that was made without spare parts has lost
// nothing.
func (g redundant) health() string {
	if len(g.parts) == g.needed && g.is == thermal.Bare {
		return "OK"
	}
	return redundancies[g.is]
}

// today is a group as RedundantGroup (DSP2046, Redundancy 1.4).
func (g redundant) today() []object {
	kind := "NPlusM"
	if len(g.parts) <= g.needed {
		kind = "NotRedundant"
	}
	return []object{{
		"RedundancyType": kind, "MinNeededInGroup": g.needed, "MaxSupportedInGroup": len(g.parts), "GroupName": g.name,
		"RedundancyGroup": refs(g.parts...), "RedundancyGroup@odata.count": len(g.parts),
		"Status": object{"State": "Enabled", "Health": g.health()},
	}}
}

// before is a group as it was shown in Power and Thermal.
func (g redundant) before(v view) []object {
	mode := "N+m"
	if len(g.parts) <= g.needed {
		mode = "NotRedundant"
	}
	return []object{{
		"@odata.id": v.uri + "#/Redundancy/0", "MemberId": "0", "Name": g.name, "Mode": mode,
		"MinNumNeeded": g.needed, "MaxNumSupported": len(g.parts), "RedundancySet": refs(g.parts...), "RedundancySet@odata.count": len(g.parts),
		"Status": object{"State": "Enabled", "Health": g.health()},
	}}
}

func powerSubsystem(v view) object {
	s := v.m.Profile.Thermal.Supplies
	g := v.supplyGroup(func(id string) string { return v.uri + "/PowerSupplies/" + id })
	return object{
		"Name": "Power Subsystem", "CapacityWatts": s.Watts * float64(s.Needed),
		"Allocation":            object{"RequestedWatts": v.m.Profile.Thermal.Watts.Full, "AllocatedWatts": s.Watts * float64(s.Needed)},
		"PowerSupplyRedundancy": g.today(), "Status": object{"State": "Enabled", "Health": "OK", "HealthRollup": worst(v.supplyHealth(), g.health())},
	}
}

// supplyHealth is the worst of the power supplies'.
func (v view) supplyHealth() string {
	all := []string{"OK"}
	for n := range v.m.Profile.Thermal.Supplies.Count {
		if h, ok := supplyStates[v.m.Thermal.SupplyFault(n)]["Health"].(string); ok {
			all = append(all, h)
		}
	}
	return worst(all...)
}

// nominal is a voltage of the mains as Circuit.NominalVoltageType has it.
func nominal(volts float64) string {
	switch {
	case volts < 135:
		return "AC120V"
	case volts < 235:
		return "AC230V"
	}
	return "AC240V"
}

func powerSupply(v view) object {
	n := ordinal("PSU", v.ids["supply"])
	s, fault := v.m.Profile.Thermal.Supplies, v.m.Thermal.SupplyFault(n)
	o := object{
		"Name": fmt.Sprint("Power Supply ", n+1), "PowerSupplyType": "AC", "PowerCapacityWatts": s.Watts, "InputNominalVoltageType": nominal(s.Volts),
		"OutputNominalVoltageType": "DC12V", "PlugType": "IEC_60320_C14", "PhaseWiringType": "OnePhase3Wire", "HotPluggable": true, "Replaceable": true,
		"InputRanges":       []object{{"NominalVoltageType": "AC200To240V", "CapacityWatts": s.Watts}},
		"EfficiencyRatings": []object{{"LoadPercent": 50, "EfficiencyPercent": s.Efficiency}},
		"OutputRails":       []object{{"NominalVoltage": 12, "PhysicalContext": "SystemBoard"}},
		"LineInputStatus":   "Normal", "Status": supplyStates[fault], "Location": label(v.ids["supply"], "Slot", n),
		"Links": object{"PoweringChassis": refs(v.chassis()), "PoweringChassis@odata.count": 1},
	}
	if fault == thermal.NoInput {
		o["LineInputStatus"] = "LossOfInput"
	}
	if fault != thermal.Absent {
		o["Manufacturer"], o["Model"], o["PartNumber"] = orNull(s.Vendor), orNull(s.Product), orNull(s.PartNumber)
		o["SerialNumber"], o["FirmwareVersion"] = v.m.Identity.SerialOf("psu", n), v.version(s.Component)
	}
	return o
}

func powerSupplyMetrics(v view) object {
	n := ordinal("PSU", v.ids["supply"])
	return object{
		"Name": fmt.Sprintf("Power Supply %d Metrics", n+1), "Status": supplyStates[v.m.Thermal.SupplyFault(n)],
		"InputVoltage":     v.excerpt(v.measured(thermal.Voltage, n, thermal.Input)),
		"InputPowerWatts":  v.excerpt(v.measured(thermal.Power, n, thermal.Input)),
		"OutputPowerWatts": v.excerpt(v.measured(thermal.Power, n, thermal.Output)),
	}
}

// oldPower is the resource that PowerSubsystem and Sensors took the place of,
// where older clients look.
func oldPower(v view) object {
	m, t := v.m.Profile.Thermal, v.m.Thermal
	usage := t.Usage(v.now, powerInterval)
	whole := func(watts float64) int { return int(watts + 0.5) }
	control := object{
		"@odata.id": v.uri + "#/PowerControl/0", "MemberId": "0", "Name": "System Power Control", "PhysicalContext": "Chassis",
		"PowerConsumedWatts": whole(usage.Is), "PowerRequestedWatts": m.Watts.Full, "PowerCapacityWatts": m.Supplies.Watts * float64(m.Supplies.Needed),
		"PowerAllocatedWatts": m.Supplies.Watts * float64(m.Supplies.Needed),
		"PowerMetrics": object{
			"IntervalInMin": int(powerInterval.Minutes()), "AverageConsumedWatts": whole(usage.Mean), "MinConsumedWatts": whole(usage.Least),
			"MaxConsumedWatts": whole(usage.Most),
		},
		"PowerLimit":  object{"LimitInWatts": limit(t), "LimitException": "NoAction"},
		"RelatedItem": refs(v.chassis()), "RelatedItem@odata.count": 1, "Status": status("Enabled"),
	}
	voltages := []object{}
	for i, s := range v.sensors(thermal.Voltage, thermal.Board, thermal.Processor, thermal.Chassis, thermal.Memory) {
		o := object{
			"@odata.id": fmt.Sprintf("%s#/Voltages/%d", v.uri, i), "MemberId": fmt.Sprint(i), "Name": s.Name, "SensorNumber": 0x40 + i,
			"ReadingVolts": v.reading(s), "PhysicalContext": s.Context, "Status": v.sensorStatus(s),
			"RelatedItem": v.relatedTo(s), "RelatedItem@odata.count": len(v.relatedTo(s)),
		}
		v.oldThresholds(o, s)
		voltages = append(voltages, o)
	}
	supplies := []object{}
	for n := range m.Supplies.Count {
		supplies = append(supplies, v.oldSupply(n))
	}
	g := v.supplyGroup(func(id string) string { return fmt.Sprintf("%s#/PowerSupplies/%d", v.uri, ordinal("PSU", id)) })
	return object{
		"Name": "Power", "PowerControl": []object{control}, "PowerControl@odata.count": 1,
		"Voltages": voltages, "Voltages@odata.count": len(voltages), "PowerSupplies": supplies, "PowerSupplies@odata.count": len(supplies),
		"Redundancy": g.before(v), "Redundancy@odata.count": 1,
	}
}

// limit is the power limit; nil when there is none.
func limit(t thermal.View) any {
	if w := t.Limit(); w > 0 {
		return w
	}
	return nil
}

// oldThresholds shows thresholds as Power and Thermal did.
func (v view) oldThresholds(o object, s thermal.Sensor) {
	l := v.m.Thermal.Thresholds(s.ID)
	for name, at := range map[string]*float64{
		"LowerThresholdCritical": l.LowCritical, "LowerThresholdNonCritical": l.LowCaution,
		"UpperThresholdNonCritical": l.Caution, "UpperThresholdCritical": l.Critical, "UpperThresholdFatal": l.Fatal,
	} {
		if at != nil {
			o[name] = *at
		}
	}
}

func (v view) oldSupply(n int) object {
	s, fault := v.m.Profile.Thermal.Supplies, v.m.Thermal.SupplyFault(n)
	out := v.reading(v.measured(thermal.Power, n, thermal.Output))
	o := object{
		"@odata.id": fmt.Sprintf("%s#/PowerSupplies/%d", v.uri, n), "MemberId": fmt.Sprint(n), "Name": fmt.Sprint("Power Supply ", n+1),
		"PowerSupplyType": "AC", "LineInputVoltageType": "AC240V", "PowerCapacityWatts": s.Watts, "EfficiencyPercent": s.Efficiency, "HotPluggable": true,
		"LineInputVoltage": v.reading(v.measured(thermal.Voltage, n, thermal.Input)),
		"PowerInputWatts":  v.reading(v.measured(thermal.Power, n, thermal.Input)), "PowerOutputWatts": out, "LastPowerOutputWatts": out,
		"InputRanges": []object{{
			"InputType": "AC", "MinimumVoltage": 200, "MaximumVoltage": 240, "MinimumFrequencyHz": 47, "MaximumFrequencyHz": 63, "OutputWattage": s.Watts,
		}},
		"Status": supplyStates[fault], "RelatedItem": refs(v.chassis()), "RelatedItem@odata.count": 1,
		"Redundancy": refs(v.uri + "#/Redundancy/0"), "Redundancy@odata.count": 1,
	}
	if fault != thermal.Absent {
		o["Manufacturer"], o["Model"], o["PartNumber"] = orNull(s.Vendor), orNull(s.Product), orNull(s.PartNumber)
		o["SerialNumber"], o["FirmwareVersion"] = v.m.Identity.SerialOf("psu", n), v.version(s.Component)
	}
	return o
}

var oldPowerPatch = patch{
	inputs: []input{{name: "PowerControl", kind: array, min: 1, max: 1, of: []input{{kind: group, of: []input{
		{name: "PowerLimit", kind: group, of: []input{{name: "LimitInWatts", kind: number, nullable: true}}},
	}}}}},
	apply: func(ctx context.Context, c operation) (reply, error) {
		all, _ := c.set["PowerControl"].([]any)
		if len(all) == 0 {
			return reply{}, nil
		}
		control, _ := all[0].(values)
		watts, sent := control["PowerLimit/LimitInWatts"]
		if !sent {
			return reply{}, nil
		}
		return reply{}, setLimit(ctx, c, watts, "LimitInWatts", "#/PowerControl/0/PowerLimit/LimitInWatts")
	},
}
