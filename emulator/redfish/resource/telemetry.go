package resource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// TelemetryURI is the URI of the TelemetryService.
const TelemetryURI = "/redfish/v1/TelemetryService"

func telemetryRows() []Row {
	return []Row{
		{URI: TelemetryURI, Schema: "TelemetryService.v1_4_1", When: hasSensors, DependsOn: partTelemetry, Read: telemetryService,
			Patch: &telemetryPatch, Actions: telemetryActions},
		{URI: TelemetryURI + "/MetricDefinitions", Schema: "MetricDefinitionCollection", collectionName: "Metric Definitions", memberVariable: "metric"},
		{URI: TelemetryURI + "/MetricDefinitions/{metric}", Schema: "MetricDefinition.v1_3_5", Read: metricDefinition},
		{URI: TelemetryURI + "/MetricReportDefinitions", Schema: "MetricReportDefinitionCollection", DependsOn: partTelemetry,
			collectionName: "Metric Report Definitions", memberVariable: "report", Create: &create{Inputs: reportInputs, Apply: defineReport}},
		{URI: TelemetryURI + "/MetricReportDefinitions/{report}", Schema: "MetricReportDefinition.v1_4_7", DependsOn: partTelemetry | sensorParts,
			Read: reportDefinition, Patch: &reportPatch, Remove: deleteReport},
		{URI: TelemetryURI + "/MetricReports", Schema: "MetricReportCollection", DependsOn: partTelemetry | sensorParts, collectionName: "Metric Reports", memberVariable: "made"},
		{URI: TelemetryURI + "/MetricReports/{made}", Schema: "MetricReport.v1_5_2", DependsOn: partTelemetry | sensorParts, Read: metricReport,
			Volatile: []string{"Timestamp"}},
		{URI: TelemetryURI + "/Triggers", Schema: "TriggersCollection", collectionName: "Triggers", memberVariable: "trigger"},
		{URI: TelemetryURI + "/Triggers/{trigger}", Schema: "Triggers.v1_4_0", DependsOn: partThermal, Read: trigger},
	}
}

func reportID(d machine.MetricReportDefinition) string { return d.ID }

func reportIDs(v View) []string { return Map(v.Machine.Telemetry.Definitions, reportID) }

// metricReportIDs returns the IDs of the definitions that have a report.
func metricReportIDs(v View) []string {
	return slices.DeleteFunc(reportIDs(v), func(id string) bool { _, ok := v.Machine.MetricReport(id, v.Now); return !ok })
}

// triggerIDs returns the IDs of the sensors that have thresholds.
func triggerIDs(v View) []string {
	var out []string
	for _, s := range v.Machine.Profile.Thermal.Sensors {
		if s.Limits != (thermal.Limits{}) {
			out = append(out, s.ID)
		}
	}
	return out
}

func telemetryService(v View) Object {
	state := "Enabled"
	if v.Machine.Telemetry.Off {
		state = "Disabled"
	}
	return Object{
		"Name": "Telemetry Service", "ServiceEnabled": !v.Machine.Telemetry.Off, "Status": status(state), "MaxReports": machine.MaxReportDefinitions,
		"MinCollectionInterval": formatDuration(machine.MinReportInterval), "SupportedCollectionFunctions": []string{},
	}
}

// formatDuration returns a duration as DSP0266 writes durations, with fractions of a
// second.
func formatDuration(d time.Duration) string {
	return "PT" + strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "S"
}

var telemetryPatch = Patch{
	Inputs: []Input{{Name: "ServiceEnabled", Kind: Boolean}},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		return Result{}, c.Host.Apply(ctx, machine.SetTelemetry{Enabled: Value(c.Values, "ServiceEnabled", true)})
	},
}

// metricProperty returns the URI of the property that holds the reading of a sensor.
func (v View) metricProperty(sensor string) string { return v.chassis("Sensors", sensor) + "/Reading" }

func metricDefinition(v View) Object {
	s := Find(v.Machine.Profile.Thermal.Sensors, v.IDs["metric"], sensorID)
	o := Object{
		"Name": s.Name, "MetricType": "Gauge", "MetricDataType": "Decimal", "Implementation": "PhysicalSensor", "IsLinear": true,
		"PhysicalContext": s.Context, "Units": sensorKinds[s.Kind].units, "SensingInterval": "PT1S", "Calculable": "NonSummable",
		"MetricProperties": []string{v.metricProperty(s.ID)},
	}
	if s.Kind == thermal.Energy {
		o["MetricType"], o["Implementation"], o["Calculable"] = "Counter", "Calculated", "Summable"
	}
	return o
}

