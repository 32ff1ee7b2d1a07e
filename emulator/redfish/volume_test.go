package redfish

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

const (
	raid    = sys + "/Storage/1"
	volumes = raid + "/Volumes"
)

// raiding returns a host, switched on, that has a RAID controller.
func raiding(t testing.TB) (*host, *Service) {
	t.Helper()
	h := newHostOf(t, "raid")
	must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
	h.pass(5 * time.Minute)
	return h, newService(t, h)
}

// drivesOf returns links to drives.
func drivesOf(bays ...int) string {
	links := resource.Map(bays, func(n int) string { return fmt.Sprintf(`{"@odata.id":"%s/Drives/Disk.%d"}`, raid, n) })
	return "[" + strings.Join(links, ",") + "]"
}

func post(t testing.TB, s *Service, uri, body string, want int) *httptest.ResponseRecorder {
	t.Helper()
	w := call(t, s, "admin", "POST", uri, body)
	if w.Code != want {
		t.Fatalf("%s; want %d", shape("POST", uri, body, w), want)
	}
	return w
}

func disk(t testing.TB, h *host, c storage.Command) {
	t.Helper()
	must(t, h.Apply(t.Context(), machine.Storage{Command: c}))
}

// ended waits until a task ends, and returns the task.
func ended(t testing.TB, h *host, s *Service, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var task map[string]any
	must(t, json.Unmarshal(w.Body.Bytes(), &task))
	if w.Code != 202 || !strings.Contains(w.Header().Get("Location"), "/TaskMonitors/") {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	uri, _ := task["@odata.id"].(string)
	for range 1000 { // a task that has ended is deleted soon
		if task, _ = get(t, s, uri); task["TaskState"] != "Running" {
			break
		}
		h.pass(10 * time.Minute)
	}
	return task
}

// A POST creates one volume, responds with it, and does not change the others. (An
// emulator that responds with 200 and the collection, gives every volume the ID 1 and
// replaces the last one by it is useless for tests of RAID.)
func TestVolumeCreate(t *testing.T) {
	h, s := raiding(t)
	type made struct{ id, wwn string }
	var all []made
	for i, body := range []string{
		`{"RAIDType":"RAID1","Name":"os","Links":{"Drives":` + drivesOf(4, 5) + `}}`,
		`{"RAIDType":"RAID5","DisplayName":"data","CapacityBytes":1000000000000,"StripSizeBytes":65536,"Links":{"Drives":` + drivesOf(0, 1, 2) + `}}`,
	} {
		uri := []string{volumes, volumes + "/Members"}[i]
		w := post(t, s, uri, body, 201)
		var v map[string]any
		must(t, json.Unmarshal(w.Body.Bytes(), &v))
		at := w.Header().Get("Location")
		read, tag := get(t, s, at)
		if d := cmp.Diff(read, v); d != "" || tag != w.Header().Get("ETag") || v["@odata.id"] != at {
			t.Errorf("the response is not the volume at %s: %s", at, d)
		}
		names := v["Identifiers"].([]any)[0].(map[string]any)
		all = append(all, made{v["Id"].(string), names["DurableName"].(string)})
	}
	if all[0].id == all[1].id || all[0].wwn == all[1].wwn || len(all[0].wwn) != 32 {
		t.Errorf("volumes = %v, want two that differ", all)
	}
	body, _ := get(t, s, volumes)
	if body["Members@odata.count"] != 2.0 {
		t.Errorf("collection = %v", body)
	}
	os, _ := get(t, s, volumes+"/"+all[0].id)
	if os["Name"] != "os" || os["RAIDType"] != "RAID1" || os["CapacityBytes"] != float64(893<<30) || os["WriteCacheState"] != "Protected" {
		t.Errorf("volume = %v", os)
	}
	data, _ := get(t, s, volumes+"/"+all[1].id)
	if size := data["CapacityBytes"].(float64); data["DisplayName"] != "data" || size < 1e12 || size > 1e12+131072 || data["StripSizeBytes"] != 65536.0 {
		t.Errorf("volume = %v", data)
	}
	drive, _ := get(t, s, raid+"/Drives/Disk.0")
	if of := drive["Links"].(map[string]any)["Volumes"].([]any); len(of) != 1 || of[0].(map[string]any)["@odata.id"] != volumes+"/2" {
		t.Errorf("drive is linked to %v", of)
	}
	// A rejected POST changes nothing.
	post(t, s, volumes, `{"RAIDType":"RAID0","Links":{"Drives":`+drivesOf(0)+`}}`, 409)
	if again, _ := get(t, s, volumes); again["@odata.etag"] != body["@odata.etag"] {
		t.Errorf("collection = %v", again)
	}
	at := volumes + "/1"
	if w := call(t, s, "admin", "DELETE", at, ""); w.Code != 204 {
		t.Errorf("%s", shape("DELETE", at, "", w))
	}
	if w := call(t, s, "admin", "GET", at, ""); w.Code != 404 {
		t.Errorf("%s", shape("GET", at, "", w))
	}
	if w := post(t, s, volumes, `{"RAIDType":"RAID1","Links":{"Drives":`+drivesOf(4, 5)+`}}`, 201); w.Header().Get("Location") != volumes+"/3" {
		t.Errorf("Location = %s, want a new one", w.Header().Get("Location"))
	}
	if n := len(h.Machine().Storage.Controllers()[0].Volumes); n != 2 {
		t.Errorf("%d volumes", n)
	}
}

// MediaSpanCount is the number of spans of a nested RAID; the other types have none.
func TestSpansOfAVolume(t *testing.T) {
	for level, tt := range map[string]struct {
		drives string
		spans  any
	}{
		"RAID10": {drivesOf(4, 5, 6, 7), 2.0},
		"RAID5":  {drivesOf(4, 5, 6), nil},
	} {
		_, s := raiding(t)
		at := post(t, s, volumes, `{"RAIDType":"`+level+`","Links":{"Drives":`+tt.drives+`}}`, 201).Header().Get("Location")
		if v, _ := get(t, s, at); v["RAIDType"] != level || v["MediaSpanCount"] != tt.spans {
			t.Errorf("%s: MediaSpanCount %v of a %v, want %v", level, v["MediaSpanCount"], v["RAIDType"], tt.spans)
		}
	}
}

// Provisioning software sends deprecated names together with the new ones, an apply time,
// and sizes computed from the drives' nominal capacity.
func TestVolumeCreateByProvisioners(t *testing.T) {
	h, s := raiding(t)
	collection, _ := get(t, s, volumes)
	times := collection["@Redfish.OperationApplyTimeSupport"].(map[string]any)["SupportedValues"]
	if d := cmp.Diff([]any{"Immediate", "OnReset"}, times); d != "" {
		t.Errorf("apply times: %s", d)
	}
	body := `{"Encrypted":false,"VolumeType":"Mirrored","RAIDType":"RAID1","CapacityBytes":960197124096,` +
		`"Links":{"Drives":` + drivesOf(4, 5) + `},"@Redfish.OperationApplyTime":"%s"}`
	post(t, s, volumes, fmt.Sprintf(body, "Immediate"), 201)
	post(t, s, volumes, strings.Replace(fmt.Sprintf(body, "Immediate"), "Mirrored", "NonRedundant", 1), 400)
	w := post(t, s, volumes, strings.Replace(fmt.Sprintf(body, "OnReset"), drivesOf(4, 5), drivesOf(6, 7), 1), 202)
	if task := ended(t, h, s, w); task["TaskState"] != "Pending" {
		t.Errorf("task before the reset = %v", task)
	}
	must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ForceRestart}))
	if v, _ := get(t, s, volumes+"/2"); v["RAIDType"] != "RAID1" {
		t.Errorf("volume = %v", v)
	}
	monitor := call(t, s, "admin", "GET", w.Header().Get("Location"), "")
	if monitor.Code != 201 || monitor.Header().Get("Location") != volumes+"/2" {
		t.Errorf("%s", shape("GET", "monitor", "", monitor))
	}
	if w := call(t, s, "admin", "DELETE", volumes+"/2", `{"@Redfish.OperationApplyTime":"OnReset"}`); w.Code != 202 {
		t.Errorf("%s", shape("DELETE", volumes+"/2", "", w))
	}
	must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ForceRestart}))
	if w := call(t, s, "admin", "GET", volumes+"/2", ""); w.Code != 404 {
		t.Errorf("%s", shape("GET", volumes+"/2", "", w))
	}
	post(t, s, volumes, fmt.Sprintf(body, "AtMaintenanceWindowStart"), 400)
}

