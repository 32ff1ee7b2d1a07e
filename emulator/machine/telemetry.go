package machine

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// MetricReportType is when a report is made; the values are Redfish's (DSP2046,
// MetricReportDefinition.MetricReportDefinitionType).
type MetricReportType string

// The kinds.
const (
	Periodic  MetricReportType = "Periodic"
	OnChange  MetricReportType = "OnChange"  // of what heats, cools or feeds the machine, and of levels
	OnRequest MetricReportType = "OnRequest" // made when it is read
)

// MetricReportTypes are all of them.
var MetricReportTypes = []MetricReportType{Periodic, OnChange, OnRequest}

// MetricReportDefinition says what a report tells, and when it is made.
type MetricReportDefinition struct {
	ID              string           `json:"id"`
	Name            string           `json:"name"`
	Kind            MetricReportType `json:"kind"`
	Enabled         bool             `json:"enabled"`
	Metrics         []string         `json:"metrics"`         // IDs of sensors
	Interval        Duration         `json:"every,omitzero"`  // of a periodic one
	LogToCollection bool             `json:"keep"`            // it can be read until the next one
	SendEvents      bool             `json:"tell"`            // it is sent to who subscribes
	Next            time.Time        `json:"next,omitzero"`   // when a periodic one is due
	Number          uint64           `json:"number,omitzero"` // reports made
}

// MetricReport is what sensors read at one time. It is never changed.
type MetricReport struct {
	ID     string    `json:"id"` // of its definition
	At     time.Time `json:"at"`
	Number uint64    `json:"number"`
	Values []Metric  `json:"values"`
}

// Metric is what one sensor reads.
type Metric struct {
	Sensor  string  `json:"sensor"`
	Reading float64 `json:"reading"`
}

// Telemetry is what reports there are and are to be.
type Telemetry struct {
	Off         bool                     `json:"off,omitempty"` // no report is made
	Definitions []MetricReportDefinition `json:"definitions"`
	Reports     []MetricReport           `json:"reports,omitempty"` // the last of each definition
	Made        int                      `json:"made"`              // definitions
}

// Bounds of telemetry.
const (
	MaxReportDefinitions = 16 // definitions
	MinReportInterval    = time.Second
	maxEvery             = 24 * time.Hour
	platformReport       = "PlatformSensors"
)

// telemetry is that of the machine; as the model has it if nothing was changed.
func (m *Machine) telemetry() *Telemetry {
	if m.st.Telemetry != nil {
		return m.st.Telemetry
	}
	return &m.profile.Telemetry
}

// reportAll makes what a model has at first: one report of all sensors, made on
// request.
func (p *Profile) reportAll() {
	d := MetricReportDefinition{ID: platformReport, Name: "All sensors", Kind: OnRequest, Enabled: true, LogToCollection: true}
	for _, s := range p.Thermal.Sensors {
		d.Metrics = append(d.Metrics, s.ID)
	}
	if d.Metrics != nil {
		p.Telemetry = Telemetry{Definitions: []MetricReportDefinition{d}}
	}
}

// setTelemetry changes a copy and puts it in place.
func (m *Machine) setTelemetry(how func(*Telemetry) error) error {
	t := *m.telemetry()
	t.Definitions, t.Reports = slices.Clone(t.Definitions), slices.Clone(t.Reports)
	if err := how(&t); err != nil {
		return err
	}
	m.st.Telemetry = &t
	return nil
}

// SetTelemetry makes reports at all, or none.
type SetTelemetry struct{ Enabled bool }

func (c SetTelemetry) apply(m *Machine, now time.Time) ([]Event, error) {
	return nil, m.setTelemetry(func(t *Telemetry) error {
		t.Off = !c.Enabled
		for i := range t.Definitions {
			t.Definitions[i].plan(now)
		}
		return nil
	})
}

// plan says when the next report is due, counted from now.
func (d *MetricReportDefinition) plan(now time.Time) {
	d.Next = time.Time{}
	if d.Kind == Periodic && d.Enabled {
		d.Next = now.Add(d.Interval.Duration)
	}
}

// SetMetricReportDefinition adds a definition, or changes the one with its ID. Without an ID
// it gets the number that Telemetry.Made will be.
type SetMetricReportDefinition struct{ MetricReportDefinition }

func (c SetMetricReportDefinition) apply(m *Machine, now time.Time) ([]Event, error) {
	d := c.MetricReportDefinition
	switch {
	case !slices.Contains(MetricReportTypes, d.Kind):
		return nil, fmt.Errorf("machine: report of kind %q: %w", d.Kind, ErrUnknown)
	case d.Kind == Periodic && (d.Interval.Duration < MinReportInterval || d.Interval.Duration > maxEvery):
		return nil, fmt.Errorf("machine: report every %v: must be %v to %v: %w", d.Interval, MinReportInterval, maxEvery, ErrUnknown)
	}
	for _, id := range d.Metrics {
		if m.profile.Thermal.Sensor(id) == nil {
			return nil, fmt.Errorf("machine: report of sensor %q: %w", id, ErrUnknown)
		}
	}
	return nil, m.setTelemetry(func(t *Telemetry) error {
		i := slices.IndexFunc(t.Definitions, func(o MetricReportDefinition) bool { return o.ID == d.ID })
		switch {
		case i < 0 && len(t.Definitions) >= MaxReportDefinitions:
			return fmt.Errorf("%w: there are %d reports", ErrConflict, MaxReportDefinitions)
		case i < 0:
			t.Made++
			if d.ID == "" {
				d.ID = strconv.Itoa(t.Made)
			}
			d.plan(now)
			t.Definitions = append(t.Definitions, d)
		default:
			was := t.Definitions[i]
			d.Number, d.Next = was.Number, was.Next
			if was.Kind != d.Kind || was.Enabled != d.Enabled || was.Interval != d.Interval {
				d.plan(now)
			}
			t.Definitions[i] = d
		}
		return nil
	})
}

