package redfish

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

const box = "/redfish/v1/Chassis/1"

// running returns a host whose system runs at stable temperatures.
func running(t testing.TB) (*host, *Service) {
	t.Helper()
	h := newHost(t)
	h.boots = true
	must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
	h.pass(30 * time.Minute)
	return h, newService(t, h)
}

func heat(t testing.TB, h *host, c thermal.Command) {
	t.Helper()
	must(t, h.Apply(t.Context(), machine.Thermal{Command: c}))
}

// Every resource with an excerpt of a sensor shows the sensor's reading.
func TestExcerptsEqualTheirSensors(t *testing.T) {
	h, s := running(t)
	heat(t, h, thermal.SetAmbient{Celsius: new(float64(30))})
	h.pass(20 * time.Second)
	compared := 0
	var look func(uri string, value any)
	look = func(uri string, value any) {
		switch x := value.(type) {
		case []any:
			for _, y := range x {
				look(uri, y)
			}
		case map[string]any:
			if source, ok := x["DataSourceUri"].(string); ok && strings.Contains(source, "/Sensors/") {
				of, _ := get(t, s, source)
				compared++
				for _, name := range []string{"Reading", "SpeedRPM", "LifetimeReading", "SensorResetTime"} {
					if got, there := x[name]; there && got != of[name] {
						t.Errorf("%s: %s of %s is %v, the sensor says %v", uri, name, source, got, of[name])
					}
				}
			}
			for _, y := range x {
				look(uri, y)
			}
		}
	}
	for _, uri := range walk(t, s, nil) {
		body, _ := get(t, s, uri)
		look(uri, body)
	}
	if compared < 20 {
		t.Errorf("only %d excerpts", compared)
	}
}

// Thermal and Power show the same values as ThermalSubsystem and PowerSubsystem.
func TestThermalAndPowerEqualSubsystems(t *testing.T) {
	h, s := running(t)
	heat(t, h, thermal.FailFan{ID: "Fan2", Failed: true})
	h.pass(time.Minute)
	old, _ := get(t, s, box+"/Thermal")
	for i, x := range old["Temperatures"].([]any) {
		id := h.Machine().Profile.Thermal.Sensors[i].ID
		now, _ := get(t, s, box+"/Sensors/"+id)
		if got := pluck(t, x, "ReadingCelsius"); got != now["Reading"] || pluck(t, x, "Name") != now["Name"] {
			t.Errorf("%v reads %v, sensor %s %v", pluck(t, x, "Name"), got, id, now["Reading"])
		}
	}
	for i, x := range old["Fans"].([]any) {
		now, _ := get(t, s, fmt.Sprintf("%s/ThermalSubsystem/Fans/Fan%d", box, i+1))
		if got := pluck(t, x, "Reading"); got != pluck(t, now, "SpeedPercent/SpeedRPM") || pluck(t, x, "Status/Health") != pluck(t, now, "Status/Health") {
			t.Errorf("fan %d: %v RPM, %v; today %v", i+1, got, pluck(t, x, "Status/Health"), now)
		}
	}
	power, _ := get(t, s, box+"/Power")
	metrics, _ := get(t, s, box+"/EnvironmentMetrics")
	if a, b := pluck(t, power, "PowerControl/0/PowerConsumedWatts"), pluck(t, metrics, "PowerWatts/Reading"); a != b {
		t.Errorf("the power is %v W in one resource and %v W in another", a, b)
	}
}

func TestSensorReadingChangesETag(t *testing.T) {
	h, s := running(t)
	cpu := box + "/Sensors/CPU1Temp"
	before, tag := get(t, s, cpu)
	h.pass(3 * time.Second)
	if after, now := get(t, s, cpu); now != tag || after["Reading"] != before["Reading"] || after["ReadingTime"] == before["ReadingTime"] {
		t.Errorf("3 s later, settled: ETag %s, was %s; %v, was %v", now, tag, after, before)
	}
	heat(t, h, thermal.SetLoad{Load: new(float64(1))})
	h.pass(10 * time.Second)
	after, now := get(t, s, cpu)
	if now == tag || after["Reading"].(float64) <= before["Reading"].(float64) {
		t.Errorf("10 s under load: ETag %s, was %s; reads %v, read %v", now, tag, after["Reading"], before["Reading"])
	}
	must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ForceOff}))
	h.pass(time.Minute)
	if off, _ := get(t, s, cpu); off["Reading"] != nil || pluck(t, off, "Status/State") != "UnavailableOffline" {
		t.Errorf("off: %v", off)
	}
	if inlet, _ := get(t, s, box+"/Sensors/InletTemp"); inlet["Reading"] == nil {
		t.Error("the inlet reads nothing while the system is off")
	}
}

