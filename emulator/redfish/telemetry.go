package redfish

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

const telemetryURI = "/redfish/v1/TelemetryService"

func telemetryRows() []resource {
	return []resource{
		{uri: telemetryURI, schema: "TelemetryService.v1_4_1", when: hasSensors, shows: PartTelemetry, read: telemetryService,
			patch: &telemetryPatch, actions: telemetryActions},
		{uri: telemetryURI + "/MetricDefinitions", schema: "MetricDefinitionCollection", name: "Metric Definitions", of: "metric"},
		{uri: telemetryURI + "/MetricDefinitions/{metric}", schema: "MetricDefinition.v1_3_5", read: metricDefinition},
		{uri: telemetryURI + "/MetricReportDefinitions", schema: "MetricReportDefinitionCollection", shows: PartTelemetry,
			name: "Metric Report Definitions", of: "report", create: &create{inputs: reportInputs, apply: defineReport}},
		{uri: telemetryURI + "/MetricReportDefinitions/{report}", schema: "MetricReportDefinition.v1_4_7", shows: PartTelemetry | readings,
			read: reportDefinition, patch: &reportPatch, remove: dropReport},
		{uri: telemetryURI + "/MetricReports", schema: "MetricReportCollection", shows: PartTelemetry | readings, name: "Metric Reports", of: "made"},
		{uri: telemetryURI + "/MetricReports/{made}", schema: "MetricReport.v1_5_2", shows: PartTelemetry | readings, read: metricReport,
			volatile: []string{"Timestamp"}},
		{uri: telemetryURI + "/Triggers", schema: "TriggersCollection", name: "Triggers", of: "trigger"},
		{uri: telemetryURI + "/Triggers/{trigger}", schema: "Triggers.v1_4_0", shows: PartThermal, read: trigger},
	}
}

func reportID(d machine.MetricReportDefinition) string { return d.ID }

func reportIDs(v view) []string { return list(v.m.Telemetry.Definitions, reportID) }

// madeIDs are the definitions of which there is a report.
func madeIDs(v view) []string {
	return slices.DeleteFunc(reportIDs(v), func(id string) bool { _, ok := v.m.MetricReport(id, v.now); return !ok })
}

// triggerIDs are the sensors that have thresholds.
func triggerIDs(v view) []string {
	var out []string
	for _, s := range v.m.Profile.Thermal.Sensors {
		if s.Limits != (thermal.Limits{}) {
			out = append(out, s.ID)
		}
	}
	return out
}

func telemetryService(v view) object {
	state := "Enabled"
	if v.m.Telemetry.Off {
		state = "Disabled"
	}
	return object{
		"Name": "Telemetry Service", "ServiceEnabled": !v.m.Telemetry.Off, "Status": status(state), "MaxReports": machine.MaxReportDefinitions,
		"MinCollectionInterval": iso(machine.MinReportInterval), "SupportedCollectionFunctions": []string{},
	}
}

// iso is a duration as DSP0266 writes them.
func iso(d time.Duration) string { return "PT" + strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "S" }

var telemetryPatch = patch{
	inputs: []input{{name: "ServiceEnabled", kind: boolean}},
	apply: func(ctx context.Context, c operation) (reply, error) {
		return reply{}, c.host.Apply(ctx, machine.SetTelemetry{Enabled: value(c.set, "ServiceEnabled", true)})
	},
}

// property is where a sensor's reading stands.
func (v view) property(sensor string) string { return v.chassis("Sensors", sensor) + "/Reading" }

func metricDefinition(v view) object {
	s := pick(v.m.Profile.Thermal.Sensors, v.ids["metric"], sensorID)
	o := object{
		"Name": s.Name, "MetricType": "Gauge", "MetricDataType": "Decimal", "Implementation": "PhysicalSensor", "IsLinear": true,
		"PhysicalContext": s.Context, "Units": sensorKinds[s.Kind].units, "SensingInterval": "PT1S", "Calculable": "NonSummable",
		"MetricProperties": []string{v.property(s.ID)},
	}
	if s.Kind == thermal.Energy {
		o["MetricType"], o["Implementation"], o["Calculable"] = "Counter", "Calculated", "Summable"
	}
	return o
}

