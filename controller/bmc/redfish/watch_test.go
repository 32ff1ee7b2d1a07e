package redfish_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// watched adds light, log and chassis to a system.
func (s *server) watched(m map[string]any) {
	if s.bare {
		return
	}
	switch {
	case s.led && s.lit:
		m["IndicatorLED"] = "Blinking"
	case s.led:
		m["IndicatorLED"] = "Lit"
	default:
		m["LocationIndicatorActive"] = s.lit
	}
	if s.logAt == "Systems/1" {
		m["LogServices"] = linkTo(systemPath + "/LogServices")
	}
	m["Links"].(map[string]any)["Chassis"] = []any{linkTo("/redfish/v1/Chassis/1")}
}

// setSystem writes the light, or Boot.
func (s *server) setSystem(body map[string]any) []string {
	if on, ok := body["LocationIndicatorActive"].(bool); ok && !s.led && !s.bare && len(body) == 1 {
		s.lit = on
		return nil
	}
	if to, ok := body["IndicatorLED"].(string); ok && s.led && len(body) == 1 {
		if to != "Lit" && to != "Blinking" { // the values of iDRACs
			return []string{"PropertyValueNotInList", to, "IndicatorLED"}
		}
		s.lit = to == "Blinking"
		return nil
	}
	return s.setBoot(body)
}

// log adds an entry.
func (s *server) log(severity, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logged++
	id := fmt.Sprint(s.logged)
	s.entries = append(s.entries, map[string]any{
		"@odata.id": "/redfish/v1/" + s.logAt + "/LogServices/SEL/Entries/" + id, "@odata.type": "#LogEntry.v1_16_0.LogEntry",
		"Id": id, "Created": time.Date(2031, 1, 2, 3, 4, s.logged/2, 0, time.UTC).Format(time.RFC3339),
		"Severity": severity, "SensorType": "Fan", "Message": text,
	})
}

func (s *server) watchRoutes(routes map[string]http.HandlerFunc) {
	if s.bare {
		return
	}
	logs := "/redfish/v1/" + s.logAt + "/LogServices"
	routes["GET "+logs] = s.show(collection(logs, "Audit", "SEL"))
	routes["GET "+logs+"/SEL"] = s.show(func() map[string]any {
		return map[string]any{
			"@odata.id": logs + "/SEL", "Entries": linkTo(logs + "/SEL/Entries"),
			"Actions": map[string]any{"#LogService.ClearLog": map[string]any{"target": logs + "/SEL/Actions/LogService.ClearLog"}},
		}
	})
	routes["GET "+logs+"/SEL/Entries"] = s.show(func() map[string]any {
		latest := slices.Clone(s.entries) // newest first, as in iDRACs
		slices.Reverse(latest)
		return map[string]any{"@odata.id": logs + "/SEL/Entries", "Members": latest}
	})
	routes["POST "+logs+"/SEL/Actions/LogService.ClearLog"] = func(w http.ResponseWriter, _ *http.Request) {
		s.entries = nil
		w.WriteHeader(http.StatusNoContent)
	}
	const chassis = "/redfish/v1/Chassis/1"
	routes["GET "+chassis] = s.show(func() map[string]any {
		if s.oldSensors {
			return map[string]any{"@odata.id": chassis, "Thermal": linkTo(chassis + "/Thermal"), "Power": linkTo(chassis + "/Power")}
		}
		return map[string]any{"@odata.id": chassis, "Sensors": linkTo(chassis + "/Sensors")}
	})
	ok := map[string]any{"State": "Enabled", "Health": "OK"}
	routes["GET "+chassis+"/Sensors"] = s.show(collection(chassis+"/Sensors", "inlet", "fan1", "door"))
	for id, body := range map[string]map[string]any{
		"inlet": {"Name": "Inlet", "Reading": 21.5, "ReadingUnits": "Cel", "Status": ok},
		"fan1":  {"Name": "Fan 1", "Reading": 4200, "ReadingUnits": "{rev}/min", "Status": map[string]any{"State": "Absent"}},
		"door":  {"Name": "Door", "ReadingType": "Presence", "Status": ok},
	} {
		routes["GET "+chassis+"/Sensors/"+id] = s.show(func() map[string]any { return body })
	}
	routes["GET "+chassis+"/Thermal"] = s.show(func() map[string]any {
		return map[string]any{
			"Temperatures": []any{map[string]any{"Name": "Inlet", "ReadingCelsius": 21.5, "Status": ok}},
			"Fans":         []any{map[string]any{"FanName": "Fan 1", "Reading": nil, "ReadingUnits": "RPM", "Status": map[string]any{"State": "Absent"}}},
		}
	})
	routes["GET "+chassis+"/Power"] = s.show(func() map[string]any {
		return map[string]any{
			"Voltages":     []any{map[string]any{"Name": "12 V", "ReadingVolts": 12.1, "Status": map[string]any{"State": "Enabled", "Health": "Warning"}}},
			"PowerControl": []any{map[string]any{"Name": "Server", "PowerConsumedWatts": 210}},
		}
	})
}

func TestLogIsSortedByTime(t *testing.T) {
	s := newServer(t)
	for _, text := range []string{"first", "second", "third", "fourth"} {
		s.log("OK", text)
	}
	got, err := s.open().Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range got {
		texts = append(texts, e.Text)
	}
	if diff := cmp.Diff([]string{"first", "second", "third", "fourth"}, texts); diff != "" {
		t.Errorf("Log() (-want +got):\n%s", diff)
	}
	want := bmc.Entry{ID: "1", Time: time.Date(2031, 1, 2, 3, 4, 0, 0, time.UTC), Severity: "OK", Sensor: "Fan", Text: "first"}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("Log()[0] (-want +got):\n%s", diff)
	}
	if n := s.count("GET " + systemPath + "/LogServices/SEL/Entries/1"); n != 0 {
		t.Errorf("an entry that the collection shows is read %d times more", n)
	}
}

func TestSensors(t *testing.T) {
	for _, tt := range []struct {
		name string
		old  bool
		want []bmc.Sensor
	}{
		{"resources", false, []bmc.Sensor{
			{Name: "Inlet", Reading: 21.5, Unit: "Cel", Health: "OK", Enabled: true}, {Name: "Fan 1", Unit: "RPM"},
		}},
		{"Thermal and Power", true, []bmc.Sensor{
			{Name: "Inlet", Reading: 21.5, Unit: "Cel", Health: "OK", Enabled: true}, {Name: "Fan 1", Unit: "RPM"},
			{Name: "12 V", Reading: 12.1, Unit: "V", Health: "Warning", Enabled: true},
			{Name: "Server", Reading: 210, Unit: "W", Enabled: true},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := newServer(t, func(s *server) { s.oldSensors = tt.old }).open().Sensors(t.Context())
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("Sensors() error = %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
