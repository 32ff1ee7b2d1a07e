package machine

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// ReportKind is when a report is made; the values are Redfish's (DSP2046,
// MetricReportDefinition.MetricReportDefinitionType).
type ReportKind string

// The kinds.
const (
	Periodic  ReportKind = "Periodic"
	OnChange  ReportKind = "OnChange"  // of what heats, cools or feeds the machine, and of levels
	OnRequest ReportKind = "OnRequest" // made when it is read
)

// ReportKinds are all of them.
var ReportKinds = []ReportKind{Periodic, OnChange, OnRequest}

// ReportDefinition says what a report tells, and when it is made.
type ReportDefinition struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Kind    ReportKind `json:"kind"`
	Enabled bool       `json:"enabled"`
	Metrics []string   `json:"metrics"`         // IDs of sensors
	Every   Duration   `json:"every,omitzero"`  // of a periodic one
	Keep    bool       `json:"keep"`            // it can be read until the next one
	Tell    bool       `json:"tell"`            // it is sent to who subscribes
	Next    time.Time  `json:"next,omitzero"`   // when a periodic one is due
	Number  uint64     `json:"number,omitzero"` // reports made
}

// Report is what sensors read at one time. It is never changed.
type Report struct {
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
	Off         bool               `json:"off,omitempty"` // no report is made
	Definitions []ReportDefinition `json:"definitions"`
	Reports     []Report           `json:"reports,omitempty"` // the last of each definition
	Made        int                `json:"made"`              // definitions
}

// Bounds of telemetry.
const (
	MaxReports     = 16 // definitions
	MinEvery       = time.Second
	maxEvery       = 24 * time.Hour
	platformReport = "PlatformSensors"
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
	d := ReportDefinition{ID: platformReport, Name: "All sensors", Kind: OnRequest, Enabled: true, Keep: true}
	for _, s := range p.Thermal.Sensors {
		d.Metrics = append(d.Metrics, s.ID)
	}
	if d.Metrics != nil {
		p.Telemetry = Telemetry{Definitions: []ReportDefinition{d}}
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
func (d *ReportDefinition) plan(now time.Time) {
	d.Next = time.Time{}
	if d.Kind == Periodic && d.Enabled {
		d.Next = now.Add(d.Every.Duration)
	}
}

// DefineReport adds a definition, or changes the one with its ID. Without an ID
// it gets the number that Telemetry.Made will be.
type DefineReport struct{ ReportDefinition }

func (c DefineReport) apply(m *Machine, now time.Time) ([]Event, error) {
	d := c.ReportDefinition
	switch {
	case !slices.Contains(ReportKinds, d.Kind):
		return nil, fmt.Errorf("machine: report of kind %q: %w", d.Kind, ErrUnknown)
	case d.Kind == Periodic && (d.Every.Duration < MinEvery || d.Every.Duration > maxEvery):
		return nil, fmt.Errorf("machine: report every %v: must be %v to %v: %w", d.Every, MinEvery, maxEvery, ErrUnknown)
	}
	for _, id := range d.Metrics {
		if m.profile.Thermal.Sensor(id) == nil {
			return nil, fmt.Errorf("machine: report of sensor %q: %w", id, ErrUnknown)
		}
	}
	return nil, m.setTelemetry(func(t *Telemetry) error {
		i := slices.IndexFunc(t.Definitions, func(o ReportDefinition) bool { return o.ID == d.ID })
		switch {
		case i < 0 && len(t.Definitions) >= MaxReports:
			return fmt.Errorf("%w: there are %d reports", ErrConflict, MaxReports)
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
			if was.Kind != d.Kind || was.Enabled != d.Enabled || was.Every != d.Every {
				d.plan(now)
			}
			t.Definitions[i] = d
		}
		return nil
	})
}

// DropReport removes a definition and its report.
type DropReport struct{ ID string }

func (c DropReport) apply(m *Machine, _ time.Time) ([]Event, error) {
	return nil, m.setTelemetry(func(t *Telemetry) error {
		n := len(t.Definitions)
		t.Definitions = slices.DeleteFunc(t.Definitions, func(d ReportDefinition) bool { return d.ID == c.ID })
		t.Reports = slices.DeleteFunc(t.Reports, func(r Report) bool { return r.ID == c.ID })
		if len(t.Definitions) == n {
			return fmt.Errorf("machine: report %q: %w", c.ID, ErrUnknown)
		}
		return nil
	})
}

// TestReport tells values that somebody made up, as if a report had them.
type TestReport struct {
	Name   string
	Values []Metric
}

func (c TestReport) apply(_ *Machine, now time.Time) ([]Event, error) {
	return []Event{Reported{At: now, Report: Report{ID: c.Name, At: now, Values: c.Values}}}, nil
}

// Reported tells a report to who subscribes to reports.
type Reported struct {
	At     time.Time
	Report Report
}

// Time implements Event.
func (e Reported) Time() time.Time { return e.At }

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
func (m *Machine) report(at time.Time, due func(d *ReportDefinition) bool) []Event {
	if t := m.st.Telemetry; t == nil || t.Off || !slices.ContainsFunc(t.Definitions, func(d ReportDefinition) bool { return due(&d) }) {
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
			r := Report{ID: d.ID, At: at, Number: d.Number, Values: readAll(v.Reading, d.Metrics, at)}
			if d.Kind == Periodic {
				d.Next = d.Next.Add(d.Every.Duration)
			}
			if d.Keep {
				t.Reports = append(slices.DeleteFunc(t.Reports, func(o Report) bool { return o.ID == d.ID }), r)
			}
			if d.Tell {
				evs = append(evs, Reported{At: at, Report: r})
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
	return m.report(at, func(d *ReportDefinition) bool { return !d.Next.IsZero() && !at.Before(d.Next) })
}

// reportChange makes the reports of a change.
func (m *Machine) reportChange(at time.Time) []Event {
	return m.report(at, func(d *ReportDefinition) bool { return d.Kind == OnChange && d.Enabled })
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

// Report is the report of a definition: as it was made last, or as it is now if
// it is made on request; false when there is none.
func (v *View) Report(id string, now time.Time) (Report, bool) {
	for _, d := range v.Telemetry.Definitions {
		if d.ID == id && d.Kind == OnRequest && d.Enabled && d.Keep && !v.Telemetry.Off {
			return Report{ID: id, At: now, Values: readAll(v.Thermal.Reading, d.Metrics, now)}, true
		}
	}
	i := slices.IndexFunc(v.Telemetry.Reports, func(r Report) bool { return r.ID == id })
	if i < 0 {
		return Report{}, false
	}
	return v.Telemetry.Reports[i], true
}
