package redfish_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
)

const (
	storagePath = systemPath + "/Storage/RAID.1"
	volumesPath = storagePath + "/Volumes"
	tasksPath   = "/redfish/v1/TaskService/Tasks"
)

// raidServer is a service with a controller of two drives and a volume.
type raidServer struct {
	*server
	times   []string // OperationApplyTimeSupport; nil leaves it out
	old     bool     // knows VolumeType only
	inline  bool     // has StorageControllers in the Storage resource
	async   bool     // requests answer 202
	state   string   // state of the task
	deleted []string // bodies of the DELETE requests
}

func newRAIDServer(t *testing.T, build func(*raidServer)) *raidServer {
	r := &raidServer{state: "Running"}
	if build != nil {
		build(r)
	}
	r.server = newServer(t, func(s *server) { s.system["Storage"] = linkTo(systemPath + "/Storage") })
	show := func(path string, v map[string]any) { r.route("GET "+path, r.show(func() map[string]any { return v })) }
	show("/redfish/v1/", map[string]any{
		"@odata.id": "/redfish/v1/", "@odata.type": "#ServiceRoot.v1_16_0.ServiceRoot", "Systems": linkTo("/redfish/v1/Systems"),
		"Tasks": linkTo("/redfish/v1/TaskService"), "Links": map[string]any{"Sessions": linkTo("/redfish/v1/SessionService/Sessions")},
	})
	show("/redfish/v1/TaskService", map[string]any{"Tasks": linkTo(tasksPath)})
	r.route("GET "+tasksPath, r.show(collection(tasksPath, "7", "8")))
	r.route("GET "+tasksPath+"/7", r.show(func() map[string]any { return r.task() }))
	show(tasksPath+"/8", map[string]any{"@odata.type": "#Task.v1_7_4.Task", "TaskState": "Running", "Payload": map[string]any{"TargetUri": "/redfish/v1/UpdateService"}})
	r.route("GET "+systemPath+"/Storage", r.show(collection(systemPath+"/Storage", "RAID.1")))
	storage := map[string]any{
		"Id": "RAID.1", "Name": "RAID Controller", "Volumes": linkTo(volumesPath),
		"Drives": []any{linkTo(storagePath + "/Drives/0"), linkTo(storagePath + "/Drives/1")},
	}
	maker := map[string]any{"Name": "PERC", "Model": "H755", "SupportedRAIDTypes": []any{"RAID1", "RAID10", "RAID1E"}}
	if r.inline {
		storage["StorageControllers"] = []any{maker}
	} else {
		storage["Controllers"] = linkTo(storagePath + "/Controllers")
		r.route("GET "+storagePath+"/Controllers", r.show(collection(storagePath+"/Controllers", "0")))
		show(storagePath+"/Controllers/0", maker)
	}
	show(storagePath, storage)
	show(storagePath+"/Drives/0", map[string]any{
		"Id": "0", "Name": "Bay 0", "SerialNumber": "S0", "MediaType": "HDD", "Protocol": "SAS", "CapacityBytes": 2e12,
		"Status": map[string]any{"State": "Enabled", "Health": "OK"}, "Links": map[string]any{"Volumes": []any{linkTo(volumesPath + "/1")}},
	})
	show(storagePath+"/Drives/1", map[string]any{
		"Id": "1", "Name": "Bay 1", "MediaType": "SSD", "Protocol": "SATA", "CapacityBytes": 960e9, "HotspareType": "Global",
		"Status": map[string]any{"State": "StandbySpare", "Health": "Critical"},
	})
	volumes := map[string]any{"Members": []any{linkTo(volumesPath + "/1"), linkTo(volumesPath + "/raw"), linkTo(volumesPath + "/gone")}}
	if r.times != nil {
		volumes["@Redfish.OperationApplyTimeSupport"] = map[string]any{"SupportedValues": r.times}
	}
	show(volumesPath, volumes)
	show(volumesPath+"/raw", map[string]any{"Name": "JBOD", "VolumeType": "RawDevice"}) // iDRAC
	show(volumesPath+"/1", map[string]any{
		"Name": "system", "RAIDType": "RAID10", "CapacityBytes": 100e9, "Status": map[string]any{"State": "Updating", "Health": "OK"},
		"Identifiers": []any{map[string]any{"DurableName": "6F4EE08000AA", "DurableNameFormat": "NAA"}},
		"Operations":  []any{map[string]any{"Operation": "Initialize", "PercentageComplete": 40}},
		"Links":       map[string]any{"Drives": []any{linkTo(storagePath + "/Drives/0")}},
	})
	r.route("POST "+volumesPath, func(w http.ResponseWriter, q *http.Request) {
		body, ok := object(w, q)
		if !ok {
			return
		}
		if _, sent := body["RAIDType"]; sent && r.old {
			fail(w, http.StatusBadRequest, "PropertyUnknown", "The property RAIDType is not in the list of valid properties.", "RAIDType")
			return
		}
		r.answer(w, http.StatusCreated)
	})
	r.route("DELETE "+volumesPath+"/1", func(w http.ResponseWriter, q *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(q.Body).Decode(&body) // there may be no body
		r.deleted = append(r.deleted, fmt.Sprint(body))
		r.answer(w, http.StatusNoContent)
	})
	return r
}

