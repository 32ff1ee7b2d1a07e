package redfish

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

func TestMetricReports(t *testing.T) {
	h, s := running(t)
	const definitions, reports = resource.TelemetryURI + "/MetricReportDefinitions", resource.TelemetryURI + "/MetricReports"
	do := func(method, uri, body string, want int) map[string]any {
		t.Helper()
		w := call(t, s, "admin", method, uri, body)
		if w.Code != want {
			t.Fatalf("%s; want %d", shape(method, uri, body, w), want)
		}
		var got map[string]any
		if w.Body.Len() > 0 {
			must(t, json.Unmarshal(w.Body.Bytes(), &got))
		}
		return got
	}
	// An OnRequest report has the present readings.
	all, _ := get(t, s, reports+"/PlatformSensors")
	for _, x := range all["MetricValues"].([]any) {
		sensor, _ := get(t, s, box+"/Sensors/"+pluck(t, x, "MetricId").(string))
		var read float64
		must(t, json.Unmarshal([]byte(pluck(t, x, "MetricValue").(string)), &read))
		if read != sensor["Reading"] {
			t.Errorf("%v is %v in the report, the sensor reads %v", pluck(t, x, "MetricId"), read, sensor["Reading"])
		}
	}
	// A Periodic report has the readings at its due time.
	made := do("POST", definitions, `{"Id":"p","Name":"Power","MetricReportDefinitionType":"Periodic","Schedule":{"RecurrenceInterval":"PT1M"},
		"Metrics":[{"MetricId":"TotalPower"},{"MetricProperties":["/redfish/v1/Chassis/1/Sensors/CPU1Temp/Reading"]}],"ReportActions":["LogToMetricReportsCollection","RedfishEvent"]}`, 201)
	if pluck(t, made, "Metrics/1/MetricId") != "CPU1Temp" || pluck(t, made, "Schedule/RecurrenceInterval") != "PT60S" {
		t.Errorf("the definition is %v", made)
	}
	if w := call(t, s, "admin", "GET", reports+"/p", ""); w.Code != 404 {
		t.Errorf("before it is due: %s", shape("GET", "p", "", w))
	}
	began := h.Now()
	h.pass(90 * time.Second)
	first, tag := get(t, s, reports+"/p")
	heat(t, h, thermal.SetLoad{Load: new(float64(1))})
	h.pass(20 * time.Second)
	if again, now := get(t, s, reports+"/p"); now != tag || first["Timestamp"] != began.Add(time.Minute).Format(time.RFC3339) {
		t.Errorf("between two: %v, was %v", again, first)
	}
	h.pass(20 * time.Second)
	second, _ := get(t, s, reports+"/p")
	if second["Timestamp"] != began.Add(2*time.Minute).Format(time.RFC3339) || cmp.Equal(first["MetricValues"], second["MetricValues"]) {
		t.Errorf("the second: %v", second)
	}
	// An OnChange report has the reading that changed.
	do("POST", definitions, `{"Id":"c","MetricReportDefinitionType":"OnChange","Metrics":[{"MetricId":"TotalPower"}]}`, 201)
	h.pass(time.Hour)
	if w := call(t, s, "admin", "GET", reports+"/c", ""); w.Code != 404 {
		t.Errorf("before a change: %s", shape("GET", "c", "", w))
	}
	heat(t, h, thermal.SetLoad{Load: new(float64(0))})
	changed, _ := get(t, s, reports+"/c")
	if changed["Timestamp"] != h.Now().Format(time.RFC3339) {
		t.Errorf("on change: %v", changed)
	}
	// A disabled definition makes no report; DELETE removes it with its report.
	do("PATCH", definitions+"/p", `{"MetricReportDefinitionEnabled":false}`, 200)
	last, _ := get(t, s, reports+"/p")
	h.pass(time.Hour)
	if now, _ := get(t, s, reports+"/p"); now["Timestamp"] != last["Timestamp"] {
		t.Errorf("disabled: %v", now)
	}
	do("DELETE", definitions+"/p", "", 204)
	do("GET", reports+"/p", "", 404)
	for _, tt := range []struct {
		body, key string
		status    int
	}{
		{`{"Id":"c","Metrics":[{"MetricId":"TotalPower"}]}`, "ResourceAlreadyExists", 409},
		{`{"MetricReportDefinitionType":"Periodic"}`, "PropertyMissing", 400},
		{`{"MetricReportDefinitionType":"Periodic","Schedule":{"RecurrenceInterval":"PT0.1S"}}`, "PropertyValueOutOfRange", 400},
		{`{"MetricReportDefinitionType":"Periodic","Schedule":{"RecurrenceInterval":"soon"}}`, "PropertyValueFormatError", 400},
		{`{"Metrics":[{"MetricId":"Moon"}]}`, "PropertyValueNotInList", 400},
		{`{"MetricReportDefinitionType":"Hourly"}`, "PropertyValueNotInList", 400},
	} {
		w := call(t, s, "admin", "POST", definitions, tt.body)
		if keys, _ := errorOf(t, w); w.Code != tt.status || keys[0] != tt.key {
			t.Errorf("%s; want %d %s", shape("POST", definitions, tt.body, w), tt.status, tt.key)
		}
	}
}

func TestTelemetryServiceDisabled(t *testing.T) {
	h, s := running(t)
	if w := call(t, s, "admin", "PATCH", resource.TelemetryURI, `{"ServiceEnabled":false}`); w.Code != 200 {
		t.Fatalf("%s", shape("PATCH", resource.TelemetryURI, "", w))
	}
	if all, _ := get(t, s, resource.TelemetryURI+"/MetricReports"); all["Members@odata.count"] != 0.0 {
		t.Errorf("%v reports", all["Members@odata.count"])
	}
	must(t, h.Apply(t.Context(), machine.SetMetricReportDefinition{MetricReportDefinition: machine.MetricReportDefinition{
		ID: "p", Kind: machine.Periodic, Enabled: true, LogToCollection: true, Interval: machine.Duration{Duration: time.Minute},
	}}))
	h.pass(time.Hour)
	if n := len(h.Machine().Telemetry.Reports); n != 0 {
		t.Errorf("%d reports were made", n)
	}
}

func TestSubmitTestMetricReport(t *testing.T) {
	_, s := running(t)
	const uri = resource.TelemetryURI + "/Actions/TelemetryService.SubmitTestMetricReport"
	if w := call(t, s, "admin", "POST", uri, `{"MetricReportName":"try","GeneratedMetricReportValues":[{"MetricId":"TotalPower","MetricValue":"123.5"}]}`); w.Code != 204 {
		t.Errorf("%s", shape("POST", uri, "", w))
	}
	w := call(t, s, "admin", "POST", uri, `{"MetricReportName":"try","GeneratedMetricReportValues":[{"MetricId":"TotalPower","MetricValue":"lots"}]}`)
	if keys, _ := errorOf(t, w); w.Code != 400 || keys[0] != "ActionParameterValueFormatError" {
		t.Errorf("%s", shape("POST", uri, "", w))
	}
}
