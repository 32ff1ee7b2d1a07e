package record_test

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/fixtures"
	"github.com/metalab-dev/metalab/scenarios/capture"
	"github.com/metalab-dev/metalab/scenarios/record"
)

// serve starts a lab with one server of a profile. Each test has a seed of its
// own, so that no two servers are alike.
func serve(t *testing.T, profiles fs.FS, profile string) *racktest.Rack {
	t.Helper()
	r := rackfile.Default(1)
	r.Hosts[0].Profile, r.Seed = profile, uint64(len(profile)*1000+len(t.Name())) // no two are alike
	return racktest.Start(t, rack.Config{Rack: &r, Profiles: profiles})
}

func take(t *testing.T, l *racktest.Rack) *capture.Capture {
	t.Helper()
	h := l.First()
	user, password := l.Credentials(h)
	c, err := capture.Take(t.Context(), capture.Config{URL: h.URL(), Username: user, Password: password, CAs: l.CAs(), Parallel: 4})
	if err != nil {
		t.Fatal(err)
	}
	if c.Incomplete != "" || len(c.Refused) > 0 {
		t.Fatalf("cut: %q, refused: %v", c.Incomplete, c.Refused)
	}
	return c
}

// TestRecordedServerIsServedUnchanged shows statement E19.
func TestRecordedServerIsServedUnchanged(t *testing.T) {
	for _, profile := range []string{"generic", "raid", "openbmc-mtjade", "huawei-2288h-v5", "fujitsu-rx2540-m7"} {
		t.Run(profile, func(t *testing.T) {
			first := take(t, serve(t, nil, profile))
			made, err := record.Make(t.Context(), first, "again")
			if err != nil {
				t.Fatal(err)
			}
			of, _, err := rack.ReadProfile(nil, profile)
			if err != nil {
				t.Fatal(err)
			}
			if made.Base != of.Dialect || len(made.Notes) > 0 {
				t.Errorf("it fits %s, want %s; notes: %q", made.Base, of.Dialect, made.Notes)
			}
			if made.Dialect != nil && of.Dialect == "generic" {
				t.Errorf("a BMC of the generic dialect differs from it:\n%s", made.Dialect)
			}
			if d := string(made.Dialect); strings.Count(d, "\n") > 60 {
				t.Errorf("the dialect differs much from %s:\n%s", of.Dialect, d)
			}
			second := take(t, serve(t, made.Files(), "again"))
			again, err := record.Make(t.Context(), second, "again")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(made.Profile), string(again.Profile)); d != "" {
				t.Errorf("profile (-first +second):\n%s", d)
			}
			if d := cmp.Diff(string(made.Registry), string(again.Registry)); d != "" {
				t.Errorf("registry (-first +second):\n%s", d)
			}
			if d := cmp.Diff(string(made.Dialect), string(again.Dialect)); d != "" {
				t.Errorf("dialect (-first +second):\n%s", d)
			}
			sameTree(t, first, second)
		})
	}
}

// sameTree compares two scrubbed captures.
func sameTree(t *testing.T, a, b *capture.Capture) {
	t.Helper()
	if d := cmp.Diff(a.OfType(""), b.OfType("")); d != "" {
		t.Errorf("addresses (-first +second):\n%s", d)
	}
	passing := cmp.FilterPath(func(p cmp.Path) bool {
		for _, s := range p {
			i, ok := s.(cmp.MapIndex)
			if !ok {
				continue
			}
			switch i.Key().String() {
			case "@odata.etag", "ReadingTime", "DateTime", "Reading", "LifetimeReading", "SpeedRPM", "ReadingCelsius", "ReadingVolts", "PowerWatts", "EnergykWh",
				"PowerConsumedWatts", "PowerInputWatts", "PowerOutputWatts", "LastPowerOutputWatts", "LineInputVoltage", "Fingerprint", "ValidNotBefore", "ValidNotAfter",
				"LastResetTime", "TemperatureCelsius", "InletTemp", "TemperatureSummaryCelsius", "InputVoltage", "InputPowerWatts", "OutputPowerWatts", "PowerMetrics",
				"SerialNumber", "UUID", "DurableName", "UefiDevicePath", "Issuer", "Subject", "Measurement", "Port", "PredictedMediaLifeLeftPercent":
				return true
			}
		}
		return false
	}, cmp.Ignore())
	for at, body := range a.Resources {
		if kind := capture.Type(body); kind == "MetricReport" || strings.HasSuffix(kind, "Metrics") {
			continue
		}
		if d := cmp.Diff(body, b.Resources[at], passing); d != "" {
			t.Errorf("%s (-first +second):\n%s", at, d)
		}
	}
}