func reportDefinition(v view) object {
	d := pick(v.m.Telemetry.Definitions, v.ids["report"], reportID)
	metrics := list(d.Metrics, func(id string) object { return object{"MetricId": id, "MetricProperties": []string{v.property(id)}} })
	actions := []string{}
	if d.LogToCollection {
		actions = append(actions, "LogToMetricReportsCollection")
	}
	if d.SendEvents {
		actions = append(actions, "RedfishEvent")
	}
	state := "Enabled"
	if !d.Enabled || v.m.Telemetry.Off {
		state = "Disabled"
	}
	o := object{
		"Name": d.Name, "MetricReportDefinitionType": string(d.Kind), "MetricReportDefinitionEnabled": d.Enabled, "Metrics": metrics,
		"ReportActions": actions, "ReportUpdates": "Overwrite", "Status": status(state),
	}
	if d.Kind == machine.Periodic {
		o["Schedule"] = object{"RecurrenceInterval": iso(d.Interval.Duration)}
	}
	if _, ok := v.m.MetricReport(d.ID, v.now); ok {
		o["MetricReport"] = ref(telemetryURI + "/MetricReports/" + d.ID)
	}
	return o
}

func metricReport(v view) object {
	r, _ := v.m.MetricReport(v.ids["made"], v.now)
	return reported(v, r)
}

// reported is a report as it is read, and as it is sent.
func reported(v view, r machine.MetricReport) object {
	at := r.At.UTC().Format(time.RFC3339)
	values := []object{}
	for _, m := range r.Values {
		s := v.m.Profile.Thermal.Sensor(m.Sensor)
		if s == nil { // of a model that has it no longer
			continue
		}
		values = append(values, object{
			"MetricId": m.Sensor, "MetricProperty": v.property(m.Sensor), "MetricValue": fmt.Sprint(v.shown(*s, m.Reading)), "Timestamp": at,
		})
	}
	return object{
		"Name": "Metric Report " + r.ID, "Timestamp": at, "MetricValues": values, "MetricValues@odata.count": len(values),
		"MetricReportDefinition": ref(telemetryURI + "/MetricReportDefinitions/" + r.ID),
	}
}

// triggerNames are the names of a sensor's thresholds in its trigger, which has
// none for the fatal one (DSP2046, Triggers.NumericThresholds).
var triggerNames = map[string]string{
	"LowerCritical": "LowerCritical", "LowerCaution": "LowerWarning", "UpperCaution": "UpperWarning", "UpperCritical": "UpperCritical",
}

// trigger is what crossing the thresholds of a sensor does: it is logged, and
// told.
func trigger(v view) object {
	s := pick(v.m.Profile.Thermal.Sensors, v.ids["trigger"], sensorID)
	thresholds := object{}
	limits := v.m.Thermal.Thresholds(s.ID)
	for _, t := range thresholdKinds {
		name, ok := triggerNames[t.name]
		if at := *t.of(limits); ok && at != nil {
			thresholds[name] = object{"Reading": v.shown(s, *at), "Activation": t.on}
		}
	}
	return object{
		"Name": s.Name + " Thresholds", "MetricType": "Numeric", "TriggerActions": []string{"LogToLogService", "RedfishEvent"}, "TriggerEnabled": true,
		"NumericThresholds": thresholds, "MetricIds": []string{s.ID}, "MetricProperties": []string{v.property(s.ID)}, "Status": status("Enabled"),
	}
}

func metricIDs(v view) []string { return list(v.m.Profile.Thermal.Sensors, sensorID) }

func reportKinds(view) []string { return texts(machine.MetricReportTypes) }

// isInterval says whether a text is how often a report can be made.
func isInterval(s string) bool {
	_, ok := duration(s)
	return ok
}

var metricsInput = input{name: "Metrics", kind: array, min: 1, max: 256, of: []input{{kind: group, of: []input{
	{name: "MetricId", kind: text, values: metricIDs},
	{name: "MetricProperties", kind: array, min: 1, of: []input{{kind: text, values: func(v view) []string {
		return list(metricIDs(v), v.property)
	}}}},
}}}}

// reportChanges are what can be written of a definition.
var reportChanges = []input{
	{name: "MetricReportDefinitionType", kind: text, values: reportKinds},
	{name: "MetricReportDefinitionEnabled", kind: boolean},
	{name: "ReportActions", kind: array, of: []input{{kind: text, values: oneOf("LogToMetricReportsCollection", "RedfishEvent")}}},
	{name: "ReportUpdates", kind: text, values: oneOf("Overwrite")},
	{name: "Schedule", kind: group, of: []input{{name: "RecurrenceInterval", kind: text, form: isInterval}}},
	metricsInput,
}