func TestInvalidVolumePropertyIsRejected(t *testing.T) {
	h, s := raiding(t)
	post(t, s, volumes, `{"RAIDType":"RAID0","CapacityBytes":1000000000,"Links":{"Drives":`+drivesOf(3)+`}}`, 201)
	disk(t, h, storage.FailDrive{Drive: "Disk.7"})
	for _, tt := range []struct {
		name, body  string
		status      int
		key, points string
	}{
		{"nothing", `{"Name":"x"}`, 400, "PropertyMissing", "#/RAIDType"},
		{"unknown RAID type", `{"RAIDType":"RAID7"}`, 400, "PropertyValueNotInList", "#/RAIDType"},
		{"RAID type that the controller lacks", `{"RAIDType":"RAID01"}`, 400, "PropertyValueNotInList", "#/RAIDType"},
		{"too few drives", `{"RAIDType":"RAID5","Links":{"Drives":` + drivesOf(0, 1) + `}}`, 400, "ArraySizeTooShort", "#/Links/Drives"},
		{"too many drives", `{"RAIDType":"RAID1","Links":{"Drives":` + drivesOf(0, 1, 2) + `}}`, 400, "ArraySizeTooLong", "#/Links/Drives"},
		{"uneven spans", `{"RAIDType":"RAID50","Links":{"Drives":` + drivesOf(0, 1, 2, 4, 5, 6, 7) + `}}`, 400, "PropertyValueConflict", "#/Links/Drives"},
		{"a drive of a volume", `{"RAIDType":"RAID1","Links":{"Drives":` + drivesOf(0, 3) + `}}`, 409, "PropertyValueResourceConflict", "#/Links/Drives/1"},
		{"a drive that has failed", `{"RAIDType":"RAID1","Links":{"Drives":` + drivesOf(6, 7) + `}}`, 409, "PropertyValueResourceConflict", "#/Links/Drives/1"},
		{"another kind of drive", `{"RAIDType":"RAID1","Links":{"Drives":` + drivesOf(0, 4) + `}}`, 400, "PropertyValueResourceConflict", "#/Links/Drives/1"},
		{"a drive twice", `{"RAIDType":"RAID1","Links":{"Drives":` + drivesOf(0, 0) + `}}`, 400, "PropertyValueIncorrect", "#/Links/Drives/1"},
		{"a drive of another controller", `{"RAIDType":"RAID1","Links":{"Drives":[{"@odata.id":"` + sys + `/Storage/2/Drives/Disk.8"}]}}`, 400, "PropertyValueNotInList", "#/Links/Drives/0"},
		{"more than the drives' capacity", `{"RAIDType":"RAID1","CapacityBytes":3000000000000,"Links":{"Drives":` + drivesOf(0, 1) + `}}`, 400, "PropertyValueOutOfRange", "#/CapacityBytes"},
		{"invalid strip size", `{"RAIDType":"RAID1","StripSizeBytes":1000,"Links":{"Drives":` + drivesOf(0, 1) + `}}`, 400, "PropertyValueNotInList", "#/StripSizeBytes"},
		{"encryption", `{"RAIDType":"RAID1","Encrypted":true}`, 400, "PropertyValueNotInList", "#/Encrypted"},
		{"invalid write cache policy", `{"RAIDType":"RAID1","WriteCachePolicy":"Off"}`, 400, "PropertyValueNotInList", "#/WriteCachePolicy"},
		{"something unknown", `{"RAIDType":"RAID1","Colour":"red"}`, 400, "PropertyUnknown", "#/Colour"},
		{"a name that is too long", `{"RAIDType":"RAID1","Name":"` + strings.Repeat("x", 65) + `"}`, 400, "StringValueTooLong", "#/Name"},
		{"spare for RAID0", `{"RAIDType":"RAID0","Links":{"Drives":` + drivesOf(0) + `,"DedicatedSpareDrives":` + drivesOf(1) + `}}`, 400, "PropertyValueNotInList", "#/Links/DedicatedSpareDrives/0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := call(t, s, "admin", "POST", volumes, tt.body)
			keys, _ := errorOf(t, w)
			if w.Code != tt.status || keys[0] != tt.key || !strings.Contains(w.Body.String(), `"RelatedProperties":["`+tt.points+`"]`) {
				t.Errorf("%s; want %d, %s of %s", shape("POST", volumes, tt.body, w), tt.status, tt.key, tt.points)
			}
		})
	}
	if v := h.Machine().Storage.Controllers()[0].Volumes; len(v) != 1 {
		t.Errorf("%d volumes", len(v))
	}
}