// DeleteMetricReportDefinition removes a definition and its report.
type DeleteMetricReportDefinition struct{ ID string }

func (c DeleteMetricReportDefinition) apply(m *Machine, _ time.Time) ([]Event, error) {
	return nil, m.setTelemetry(func(t *Telemetry) error {
		n := len(t.Definitions)
		t.Definitions = slices.DeleteFunc(t.Definitions, func(d MetricReportDefinition) bool { return d.ID == c.ID })
		t.Reports = slices.DeleteFunc(t.Reports, func(r MetricReport) bool { return r.ID == c.ID })
		if len(t.Definitions) == n {
			return fmt.Errorf("machine: report %q: %w", c.ID, ErrUnknown)
		}
		return nil
	})
}

// SubmitTestMetricReport tells values that somebody made up, as if a report had them.
type SubmitTestMetricReport struct {
	Name   string
	Values []Metric
}

func (c SubmitTestMetricReport) apply(_ *Machine, now time.Time) ([]Event, error) {
	return []Event{MetricReportReady{At: now, Report: MetricReport{ID: c.Name, At: now, Values: c.Values}}}, nil
}

// MetricReportReady tells a report to who subscribes to reports.
type MetricReportReady struct {
	At     time.Time
	Report MetricReport
}

// Time implements Event.
func (e MetricReportReady) Time() time.Time { return e.At }

// telemetryDue is when the next periodic report is made.
func (m *Machine) telemetryDue() (time.Time, bool) {
	var first time.Time
	if t := m.st.Telemetry; t != nil && !t.Off {
		for _, d := range t.Definitions {
			if !d.Next.IsZero() && (first.IsZero() || d.Next.Before(first)) {
				first = d.Next
			}
		}
	}
	return first, !first.IsZero()
}

// report makes the reports that are due at a time, or those on change.
func (m *Machine) report(at time.Time, due func(d *MetricReportDefinition) bool) []Event {
	if t := m.st.Telemetry; t == nil || t.Off || !slices.ContainsFunc(t.Definitions, func(d MetricReportDefinition) bool { return due(&d) }) {
		return nil
	}
	var evs []Event
	v := m.heat.View()
	err := m.setTelemetry(func(t *Telemetry) error {
		for i := range t.Definitions {
			d := &t.Definitions[i]
			if !due(d) {
				continue
			}
			d.Number++
			r := MetricReport{ID: d.ID, At: at, Number: d.Number, Values: readAll(v.Reading, d.Metrics, at)}
			if d.Kind == Periodic {
				d.Next = d.Next.Add(d.Interval.Duration)
			}
			if d.LogToCollection {
				t.Reports = append(slices.DeleteFunc(t.Reports, func(o MetricReport) bool { return o.ID == d.ID }), r)
			}
			if d.SendEvents {
				evs = append(evs, MetricReportReady{At: at, Report: r})
			}
		}
		return nil
	})
	if err != nil {
		panic(err) // the function above returns none
	}
	return evs
}

// reportsDue makes the periodic reports that are due.
func (m *Machine) reportsDue(at time.Time) []Event {
	return m.report(at, func(d *MetricReportDefinition) bool { return !d.Next.IsZero() && !at.Before(d.Next) })
}

// reportChange makes the reports of a change.
func (m *Machine) reportChange(at time.Time) []Event {
	return m.report(at, func(d *MetricReportDefinition) bool { return d.Kind == OnChange && d.Enabled })
}

// readAll reads sensors; those that read nothing are left out.
func readAll(read func(id string, now time.Time) (float64, bool), ids []string, at time.Time) []Metric {
	var out []Metric
	for _, id := range ids {
		if x, ok := read(id, at); ok {
			out = append(out, Metric{id, x})
		}
	}
	return out
}

// MetricReport is the report of a definition: as it was made last, or as it is now if
// it is made on request; false when there is none.
func (v *View) MetricReport(id string, now time.Time) (MetricReport, bool) {
	for _, d := range v.Telemetry.Definitions {
		if d.ID == id && d.Kind == OnRequest && d.Enabled && d.LogToCollection && !v.Telemetry.Off {
			return MetricReport{ID: id, At: now, Values: readAll(v.Thermal.Reading, d.Metrics, now)}, true
		}
	}
	i := slices.IndexFunc(v.Telemetry.Reports, func(r MetricReport) bool { return r.ID == id })
	if i < 0 {
		return MetricReport{}, false
	}
	return v.Telemetry.Reports[i], true
}