func (r *raidServer) answer(w http.ResponseWriter, otherwise int) {
	if !r.async {
		w.WriteHeader(otherwise)
		return
	}
	w.Header().Set("Location", "/redfish/v1/TaskService/TaskMonitors/7")
	reply(w, http.StatusAccepted, r.task())
}

func (r *raidServer) task() map[string]any {
	return map[string]any{
		"@odata.id": tasksPath + "/7", "@odata.type": "#Task.v1_7_4.Task", "Name": "Create volume", "TaskState": r.state, "PercentComplete": 30,
		"StartTime": "2031-01-02T03:04:05Z", "Payload": map[string]any{"TargetUri": volumesPath},
		"Messages": []any{map[string]any{"MessageId": "StorageDevice.1.2.DriveFailure", "Message": "A drive has failed."}},
	}
}

func (r *raidServer) storer() bmc.Storer {
	r.t.Helper()
	s := bmc.StorerOf(r.open())
	if s == nil {
		r.t.Fatal("the driver makes no volumes")
	}
	return s
}

func TestStorage(t *testing.T) {
	for _, inline := range []bool{false, true} {
		r := newRAIDServer(t, func(r *raidServer) { r.inline = inline })
		got, err := r.storer().Storage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := bmc.Storage{
			Controllers: []bmc.Controller{{
				ID: storagePath, Names: []string{"RAID.1", "RAID Controller", "PERC", "H755"}, Levels: []bmc.Level{bmc.Level1, bmc.Level10},
				Drives: []bmc.Drive{
					{ID: storagePath + "/Drives/0", Names: []string{"0", "Bay 0", "S0"}, Name: "Bay 0", Serial: "S0", Rotational: true, Protocol: "SAS", Bytes: 2e12, Healthy: true, Used: true},
					{ID: storagePath + "/Drives/1", Names: []string{"1", "Bay 1", ""}, Name: "Bay 1", Protocol: "SATA", Bytes: 960e9, Spare: true},
				},
				Volumes: []bmc.Volume{{
					ID: volumesPath + "/1", Name: "system", Level: bmc.Level10, Bytes: 100e9, Drives: []string{storagePath + "/Drives/0"},
					WWN: "0x6f4ee08000aa", Healthy: true, Percent: 40,
				}},
			}},
			Operations: []bmc.Operation{{
				ID: tasksPath + "/7", Name: "Create volume", State: bmc.OperationRunning, Percent: 30, Started: time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC),
			}},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("Storage, inline %v (-want +got):\n%s", inline, d)
		}
	}
}