func TestVolumeCreateRequiresPowerAndRAID(t *testing.T) {
	h := newHostOf(t, "raid")
	s := newService(t, h)
	w := call(t, s, "admin", "POST", volumes, `{"RAIDType":"RAID1"}`)
	if keys, _ := errorOf(t, w); w.Code != 409 || keys[0] != "ChassisPowerStateOnRequired" {
		t.Errorf("%s", shape("POST", volumes, "", w))
	}
	post(t, s, volumes, `{"RAIDType":"RAID1","@Redfish.OperationApplyTime":"OnReset"}`, 202)
	for _, at := range []string{sys + "/Storage/2/Volumes"} {
		w := call(t, s, "admin", "POST", at, `{"RAIDType":"RAID1"}`)
		if w.Code != 405 || strings.Contains(w.Header().Get("Allow"), "POST") {
			t.Errorf("%s", shape("POST", at, "", w))
		}
		if body, _ := get(t, s, at); body["@Redfish.CollectionCapabilities"] != nil {
			t.Errorf("a collection without POST has capabilities: %v", body)
		}
	}
	body, _ := get(t, s, volumes)
	capable := body["@Redfish.CollectionCapabilities"].(map[string]any)
	if capable["MaxMembers"] != 64.0 {
		t.Errorf("capabilities = %v", capable)
	}
	what, _ := get(t, s, volumes+"/Capabilities")
	if types := what["RAIDType@Redfish.AllowableValues"].([]any); !slices.Contains(types, any("RAID60")) {
		t.Errorf("RAID types = %v", types)
	}
}

