package redfish

import (
	"fmt"

	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

func coolingRows() []resource {
	const subsystem = "/redfish/v1/Chassis/{chassis}/ThermalSubsystem"
	return []resource{
		{uri: "/redfish/v1/Chassis/{chassis}/Thermal", schema: "Thermal.v1_7_3", when: hasSensors, shows: readings | PartIdentity, read: oldThermal},
		{uri: subsystem, schema: "ThermalSubsystem.v1_5_0", when: hasSensors, shows: PartThermal, read: thermalSubsystem},
		{uri: subsystem + "/Fans", schema: "FanCollection", name: "Fans", of: "fan"},
		{uri: subsystem + "/Fans/{fan}", schema: "Fan.v1_6_0", shows: readings | PartIdentity, read: fan},
		{uri: subsystem + "/ThermalMetrics", schema: "ThermalMetrics.v1_3_2", shows: readings, read: thermalMetrics},
	}
}

func fanIDs(v view) []string {
	var out []string
	for n := range v.m.Profile.Thermal.Fans.Count {
		out = append(out, thermal.FanID(n))
	}
	return out
}

func (v view) fanGroup(uri func(id string) string) redundant {
	return redundant{"Fan Redundancy", list(fanIDs(v), uri), v.m.Profile.Thermal.Fans.Needed, v.m.Thermal.FanRedundancy()}
}

// fanHealth is that of a fan.
func (v view) fanHealth(n int) string {
	if v.m.Thermal.FanFailed(n) {
		return "Critical"
	}
	return "OK"
}

// coolingHealth is the worst of fans and temperatures.
func (v view) coolingHealth() string {
	all := []string{v.fanGroup(func(id string) string { return id }).health()}
	for n := range v.m.Profile.Thermal.Fans.Count {
		all = append(all, v.fanHealth(n))
	}
	for _, s := range v.sensors(thermal.Temperature) {
		all = append(all, healths[v.m.Thermal.Level(s.ID).Bad()])
	}
	return worst(all...)
}

func thermalSubsystem(v view) object {
	g := v.fanGroup(func(id string) string { return v.uri + "/Fans/" + id })
	return object{
		"Name": "Thermal Subsystem", "FanRedundancy": g.today(),
		"Status": object{"State": "Enabled", "Health": "OK", "HealthRollup": v.coolingHealth()},
	}
}

func fan(v view) object {
	n, f := ordinal("Fan", v.ids["fan"]), v.m.Profile.Thermal.Fans
	return object{
		"Name": fmt.Sprint("Fan ", n+1), "PhysicalContext": "Chassis", "HotPluggable": true, "Replaceable": true, "RatedSpeedRPM": int(f.RPM),
		"Manufacturer": orNull(f.Vendor), "Model": orNull(f.Product), "SerialNumber": v.m.Identity.SerialOf("fan", n),
		"SpeedPercent": v.excerpt(v.one(thermal.Speed, thermal.Fan, n)), "Location": label(v.ids["fan"], "Bay", n),
		"Status": object{"State": "Enabled", "Health": v.fanHealth(n)},
	}
}

func thermalMetrics(v view) object {
	all := []object{}
	summary := object{}
	for _, s := range v.sensors(thermal.Temperature) {
		all = append(all, object{
			"DeviceName": s.Name, "Reading": v.reading(s), "DataSourceUri": v.chassis("Sensors", s.ID), "PhysicalContext": s.Context,
		})
		if name := summaries[s.Context]; name != "" {
			summary[name] = v.excerpt(s)
		}
	}
	return object{
		"Name": "Thermal Metrics", "TemperatureReadingsCelsius": all, "TemperatureReadingsCelsius@odata.count": len(all),
		"TemperatureSummaryCelsius": summary,
	}
}

// summaries are the properties of ThermalMetrics.TemperatureSummaryCelsius by
// where it is measured.
var summaries = map[string]string{"Intake": "Intake", "Exhaust": "Exhaust"}

// oldThermal is the resource that ThermalSubsystem and Sensors took the place
// of, where older clients look.
func oldThermal(v view) object {
	temperatures, fans := []object{}, []object{}
	for i, s := range v.sensors(thermal.Temperature) {
		o := object{
			"@odata.id": fmt.Sprintf("%s#/Temperatures/%d", v.uri, i), "MemberId": fmt.Sprint(i), "Name": s.Name, "SensorNumber": i + 1,
			"ReadingCelsius": v.reading(s), "MinReadingRangeTemp": -40, "MaxReadingRangeTemp": 127, "PhysicalContext": s.Context, "Status": v.sensorStatus(s),
			"RelatedItem": v.relatedTo(s), "RelatedItem@odata.count": len(v.relatedTo(s)),
		}
		v.oldThresholds(o, s)
		temperatures = append(temperatures, o)
	}
	f := v.m.Profile.Thermal.Fans
	for n, s := range v.sensors(thermal.Speed) {
		o := object{
			"@odata.id": fmt.Sprintf("%s#/Fans/%d", v.uri, n), "MemberId": fmt.Sprint(n), "Name": s.Name, "SensorNumber": 0x30 + n,
			"Reading": nil, "ReadingUnits": "RPM", "MinReadingRange": 0, "MaxReadingRange": int(f.RPM), "HotPluggable": true,
			"LowerThresholdCritical": int(*v.m.Thermal.Thresholds(s.ID).LowCritical), "PhysicalContext": "Chassis",
			"Manufacturer": orNull(f.Vendor), "Model": orNull(f.Product), "SerialNumber": v.m.Identity.SerialOf("fan", n),
			"Status":      object{"State": "Enabled", "Health": v.fanHealth(n)},
			"RelatedItem": refs(v.chassis()), "RelatedItem@odata.count": 1, "Redundancy": refs(v.uri + "#/Redundancy/0"), "Redundancy@odata.count": 1,
		}
		if rpm, ok := v.m.Thermal.Reading(s.ID, v.now); ok {
			o["Reading"] = int(rpm)
		}
		fans = append(fans, o)
	}
	g := v.fanGroup(func(id string) string { return fmt.Sprintf("%s#/Fans/%d", v.uri, ordinal("Fan", id)) })
	return object{
		"Name": "Thermal", "Status": object{"State": "Enabled", "Health": "OK", "HealthRollup": v.coolingHealth()},
		"Temperatures": temperatures, "Temperatures@odata.count": len(temperatures), "Fans": fans, "Fans@odata.count": len(fans),
		"Redundancy": g.before(v), "Redundancy@odata.count": 1,
	}
}

// worst is the worst of some healths.
func worst(all ...string) string {
	bad := "OK"
	for _, h := range all {
		if h == "Critical" || h == "Warning" && bad == "OK" {
			bad = h
		}
	}
	return bad
}