// TestRecordedServerCarriesOutRequests shows statement E19.
func TestRecordedServerCarriesOutRequests(t *testing.T) {
	made, err := record.Make(t.Context(), take(t, serve(t, nil, "raid")), "again")
	if err != nil {
		t.Fatal(err)
	}
	l := serve(t, made.Files(), "again")
	h := l.First()
	user, password := l.Credentials(h)
	send := func(method, path, body string, want int) {
		q, err := http.NewRequestWithContext(t.Context(), method, h.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.SetBasicAuth(user, password)
		q.Header.Set("Content-Type", "application/json")
		p, err := l.Client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Body.Close()
		if p.StatusCode != want {
			t.Errorf("%s %s = %s, want %d", method, path, p.Status, want)
		}
	}
	send("POST", "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", `{"ResetType": "On"}`, http.StatusNoContent)
	l.Advance(3 * time.Minute)
	send("PATCH", "/redfish/v1/Systems/1/Bios/Settings", `{"Attributes": {"ProcHyperThreading": "Disabled"}}`, http.StatusOK)
	send("POST", "/redfish/v1/Systems/1/Storage/1/Volumes",
		`{"RAIDType": "RAID1", "Links": {"Drives": [{"@odata.id": "/redfish/v1/Systems/1/Storage/1/Drives/Disk.0"}, {"@odata.id": "/redfish/v1/Systems/1/Storage/1/Drives/Disk.1"}]}}`, http.StatusCreated)
}

// aliens is a dialect with other URIs, names and behavior than the generic
// one.
const aliens = `name: aliens
base: generic
vendor: Aliens
product: Alien BMC
systemID: System.Embedded.1
managerID: iBMC.1
bmc:
  slots: [{id: CD-1, name: Remote CD, types: [CD]}]
  sessionTimeout: 10m
resetTypes: [On, ForceOff, GracefulShutdown, ForceRestart]
bootTargets: [None, Pxe, Cd, Hdd]
protocol: {etags: {format: weak}, queries: {only: false, unknown: ignored}}
presentation:
  uriMappings:
  - {from: "/redfish/v1/Systems/{system}/VirtualMedia", to: "/redfish/v1/Managers/{manager}/VirtualMedia"}
  - {from: "/redfish/v1/Systems/{system}/Storage/{controller}/Drives/Disk.{n}", to: "/redfish/v1/Chassis/{chassis}/Enclosures/{controller}/Bay-{n}"}
  - {from: "/redfish/v1/Systems/{system}/Processors/CPU{n}", to: "/redfish/v1/Systems/{system}/Processors/CPU.Socket.{n}"}
  transforms:
  - {resourceType: ComputerSystem, remove: [HostWatchdogTimer], set: [{path: Oem/Aliens/Mood, value: calm}, {path: Oem/Aliens/Thing, value: {"@odata.id": /redfish/v1/Aliens/Thing}}, {path: "@odata.type", value: "#ComputerSystem.v1_5_0.ComputerSystem"}]}
  - {resourceType: Drive, set: [{path: Oem/Aliens/Slot, value: 4}]}
  hidden: [/redfish/v1/TelemetryService, /redfish/v1/JobService]
  errors: {singleObject: true}
oem:
  resources: [{uri: /redfish/v1/Aliens/Thing, type: AlienThing.v1_0_0.AlienThing, name: Thing, set: [{path: Count, value: 3}, {path: Of, value: {"@odata.id": "/redfish/v1/Chassis/{chassis}"}}]}]
`

func TestVendorDifferencesAreRecordedInTheDialect(t *testing.T) {
	first := take(t, serve(t, profiles(t), "raid"))
	made, err := record.Make(t.Context(), first, "again")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"base: generic", "vendor: Aliens", "systemID: System.Embedded.1", "sessionTimeout: 10m0s", "resetTypes: [\"On\", ForceOff, GracefulShutdown, ForceRestart]",
		"id: CD-1", "format: weak", "singleObject: true", "/redfish/v1/TelemetryService", "Mood", "uri: /redfish/v1/Aliens/Thing", "/redfish/v1/Managers/iBMC.1/VirtualMedia", "Enclosures/1/Bay-0",
	} {
		if !strings.Contains(string(made.Dialect), want) {
			t.Errorf("the dialect does not say %s", want)
		}
	}
	second := take(t, serve(t, made.Files(), "again"))
	again, err := record.Make(t.Context(), second, "again")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(made.Dialect), string(again.Dialect)); d != "" {
		t.Errorf("dialect (-first +second):\n%s", d)
	}
	if d := cmp.Diff(string(made.Profile), string(again.Profile)); d != "" {
		t.Errorf("profile (-first +second):\n%s", d)
	}
	sameTree(t, first, second)
	if first.Habits.ETag != second.Habits.ETag || first.Habits.Error != second.Habits.Error {
		t.Errorf("habits are %+v, then %+v", first.Habits, second.Habits)
	}
}

// profiles returns the raid profile with the dialect aliens.
func profiles(t *testing.T) fs.FS {
	b, err := fs.ReadFile(fixtures.Profiles, "profiles/raid.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{
		"profiles/raid.yaml":   {Data: []byte(strings.Replace(string(b), "dialect: generic", "dialect: aliens", 1))},
		"dialects/aliens.yaml": {Data: []byte(aliens)},
	}
}