// Controllers differ in when they change volumes: some at the next reset only, others
// always in a task.
func TestVolumeOperationApplyTime(t *testing.T) {
	h := newHostOf(t, "raid2")
	must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
	h.pass(5 * time.Minute)
	s := newService(t, h)
	for _, tt := range []struct {
		name, times, refused string
		at, drive            string
		end                  func()
	}{
		{"at the next reset", "[OnReset]", "Immediate", sys + "/Storage/1/Volumes", "Disk.0",
			func() {
				must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ForceRestart}))
				h.pass(3 * time.Minute)
			}},
		{"by jobs", "[Immediate]", "OnReset", sys + "/Storage/2/Volumes", "Disk.4", func() { h.pass(45 * time.Second) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			links := `"Links":{"Drives":[{"@odata.id":"` + strings.TrimSuffix(tt.at, "Volumes") + "Drives/" + tt.drive + `"}]}`
			body, _ := get(t, s, tt.at)
			if got := body["@Redfish.OperationApplyTimeSupport"].(map[string]any)["SupportedValues"]; fmt.Sprint(got) != tt.times {
				t.Errorf("it does so at %v, want %s", got, tt.times)
			}
			post(t, s, tt.at, `{"RAIDType":"RAID0","@Redfish.OperationApplyTime":"`+tt.refused+`",`+links+`}`, 400)
			members := func(when string, want float64) {
				t.Helper()
				h.pass(40 * time.Second)
				if body, _ := get(t, s, tt.at); body["Members@odata.count"] != want {
					t.Errorf("%s: %v", when, body["Members"])
				}
			}
			w := post(t, s, tt.at, `{"RAIDType":"RAID0",`+links+`}`, 202)
			members("before", 0)
			tt.end()
			members("after", 1)
			monitor := call(t, s, "admin", "GET", w.Header().Get("Location"), "")
			if monitor.Code != 201 || monitor.Header().Get("Location") != tt.at+"/1" {
				t.Errorf("%s", shape("GET", w.Header().Get("Location"), "", monitor))
			}
			if w := call(t, s, "admin", "DELETE", tt.at+"/1", ""); w.Code != 202 {
				t.Errorf("%s", shape("DELETE", tt.at+"/1", "", w))
			}
			members("deletion asked for", 1)
			tt.end()
			members("deleted", 0)
		})
	}
}

