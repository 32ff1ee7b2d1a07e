package redfish

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

const taskService1 = "/redfish/v1/TaskService"

// begin opens a task of a request by operator, and advances the clock by a minute.
func begin(t testing.TB, h *host, r bmc.Request) (id string) {
	t.Helper()
	evs, err := h.ApplyBMC(t.Context(), bmc.OpenTask{Name: "Work", User: "operator", Account: "2", Request: r})
	must(t, err)
	id = evs[0].(bmc.TaskOpened).Task.ID
	_, err = h.ApplyBMC(t.Context(), bmc.RunTask{ID: id, Until: h.Now().Add(time.Minute)})
	must(t, err)
	return id
}

func closeJob(t testing.TB, h *host, c bmc.CloseTask) {
	t.Helper()
	_, err := h.ApplyBMC(t.Context(), c)
	must(t, err)
}

func TestTaskProgressAndCompletion(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	id := begin(t, h, bmc.Request{Method: "POST", Target: sys + "/Actions/Thing.Do", Body: `{"A":1}`})
	h.pass(15 * time.Second)
	body, tag := get(t, s, resource.TaskURI(id))
	payload := body["Payload"].(map[string]any)
	if body["TaskState"] != "Running" || body["PercentComplete"] != 25.0 || body["TaskMonitor"] != resource.TaskMonitorURI(id) || body["EstimatedDuration"] != "PT60S" ||
		payload["JsonBody"] != `{"A":1}` || body["HidePayload"] != false || messageIDs(body["Messages"]) != "TaskEvent.1.0.TaskStarted" {
		t.Errorf("task = %v", body)
	}
	h.pass(15 * time.Second)
	if body, again := get(t, s, resource.TaskURI(id)); again != tag || body["PercentComplete"] != 50.0 {
		t.Errorf("PercentComplete %v, ETag %s; want 50 and %s as before", body["PercentComplete"], again, tag)
	}
	closeJob(t, h, bmc.CloseTask{ID: id, Fault: "the disk is gone", Messages: []event.Note{{Kind: event.PowerOff, Subject: event.Subject{Part: event.System}}}})
	body, _ = get(t, s, resource.TaskURI(id))
	want := "TaskEvent.1.0.TaskStarted ResourceEvent.1.4.ResourcePoweredOff TaskEvent.1.0.TaskAborted"
	if body["TaskState"] != "Exception" || body["TaskStatus"] != "Critical" || body["EndTime"] != "2026-03-01T12:00:30Z" || messageIDs(body["Messages"]) != want ||
		!strings.Contains(fmt.Sprint(body["Messages"]), "the disk is gone") {
		t.Errorf("task = %v, want messages %s", body, want)
	}
}

// messageIDs lists the MessageIds of messages.
func messageIDs(messages any) string {
	var ids []string
	for _, m := range messages.([]any) {
		ids = append(ids, m.(map[string]any)["MessageId"].(string))
	}
	return strings.Join(ids, " ")
}