func TestCreateAndDeleteVolume(t *testing.T) {
	links := `"Links":{"Drives":[{"@odata.id":"/d/0"},{"@odata.id":"/d/1"}]}`
	for name, tt := range map[string]struct {
		build   func(*raidServer)
		state   bmc.OperationState
		sent    []string
		deleted string
	}{
		"at once": {nil, bmc.OperationDone, []string{`{"CapacityBytes":1000,` + links + `,"Name":"v","RAIDType":"RAID1"}`}, "map[]"},
		"at once, though it could wait": {func(r *raidServer) { r.times = []string{"OnReset", "Immediate"} }, bmc.OperationDone,
			[]string{`{"@Redfish.OperationApplyTime":"Immediate","CapacityBytes":1000,` + links + `,"Name":"v","RAIDType":"RAID1"}`}, "map[]"},
		"by a job": {func(r *raidServer) { r.async = true }, bmc.OperationRunning, []string{`{"CapacityBytes":1000,` + links + `,"Name":"v","RAIDType":"RAID1"}`}, "map[]"},
		"on reset": {func(r *raidServer) { r.async, r.times, r.state = true, []string{"OnReset"}, "Pending" }, bmc.OperationPending,
			[]string{`{"@Redfish.OperationApplyTime":"OnReset","CapacityBytes":1000,` + links + `,"Name":"v","RAIDType":"RAID1"}`}, "map[@Redfish.OperationApplyTime:OnReset]"},
		"on reset, as iDRACs say it": {func(r *raidServer) { r.async, r.times, r.state = true, []string{"OnReset"}, "Starting" }, bmc.OperationPending,
			[]string{`{"@Redfish.OperationApplyTime":"OnReset","CapacityBytes":1000,` + links + `,"Name":"v","RAIDType":"RAID1"}`}, "map[@Redfish.OperationApplyTime:OnReset]"},
		"by the older name": {func(r *raidServer) { r.old = true }, bmc.OperationDone, []string{
			`{"CapacityBytes":1000,` + links + `,"Name":"v","RAIDType":"RAID1"}`, `{"CapacityBytes":1000,` + links + `,"Name":"v","VolumeType":"Mirrored"}`,
		}, "map[]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRAIDServer(t, tt.build)
			c := r.storer()
			o, err := c.CreateVolume(t.Context(), bmc.NewVolume{Controller: storagePath, Name: "v", Level: bmc.Level1, Bytes: 1000, Drives: []string{"/d/0", "/d/1"}})
			if err != nil || o.State != tt.state {
				t.Errorf("CreateVolume = %+v, %v, want %s", o, err, tt.state)
			}
			if got := r.sent(); !slices.EqualFunc(got, tt.sent, func(a, b string) bool { return strings.TrimSpace(a) == b }) {
				t.Errorf("sent %q, want %q", got, tt.sent)
			}
			o, err = c.DeleteVolume(t.Context(), volumesPath+"/1")
			if err != nil || o.State != tt.state || !slices.Equal(r.deleted, []string{tt.deleted}) {
				t.Errorf("DeleteVolume = %+v, %v, body %v", o, err, r.deleted)
			}
		})
	}
	r := newRAIDServer(t, nil)
	if _, err := r.storer().CreateVolume(t.Context(), bmc.NewVolume{Controller: storagePath, Level: "2"}); !errors.Is(err, bmc.ErrUnsupported) {
		t.Errorf("level 2: %v", err)
	}
	if o, err := r.storer().DeleteVolume(t.Context(), volumesPath+"/9"); err != nil || o.State != bmc.OperationDone {
		t.Errorf("a volume that is not there: %+v, %v", o, err)
	}
}

func TestPollOperation(t *testing.T) {
	r := newRAIDServer(t, func(r *raidServer) { r.async = true })
	c := r.storer()
	o, err := c.CreateVolume(t.Context(), bmc.NewVolume{Controller: storagePath, Level: bmc.Level1})
	if err != nil || o.ID != tasksPath+"/7" {
		t.Fatalf("CreateVolume = %+v, %v", o, err)
	}
	for _, tt := range []struct {
		state string
		want  bmc.OperationState
	}{{"New", bmc.OperationRunning}, {"Pending", bmc.OperationPending}, {"Running", bmc.OperationRunning}, {"Suspended", bmc.OperationRunning}, {"Completed", bmc.OperationDone}, {"Exception", bmc.OperationFailed}} {
		r.mu.Lock()
		r.state = tt.state
		r.mu.Unlock()
		got, err := c.PollOperation(t.Context(), o.ID)
		if err != nil || got.State != tt.want {
			t.Errorf("Follow of a task that is %s = %+v, %v, want %s", tt.state, got, err, tt.want)
		}
		if tt.want == bmc.OperationFailed && !strings.Contains(got.Error, "A drive has failed.") {
			t.Errorf("it failed as %q", got.Error)
		}
	}
	r.route("GET "+tasksPath+"/7", nil) // deleted
	// A new task of an iDRAC answers 404 for a while, too.
	for _, want := range []bmc.OperationState{bmc.OperationRunning, bmc.OperationRunning, bmc.OperationDone} {
		if got, err := c.PollOperation(t.Context(), o.ID); err != nil || got.State != want {
			t.Errorf("Follow of a task that is not there = %+v, %v, want %s", got, err, want)
		}
	}
}

func TestStorageUnsupported(t *testing.T) {
	c := bmc.StorerOf(newServer(t).open())
	if _, err := c.Storage(t.Context()); !errors.Is(err, bmc.ErrUnsupported) {
		t.Errorf("Storage = %v, want ErrUnsupported", err)
	}
}
