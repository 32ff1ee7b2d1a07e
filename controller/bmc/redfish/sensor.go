package redfish

import (
	"context"
	"encoding/json"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// sensorUnits maps the units of the older resources to UCUM.
var sensorUnits = map[string]string{"RPM": "RPM", "{rev}/min": "RPM", "Percent": "%"}

// sensorReading is a Sensor resource, or an element of Thermal or Power, the
// resources for sensors until 2020.
type sensorReading struct {
	URI     string   `json:"@odata.id"`
	Name    string   `json:"Name"`
	FanName string   `json:"FanName"`
	Reading *float64 `json:"Reading"`
	Unit    string   `json:"ReadingUnits"`
	Celsius *float64 `json:"ReadingCelsius"`
	Volts   *float64 `json:"ReadingVolts"`
	Watts   *float64 `json:"PowerConsumedWatts"`
	Status  struct {
		State  string `json:"State"`
		Health string `json:"Health"`
	} `json:"Status"`
}

// sensor converts the reading to a bmc.Sensor. unit applies if the reading has
// none.
func (r sensorReading) sensor(unit string) bmc.Sensor {
	s := bmc.Sensor{Name: r.Name, Unit: unit, Health: r.Status.Health}
	if s.Name == "" {
		s.Name = r.FanName
	}
	if r.Unit != "" {
		s.Unit = r.Unit
	}
	if u, ok := sensorUnits[s.Unit]; ok {
		s.Unit = u
	}
	off := r.Status.State != "" && r.Status.State != "Enabled"
	for _, v := range []*float64{r.Reading, r.Celsius, r.Volts, r.Watts} {
		if v != nil && !off {
			s.Reading, s.Enabled = *v, true
			break
		}
	}
	return s
}

// chassis holds the properties that the driver reads of a Chassis.
type chassis struct {
	Sensors link `json:"Sensors"`
	Thermal link `json:"Thermal"`
	Power   link `json:"Power"`
}

// Sensors reads the sensors of the system's chassis.
func (c *client) Sensors(ctx context.Context) ([]bmc.Sensor, error) {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return nil, err
	}
	var out []bmc.Sensor
	shown := false
	for _, l := range s.Links.Chassis {
		var ch chassis
		if _, err := c.get(ctx, l.ID, &ch); err != nil {
			return nil, err
		}
		shown = shown || ch != chassis{}
		var more []bmc.Sensor
		if ch.Sensors.ID != "" {
			more, err = c.sensorCollection(ctx, ch.Sensors.ID)
		} else {
			more, err = c.legacySensors(ctx, ch)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	if !shown {
		return nil, unsupported("Sensors", "its chassis shows none")
	}
	return out, nil
}

// sensorCollection reads a collection of Sensor resources.
func (c *client) sensorCollection(ctx context.Context, uri string) ([]bmc.Sensor, error) {
	raw, err := c.memberObjects(ctx, uri)
	if err != nil {
		return nil, err
	}
	var out []bmc.Sensor
	for _, body := range raw {
		var r sensorReading
		if err := decode(body, &r); err != nil {
			continue
		}
		if r.Name == "" && r.URI != "" {
			if _, err := c.get(ctx, r.URI, &r); err != nil {
				if isNotFound(err) {
					continue
				}
				return nil, err
			}
		}
		if r.Reading == nil && r.Unit == "" {
			continue // a discrete sensor
		}
		out = append(out, r.sensor(""))
	}
	return out, nil
}

// legacySensors reads Thermal and Power.
func (c *client) legacySensors(ctx context.Context, ch chassis) ([]bmc.Sensor, error) {
	var out []bmc.Sensor
	for _, from := range []struct {
		uri    string
		arrays []struct{ name, unit string }
	}{
		{ch.Thermal.ID, []struct{ name, unit string }{{"Temperatures", "Cel"}, {"Fans", "RPM"}}},
		{ch.Power.ID, []struct{ name, unit string }{{"Voltages", "V"}, {"PowerControl", "W"}}},
	} {
		if from.uri == "" {
			continue
		}
		var body map[string]json.RawMessage
		if _, err := c.get(ctx, from.uri, &body); err != nil {
			return nil, err
		}
		for _, a := range from.arrays {
			var all []sensorReading
			_ = decode(body[a.name], &all) // a missing array is empty
			for _, r := range all {
				if one := r.sensor(a.unit); one.Name != "" {
					out = append(out, one)
				}
			}
		}
	}
	return out, nil
}
