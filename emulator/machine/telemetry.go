package machine

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// MetricReportType is when a report is generated; the values are Redfish's
// (DSP2046, MetricReportDefinition.MetricReportDefinitionType).
type MetricReportType string

// The types.
const (
	Periodic  MetricReportType = "Periodic"
	OnChange  MetricReportType = "OnChange"  // on a change of load, cooling, supplies or a sensor's level
	OnRequest MetricReportType = "OnRequest" // when it is read
)

// MetricReportTypes lists all types.
var MetricReportTypes = []MetricReportType{Periodic, OnChange, OnRequest}

// MetricReportDefinition says what a report contains, and when it is generated.
type MetricReportDefinition struct {
	ID              string           `json:"id"`
	Name            string           `json:"name"`
	Kind            MetricReportType `json:"kind"`
	Enabled         bool             `json:"enabled"`
	Metrics         []string         `json:"metrics"`         // sensor IDs
	Interval        Duration         `json:"every,omitzero"`  // for Periodic
	LogToCollection bool             `json:"keep"`            // the report is stored until the next one
	SendEvents      bool             `json:"tell"`            // the report is sent to subscribers
	Next            time.Time        `json:"next,omitzero"`   // when the next periodic one is due
	Number          uint64           `json:"number,omitzero"` // reports generated
}

// MetricReport holds the readings of sensors at one time. It is immutable.
type MetricReport struct {
	ID     string    `json:"id"` // ID of its definition
	At     time.Time `json:"at"`
	Number uint64    `json:"number"`
	Values []Metric  `json:"values"`
}

// Metric is one sensor's reading.
type Metric struct {
	Sensor  string  `json:"sensor"`
	Reading float64 `json:"reading"`
}

// Telemetry holds the report definitions and reports.
type Telemetry struct {
	Off         bool                     `json:"off,omitempty"` // no reports are generated
	Definitions []MetricReportDefinition `json:"definitions"`
	Reports     []MetricReport           `json:"reports,omitempty"` // the last one of each definition
	Made        int                      `json:"made"`              // definitions created
}

// Limits of telemetry.
const (
	MaxReportDefinitions = 16 // definitions
	MinReportInterval    = time.Second
	maxEvery             = 24 * time.Hour
	platformReport       = "PlatformSensors"
)

// telemetry returns the machine's telemetry; the model's when nothing was
// changed.
func (m *Machine) telemetry() *Telemetry {
	if m.st.Telemetry != nil {
		return m.st.Telemetry
	}
	return &m.profile.Telemetry
}

// defaultTelemetry builds the model's definitions: one report of all sensors,
// on request.
func (p *Profile) defaultTelemetry() {
	d := MetricReportDefinition{ID: platformReport, Name: "All sensors", Kind: OnRequest, Enabled: true, LogToCollection: true}
	for _, s := range p.Thermal.Sensors {
		d.Metrics = append(d.Metrics, s.ID)
	}
	if d.Metrics != nil {
		p.Telemetry = Telemetry{Definitions: []MetricReportDefinition{d}}
	}
}

// updateTelemetry changes a copy of the telemetry and stores it.
func (m *Machine) updateTelemetry(how func(*Telemetry) error) error {
	t := *m.telemetry()
	t.Definitions, t.Reports = slices.Clone(t.Definitions), slices.Clone(t.Reports)
	if err := how(&t); err != nil {
		return err
	}
	m.st.Telemetry = &t
	return nil
}

// SetTelemetry enables or disables all reports.
type SetTelemetry struct{ Enabled bool }

func (c SetTelemetry) apply(m *Machine, now time.Time) ([]Event, error) {
	return nil, m.updateTelemetry(func(t *Telemetry) error {
		t.Off = !c.Enabled
		for i := range t.Definitions {
			t.Definitions[i].schedule(now)
		}
		return nil
	})
}

// schedule sets when the next periodic report is due, counted from now.
func (d *MetricReportDefinition) schedule(now time.Time) {
	d.Next = time.Time{}
	if d.Kind == Periodic && d.Enabled {
		d.Next = now.Add(d.Interval.Duration)
	}
}

// SetMetricReportDefinition adds a definition, or replaces the one with its ID.
// Without an ID it gets the number after Telemetry.Made.
type SetMetricReportDefinition struct{ MetricReportDefinition }