// thin is a capture of a BMC with few resources, which contain values that
// Scrub must remove.
func thin(t *testing.T) *capture.Capture {
	t.Helper()
	var all map[string]map[string]any
	const text = `{
	"/redfish/v1": {"@odata.type": "#ServiceRoot.v1_2_0.ServiceRoot", "RedfishVersion": "1.2.0", "UUID": "4c4c4544-004b-5110-8032-b7c04f5a3933",
		"Systems": {"@odata.id": "/redfish/v1/Systems"}, "Managers": {"@odata.id": "/redfish/v1/Managers"}, "Chassis": {"@odata.id": "/redfish/v1/Chassis"}},
	"/redfish/v1/Systems": {"@odata.type": "#ComputerSystemCollection.ComputerSystemCollection", "Members": [{"@odata.id": "/redfish/v1/Systems/SGH123X9QW"}]},
	"/redfish/v1/Systems/SGH123X9QW": {"@odata.type": "#ComputerSystem.v1_1_0.ComputerSystem", "Id": "SGH123X9QW", "Name": "System", "Manufacturer": "ACME", "Model": "Thin 1",
		"SerialNumber": "SGH123X9QW", "HostName": "db-prod-17", "PowerState": "On", "ProcessorSummary": {"Count": 2, "Model": "Xeon"}, "MemorySummary": {"TotalSystemMemoryGiB": 64},
		"Actions": {"#ComputerSystem.Reset": {"target": "/redfish/v1/Systems/SGH123X9QW/Actions/ComputerSystem.Reset", "ResetType@Redfish.AllowableValues": ["On", "ForceOff"]}},
		"Bios": {"@odata.id": "/redfish/v1/Systems/SGH123X9QW/Bios"}, "Oem": {"ACME": {"LicenseKey": "ABCD-1234-EFGH-5678"}}},
	"/redfish/v1/Systems/SGH123X9QW/Bios": {"@odata.type": "#Bios.v1_0_0.Bios", "Id": "Bios", "Name": "BIOS",
		"Attributes": {"BootMode": "Uefi", "Cores": 4, "Quiet": true, "ServerSerial": "SGH123X9QW", "odd name": "x"}},
	"/redfish/v1/Managers": {"@odata.type": "#ManagerCollection.ManagerCollection", "Members": [{"@odata.id": "/redfish/v1/Managers/bmc"}]},
	"/redfish/v1/Managers/bmc": {"@odata.type": "#Manager.v1_0_0.Manager", "Id": "bmc", "Name": "BMC", "FirmwareVersion": "3.10", "Oem": {"@odata.type": "#Odd.Odd"}},
	"/redfish/v1/Chassis": {"@odata.type": "#ChassisCollection.ChassisCollection", "Members": [{"@odata.id": "/redfish/v1/Chassis/Self"}]},
	"/redfish/v1/Chassis/Self": {"@odata.type": "#Chassis.v1_0_0.Chassis", "Id": "Self", "Name": "Chassis", "Thermal": {"@odata.id": "/redfish/v1/Chassis/Self/Thermal"}},
	"/redfish/v1/Chassis/Self/Thermal": {"@odata.type": "#Thermal.v1_0_0.Thermal", "Id": "Thermal", "Name": "Thermal",
		"Temperatures": [{"Name": "CPU 1 Temp", "PhysicalContext": "CPU", "UpperThresholdCritical": 95}, {"Name": "CPU 2 Temp", "PhysicalContext": "CPU", "UpperThresholdCritical": 95}, {"Name": "Ambient", "PhysicalContext": "Front"}],
		"Fans": [{"Name": "Fan A"}, {"Name": "Fan B"}]}
	}`
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	for at, body := range all {
		body["@odata.id"] = at
	}
	return &capture.Capture{Resources: all}
}

func TestRecordingWithFewResourcesIsServed(t *testing.T) {
	made, err := record.Make(t.Context(), thin(t), "")
	if err != nil {
		t.Fatal(err)
	}
	if made.Name != "acme-thin-1" {
		t.Errorf("Name = %q", made.Name)
	}
	all := string(made.Profile) + string(made.Registry) + string(made.Dialect)
	for _, secret := range []string{"SGH123X9QW", "db-prod-17", "4c4c4544", "ABCD-1234"} {
		if strings.Contains(all, secret) {
			t.Errorf("%s has left", secret)
		}
	}
	for _, want := range []string{"sockets: 2", "memoryMiB: 65536", "CPU{n}Temp", "critical: 95.0", "name: BootMode", "resetTypes: [\"On\", ForceOff]"} {
		if !strings.Contains(all, want) {
			t.Errorf("the model does not say %s:\n%s", want, all)
		}
	}
	c := take(t, serve(t, made.Files(), made.Name))
	for at := range thin(t).Resources {
		at = strings.Replace(at, "SGH123X9QW", "ANON000001", 1)
		if c.Resources[at] == nil {
			t.Errorf("%s is not served", at)
		}
	}
	for at := range c.Resources {
		if strings.Contains(at, "Storage") || strings.Contains(at, "TelemetryService") || strings.Contains(at, "SessionService") {
			t.Errorf("%s is served", at)
		}
	}
}
