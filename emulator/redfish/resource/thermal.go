package resource

import (
	"fmt"

	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

func coolingRows() []Row {
	const subsystem = "/redfish/v1/Chassis/{chassis}/ThermalSubsystem"
	return []Row{
		{URI: "/redfish/v1/Chassis/{chassis}/Thermal", Schema: "Thermal.v1_7_3", When: hasSensors, DependsOn: sensorParts | partIdentity, Read: legacyThermal},
		{URI: subsystem, Schema: "ThermalSubsystem.v1_5_0", When: hasSensors, DependsOn: partThermal, Read: thermalSubsystem},
		{URI: subsystem + "/Fans", Schema: "FanCollection", collectionName: "Fans", memberVariable: "fan"},
		{URI: subsystem + "/Fans/{fan}", Schema: "Fan.v1_6_0", DependsOn: sensorParts | partIdentity, Read: fan},
		{URI: subsystem + "/ThermalMetrics", Schema: "ThermalMetrics.v1_3_2", DependsOn: sensorParts, Read: thermalMetrics},
	}
}

func fanIDs(v View) []string {
	var out []string
	for n := range v.Machine.Profile.Thermal.Fans.Count {
		out = append(out, thermal.FanID(n))
	}
	return out
}

func (v View) fanGroup(uri func(id string) string) redundancyGroup {
	return redundancyGroup{"Fan Redundancy", Map(fanIDs(v), uri), v.Machine.Profile.Thermal.Fans.Needed, v.Machine.Thermal.FanRedundancy()}
}

// fanHealth returns the Status.Health of fan n, counted from 0.
func (v View) fanHealth(n int) string {
	if v.Machine.Thermal.FanFailed(n) {
		return "Critical"
	}
	return "OK"
}

// coolingHealth returns the worst health of the fans and temperatures.
func (v View) coolingHealth() string {
	all := []string{v.fanGroup(func(id string) string { return id }).health()}
	for n := range v.Machine.Profile.Thermal.Fans.Count {
		all = append(all, v.fanHealth(n))
	}
	for _, s := range v.sensors(thermal.Temperature) {
		all = append(all, levelHealth[v.Machine.Thermal.Level(s.ID).Bad()])
	}
	return worstHealth(all...)
}

func thermalSubsystem(v View) Object {
	g := v.fanGroup(func(id string) string { return v.URI + "/Fans/" + id })
	return Object{
		"Name": "Thermal Subsystem", "FanRedundancy": g.redundantGroup(),
		"Status": Object{"State": "Enabled", "Health": "OK", "HealthRollup": v.coolingHealth()},
	}
}

func fan(v View) Object {
	n, f := ordinal("Fan", v.IDs["fan"]), v.Machine.Profile.Thermal.Fans
	return Object{
		"Name": fmt.Sprint("Fan ", n+1), "PhysicalContext": "Chassis", "HotPluggable": true, "Replaceable": true, "RatedSpeedRPM": int(f.RPM),
		"Manufacturer": orNull(f.Vendor), "Model": orNull(f.Product), "SerialNumber": v.Machine.Identity.SerialOf("fan", n),
		"SpeedPercent": v.excerpt(v.partSensor(thermal.Speed, thermal.Fan, n)), "Location": partLocation(v.IDs["fan"], "Bay", n),
		"Status": Object{"State": "Enabled", "Health": v.fanHealth(n)},
	}
}

func thermalMetrics(v View) Object {
	all := []Object{}
	summary := Object{}
	for _, s := range v.sensors(thermal.Temperature) {
		all = append(all, Object{
			"DeviceName": s.Name, "Reading": v.reading(s), "DataSourceUri": v.chassis("Sensors", s.ID), "PhysicalContext": s.Context,
		})
		if name := summaries[s.Context]; name != "" {
			summary[name] = v.excerpt(s)
		}
	}
	return Object{
		"Name": "Thermal Metrics", "TemperatureReadingsCelsius": all, "TemperatureReadingsCelsius@odata.count": len(all),
		"TemperatureSummaryCelsius": summary,
	}
}

// summaries maps the physical context of a sensor to its property of
// ThermalMetrics.TemperatureSummaryCelsius.
var summaries = map[string]string{"Intake": "Intake", "Exhaust": "Exhaust"}

// legacyThermal returns the deprecated Thermal resource, which ThermalSubsystem
// and Sensors replace. Older clients read it.
func legacyThermal(v View) Object {
	temperatures, fans := []Object{}, []Object{}
	for i, s := range v.sensors(thermal.Temperature) {
		o := Object{
			"@odata.id": fmt.Sprintf("%s#/Temperatures/%d", v.URI, i), "MemberId": fmt.Sprint(i), "Name": s.Name, "SensorNumber": i + 1,
			"ReadingCelsius": v.reading(s), "MinReadingRangeTemp": -40, "MaxReadingRangeTemp": 127, "PhysicalContext": s.Context, "Status": v.sensorStatus(s),
			"RelatedItem": v.relatedItems(s), "RelatedItem@odata.count": len(v.relatedItems(s)),
		}
		v.legacyThresholds(o, s)
		temperatures = append(temperatures, o)
	}
	f := v.Machine.Profile.Thermal.Fans
	for n, s := range v.sensors(thermal.Speed) {
		o := Object{
			"@odata.id": fmt.Sprintf("%s#/Fans/%d", v.URI, n), "MemberId": fmt.Sprint(n), "Name": s.Name, "SensorNumber": 0x30 + n,
			"Reading": nil, "ReadingUnits": "RPM", "MinReadingRange": 0, "MaxReadingRange": int(f.RPM), "HotPluggable": true,
			"LowerThresholdCritical": int(*v.Machine.Thermal.Thresholds(s.ID).LowCritical), "PhysicalContext": "Chassis",
			"Manufacturer": orNull(f.Vendor), "Model": orNull(f.Product), "SerialNumber": v.Machine.Identity.SerialOf("fan", n),
			"Status":      Object{"State": "Enabled", "Health": v.fanHealth(n)},
			"RelatedItem": refs(v.chassis()), "RelatedItem@odata.count": 1, "Redundancy": refs(v.URI + "#/Redundancy/0"), "Redundancy@odata.count": 1,
		}
		if rpm, ok := v.Machine.Thermal.Reading(s.ID, v.Now); ok {
			o["Reading"] = int(rpm)
		}
		fans = append(fans, o)
	}
	g := v.fanGroup(func(id string) string { return fmt.Sprintf("%s#/Fans/%d", v.URI, ordinal("Fan", id)) })
	return Object{
		"Name": "Thermal", "Status": Object{"State": "Enabled", "Health": "OK", "HealthRollup": v.coolingHealth()},
		"Temperatures": temperatures, "Temperatures@odata.count": len(temperatures), "Fans": fans, "Fans@odata.count": len(fans),
		"Redundancy": g.legacyRedundancy(v), "Redundancy@odata.count": 1,
	}
}

// worstHealth returns the worst of some Status.Health values.
func worstHealth(all ...string) string {
	bad := "OK"
	for _, h := range all {
		if h == "Critical" || h == "Warning" && bad == "OK" {
			bad = h
		}
	}
	return bad
}
