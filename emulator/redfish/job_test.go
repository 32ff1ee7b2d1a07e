package redfish

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

const jobs = "/redfish/v1/JobService/Jobs"

func TestJobSchedulesRequest(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	for _, tt := range []struct {
		body   string
		status int
		text   string
	}{
		{`{"Name":"x"}`, 400, "#/Payload"},
		{`{"Payload":{"HttpOperation":"GET","TargetUri":"/redfish/v1/Systems/1"}}`, 400, "#/Payload/HttpOperation"},
		{`{"Payload":{"HttpOperation":"POST","TargetUri":"/redfish/v1/Systems/1"}}`, 400, "#/Payload/TargetUri"},
		{`{"Payload":{"HttpOperation":"PATCH","TargetUri":"http://elsewhere/"}}`, 400, "#/Payload/TargetUri"},
		{`{"Payload":{"HttpOperation":"PATCH","TargetUri":"/redfish/v1/Systems/1","JsonBody":"[]"}}`, 400, "#/Payload/JsonBody"},
		{`{"Payload":{"HttpOperation":"PATCH","TargetUri":"/redfish/v1/Systems/1"},"Schedule":{"RecurrenceInterval":"PT1S"}}`, 400, "#/Schedule/RecurrenceInterval"},
		{`{"Name":"night","Payload":{"HttpOperation":"PATCH","TargetUri":"/redfish/v1/Systems/1","JsonBody":"{\"Password\":\"hidden-11\"}"},
			"Schedule":{"InitialStartTime":"2026-03-02T02:00:00Z","RecurrenceInterval":"P1D","MaxOccurrences":3}}`, 201, `"JobState":"Pending"`},
	} {
		w := call(t, s, "admin", "POST", jobs, tt.body)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.text) || strings.Contains(w.Body.String(), "hidden-") && tt.status == 201 {
			t.Errorf("%s; want %d %s", shape("POST", jobs, tt.body, w), tt.status, tt.text)
		}
	}
	if w := call(t, s, "operator", "POST", jobs, `{}`); w.Code != 403 {
		t.Errorf("%s", shape("POST", jobs, "", w))
	}
	// times checks which times the job has.
	times := func(when string, want ...string) {
		t.Helper()
		body, _ := get(t, s, jobs+"/1")
		var got []string
		for _, name := range []string{"CreationTime", "StartTime", "EndTime"} {
			if body[name] != nil {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("times of a job that %s (-want +got):\n%s", when, diff)
		}
	}
	times("waits", "CreationTime")
	h.pass(24 * time.Hour)
	times("runs", "CreationTime", "StartTime")
	body, _ := get(t, s, jobs+"/1")
	if body["JobState"] != "Running" || body["Schedule"].(map[string]any)["InitialStartTime"] != "2026-03-03T02:00:00Z" {
		t.Errorf("job = %v", body)
	}
	_, err := h.ApplyBMC(t.Context(), bmc.EndJob{ID: "1", Status: 200})
	must(t, err)
	if _, err := openBundle(); err == nil {
		walk(t, s, newSchemas(t))
	}
	for _, step := range []struct {
		method, uri string
		status      int
	}{
		{"POST", jobs + "/1/Actions/Job.Cancel", 204}, {"POST", jobs + "/1/Actions/Job.Cancel", 409},
		{"DELETE", jobs + "/1", 204}, {"DELETE", jobs + "/1", 404}, {"POST", "/redfish/v1/JobService/Actions/JobService.CancelAllJobs", 204},
	} {
		if w := call(t, s, "admin", step.method, step.uri, ""); w.Code != step.status {
			t.Errorf("%s; want %d", shape(step.method, step.uri, "", w), step.status)
		}
		if step.status == 409 {
			times("was cancelled", "CreationTime", "StartTime", "EndTime")
		}
	}
}
