package redfish

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// pluck returns the value at a path of a body: "Boot/BootOrder".
func pluck(t testing.TB, body any, path string) any {
	t.Helper()
	for name := range strings.SplitSeq(path, "/") {
		switch x := body.(type) {
		case map[string]any:
			body = x[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(x) {
				t.Fatalf("%s: no element %s", path, name)
			}
			body = x[i]
		default:
			return nil
		}
	}
	return body
}

// bodyOf returns a body with a value at a path: "Boot/BootOrder".
func bodyOf(t testing.TB, path string, value any) string {
	t.Helper()
	names := strings.Split(path, "/")
	for _, n := range slices.Backward(names) {
		value = map[string]any{n: value}
	}
	b, err := json.Marshal(value)
	must(t, err)
	return string(b)
}

// patched writes one property and reads it back.
func patched(t testing.TB, s *Service, uri, path string, value, want any) {
	t.Helper()
	body := bodyOf(t, path, value)
	w := call(t, s, "operator", "PATCH", uri, body)
	if w.Code != 200 {
		t.Errorf("%s", shape("PATCH", uri, body, w))
		return
	}
	now, _ := get(t, s, uri)
	if d := cmp.Diff(want, pluck(t, now, path)); d != "" {
		t.Errorf("%s: %s read back after %s (-want +got):\n%s", uri, path, body, d)
	}
}

func TestSystemPatchIsReadBack(t *testing.T) {
	const chassis = "/redfish/v1/Chassis/1"
	for _, tt := range []struct {
		uri, path string
		value     any
		want      any // nil: the value
	}{
		{sys, "AssetTag", "rack 7, \"left\"", nil}, {sys, "AssetTag", nil, ""}, {sys, "HostName", "node-7.example.org", nil},
		{sys, "LocationIndicatorActive", true, nil}, {sys, "LocationIndicatorActive", false, nil}, {sys, "IndicatorLED", "Lit", nil},
		{sys, "PowerRestorePolicy", "AlwaysOff", nil}, {sys, "PowerRestorePolicy", "AlwaysOn", nil},
		{sys, "PowerOnDelaySeconds", 30.0, nil}, {sys, "PowerCycleDelaySeconds", 5.0, nil},
		{sys, "Boot/BootSourceOverrideEnabled", "Once", nil}, {sys, "Boot/BootSourceOverrideTarget", "Usb", nil},
		{sys, "Boot/BootSourceOverrideMode", "Legacy", nil}, {sys, "Boot/UefiTargetBootSourceOverride", "PciRoot(0x0)/Pci(0x1,0x0)", nil},
		{sys, "Boot/BootNext", "Boot0200", nil}, {sys, "Boot/HttpBootUri", "http://images.test/boot.efi", nil}, {sys, "Boot/HttpBootUri", "", map[string]any(nil)},
		{sys, "Boot/BootOrder", []any{"Boot0200", "Boot0100", "Boot0001"}, nil},
		{sys, "Boot/AliasBootOrder", []any{"UefiHttp", "Hdd"}, nil},
		{sys, "Boot/AutomaticRetryConfig", "RetryAttempts", nil}, {sys, "Boot/AutomaticRetryAttempts", 3.0, nil},
		{sys, "HostWatchdogTimer/FunctionEnabled", true, nil}, {sys, "HostWatchdogTimer/TimeoutAction", "PowerCycle", nil},
		{sys, "HostWatchdogTimer/WarningAction", "DiagnosticInterrupt", nil},
		{sys, "SerialConsole/IPMI/ServiceEnabled", false, nil}, {sys, "SerialConsole/IPMI/ServiceEnabled", true, nil},
		{sys + "/SecureBoot", "SecureBootEnable", true, nil},
		{sys + "/BootOptions/Boot0100", "BootOptionEnabled", false, nil},
		{chassis, "AssetTag", "box 9", nil}, {chassis, "LocationIndicatorActive", true, nil}, {chassis, "IndicatorLED", "Blinking", nil},
		{chassis, "PhysicalSecurity/IntrusionSensorReArm", "Automatic", nil}, {chassis, "PhysicalSecurity/IntrusionSensor", "Normal", nil},
	} {
		want := tt.want
		switch {
		case want == nil:
			want = tt.value
		case tt.path == "Boot/HttpBootUri":
			want = nil
		}
		patched(t, newService(t, newHost(t)), tt.uri, tt.path, tt.value, want)
	}
}

func TestIntrusionSensorRearm(t *testing.T) {
	const chassis = "/redfish/v1/Chassis/1"
	h := newHost(t)
	s := newService(t, h)
	for _, tt := range []struct {
		open   bool
		status int // status of the PATCH that sets Normal
		want   string
	}{{true, http.StatusConflict, "HardwareIntrusion"}, {false, http.StatusOK, "Normal"}} {
		must(t, h.Apply(t.Context(), machine.OpenCover{Open: tt.open}))
		if got := call(t, s, "admin", "GET", chassis, "").Body.String(); !strings.Contains(got, `"IntrusionSensor":"HardwareIntrusion"`) {
			t.Errorf("open %t: %s", tt.open, got)
		}
		w := call(t, s, "admin", "PATCH", chassis, `{"PhysicalSecurity":{"IntrusionSensor":"Normal"}}`)
		if w.Code != tt.status {
			t.Errorf("open %t: %s", tt.open, shape("PATCH", chassis, "Normal", w))
		}
		if got := call(t, s, "admin", "GET", chassis, "").Body.String(); !strings.Contains(got, `"IntrusionSensor":"`+tt.want+`"`) {
			t.Errorf("open %t, set to Normal: %s", tt.open, got)
		}
	}
}

// System, chassis and deprecated properties show the same indicator.
func TestIndicatorIsSameInEveryResource(t *testing.T) {
	s := newService(t, newHost(t))
	for _, tt := range []struct {
		body, led string
		active    bool
	}{
		{`{"LocationIndicatorActive":true}`, "Blinking", true}, {`{"IndicatorLED":"Lit"}`, "Lit", true},
		{`{"LocationIndicatorActive":true}`, "Lit", true}, {`{"IndicatorLED":"Off"}`, "Off", false},
	} {
		if w := call(t, s, "operator", "PATCH", "/redfish/v1/Chassis/1", tt.body); w.Code != 200 {
			t.Fatalf("%s", shape("PATCH", "Chassis", tt.body, w))
		}
		got, _ := get(t, s, sys)
		if got["IndicatorLED"] != tt.led || got["LocationIndicatorActive"] != tt.active {
			t.Errorf("after %s: %v, %v; want %s, %t", tt.body, got["IndicatorLED"], got["LocationIndicatorActive"], tt.led, tt.active)
		}
	}
}

func TestInvalidBootSettingsAreRejected(t *testing.T) {
	for _, tt := range []struct{ body, key, related string }{
		{`{"Boot":{"BootOrder":["Boot0100","Boot9999"]}}`, "PropertyValueNotInList", "#/Boot/BootOrder/1"},
		{`{"Boot":{"BootOrder":["Boot0100","Boot0100"]}}`, "PropertyValueError", "#/Boot/BootOrder"},
		{`{"Boot":{"BootOrder":"Boot0100"}}`, "PropertyValueTypeError", "#/Boot/BootOrder"},
		{`{"Boot":{"AliasBootOrder":["Floppy"]}}`, "PropertyValueNotInList", "#/Boot/AliasBootOrder/0"},
		{`{"Boot":{"BootOrder":["Boot0100"],"AliasBootOrder":["Hdd"]}}`, "PropertyValueConflict", "#/Boot/BootOrder"},
		{`{"Boot":{"BootNext":"Disk.0"}}`, "PropertyValueNotInList", "#/Boot/BootNext"},
		{`{"Boot":{"HttpBootUri":"ftp://images.test/x"}}`, "PropertyValueFormatError", "#/Boot/HttpBootUri"},
		{`{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"UefiHttp","BootSourceOverrideMode":"Legacy"}}`, "PropertyValueConflict", "#/Boot/BootSourceOverrideTarget"},
		{`{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"UefiTarget"}}`, "PropertyValueConflict", "#/Boot/BootSourceOverrideTarget"},
		{`{"Boot":{"BootSourceOverrideEnabled":"Continuous","BootSourceOverrideTarget":"UefiBootNext","BootNext":"Boot0100"}}`, "PropertyValueConflict", "#/Boot/BootSourceOverrideEnabled"},
		{`{"Boot":{"AutomaticRetryAttempts":101}}`, "PropertyValueOutOfRange", "#/Boot/AutomaticRetryAttempts"},
		{`{"PowerOnDelaySeconds":3601}`, "PropertyValueOutOfRange", "#/PowerOnDelaySeconds"},
		{`{"PowerRestorePolicy":"Never"}`, "PropertyValueNotInList", "#/PowerRestorePolicy"},
		{`{"HostName":"-x"}`, "PropertyValueFormatError", "#/HostName"},
		{`{"AssetTag":"` + strings.Repeat("x", 256) + `"}`, "PropertyValueFormatError", "#/AssetTag"},
		{`{"IndicatorLED":"Unknown"}`, "PropertyValueNotInList", "#/IndicatorLED"},
	} {
		s := newService(t, newHost(t))
		_, before := get(t, s, sys)
		w := call(t, s, "operator", "PATCH", sys, tt.body)
		keys, infos := errorOf(t, w)
		if _, after := get(t, s, sys); w.Code != 400 || keys[0] != tt.key || infos[0].Related[0] != tt.related || after != before {
			t.Errorf("%s; want %s about %s, and no change", shape("PATCH", sys, tt.body, w), tt.key, tt.related)
		}
	}
}

func TestEmptyBootOrderRestoresDefault(t *testing.T) {
	s := newService(t, newHost(t))
	system, _ := get(t, s, sys)
	order := pluck(t, system, "Boot/BootOrder")
	patched(t, s, sys, "Boot/BootOrder", []any{"Boot0300", "Boot0001"}, []any{"Boot0300", "Boot0001"})
	if w := call(t, s, "operator", "POST", sys+"/Actions/ComputerSystem.SetDefaultBootOrder", ""); w.Code != 204 {
		t.Fatalf("%s", shape("POST", "SetDefaultBootOrder", "", w))
	}
	system, _ = get(t, s, sys)
	if d := cmp.Diff(order, pluck(t, system, "Boot/BootOrder")); d != "" {
		t.Errorf("boot order (-want +got):\n%s", d)
	}
}

func TestBootOptionsFollowHttpBootUri(t *testing.T) {
	s := newService(t, newHost(t))
	count := func() float64 {
		all, _ := get(t, s, sys+"/BootOptions")
		return all["Members@odata.count"].(float64)
	}
	before := count()
	if w := call(t, s, "admin", "GET", sys+"/BootOptions/Boot0003", ""); w.Code != 404 {
		t.Errorf("%s", shape("GET", "Boot0003", "", w))
	}
	patched(t, s, sys, "Boot/HttpBootUri", "https://images.test/x.efi", "https://images.test/x.efi")
	got, _ := get(t, s, sys+"/BootOptions/Boot0003")
	if path, _ := got["UefiDevicePath"].(string); got["Alias"] != "UefiHttp" || !strings.HasSuffix(path, "/Uri(https://images.test/x.efi)") {
		t.Errorf("the option of the URI is %v", got)
	}
	if now := count(); now != before+1 {
		t.Errorf("%v options, there were %v", now, before)
	}
}

// Every allowable reset type works in the power state that it applies to.
func TestEveryAllowableResetTypeWorks(t *testing.T) {
	type state func(t *testing.T, h *host)
	off := func(*testing.T, *host) {}
	running := func(t *testing.T, h *host) {
		must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
		h.boots = true
		h.pass(10 * time.Minute)
	}
	paused := func(t *testing.T, h *host) {
		running(t, h)
		must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.Pause}))
	}
	rows := map[machine.ResetKind]struct {
		from  state
		power machine.Power // after the reset
		boots uint64
	}{
		machine.ResetOn: {off, machine.PowerOn, 1}, machine.ForceOn: {off, machine.PowerOn, 1}, machine.PushPowerButton: {off, machine.PowerOn, 1},
		machine.ForceOff: {running, machine.PowerOff, 1}, machine.GracefulShutdown: {running, machine.PowerOff, 1},
		machine.GracefulRestart: {running, machine.PowerOn, 2}, machine.ForceRestart: {running, machine.PowerOn, 2},
		machine.PowerCycle: {running, machine.PowerOn, 2}, machine.Nmi: {running, machine.PowerOn, 2}, // the system dumps its memory and restarts
		machine.Suspend: {running, machine.PowerOff, 1}, machine.Pause: {running, machine.PowerPaused, 1}, machine.Resume: {paused, machine.PowerOn, 1},
	}
	for _, kind := range machine.ResetKinds {
		t.Run(string(kind), func(t *testing.T) {
			row, ok := rows[kind]
			if !ok {
				t.Fatal("no row for this reset")
			}
			h := newHost(t)
			offered := slices.Contains(h.d.ResetTypes, kind)
			h.d.ResetTypes = machine.ResetKinds
			s := newService(t, h)
			row.from(t, h)
			body := fmt.Sprintf(`{"ResetType":%q}`, kind)
			if w := call(t, s, "operator", "POST", sys+"/Actions/ComputerSystem.Reset", body); w.Code != 204 {
				t.Fatalf("%s", shape("POST", "Reset", body, w))
			}
			h.boots = true
			h.pass(20 * time.Minute)
			if v := h.Machine(); v.Power != row.power || v.Boots != row.boots {
				t.Errorf("in the end %s after %d boots, want %s after %d", v.Power, v.Boots, row.power, row.boots)
			}
			if want := kind != machine.Suspend && kind != machine.Pause && kind != machine.Resume; offered != want {
				t.Errorf("the generic dialect offers it: %t, want %t", offered, want)
			}
		})
	}
}

func TestBootProgress(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	call(t, s, "operator", "POST", sys+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`)
	h.pass(2*time.Second + 20*time.Second) // during memory initialization
	got, etag := get(t, s, sys)
	want := map[string]any{"LastState": "MemoryInitializationStarted", "LastStateTime": "2026-03-01T12:00:11Z"}
	if d := cmp.Diff(want, got["BootProgress"]); d != "" {
		t.Errorf("BootProgress (-want +got):\n%s", d)
	}
	h.pass(time.Second)
	if _, now := get(t, s, sys); now != etag {
		t.Error("a second within a step has changed the ETag")
	}
	if got["LastResetTime"] != "2026-03-01T12:00:02Z" || got["LastResetCause"] != "ManagementCommand" {
		t.Errorf("last reset: %v, %v", got["LastResetTime"], got["LastResetCause"])
	}
	call(t, s, "operator", "PATCH", sys, `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"UefiShell"}}`)
	h.pass(10 * time.Minute)
	got, _ = get(t, s, sys)
	if d := cmp.Diff("UefiShell", pluck(t, got, "BootProgress/OemLastState")); d != "" {
		t.Errorf("in the shell (-want +got):\n%s", d)
	}
}