// reportInputs are what a new definition has.
var reportInputs = append([]input{
	{name: "Id", kind: text, form: regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`).MatchString},
	{name: "Name", kind: text, min: 1, max: 128},
}, reportChanges...)

// wantedReport is a definition as a client wants it.
func wantedReport(c operation, d machine.MetricReportDefinition) machine.MetricReportDefinition {
	d.Kind = machine.MetricReportType(value(c.set, "MetricReportDefinitionType", string(d.Kind)))
	d.Enabled = value(c.set, "MetricReportDefinitionEnabled", d.Enabled)
	if every, ok := duration(value(c.set, "Schedule/RecurrenceInterval", "")); ok {
		d.Interval = machine.Duration{Duration: every}
	}
	if actions, ok := c.set["ReportActions"].([]any); ok {
		d.LogToCollection, d.SendEvents = slices.Contains(actions, any("LogToMetricReportsCollection")), slices.Contains(actions, any("RedfishEvent"))
	}
	if metrics, ok := c.set["Metrics"].([]any); ok {
		d.Metrics = nil
		for _, x := range metrics {
			m, _ := x.(values)
			if id, ok := m["MetricId"].(string); ok {
				d.Metrics = append(d.Metrics, id)
				continue
			}
			all, _ := m["MetricProperties"].([]any)
			for _, p := range all {
				id := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(p), c.view.chassis("Sensors")+"/"), "/Reading")
				d.Metrics = append(d.Metrics, id)
			}
		}
	}
	return d
}

func defineReport(ctx context.Context, c operation) (reply, error) {
	t := c.view.m.Telemetry
	d := wantedReport(c, machine.MetricReportDefinition{
		ID: value(c.set, "Id", strconv.Itoa(t.Made+1)), Kind: machine.OnRequest, Enabled: true, LogToCollection: true,
	})
	d.Name = value(c.set, "Name", "Metric Report Definition "+d.ID)
	if slices.Contains(reportIDs(c.view), d.ID) {
		return reply{}, decline(http.StatusConflict, message.ResourceAlreadyExists.With("MetricReportDefinition", "Id", d.ID).About("#/Id"))
	}
	if err := c.takes(ctx, d); err != nil {
		return reply{}, err
	}
	return reply{id: d.ID}, nil
}

// takes puts a definition in place.
func (c operation) takes(ctx context.Context, d machine.MetricReportDefinition) error {
	if d.Kind == machine.Periodic && d.Interval.Duration == 0 {
		return decline(http.StatusBadRequest, message.PropertyMissing.With("RecurrenceInterval").About("#/Schedule/RecurrenceInterval"))
	}
	err := c.host.Apply(ctx, machine.SetMetricReportDefinition{MetricReportDefinition: d})
	switch {
	case errors.Is(err, machine.ErrConflict):
		return decline(http.StatusBadRequest, message.CreateLimitReachedForResource.With())
	case errors.Is(err, machine.ErrUnknown): // inputs take nothing else that is wrong
		return decline(http.StatusBadRequest, message.PropertyValueOutOfRange.With(iso(d.Interval.Duration), "RecurrenceInterval").About("#/Schedule/RecurrenceInterval"))
	}
	return err
}

var reportPatch = patch{
	inputs: reportChanges,
	apply: func(ctx context.Context, c operation) (reply, error) {
		d := pick(c.view.m.Telemetry.Definitions, c.view.ids["report"], reportID)
		return reply{}, c.takes(ctx, wantedReport(c, d))
	},
}

func dropReport(ctx context.Context, c operation) (reply, error) {
	return reply{}, c.host.Apply(ctx, machine.DeleteMetricReportDefinition{ID: c.view.ids["report"]})
}

var telemetryActions = []action{{
	name: "TelemetryService.SubmitTestMetricReport",
	inputs: []input{
		{name: "MetricReportName", kind: text, required: true, min: 1, max: 128},
		{name: "GeneratedMetricReportValues", kind: array, required: true, min: 1, max: 256, of: []input{{kind: group, of: []input{
			{name: "MetricId", kind: text, required: true, values: metricIDs},
			{name: "MetricValue", kind: text, required: true, form: isReading},
			{name: "MetricProperty", kind: text}, {name: "Timestamp", kind: text},
		}}}},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		r := machine.SubmitTestMetricReport{Name: value(c.set, "MetricReportName", "")}
		all, _ := c.set["GeneratedMetricReportValues"].([]any)
		for _, x := range all {
			m, _ := x.(values)
			reading, err := strconv.ParseFloat(value(m, "MetricValue", ""), 64)
			if err != nil {
				return reply{}, err // not reached: isReading has read it
			}
			r.Values = append(r.Values, machine.Metric{Sensor: value(m, "MetricId", ""), Reading: reading})
		}
		return reply{}, c.host.Apply(ctx, r)
	},
}}

func isReading(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}
