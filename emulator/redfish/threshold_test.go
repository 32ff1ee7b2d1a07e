package redfish

import (
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// A changed threshold is the same in each resource that shows it, and readings are
// compared with it.
func TestThresholdPatch(t *testing.T) {
	h, s := running(t)
	const inlet = box + "/Sensors/InletTemp"
	w := call(t, s, "admin", "PATCH", inlet, `{"Thresholds":{"UpperCaution":{"Reading":30},"UpperCritical":{"Reading":33.5}}}`)
	if w.Code != 200 {
		t.Fatal(shape("PATCH", inlet, "", w))
	}
	if l := h.Machine().Thermal.Thresholds("InletTemp"); *l.Caution != 30 || *l.Critical != 33.5 || *l.LowCaution != 5 {
		t.Errorf("thresholds are %+v", l)
	}
	of := func(uri, name, at string) any {
		body, _ := get(t, s, uri)
		return body[name].(map[string]any)[at].(map[string]any)["Reading"]
	}
	if got := of(inlet, "Thresholds", "UpperCaution"); got != 30.0 {
		t.Errorf("the sensor shows %v", got)
	}
	if got := of("/redfish/v1/TelemetryService/Triggers/InletTemp", "NumericThresholds", "UpperWarning"); got != 30.0 {
		t.Errorf("the trigger shows %v", got)
	}
	old, _ := get(t, s, box+"/Thermal")
	if got := old["Temperatures"].([]any)[0].(map[string]any)["UpperThresholdNonCritical"]; got != 30.0 {
		t.Errorf("Thermal shows %v", got)
	}
	heat(t, h, thermal.Force{Sensor: "InletTemp", Reading: new(31.0)})
	body, _ := get(t, s, inlet)
	if got := body["Status"].(map[string]any)["Health"]; got != "Warning" {
		t.Errorf("beyond it the sensor is %v", got)
	}
}

func TestFanThresholdsAreInPercent(t *testing.T) {
	h, s := running(t)
	w := call(t, s, "admin", "PATCH", box+"/Sensors/Fan1", `{"Thresholds":{"LowerCritical":{"Reading":15}}}`)
	if l := h.Machine().Thermal.Thresholds("Fan1"); w.Code != 200 || *l.LowCritical != 17400*0.15 {
		t.Errorf("%s: %v", shape("PATCH", "Fan1", "", w), *l.LowCritical)
	}
}

func TestSensorDisabled(t *testing.T) {
	_, s := running(t)
	const inlet = box + "/Sensors/InletTemp"
	for _, on := range []bool{false, true} {
		body := `{"Enabled":false}`
		if on {
			body = `{"Enabled":true}`
		}
		if w := call(t, s, "admin", "PATCH", inlet, body); w.Code != 200 {
			t.Fatal(shape("PATCH", inlet, body, w))
		}
		got, _ := get(t, s, inlet)
		if got["Enabled"] != on || (got["Reading"] != nil) != on || (got["Status"].(map[string]any)["State"] == "Enabled") != on {
			t.Errorf("enabled %v: %v", on, got)
		}
	}
}

func TestPatchOfAbsentThresholdIsRejected(t *testing.T) {
	_, s := running(t)
	for _, body := range []string{`{"Thresholds":{"UpperFatal":{"Reading":60}}}`, `{"Thresholds":{"UpperCaution":{"Reading":null}}}`, `{"Thresholds":{"UpperCaution":{"Activation":"Decreasing"}}}`} {
		if w := call(t, s, "admin", "PATCH", box+"/Sensors/InletTemp", body); w.Code != 400 {
			t.Error(shape("PATCH", "InletTemp", body, w))
		}
	}
}