// The task monitor returns the response of the operation once it has ended.
func TestTaskMonitorReturnsFinalResponse(t *testing.T) {
	drive := &event.Subject{Part: event.Drive, ID: "Disk.0", In: "RAID.0"}
	notes := []event.Note{{Kind: event.PowerOn, Subject: event.Subject{Part: event.System}}}
	for name, tt := range map[string]struct {
		request  bmc.Request
		end      bmc.CloseTask
		status   int
		location string
		body     string // part of the response
	}{
		"made":      {bmc.Request{Method: "POST", Target: sys + "/Storage"}, bmc.CloseTask{Made: drive}, 201, sys + "/Storage/RAID.0/Drives/Disk.0", `"@odata.type":"#Drive.`},
		"gone":      {bmc.Request{Method: "POST"}, bmc.CloseTask{Made: &event.Subject{Part: event.Drive, ID: "Disk.9", In: "RAID.0"}}, 204, "", ""},
		"action":    {bmc.Request{Method: "POST", Target: sys + "/Actions/X.Y"}, bmc.CloseTask{}, 204, "", ""},
		"messages":  {bmc.Request{Method: "POST"}, bmc.CloseTask{Messages: notes}, 200, "", "ResourcePoweredOn"},
		"changed":   {bmc.Request{Method: "PATCH", Target: sys}, bmc.CloseTask{}, 200, "", `"@odata.id":"` + sys + `"`},
		"deleted":   {bmc.Request{Method: "DELETE", Target: sys}, bmc.CloseTask{}, 204, "", ""},
		"failed":    {bmc.Request{Method: "POST"}, bmc.CloseTask{Fault: "no drive answers"}, 500, "", "no drive answers"},
		"explained": {bmc.Request{Method: "POST"}, bmc.CloseTask{Fault: "no drive answers", Messages: notes}, 500, "", "ResourcePoweredOn"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			drive.In = h.Machine().Identity.Storage[0].ID
			tt.location = strings.Replace(tt.location, "RAID.0", drive.In, 1)
			s := newService(t, h)
			id := begin(t, h, tt.request)
			monitor := resource.TaskMonitorURI(id)
			w := call(t, s, "reader", "GET", monitor, "")
			if w.Code != 202 || w.Header().Get("Location") != monitor || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"TaskState":"Running"`) {
				t.Errorf("under way: %s", shape("GET", monitor, "", w))
			}
			tt.end.ID = id
			closeJob(t, h, tt.end)
			for range 2 { // a client whose connection broke reads again
				w = call(t, s, "reader", "GET", monitor, "")
				if w.Code != tt.status || w.Header().Get("Location") != tt.location || !strings.Contains(w.Body.String(), tt.body) || tt.body == "" && w.Body.Len() > 0 {
					t.Errorf("%s; want %d %s %s", shape("GET", monitor, "", w), tt.status, tt.location, tt.body)
				}
				h.pass(20 * time.Second)
			}
			if w := call(t, s, "admin", "GET", monitor, ""); w.Code != 404 {
				t.Errorf("after its time: %s", shape("GET", monitor, "", w))
			}
			if body, _ := get(t, s, resource.TaskURI(id)); body["TaskMonitor"] != nil {
				t.Errorf("the task still names its monitor: %v", body)
			}
		})
	}
}

func TestTaskMonitorHeadKeepsMonitor(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	id := begin(t, h, bmc.Request{Method: "POST"})
	closeJob(t, h, bmc.CloseTask{ID: id})
	if w := call(t, s, "admin", "HEAD", resource.TaskMonitorURI(id), ""); w.Code != 204 {
		t.Errorf("%s", shape("HEAD", resource.TaskMonitorURI(id), "", w))
	}
	h.pass(time.Hour)
	if w := call(t, s, "admin", "GET", resource.TaskMonitorURI(id), ""); w.Code != 204 {
		t.Errorf("%s", shape("GET", resource.TaskMonitorURI(id), "", w))
	}
}

func TestTaskCancel(t *testing.T) {
	for _, tt := range []struct {
		who    as
		status int
	}{{"reader", 403}, {"operator", 202}, {"admin", 202}} {
		h := newHost(t)
		s := newService(t, h)
		id := begin(t, h, bmc.Request{Method: "POST"}) // by the operator
		w := call(t, s, tt.who, "DELETE", resource.TaskMonitorURI(id), "")
		if w.Code != tt.status {
			t.Errorf("as %s: %s; want %d", tt.who, shape("DELETE", resource.TaskMonitorURI(id), "", w), tt.status)
		}
		if tt.status == 403 {
			continue
		}
		if body, _ := get(t, s, resource.TaskURI(id)); body["TaskState"] != "Cancelling" {
			t.Errorf("TaskState = %v, want Cancelling", body["TaskState"])
		}
		closeJob(t, h, bmc.CloseTask{ID: id, Cancelled: true})
		if w := call(t, s, "admin", "GET", resource.TaskMonitorURI(id), ""); w.Code != 404 {
			t.Errorf("%s", shape("GET", resource.TaskMonitorURI(id), "", w))
		}
		if body, _ := get(t, s, resource.TaskURI(id)); body["TaskState"] != "Cancelled" || body["TaskStatus"] != "OK" {
			t.Errorf("task = %v", body)
		}
	}
}

func TestTaskDelete(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	var ids []string
	for range 4 {
		ids = append(ids, begin(t, h, bmc.Request{Method: "POST"}))
	}
	for _, id := range ids[:3] {
		closeJob(t, h, bmc.CloseTask{ID: id})
	}
	del := func(uri string, want int) {
		t.Helper()
		if w := call(t, s, "admin", "DELETE", uri, ""); w.Code != want {
			t.Errorf("%s; want %d", shape("DELETE", uri, "", w), want)
		}
	}
	del(resource.TaskURI(ids[0]), 204)
	del(resource.TaskURI(ids[0]), 404)
	del(resource.TaskMonitorURI(ids[1]), 204)
	del(resource.TaskMonitorURI(ids[1]), 404)
	del(resource.TaskURI(ids[3]), 202) // still running: cancelled
	all := taskService1 + "/Actions/TaskService.DeleteAllCompletedTasks"
	if w := call(t, s, "admin", "POST", all, ""); w.Code != 204 {
		t.Errorf("%s", shape("POST", all, "", w))
	}
	left := resource.Map(h.BMC().Tasks.All(), func(j bmc.Task) string { return j.ID })
	if !slices.Equal(left, ids[3:]) {
		t.Errorf("tasks %q are left, want %q", left, ids[3:])
	}
}

func TestTaskAutoDelete(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	for body, want := range map[string]int{
		`{"TaskAutoDeleteTimeoutMinutes":5}`: 200, `{"TaskAutoDeleteTimeoutMinutes":0}`: 400, `{"TaskMonitorAutoExpirySeconds":-1}`: 400,
		`{"TaskMonitorAutoExpirySeconds":3}`: 200,
	} {
		if w := call(t, s, "admin", "PATCH", taskService1, body); w.Code != want {
			t.Errorf("%s; want %d", shape("PATCH", taskService1, body, w), want)
		}
	}
	if body, _ := get(t, s, taskService1); body["TaskAutoDeleteTimeoutMinutes"] != 5.0 || body["TaskMonitorAutoExpirySeconds"] != 3.0 {
		t.Errorf("task service = %v", body)
	}
	id := begin(t, h, bmc.Request{Method: "POST"})
	h.pass(time.Hour)
	closeJob(t, h, bmc.CloseTask{ID: id})
	for _, step := range []struct {
		pass time.Duration
		want int
	}{{299 * time.Second, 200}, {time.Second, 404}} {
		h.pass(step.pass)
		if w := call(t, s, "admin", "GET", resource.TaskURI(id), ""); w.Code != step.want {
			t.Errorf("%s; want %d", shape("GET", resource.TaskURI(id), "", w), step.want)
		}
	}
}

func TestTaskPayloadHidesSecrets(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	id := begin(t, h, bmc.Request{Method: "POST", Body: `{"A":1}`, Hidden: true})
	if body, _ := get(t, s, resource.TaskURI(id)); body["HidePayload"] != true || body["Payload"] != nil {
		t.Errorf("task = %v", body)
	}
	m := s.tree.Find(parsed("/redfish/v1/Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"))
	for body, want := range map[string]bool{
		`{"Image":"http://a/b","UserName":"u"}`: false, `{"Image":"http://a/b","Password":"p"}`: true, `{"Image":"http://u:p@a/b"}`: true,
	} {
		in, err := resource.Parse([]byte(body))
		must(t, err)
		if redacted, hidden := in.Redacted(m); hidden != want || strings.Contains(redacted, `"p"`) || strings.Contains(redacted, ":p@") {
			t.Errorf("redacted(%s) = %s, %t, want %t", body, redacted, hidden, want)
		}
	}
}

func parsed(uri string) *url.URL { return &url.URL{Path: uri} }
