package resource

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// sensorParts is the parts of the state that sensor readings depend on.
var sensorParts = partThermal | partTime

func sensorRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Chassis/{chassis}/Sensors", Schema: "SensorCollection", When: hasSensors, collectionName: "Sensors", memberVariable: "sensor"},
		{URI: "/redfish/v1/Chassis/{chassis}/Sensors/{sensor}", Schema: "Sensor.v1_12_0", DependsOn: sensorParts, Read: sensor,
			Patch: &sensorPatch, Volatile: []string{"ReadingTime"}},
	}
}

// hasSensors reports whether the model describes its sensors.
func hasSensors(v View) bool { return len(v.Machine.Profile.Thermal.Sensors) > 0 }

func sensorID(s thermal.Sensor) string { return s.ID }

// sensors returns the sensors of a kind and of some parts, in order; of all parts when none
// is given.
func (v View) sensors(k thermal.Kind, of ...thermal.Part) []thermal.Sensor {
	var out []thermal.Sensor
	for _, s := range v.Machine.Profile.Thermal.Sensors {
		if s.Kind == k && (len(of) == 0 || slices.Contains(of, s.Part)) {
			out = append(out, s)
		}
	}
	return out
}

// sensorKinds maps a kind of sensor to its ReadingType and ReadingUnits (DSP2046, Sensor;
// the units are UCUM's). A fan is read in percent of its highest speed, so that its excerpt
// has both that and its speed.
var sensorKinds = map[thermal.Kind]struct{ reads, units string }{
	thermal.Temperature: {"Temperature", "Cel"},
	thermal.Speed:       {"Percent", "%"},
	thermal.Voltage:     {"Voltage", "V"},
	thermal.Power:       {"Power", "W"},
	thermal.Energy:      {"EnergykWh", "kW.h"},
}

// reading returns the reading of a sensor in the units of its resource, or nil when the
// sensor has none.
func (v View) reading(s thermal.Sensor) any {
	x, ok := v.Machine.Thermal.Reading(s.ID, v.Now)
	if !ok {
		return nil
	}
	return v.toResourceUnits(s, x)
}

// toResourceUnits converts a reading of the model to the units of the Sensor resource.
func (v View) toResourceUnits(s thermal.Sensor, x float64) float64 {
	if s.Kind == thermal.Speed {
		return math.Round(x / v.Machine.Profile.Thermal.Fans.RPM * 100)
	}
	return x
}

// levelHealth maps the severity of a threshold crossing to Resource.Health.
var levelHealth = []string{"OK", "Warning", "Critical", "Critical"}

// sensorStatus returns the Status of a sensor.
func (v View) sensorStatus(s thermal.Sensor) Object {
	if v.Machine.Thermal.Setting(s.ID).Off {
		return Object{"State": "Disabled", "Health": nil}
	}
	if _, ok := v.Machine.Thermal.Reading(s.ID, v.Now); !ok {
		return Object{"State": "UnavailableOffline", "Health": nil}
	}
	return Object{"State": "Enabled", "Health": levelHealth[v.Machine.Thermal.Level(s.ID).Bad()]}
}

func sensor(v View) Object {
	s := Find(v.Machine.Profile.Thermal.Sensors, v.IDs["sensor"], sensorID)
	k := sensorKinds[s.Kind]
	o := Object{
		"Name": s.Name, "ReadingType": k.reads, "ReadingUnits": k.units, "Reading": v.reading(s), "ReadingTime": v.Now.Format(time.RFC3339),
		"PhysicalContext": s.Context, "Implementation": "PhysicalSensor", "SensingInterval": "PT1S", "Status": v.sensorStatus(s),
		"Enabled": !v.Machine.Thermal.Setting(s.ID).Off,
	}
	related := v.relatedItems(s)
	o["RelatedItem"], o["RelatedItem@odata.count"] = related, len(related)
	thresholds := Object{}
	limits := v.Machine.Thermal.Thresholds(s.ID)
	for _, t := range thresholdKinds {
		if at := *t.of(limits); at != nil {
			thresholds[t.name] = Object{"Reading": v.toResourceUnits(s, *at), "Activation": t.on, "HysteresisReading": v.toResourceUnits(s, t.hysteresis(limits))}
		}
	}
	if len(thresholds) > 0 {
		o["Thresholds"] = thresholds
	}
	switch s.Kind {
	case thermal.Speed:
		o["ReadingRangeMin"], o["ReadingRangeMax"] = 0, 100
		if rpm, ok := v.Machine.Thermal.Reading(s.ID, v.Now); ok {
			o["SpeedRPM"] = rpm
		} else {
			o["SpeedRPM"] = nil
		}
	case thermal.Temperature:
		o["ReadingRangeMin"], o["ReadingRangeMax"] = -40, 127
	case thermal.Energy:
		o["Implementation"], o["LifetimeReading"] = "Synthesized", v.reading(s)
		o["SensorResetTime"] = energyResetTime(v)
	}
	return o
}

// energyResetTime returns when counting of the energy began, or nil when it has not.
func energyResetTime(v View) any {
	if at := v.Machine.Thermal.Since(); !at.IsZero() {
		return at.UTC().Format(time.RFC3339)
	}
	return nil
}

// relatedItems returns links to the resources that a sensor measures.
func (v View) relatedItems(s thermal.Sensor) []Object {
	switch s.Part {
	case thermal.Processor:
		return refs(v.system("Processors", fmt.Sprint("CPU", s.N+1)))
	case thermal.Fan:
		return refs(v.chassis("ThermalSubsystem", "Fans", s.ID))
	case thermal.Supply:
		return refs(v.chassis("PowerSubsystem", "PowerSupplies", thermal.SupplyID(s.N)))
	case thermal.Memory:
		modules := []Object{}
		for _, id := range dimmIDs(v.Machine.Profile) {
			if s.Kind == thermal.Power || dimmSocket(v.Machine.Profile, id) == s.N {
				modules = append(modules, Ref(v.system("Memory", id)))
			}
		}
		return modules
	}
	return refs(v.chassis())
}

// excerpt returns the excerpt of a sensor that other resources contain (DSP0266,
// "Excerpts"), or nil when the sensor does not exist.
func (v View) excerpt(s thermal.Sensor) any {
	if s.ID == "" {
		return nil
	}
	o := Object{"Reading": v.reading(s), "DataSourceUri": v.chassis("Sensors", s.ID)}
	if s.Kind == thermal.Speed {
		if rpm, ok := v.Machine.Thermal.Reading(s.ID, v.Now); ok {
			o["SpeedRPM"] = rpm
		}
	}
	if s.Kind == thermal.Energy {
		o["LifetimeReading"], o["SensorResetTime"] = o["Reading"], energyResetTime(v)
	}
	return o
}

// partSensor returns the sensor of a kind, part and number, or the zero Sensor when there
// is none.
func (v View) partSensor(k thermal.Kind, p thermal.Part, n int) thermal.Sensor {
	for _, s := range v.sensors(k, p) {
		if s.N == n {
			return s
		}
	}
	return thermal.Sensor{}
}

// supplySensor returns the sensor of a power supply for a kind and a measuring point, or
// the zero Sensor when there is none.
func (v View) supplySensor(k thermal.Kind, supply int, m thermal.Measure) thermal.Sensor {
	for _, s := range v.sensors(k, thermal.Supply) {
		if s.N == supply && s.Measure == m {
			return s
		}
	}
	return thermal.Sensor{}
}