func reportDefinition(v View) Object {
	d := Find(v.Machine.Telemetry.Definitions, v.IDs["report"], reportID)
	metrics := Map(d.Metrics, func(id string) Object {
		return Object{"MetricId": id, "MetricProperties": []string{v.metricProperty(id)}}
	})
	actions := []string{}
	if d.LogToCollection {
		actions = append(actions, "LogToMetricReportsCollection")
	}
	if d.SendEvents {
		actions = append(actions, "RedfishEvent")
	}
	state := "Enabled"
	if !d.Enabled || v.Machine.Telemetry.Off {
		state = "Disabled"
	}
	o := Object{
		"Name": d.Name, "MetricReportDefinitionType": string(d.Kind), "MetricReportDefinitionEnabled": d.Enabled, "Metrics": metrics,
		"ReportActions": actions, "ReportUpdates": "Overwrite", "Status": status(state),
	}
	if d.Kind == machine.Periodic {
		o["Schedule"] = Object{"RecurrenceInterval": formatDuration(d.Interval.Duration)}
	}
	if _, ok := v.Machine.MetricReport(d.ID, v.Now); ok {
		o["MetricReport"] = Ref(TelemetryURI + "/MetricReports/" + d.ID)
	}
	return o
}

func metricReport(v View) Object {
	r, _ := v.Machine.MetricReport(v.IDs["made"], v.Now)
	return MetricReportBody(v, r)
}

// MetricReportBody returns the body of a MetricReport, as a GET and an event show it.
func MetricReportBody(v View, r machine.MetricReport) Object {
	at := r.At.UTC().Format(time.RFC3339)
	values := []Object{}
	for _, m := range r.Values {
		s := v.Machine.Profile.Thermal.Sensor(m.Sensor)
		if s == nil { // the model no longer has the sensor
			continue
		}
		values = append(values, Object{
			"MetricId": m.Sensor, "MetricProperty": v.metricProperty(m.Sensor), "MetricValue": fmt.Sprint(v.toResourceUnits(*s, m.Reading)), "Timestamp": at,
		})
	}
	return Object{
		"Name": "Metric Report " + r.ID, "Timestamp": at, "MetricValues": values, "MetricValues@odata.count": len(values),
		"MetricReportDefinition": Ref(TelemetryURI + "/MetricReportDefinitions/" + r.ID),
	}
}

// triggerNames maps a threshold of a Sensor to its name in Triggers.NumericThresholds
// (DSP2046), which has none for the fatal one.
var triggerNames = map[string]string{
	"LowerCritical": "LowerCritical", "LowerCaution": "LowerWarning", "UpperCaution": "UpperWarning", "UpperCritical": "UpperCritical",
}

// trigger returns the body of the Triggers resource of a sensor. Crossing a threshold
// writes a log entry and sends an event.
func trigger(v View) Object {
	s := Find(v.Machine.Profile.Thermal.Sensors, v.IDs["trigger"], sensorID)
	thresholds := Object{}
	limits := v.Machine.Thermal.Thresholds(s.ID)
	for _, t := range thresholdKinds {
		name, ok := triggerNames[t.name]
		if at := *t.of(limits); ok && at != nil {
			thresholds[name] = Object{"Reading": v.toResourceUnits(s, *at), "Activation": t.on}
		}
	}
	return Object{
		"Name": s.Name + " Thresholds", "MetricType": "Numeric", "TriggerActions": []string{"LogToLogService", "RedfishEvent"}, "TriggerEnabled": true,
		"NumericThresholds": thresholds, "MetricIds": []string{s.ID}, "MetricProperties": []string{v.metricProperty(s.ID)}, "Status": status("Enabled"),
	}
}

func metricIDs(v View) []string { return Map(v.Machine.Profile.Thermal.Sensors, sensorID) }

func reportKinds(View) []string { return Texts(machine.MetricReportTypes) }

// isDuration reports whether a text is a duration as DSP0266 writes durations.
func isDuration(s string) bool {
	_, ok := parseDuration(s)
	return ok
}

var metricsInput = Input{Name: "Metrics", Kind: Array, Min: 1, Max: 256, Of: []Input{{Kind: Group, Of: []Input{
	{Name: "MetricId", Kind: Text, Allowed: metricIDs},
	{Name: "MetricProperties", Kind: Array, Min: 1, Of: []Input{{Kind: Text, Allowed: func(v View) []string {
		return Map(metricIDs(v), v.metricProperty)
	}}}},
}}}}

// reportChanges are the properties of a MetricReportDefinition that a client can write.
var reportChanges = []Input{
	{Name: "MetricReportDefinitionType", Kind: Text, Allowed: reportKinds},
	{Name: "MetricReportDefinitionEnabled", Kind: Boolean},
	{Name: "ReportActions", Kind: Array, Of: []Input{{Kind: Text, Allowed: OneOf("LogToMetricReportsCollection", "RedfishEvent")}}},
	{Name: "ReportUpdates", Kind: Text, Allowed: OneOf("Overwrite")},
	{Name: "Schedule", Kind: Group, Of: []Input{{Name: "RecurrenceInterval", Kind: Text, form: isDuration}}},
	metricsInput,
}