func (c SetMetricReportDefinition) apply(m *Machine, now time.Time) ([]Event, error) {
	d := c.MetricReportDefinition
	switch {
	case !slices.Contains(MetricReportTypes, d.Kind):
		return nil, fmt.Errorf("report of kind %q: %w", d.Kind, ErrUnknown)
	case d.Kind == Periodic && (d.Interval.Duration < MinReportInterval || d.Interval.Duration > maxEvery):
		return nil, fmt.Errorf("report every %v: must be %v to %v: %w", d.Interval, MinReportInterval, maxEvery, ErrUnknown)
	}
	for _, id := range d.Metrics {
		if m.profile.Thermal.Sensor(id) == nil {
			return nil, fmt.Errorf("report of sensor %q: %w", id, ErrUnknown)
		}
	}
	return nil, m.updateTelemetry(func(t *Telemetry) error {
		i := slices.IndexFunc(t.Definitions, func(o MetricReportDefinition) bool { return o.ID == d.ID })
		switch {
		case i < 0 && len(t.Definitions) >= MaxReportDefinitions:
			return fmt.Errorf("%w: there are %d reports", ErrConflict, MaxReportDefinitions)
		case i < 0:
			t.Made++
			if d.ID == "" {
				d.ID = strconv.Itoa(t.Made)
			}
			d.schedule(now)
			t.Definitions = append(t.Definitions, d)
		default:
			was := t.Definitions[i]
			d.Number, d.Next = was.Number, was.Next
			if was.Kind != d.Kind || was.Enabled != d.Enabled || was.Interval != d.Interval {
				d.schedule(now)
			}
			t.Definitions[i] = d
		}
		return nil
	})
}

// DeleteMetricReportDefinition deletes a definition and its report.
type DeleteMetricReportDefinition struct{ ID string }

func (c DeleteMetricReportDefinition) apply(m *Machine, _ time.Time) ([]Event, error) {
	return nil, m.updateTelemetry(func(t *Telemetry) error {
		n := len(t.Definitions)
		t.Definitions = slices.DeleteFunc(t.Definitions, func(d MetricReportDefinition) bool { return d.ID == c.ID })
		t.Reports = slices.DeleteFunc(t.Reports, func(r MetricReport) bool { return r.ID == c.ID })
		if len(t.Definitions) == n {
			return fmt.Errorf("report %q: %w", c.ID, ErrUnknown)
		}
		return nil
	})
}

// SubmitTestMetricReport sends made-up values to the subscribers, as a report.
type SubmitTestMetricReport struct {
	Name   string
	Values []Metric
}

func (c SubmitTestMetricReport) apply(_ *Machine, now time.Time) ([]Event, error) {
	return []Event{MetricReportReady{At: now, Report: MetricReport{ID: c.Name, At: now, Values: c.Values}}}, nil
}

// MetricReportReady reports a metric report for subscribers.
type MetricReportReady struct {
	At     time.Time
	Report MetricReport
}

// Time implements Event.
func (e MetricReportReady) Time() time.Time { return e.At }

// telemetryDue returns when the next periodic report is due.
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

// makeReports generates the enabled reports for which due is true.
func (m *Machine) makeReports(at time.Time, due func(d *MetricReportDefinition) bool) []Event {
	if t := m.st.Telemetry; t == nil || t.Off || !slices.ContainsFunc(t.Definitions, func(d MetricReportDefinition) bool { return due(&d) }) {
		return nil
	}
	var evs []Event
	v := m.heat.View()
	err := m.updateTelemetry(func(t *Telemetry) error {
		for i := range t.Definitions {
			d := &t.Definitions[i]
			if !due(d) {
				continue
			}
			d.Number++
			r := MetricReport{ID: d.ID, At: at, Number: d.Number, Values: readSensors(v.Reading, d.Metrics, at)}
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
		panic(err) // the function above returns no error
	}
	return evs
}

// makePeriodicReports generates the periodic reports that are due.
func (m *Machine) makePeriodicReports(at time.Time) []Event {
	return m.makeReports(at, func(d *MetricReportDefinition) bool { return !d.Next.IsZero() && !at.Before(d.Next) })
}

// makeChangeReports generates the OnChange reports.
func (m *Machine) makeChangeReports(at time.Time) []Event {
	return m.makeReports(at, func(d *MetricReportDefinition) bool { return d.Kind == OnChange && d.Enabled })
}

// readSensors reads sensors, without those that have no reading.
func readSensors(read func(id string, now time.Time) (float64, bool), ids []string, at time.Time) []Metric {
	var out []Metric
	for _, id := range ids {
		if x, ok := read(id, at); ok {
			out = append(out, Metric{id, x})
		}
	}
	return out
}

// MetricReport returns the report of a definition: the last one generated, or
// for OnRequest a new one; false when there is none.
func (v *View) MetricReport(id string, now time.Time) (MetricReport, bool) {
	for _, d := range v.Telemetry.Definitions {
		if d.ID == id && d.Kind == OnRequest && d.Enabled && d.LogToCollection && !v.Telemetry.Off {
			return MetricReport{ID: id, At: now, Values: readSensors(v.Thermal.Reading, d.Metrics, now)}, true
		}
	}
	i := slices.IndexFunc(v.Telemetry.Reports, func(r MetricReport) bool { return r.ID == id })
	if i < 0 {
		return MetricReport{}, false
	}
	return v.Telemetry.Reports[i], true
}
