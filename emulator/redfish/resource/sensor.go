package resource

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// readings is what follows from what sensors read.
var readings = PartThermal | PartTime

func sensorRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Chassis/{chassis}/Sensors", Schema: "SensorCollection", When: hasSensors, Name: "Sensors", MemberVariable: "sensor"},
		{URI: "/redfish/v1/Chassis/{chassis}/Sensors/{sensor}", Schema: "Sensor.v1_12_0", DependsOn: readings, Read: sensor,
			Patch: &sensorPatch, Volatile: []string{"ReadingTime"}},
	}
}

// hasSensors says whether the model says what heats and cools it.
func hasSensors(v View) bool { return len(v.Machine.Profile.Thermal.Sensors) > 0 }

func sensorID(s thermal.Sensor) string { return s.ID }

// sensors are those of a kind and part, in order.
func (v View) sensors(k thermal.Kind, of ...thermal.Part) []thermal.Sensor {
	var out []thermal.Sensor
	for _, s := range v.Machine.Profile.Thermal.Sensors {
		if s.Kind == k && (len(of) == 0 || slices.Contains(of, s.Part)) {
			out = append(out, s)
		}
	}
	return out
}

// sensorKinds says how a kind of sensor is read (DSP2046, Sensor.ReadingType
// and ReadingUnits; the units are UCUM's). A fan is read in percent of its most,
// so that its excerpt has both that and its speed.
var sensorKinds = map[thermal.Kind]struct{ reads, units string }{
	thermal.Temperature: {"Temperature", "Cel"},
	thermal.Speed:       {"Percent", "%"},
	thermal.Voltage:     {"Voltage", "V"},
	thermal.Power:       {"Power", "W"},
	thermal.Energy:      {"EnergykWh", "kW.h"},
}

// reading is what a sensor reads; nil when it reads nothing.
func (v View) reading(s thermal.Sensor) any {
	x, ok := v.Machine.Thermal.Reading(s.ID, v.Now)
	if !ok {
		return nil
	}
	return v.shown(s, x)
}

// shown is a reading in the units of its resource.
func (v View) shown(s thermal.Sensor, x float64) float64 {
	if s.Kind == thermal.Speed {
		return math.Round(x / v.Machine.Profile.Thermal.Fans.RPM * 100)
	}
	return x
}

// healths are the values of Resource.Health by how far from normal something is.
var healths = []string{"OK", "Warning", "Critical", "Critical"}

// sensorStatus is the status of a sensor.
func (v View) sensorStatus(s thermal.Sensor) Object {
	if v.Machine.Thermal.Setting(s.ID).Off {
		return Object{"State": "Disabled", "Health": nil}
	}
	if _, ok := v.Machine.Thermal.Reading(s.ID, v.Now); !ok {
		return Object{"State": "UnavailableOffline", "Health": nil}
	}
	return Object{"State": "Enabled", "Health": healths[v.Machine.Thermal.Level(s.ID).Bad()]}
}

func sensor(v View) Object {
	s := Find(v.Machine.Profile.Thermal.Sensors, v.IDs["sensor"], sensorID)
	k := sensorKinds[s.Kind]
	o := Object{
		"Name": s.Name, "ReadingType": k.reads, "ReadingUnits": k.units, "Reading": v.reading(s), "ReadingTime": v.Now.Format(time.RFC3339),
		"PhysicalContext": s.Context, "Implementation": "PhysicalSensor", "SensingInterval": "PT1S", "Status": v.sensorStatus(s),
		"Enabled": !v.Machine.Thermal.Setting(s.ID).Off,
	}
	related := v.relatedTo(s)
	o["RelatedItem"], o["RelatedItem@odata.count"] = related, len(related)
	thresholds := Object{}
	limits := v.Machine.Thermal.Thresholds(s.ID)
	for _, t := range thresholdKinds {
		if at := *t.of(limits); at != nil {
			thresholds[t.name] = Object{"Reading": v.shown(s, *at), "Activation": t.on, "HysteresisReading": v.shown(s, t.slack(limits))}
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
		o["SensorResetTime"] = since(v)
	}
	return o
}

// since is when the energy began to be counted; nil when it has not.
func since(v View) any {
	if at := v.Machine.Thermal.Since(); !at.IsZero() {
		return at.UTC().Format(time.RFC3339)
	}
	return nil
}

// relatedTo are the resources of what a sensor is of.
func (v View) relatedTo(s thermal.Sensor) []Object {
	switch s.Part {
	case thermal.Processor:
		return Refs(v.system("Processors", fmt.Sprint("CPU", s.N+1)))
	case thermal.Fan:
		return Refs(v.chassis("ThermalSubsystem", "Fans", s.ID))
	case thermal.Supply:
		return Refs(v.chassis("PowerSubsystem", "PowerSupplies", thermal.SupplyID(s.N)))
	case thermal.Memory:
		modules := []Object{}
		for _, id := range dimmIDs(v.Machine.Profile) {
			if s.Kind == thermal.Power || socketOf(v.Machine.Profile, id) == s.N {
				modules = append(modules, Ref(v.system("Memory", id)))
			}
		}
		return modules
	}
	return Refs(v.chassis())
}

// excerpt is what a resource repeats of a sensor (DSP0266, "Excerpts"); nil
// where there is no such sensor.
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
		o["LifetimeReading"], o["SensorResetTime"] = o["Reading"], since(v)
	}
	return o
}

// one is the sensor of a kind, part and number; a zero one where there is none.
func (v View) one(k thermal.Kind, p thermal.Part, n int) thermal.Sensor {
	for _, s := range v.sensors(k, p) {
		if s.N == n {
			return s
		}
	}
	return thermal.Sensor{}
}

// measured is the sensor of a power supply that measures that.
func (v View) measured(k thermal.Kind, supply int, m thermal.Measure) thermal.Sensor {
	for _, s := range v.sensors(k, thermal.Supply) {
		if s.N == supply && s.Measure == m {
			return s
		}
	}
	return thermal.Sensor{}
}