// A long operation on a volume is a task that ends.
func TestVolumeOperationsAreTasks(t *testing.T) {
	h, s := raiding(t)
	post(t, s, volumes, `{"RAIDType":"RAID5","CapacityBytes":100000000000,"Links":{"Drives":`+drivesOf(0, 1, 2)+`}}`, 201)
	at := volumes + "/1"
	h.pass(time.Second)
	if v, _ := get(t, s, at); v["Operations"].([]any)[0].(map[string]any)["Operation"] != "Initialize" {
		t.Errorf("a new volume does %v", v["Operations"])
	}
	h.pass(100 * time.Hour)
	for _, tt := range []struct{ method, uri, body, operation string }{
		{"POST", at + "/Actions/Volume.CheckConsistency", ``, "CheckConsistency"},
		{"POST", at + "/Actions/Volume.Initialize", `{"InitializeMethod":"Foreground"}`, "Initialize"},
		{"PATCH", at, `{"CapacityBytes":200000000000,"DisplayName":"grown"}`, "Resize"},
		{"POST", at + "/Actions/Volume.ChangeRAIDLayout", `{"RAIDType":"RAID6","Drives":` + drivesOf(0, 1, 2, 3) + `}`, "ChangeRAIDType"},
	} {
		w := call(t, s, "admin", tt.method, tt.uri, tt.body)
		v, tag := get(t, s, at)
		ops, _ := v["Operations"].([]any)
		if w.Code != 202 || len(ops) != 1 || ops[0].(map[string]any)["Operation"] != tt.operation {
			t.Errorf("%s\noperations: %v", shape(tt.method, tt.uri, tt.body, w), ops)
			continue
		}
		x, _ := h.Machine().Storage.Volume("1", "1")
		h.pass(x.Ops[0].Duration / 10)
		if later, same := get(t, s, at); same != tag || cmp.Equal(later["Operations"], v["Operations"]) {
			t.Errorf("after a while: ETag %s, want %s; operations %v, before %v", same, tag, later["Operations"], v["Operations"])
		}
		if w := call(t, s, "admin", "POST", at+"/Actions/Volume.CheckConsistency", ``); w.Code != 409 {
			t.Errorf("while %s: %s", tt.operation, shape("POST", "check", "", w))
		}
		if task := ended(t, h, s, w); task["TaskState"] != "Completed" {
			t.Errorf("task of %s = %v", tt.operation, task)
		}
	}
	v, _ := get(t, s, at)
	if v["RAIDType"] != "RAID6" || v["DisplayName"] != "grown" || v["Links"].(map[string]any)["Drives@odata.count"] != 4.0 {
		t.Errorf("volume = %v", v)
	}
	w := call(t, s, "admin", "POST", at+"/Actions/Volume.Initialize", `{"InitializeType":"Fast"}`)
	if task := ended(t, h, s, w); task["TaskState"] != "Completed" {
		t.Errorf("task = %v", task)
	}
	w = call(t, s, "admin", "POST", at+"/Actions/Volume.ChangeRAIDLayout", `{"Drives":`+drivesOf(0, 4)+`}`)
	if keys, _ := errorOf(t, w); w.Code != 400 || keys[0] != "ActionParameterValueConflict" {
		t.Errorf("%s", shape("POST", "layout", "", w))
	}
	if w := call(t, s, "admin", "PATCH", at, `{"CapacityBytes":1}`); w.Code != 400 || !strings.Contains(w.Body.String(), "#/CapacityBytes") {
		t.Errorf("%s", shape("PATCH", at, "", w))
	}
}

