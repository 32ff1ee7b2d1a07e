package resource

import (
	"context"
	"fmt"

	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

func powerRows() []Row {
	const supply = "/redfish/v1/Chassis/{chassis}/PowerSubsystem/PowerSupplies/{supply}"
	return []Row{
		{URI: "/redfish/v1/Chassis/{chassis}/Power", Schema: "Power.v1_7_3", When: hasSensors, DependsOn: sensorParts | partIdentity | partFirmware,
			Read: legacyPower, Patch: &legacyPowerPatch},
		{URI: "/redfish/v1/Chassis/{chassis}/PowerSubsystem", Schema: "PowerSubsystem.v1_1_3", When: hasSensors, DependsOn: partThermal, Read: powerSubsystem},
		{URI: "/redfish/v1/Chassis/{chassis}/PowerSubsystem/PowerSupplies", Schema: "PowerSupplyCollection", collectionName: "Power Supplies", memberVariable: "supply"},
		{URI: supply, Schema: "PowerSupply.v1_6_0", DependsOn: partThermal | partIdentity | partFirmware, Read: powerSupply},
		{URI: supply + "/Metrics", Schema: "PowerSupplyMetrics.v1_2_0", DependsOn: sensorParts, Read: powerSupplyMetrics},
	}
}

func supplyIDs(v View) []string {
	var out []string
	for n := range v.Machine.Profile.Thermal.Supplies.Count {
		out = append(out, thermal.SupplyID(n))
	}
	return out
}

// supplyStates maps the fault of a power supply to its Status.
var supplyStates = map[thermal.Fault]Object{
	thermal.NoFault: {"State": "Enabled", "Health": "OK"},
	thermal.Failed:  {"State": "Enabled", "Health": "Critical"},
	thermal.NoInput: {"State": "UnavailableOffline", "Health": "Warning"},
	thermal.Absent:  {"State": "Absent", "Health": nil},
}

// redundancyGroup is a set of power supplies or fans that back each other up.
type redundancyGroup struct {
	name   string
	parts  []string // URIs
	needed int
	state  thermal.Redundancy
}

// redundancyHealth maps the redundancy of a group to its Health.
var redundancyHealth = map[thermal.Redundancy]string{thermal.Redundant: "OK", thermal.Bare: "Warning", thermal.Insufficient: "Critical"}

func (v View) supplyRedundancy(uri func(id string) string) redundancyGroup {
	s := v.Machine.Profile.Thermal.Supplies
	return redundancyGroup{"Power Supply Redundancy", Map(supplyIDs(v), uri), s.Needed, v.Machine.Thermal.SupplyRedundancy()}
}

// health returns the Health of a group. A group that has no spare parts by design is OK
// when it is not redundant.
func (g redundancyGroup) health() string {
	if len(g.parts) == g.needed && g.state == thermal.Bare {
		return "OK"
	}
	return redundancyHealth[g.state]
}

// redundantGroup returns the group as a RedundantGroup (DSP2046, Redundancy 1.4), which
// PowerSubsystem and ThermalSubsystem show.
func (g redundancyGroup) redundantGroup() []Object {
	kind := "NPlusM"
	if len(g.parts) <= g.needed {
		kind = "NotRedundant"
	}
	return []Object{{
		"RedundancyType": kind, "MinNeededInGroup": g.needed, "MaxSupportedInGroup": len(g.parts), "GroupName": g.name,
		"RedundancyGroup": refs(g.parts...), "RedundancyGroup@odata.count": len(g.parts),
		"Status": Object{"State": "Enabled", "Health": g.health()},
	}}
}

// legacyRedundancy returns the group as the Redundancy property of the deprecated resources
// Power and Thermal.
func (g redundancyGroup) legacyRedundancy(v View) []Object {
	mode := "N+m"
	if len(g.parts) <= g.needed {
		mode = "NotRedundant"
	}
	return []Object{{
		"@odata.id": v.URI + "#/Redundancy/0", "MemberId": "0", "Name": g.name, "Mode": mode,
		"MinNumNeeded": g.needed, "MaxNumSupported": len(g.parts), "RedundancySet": refs(g.parts...), "RedundancySet@odata.count": len(g.parts),
		"Status": Object{"State": "Enabled", "Health": g.health()},
	}}
}

func powerSubsystem(v View) Object {
	s := v.Machine.Profile.Thermal.Supplies
	g := v.supplyRedundancy(func(id string) string { return v.URI + "/PowerSupplies/" + id })
	return Object{
		"Name": "Power Subsystem", "CapacityWatts": s.Watts * float64(s.Needed),
		"Allocation":            Object{"RequestedWatts": v.Machine.Profile.Thermal.Watts.Full, "AllocatedWatts": s.Watts * float64(s.Needed)},
		"PowerSupplyRedundancy": g.redundantGroup(), "Status": Object{"State": "Enabled", "Health": "OK", "HealthRollup": worstHealth(v.supplyHealth(), g.health())},
	}
}

// supplyHealth returns the worst Health of the power supplies.
func (v View) supplyHealth() string {
	all := []string{"OK"}
	for n := range v.Machine.Profile.Thermal.Supplies.Count {
		if h, ok := supplyStates[v.Machine.Thermal.SupplyFault(n)]["Health"].(string); ok {
			all = append(all, h)
		}
	}
	return worstHealth(all...)
}

// nominalVoltage returns the Circuit.NominalVoltageType of a mains voltage in volts.
func nominalVoltage(volts float64) string {
	switch {
	case volts < 135:
		return "AC120V"
	case volts < 235:
		return "AC230V"
	}
	return "AC240V"
}

func powerSupply(v View) Object {
	n := ordinal("PSU", v.IDs["supply"])
	s, fault := v.Machine.Profile.Thermal.Supplies, v.Machine.Thermal.SupplyFault(n)
	o := Object{
		"Name": fmt.Sprint("Power Supply ", n+1), "PowerSupplyType": "AC", "PowerCapacityWatts": s.Watts, "InputNominalVoltageType": nominalVoltage(s.Volts),
		"OutputNominalVoltageType": "DC12V", "PlugType": "IEC_60320_C14", "PhaseWiringType": "OnePhase3Wire", "HotPluggable": true, "Replaceable": true,
		"InputRanges":       []Object{{"NominalVoltageType": "AC200To240V", "CapacityWatts": s.Watts}},
		"EfficiencyRatings": []Object{{"LoadPercent": 50, "EfficiencyPercent": s.Efficiency}},
		"OutputRails":       []Object{{"NominalVoltage": 12, "PhysicalContext": "SystemBoard"}},
		"LineInputStatus":   "Normal", "Status": supplyStates[fault], "Location": partLocation(v.IDs["supply"], "Slot", n),
		"Links": Object{"PoweringChassis": refs(v.chassis()), "PoweringChassis@odata.count": 1},
	}
	if fault == thermal.NoInput {
		o["LineInputStatus"] = "LossOfInput"
	}
	if fault != thermal.Absent {
		o["Manufacturer"], o["Model"], o["PartNumber"] = orNull(s.Vendor), orNull(s.Product), orNull(s.PartNumber)
		o["SerialNumber"], o["FirmwareVersion"] = v.Machine.Identity.SerialOf("psu", n), v.firmwareVersion(s.Component)
	}
	return o
}

func powerSupplyMetrics(v View) Object {
	n := ordinal("PSU", v.IDs["supply"])
	return Object{
		"Name": fmt.Sprintf("Power Supply %d Metrics", n+1), "Status": supplyStates[v.Machine.Thermal.SupplyFault(n)],
		"InputVoltage":     v.excerpt(v.supplySensor(thermal.Voltage, n, thermal.Input)),
		"InputPowerWatts":  v.excerpt(v.supplySensor(thermal.Power, n, thermal.Input)),
		"OutputPowerWatts": v.excerpt(v.supplySensor(thermal.Power, n, thermal.Output)),
	}
}

// legacyPower returns the body of the deprecated resource Power, which PowerSubsystem and
// Sensors replace and which older clients read.
func legacyPower(v View) Object {
	m, t := v.Machine.Profile.Thermal, v.Machine.Thermal
	usage := t.Usage(v.Now, powerInterval)
	rounded := func(watts float64) int { return int(watts + 0.5) }
	control := Object{
		"@odata.id": v.URI + "#/PowerControl/0", "MemberId": "0", "Name": "System Power Control", "PhysicalContext": "Chassis",
		"PowerConsumedWatts": rounded(usage.Is), "PowerRequestedWatts": m.Watts.Full, "PowerCapacityWatts": m.Supplies.Watts * float64(m.Supplies.Needed),
		"PowerAllocatedWatts": m.Supplies.Watts * float64(m.Supplies.Needed),
		"PowerMetrics": Object{
			"IntervalInMin": int(powerInterval.Minutes()), "AverageConsumedWatts": rounded(usage.Mean), "MinConsumedWatts": rounded(usage.Least),
			"MaxConsumedWatts": rounded(usage.Most),
		},
		"PowerLimit":  Object{"LimitInWatts": powerLimitWatts(t), "LimitException": "NoAction"},
		"RelatedItem": refs(v.chassis()), "RelatedItem@odata.count": 1, "Status": status("Enabled"),
	}
	voltages := []Object{}
	for i, s := range v.sensors(thermal.Voltage, thermal.Board, thermal.Processor, thermal.Chassis, thermal.Memory) {
		o := Object{
			"@odata.id": fmt.Sprintf("%s#/Voltages/%d", v.URI, i), "MemberId": fmt.Sprint(i), "Name": s.Name, "SensorNumber": 0x40 + i,
			"ReadingVolts": v.reading(s), "PhysicalContext": s.Context, "Status": v.sensorStatus(s),
			"RelatedItem": v.relatedItems(s), "RelatedItem@odata.count": len(v.relatedItems(s)),
		}
		v.legacyThresholds(o, s)
		voltages = append(voltages, o)
	}
	supplies := []Object{}
	for n := range m.Supplies.Count {
		supplies = append(supplies, v.legacyPowerSupply(n))
	}
	g := v.supplyRedundancy(func(id string) string { return fmt.Sprintf("%s#/PowerSupplies/%d", v.URI, ordinal("PSU", id)) })
	return Object{
		"Name": "Power", "PowerControl": []Object{control}, "PowerControl@odata.count": 1,
		"Voltages": voltages, "Voltages@odata.count": len(voltages), "PowerSupplies": supplies, "PowerSupplies@odata.count": len(supplies),
		"Redundancy": g.legacyRedundancy(v), "Redundancy@odata.count": 1,
	}
}

// powerLimitWatts returns the power limit in watts, or nil when there is none.
func powerLimitWatts(t thermal.View) any {
	if w := t.Limit(); w > 0 {
		return w
	}
	return nil
}

// legacyThresholds adds the thresholds of a sensor in the form of the deprecated resources
// Power and Thermal.
func (v View) legacyThresholds(o Object, s thermal.Sensor) {
	l := v.Machine.Thermal.Thresholds(s.ID)
	for name, at := range map[string]*float64{
		"LowerThresholdCritical": l.LowCritical, "LowerThresholdNonCritical": l.LowCaution,
		"UpperThresholdNonCritical": l.Caution, "UpperThresholdCritical": l.Critical, "UpperThresholdFatal": l.Fatal,
	} {
		if at != nil {
			o[name] = *at
		}
	}
}

func (v View) legacyPowerSupply(n int) Object {
	s, fault := v.Machine.Profile.Thermal.Supplies, v.Machine.Thermal.SupplyFault(n)
	out := v.reading(v.supplySensor(thermal.Power, n, thermal.Output))
	o := Object{
		"@odata.id": fmt.Sprintf("%s#/PowerSupplies/%d", v.URI, n), "MemberId": fmt.Sprint(n), "Name": fmt.Sprint("Power Supply ", n+1),
		"PowerSupplyType": "AC", "LineInputVoltageType": "AC240V", "PowerCapacityWatts": s.Watts, "EfficiencyPercent": s.Efficiency, "HotPluggable": true,
		"LineInputVoltage": v.reading(v.supplySensor(thermal.Voltage, n, thermal.Input)),
		"PowerInputWatts":  v.reading(v.supplySensor(thermal.Power, n, thermal.Input)), "PowerOutputWatts": out, "LastPowerOutputWatts": out,
		"InputRanges": []Object{{
			"InputType": "AC", "MinimumVoltage": 200, "MaximumVoltage": 240, "MinimumFrequencyHz": 47, "MaximumFrequencyHz": 63, "OutputWattage": s.Watts,
		}},
		"Status": supplyStates[fault], "RelatedItem": refs(v.chassis()), "RelatedItem@odata.count": 1,
		"Redundancy": refs(v.URI + "#/Redundancy/0"), "Redundancy@odata.count": 1,
	}
	if fault != thermal.Absent {
		o["Manufacturer"], o["Model"], o["PartNumber"] = orNull(s.Vendor), orNull(s.Product), orNull(s.PartNumber)
		o["SerialNumber"], o["FirmwareVersion"] = v.Machine.Identity.SerialOf("psu", n), v.firmwareVersion(s.Component)
	}
	return o
}

var legacyPowerPatch = Patch{
	Inputs: []Input{{Name: "PowerControl", Kind: Array, Min: 1, Max: 1, Of: []Input{{Kind: Group, Of: []Input{
		{Name: "PowerLimit", Kind: Group, Of: []Input{{Name: "LimitInWatts", Kind: Number, nullable: true}}},
	}}}}},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		all, _ := c.Values["PowerControl"].([]any)
		if len(all) == 0 {
			return Result{}, nil
		}
		control, _ := all[0].(Values)
		watts, sent := control["PowerLimit/LimitInWatts"]
		if !sent {
			return Result{}, nil
		}
		return Result{}, setPowerLimit(ctx, c, watts, "LimitInWatts", "#/PowerControl/0/PowerLimit/LimitInWatts")
	},
}