func TestHealthRollup(t *testing.T) {
	for _, tt := range []struct {
		name  string
		do    thermal.Command
		uri   string
		path  string
		want  string
		above string // expected HealthRollup of chassis and system
	}{
		{"fan", thermal.FailFan{ID: "Fan1", Failed: true}, box + "/ThermalSubsystem/Fans/Fan1", "Status/Health", "Critical", "Critical"},
		{"fans", thermal.FailFan{ID: "Fan1", Failed: true}, box + "/ThermalSubsystem", "FanRedundancy/0/Status/Health", "Warning", "Critical"},
		{"supply", thermal.SetSupply{ID: "PSU1", Fault: thermal.Failed}, box + "/PowerSubsystem/PowerSupplies/PSU1", "Status/Health", "Critical", "Critical"},
		{"supplies", thermal.SetSupply{ID: "PSU1", Fault: thermal.NoInput}, box + "/PowerSubsystem", "PowerSupplyRedundancy/0/Status/Health", "Warning", "Warning"},
		{"cable", thermal.SetSupply{ID: "PSU1", Fault: thermal.NoInput}, box + "/PowerSubsystem/PowerSupplies/PSU1", "LineInputStatus", "LossOfInput", "Warning"},
		{"warm", thermal.SetAmbient{Celsius: new(float64(39.5))}, box + "/Sensors/InletTemp", "Status/Health", "Warning", "Warning"},
		{"hot", thermal.Force{Sensor: "InletTemp", Reading: new(float64(44))}, box + "/Thermal", "Temperatures/0/Status/Health", "Critical", "Critical"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, s := running(t)
			heat(t, h, tt.do)
			h.pass(10 * time.Minute)
			body, _ := get(t, s, tt.uri)
			if got := pluck(t, body, tt.path); got != tt.want {
				t.Errorf("%s: %s = %v, want %s", tt.uri, tt.path, got, tt.want)
			}
			for _, uri := range []string{box, sys} {
				if body, _ := get(t, s, uri); pluck(t, body, "Status/HealthRollup") != tt.above {
					t.Errorf("%s: %v, want a rollup of %s", uri, body["Status"], tt.above)
				}
			}
		})
	}
}

func TestPowerLimitIsSameInEveryResource(t *testing.T) {
	h, s := running(t)
	heat(t, h, thermal.SetLoad{Load: new(float64(1))})
	free := h.Machine().Thermal.Watts()
	where := map[string]string{
		box + "/EnvironmentMetrics": "PowerLimitWatts/SetPoint", box + "/Controls/PowerLimit": "SetPoint", box + "/Power": "PowerControl/0/PowerLimit/LimitInWatts",
	}
	check := func(what string, want any) {
		t.Helper()
		for uri, path := range where {
			if body, _ := get(t, s, uri); pluck(t, body, path) != want {
				t.Errorf("%s: %s of %s = %v, want %v", what, path, uri, pluck(t, body, path), want)
			}
		}
		if w, ok := want.(float64); ok && math.Abs(h.Machine().Thermal.Watts()-w) > 1 || !ok && h.Machine().Thermal.Watts() != free {
			t.Errorf("%s: the power is %v W, unlimited %v W", what, h.Machine().Thermal.Watts(), free)
		}
	}
	for _, tt := range []struct {
		method, uri, body string
		want              any
	}{
		{"PATCH", box + "/EnvironmentMetrics", `{"PowerLimitWatts":{"SetPoint":400}}`, 400.0},
		{"PATCH", box + "/EnvironmentMetrics", `{"PowerLimitWatts":{"ControlMode":"Disabled"}}`, nil},
		{"PATCH", box + "/Controls/PowerLimit", `{"SetPoint":350.5,"ControlMode":"Automatic"}`, 350.5},
		{"POST", box + "/Controls/PowerLimit/Actions/Control.ResetToDefaults", `{}`, nil},
		{"PATCH", box + "/Power", `{"PowerControl":[{"PowerLimit":{"LimitInWatts":300}}]}`, 300.0},
		{"PATCH", box + "/Power", `{"PowerControl":[{"PowerLimit":{"LimitInWatts":null}}]}`, nil},
		{"PATCH", box + "/Controls/PowerLimit", `{"SetPoint":500}`, 500.0},
		{"PATCH", box + "/Controls/PowerLimit", `{"SetPoint":null}`, nil},
		{"PATCH", box + "/Controls/PowerLimit", `{"SetPoint":500}`, 500.0},
		{"POST", box + "/EnvironmentMetrics/Actions/EnvironmentMetrics.ResetToDefaults", ``, nil},
	} {
		if w := call(t, s, "admin", tt.method, tt.uri, tt.body); w.Code/100 != 2 {
			t.Fatalf("%s", shape(tt.method, tt.uri, tt.body, w))
		}
		check(tt.uri+" "+tt.body, tt.want)
	}
	for _, tt := range []struct{ uri, body, key string }{
		{box + "/EnvironmentMetrics", `{"PowerLimitWatts":{"SetPoint":5}}`, "PropertyValueOutOfRange"},
		{box + "/Controls/PowerLimit", `{"SetPoint":99999}`, "PropertyValueOutOfRange"},
		{box + "/Controls/PowerLimit", `{"ControlMode":"Automatic"}`, "PropertyValueConflict"},
		{box + "/Controls/PowerLimit", `{"ControlMode":"Disabled","SetPoint":400}`, "PropertyValueConflict"},
		{box + "/Controls/PowerLimit", `{"ControlMode":"Manual"}`, "PropertyValueNotInList"},
		{box + "/Power", `{"PowerControl":[{"PowerLimit":{"LimitInWatts":1}}]}`, "PropertyValueOutOfRange"},
	} {
		w := call(t, s, "admin", "PATCH", tt.uri, tt.body)
		if keys, _ := errorOf(t, w); w.Code != 400 || keys[0] != tt.key {
			t.Errorf("%s; want %s", shape("PATCH", tt.uri, tt.body, w), tt.key)
		}
	}
	check("after what was refused", nil)
}