// A drive fails, a spare replaces it, and the log records both.
func TestDriveFailureAndReplacement(t *testing.T) {
	h, s := raiding(t)
	post(t, s, volumes, `{"RAIDType":"RAID1","InitializeMethod":"Skip","Links":{"Drives":`+drivesOf(4, 5)+`}}`, 201)
	at, spare := volumes+"/1", raid+"/Drives/Disk.6"
	if w := call(t, s, "admin", "PATCH", spare, `{"HotspareType":"Global","LocationIndicatorActive":true}`); w.Code != 200 {
		t.Fatalf("%s", shape("PATCH", spare, "", w))
	}
	d, _ := get(t, s, spare)
	if d["HotspareType"] != "Global" || d["Status"].(map[string]any)["State"] != "StandbySpare" || d["LocationIndicatorActive"] != true || d["StatusIndicator"] != "Hotspare" {
		t.Errorf("spare = %v", d)
	}
	disk(t, h, storage.FailDrive{Drive: "Disk.4"})
	h.pass(time.Minute)
	v, _ := get(t, s, at)
	d, _ = get(t, s, spare)
	if v["Status"].(map[string]any)["State"] != "Degraded" || d["StatusIndicator"] != "Rebuild" || d["HotspareType"] != "None" {
		t.Errorf("volume = %v, spare = %v", v, d)
	}
	if op := d["Operations"].([]any)[0].(map[string]any); op["Operation"] != "Rebuild" || op["PercentageComplete"] == 0 {
		t.Errorf("operation = %v", op)
	}
	if broken, _ := get(t, s, raid+"/Drives/Disk.4"); broken["Status"].(map[string]any)["Health"] != "Critical" || broken["StatusIndicator"] != "Fail" {
		t.Errorf("failed drive = %v", broken)
	}
	if sub, _ := get(t, s, raid); sub["Status"].(map[string]any)["HealthRollup"] != "Critical" {
		t.Errorf("storage = %v", sub["Status"])
	}
	h.pass(100 * time.Hour)
	v, _ = get(t, s, at)
	if links := fmt.Sprint(v["Links"]); v["Status"].(map[string]any)["Health"] != "OK" || !strings.Contains(links, "Disk.6") || strings.Contains(links, "Disk.4") {
		t.Errorf("volume = %v", v)
	}
	disk(t, h, storage.PullDrive{Drive: "Disk.4"})
	if w := call(t, s, "admin", "GET", raid+"/Drives/Disk.4", ""); w.Code != 404 {
		t.Errorf("%s", shape("GET", "Disk.4", "", w))
	}
	disk(t, h, storage.InsertDrive{Drive: "Disk.4", What: storage.InsertNew})
	if w := call(t, s, "admin", "PATCH", at, `{"Links":{"DedicatedSpareDrives":`+drivesOf(4)+`}}`); w.Code != 200 {
		t.Errorf("%s", shape("PATCH", at, "", w))
	}
	if d, _ := get(t, s, raid+"/Drives/Disk.4"); d["HotspareType"] != "Dedicated" {
		t.Errorf("drive = %v", d)
	}
	if w := call(t, s, "admin", "PATCH", raid+"/Drives/Disk.5", `{"HotspareType":"Global"}`); w.Code != 409 {
		t.Errorf("%s", shape("PATCH", "Disk.5", "", w))
	}
	if w := call(t, s, "admin", "PATCH", sys+"/Storage/2/Drives/Disk.8", `{"HotspareType":"Global"}`); w.Code != 400 {
		t.Errorf("%s", shape("PATCH", "Disk.8", "", w))
	}
	text := ""
	for e := range h.BMC().Log.Entries() {
		text += string(e.Kind) + " "
	}
	for _, kind := range []string{"drive.failed", "volume.degraded", "drive.rebuild.finished", "volume.optimal", "drive.removed", "drive.inserted"} {
		if !strings.Contains(text, kind) {
			t.Errorf("the log has no %s: %s", kind, text)
		}
	}
}

func TestDriveSecureEraseAndReset(t *testing.T) {
	h, s := raiding(t)
	nvme := sys + "/Storage/2/Drives/Disk.8"
	for _, tt := range []struct {
		uri, body string
		status    int
		key       string
	}{
		{nvme + "/Actions/Drive.SecureErase", `{"SanitizationType":"Overwrite"}`, 400, "ActionParameterValueNotInList"},
		{nvme + "/Actions/Drive.SecureErase", `{"OverwritePasses":17}`, 400, "ActionParameterValueOutOfRange"},
		{nvme + "/Actions/Drive.Reset", `{"ResetType":"PowerCycle"}`, 204, ""},
		{nvme + "/Actions/Drive.SecureErase", `{"SanitizationType":"CryptographicErase"}`, 202, ""},
		{nvme + "/Actions/Drive.SecureErase", ``, 409, "ResourceInUse"},
		{nvme + "/Actions/Drive.Reset", ``, 409, "ResourceInUse"},
		{raid + "/Drives/Disk.0/Actions/Drive.Reset", ``, 404, "ActionNotSupported"},
	} {
		w := call(t, s, "admin", "POST", tt.uri, tt.body)
		key := ""
		if w.Code >= 400 {
			keys, _ := errorOf(t, w)
			key = keys[0]
		}
		if w.Code != tt.status || key != tt.key {
			t.Errorf("%s; want %d, %s", shape("POST", tt.uri, tt.body, w), tt.status, tt.key)
		}
	}
	d, _ := get(t, s, nvme)
	op := d["Operations"].([]any)[0].(map[string]any)
	if d["Status"].(map[string]any)["State"] != "Updating" || op["Operation"] != "Sanitize" || op["AssociatedTask"] == nil {
		t.Errorf("drive = %v", d)
	}
	h.pass(time.Hour)
	if d, _ := get(t, s, nvme); len(d["Operations"].([]any)) != 0 {
		t.Errorf("drive = %v", d)
	}
	disk(t, h, storage.SetSMART{Drive: "Disk.8", Values: []storage.Reading{{Attribute: storage.PercentageUsed, Value: 97}}})
	d, _ = get(t, s, nvme)
	m, _ := get(t, s, nvme+"/Metrics")
	if d["PredictedMediaLifeLeftPercent"] != 3.0 || m["NVMeSMART"].(map[string]any)["PercentageUsed"] != 97.0 {
		t.Errorf("drive = %v, metrics = %v", d, m)
	}
}