// reportInputs are the properties of a new MetricReportDefinition.
var reportInputs = append([]Input{
	{Name: "Id", Kind: Text, form: regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`).MatchString},
	{Name: "Name", Kind: Text, Min: 1, Max: 128},
}, reportChanges...)

// withReportChanges returns a definition with the changes that a client sent.
func withReportChanges(c Call, d machine.MetricReportDefinition) machine.MetricReportDefinition {
	d.Kind = machine.MetricReportType(Value(c.Values, "MetricReportDefinitionType", string(d.Kind)))
	d.Enabled = Value(c.Values, "MetricReportDefinitionEnabled", d.Enabled)
	if every, ok := parseDuration(Value(c.Values, "Schedule/RecurrenceInterval", "")); ok {
		d.Interval = machine.Duration{Duration: every}
	}
	if actions, ok := c.Values["ReportActions"].([]any); ok {
		d.LogToCollection, d.SendEvents = slices.Contains(actions, any("LogToMetricReportsCollection")), slices.Contains(actions, any("RedfishEvent"))
	}
	if metrics, ok := c.Values["Metrics"].([]any); ok {
		d.Metrics = nil
		for _, x := range metrics {
			m, _ := x.(Values)
			if id, ok := m["MetricId"].(string); ok {
				d.Metrics = append(d.Metrics, id)
				continue
			}
			all, _ := m["MetricProperties"].([]any)
			for _, p := range all {
				id := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(p), c.View.chassis("Sensors")+"/"), "/Reading")
				d.Metrics = append(d.Metrics, id)
			}
		}
	}
	return d
}

func defineReport(ctx context.Context, c Call) (Result, error) {
	t := c.View.Machine.Telemetry
	d := withReportChanges(c, machine.MetricReportDefinition{
		ID: Value(c.Values, "Id", strconv.Itoa(t.Made+1)), Kind: machine.OnRequest, Enabled: true, LogToCollection: true,
	})
	d.Name = Value(c.Values, "Name", "Metric Report Definition "+d.ID)
	if slices.Contains(reportIDs(c.View), d.ID) {
		return Result{}, Reject(http.StatusConflict, message.ResourceAlreadyExists.With("MetricReportDefinition", "Id", d.ID).About("#/Id"))
	}
	if err := c.setReportDefinition(ctx, d); err != nil {
		return Result{}, err
	}
	return Result{ID: d.ID}, nil
}

// setReportDefinition creates or replaces a definition.
func (c Call) setReportDefinition(ctx context.Context, d machine.MetricReportDefinition) error {
	if d.Kind == machine.Periodic && d.Interval.Duration == 0 {
		return Reject(http.StatusBadRequest, message.PropertyMissing.With("RecurrenceInterval").About("#/Schedule/RecurrenceInterval"))
	}
	err := c.Host.Apply(ctx, machine.SetMetricReportDefinition{MetricReportDefinition: d})
	switch {
	case errors.Is(err, machine.ErrConflict):
		return Reject(http.StatusBadRequest, message.CreateLimitReachedForResource.With())
	case errors.Is(err, machine.ErrUnknown): // the inputs have refused every other wrong value
		return Reject(http.StatusBadRequest, message.PropertyValueOutOfRange.With(formatDuration(d.Interval.Duration), "RecurrenceInterval").About("#/Schedule/RecurrenceInterval"))
	}
	return err
}

var reportPatch = Patch{
	Inputs: reportChanges,
	Apply: func(ctx context.Context, c Call) (Result, error) {
		d := Find(c.View.Machine.Telemetry.Definitions, c.View.IDs["report"], reportID)
		return Result{}, c.setReportDefinition(ctx, withReportChanges(c, d))
	},
}

func deleteReport(ctx context.Context, c Call) (Result, error) {
	return Result{}, c.Host.Apply(ctx, machine.DeleteMetricReportDefinition{ID: c.View.IDs["report"]})
}

var telemetryActions = []Action{{
	Name: "TelemetryService.SubmitTestMetricReport",
	Inputs: []Input{
		{Name: "MetricReportName", Kind: Text, Required: true, Min: 1, Max: 128},
		{Name: "GeneratedMetricReportValues", Kind: Array, Required: true, Min: 1, Max: 256, Of: []Input{{Kind: Group, Of: []Input{
			{Name: "MetricId", Kind: Text, Required: true, Allowed: metricIDs},
			{Name: "MetricValue", Kind: Text, Required: true, form: isReading},
			{Name: "MetricProperty", Kind: Text}, {Name: "Timestamp", Kind: Text},
		}}}},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		r := machine.SubmitTestMetricReport{Name: Value(c.Values, "MetricReportName", "")}
		all, _ := c.Values["GeneratedMetricReportValues"].([]any)
		for _, x := range all {
			m, _ := x.(Values)
			reading, err := strconv.ParseFloat(Value(m, "MetricValue", ""), 64)
			if err != nil {
				return Result{}, err // not reached: isReading has checked it
			}
			r.Values = append(r.Values, machine.Metric{Sensor: Value(m, "MetricId", ""), Reading: reading})
		}
		return Result{}, c.Host.Apply(ctx, r)
	},
}}

func isReading(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}