func TestStorageControllerPatchAndReset(t *testing.T) {
	h, s := raiding(t)
	at := raid + "/Controllers/0"
	w := call(t, s, "admin", "PATCH", at, `{"ControllerRates":{"RebuildRatePercent":80}}`)
	if c, _ := get(t, s, at); w.Code != 200 || c["ControllerRates"].(map[string]any)["RebuildRatePercent"] != 80.0 {
		t.Errorf("%s", shape("PATCH", at, "", w))
	}
	if w := call(t, s, "admin", "PATCH", at, `{"ControllerRates":{"RebuildRatePercent":0}}`); w.Code != 400 {
		t.Errorf("%s", shape("PATCH", at, "", w))
	}
	if w := call(t, s, "admin", "PATCH", sys+"/Storage/2/Controllers/0", `{"ControllerRates":{"RebuildRatePercent":10}}`); w.Code != 405 {
		t.Errorf("%s", shape("PATCH", "controller without RAID", "", w))
	}
	post(t, s, volumes, `{"RAIDType":"RAID1"}`, 201)
	reset := raid + "/Actions/Storage.ResetToDefaults"
	if w := call(t, s, "admin", "POST", reset, `{"ResetType":"PreserveVolumes"}`); w.Code != 204 {
		t.Errorf("%s", shape("POST", reset, "", w))
	}
	c, _ := get(t, s, at)
	if c["ControllerRates"].(map[string]any)["RebuildRatePercent"] != 30.0 || len(h.Machine().Storage.Controllers()[0].Volumes) != 1 {
		t.Errorf("controller = %v", c)
	}
	if w := call(t, s, "admin", "POST", reset, `{"ResetType":"ResetAll"}`); w.Code != 204 {
		t.Errorf("%s", shape("POST", reset, "", w))
	}
	if body, _ := get(t, s, volumes); body["Members@odata.count"] != 0.0 {
		t.Errorf("volumes = %v", body)
	}
}

// Volume.ForceEnable enables a failed volume once its drives are present again.
func TestForceEnableVolume(t *testing.T) {
	h, s := raiding(t)
	post(t, s, volumes, `{"RAIDType":"RAID0","Links":{"Drives":`+drivesOf(0, 1)+`}}`, 201)
	at := volumes + "/1"
	force := at + "/Actions/Volume.ForceEnable"
	if w := call(t, s, "admin", "POST", force, ``); w.Code != 404 {
		t.Errorf("%s", shape("POST", force, "", w))
	}
	disk(t, h, storage.PullDrive{Drive: "Disk.1"})
	v, _ := get(t, s, at)
	if v["Status"].(map[string]any)["Health"] != "Critical" {
		t.Errorf("volume = %v", v)
	}
	if w := call(t, s, "admin", "POST", force, ``); w.Code != 409 {
		t.Errorf("%s", shape("POST", force, "", w))
	}
	disk(t, h, storage.InsertDrive{Drive: "Disk.1", What: storage.InsertSame})
	if w := call(t, s, "admin", "POST", force, ``); w.Code != 204 {
		t.Errorf("%s", shape("POST", force, "", w))
	}
	if v, _ := get(t, s, at); v["Status"].(map[string]any)["Health"] != "OK" {
		t.Errorf("volume = %v", v)
	}
}
