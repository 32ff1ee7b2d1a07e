package control_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/emulator/rack/snapshot"
)

// serve starts a rack of two hosts with its control API.
func serve(t *testing.T) (*racktest.Rack, *control.Client) {
	t.Helper()
	runtimeDir(t)
	r := rackfile.Default(2)
	l := racktest.Start(t, rack.Config{Rack: &r})
	start(t, control.Config{Rack: l.Rack})
	return l, control.NewClient(l.Dir())
}

// wantRefused checks that the lab has refused something with an HTTP status.
func wantRefused(t *testing.T, what string, err error, status int, text string) {
	t.Helper()
	var r *control.Refused
	if !errors.As(err, &r) || r.Status != status || !strings.Contains(r.Text, text) {
		t.Errorf("%s = %v, want it refused with %d and %q", what, err, status, text)
	}
}

func TestSelfTest(t *testing.T) {
	l, c := serve(t)
	if _, err := c.SelfTest(t.Context(), "node-0", control.SelfTest{Result: 0x57, Detail: 0x40}); err != nil {
		t.Fatal(err)
	}
	if got := l.First().BMC().SelfTest; got == nil || got.Result != 0x57 || got.Detail != 0x40 {
		t.Errorf("self test = %+v", got)
	}
	if _, err := c.SelfTest(t.Context(), "node-0", control.SelfTest{Result: 0x55}); err != nil || l.First().BMC().SelfTest != nil {
		t.Errorf("SelfTest(passed) = %v, leaves %+v", err, l.First().BMC().SelfTest)
	}
	_, err := c.SelfTest(t.Context(), "node-0", control.SelfTest{Result: 0xff})
	wantRefused(t, "SelfTest(FFh)", err, http.StatusBadRequest, "result FFh")
}

func TestHostDetail(t *testing.T) {
	l, c := serve(t)
	d, err := c.Host(t.Context(), "node-1")
	if err != nil {
		t.Fatal(err)
	}
	id := l.Hosts()[1].Machine().Identity
	if d.Name != "node-1" || d.Serial != id.Serial || d.UUID != id.UUID || len(d.NICs) != len(id.NICs) || d.NICs[0].MAC != id.NICs[0].MAC ||
		len(d.Media) == 0 || len(d.Order) == 0 || d.Override.Enabled != "Disabled" || d.Model == "" {
		t.Errorf("Host() = %+v", d)
	}
	_, err = c.Host(t.Context(), "node-9")
	wantRefused(t, "Host(node-9)", err, http.StatusNotFound, "there is no host node-9")
}

func TestBoot(t *testing.T) {
	_, c := serve(t)
	for _, tt := range []struct {
		in   control.Override
		want control.Override
		boot string
	}{
		{control.Override{Target: "Pxe"}, control.Override{Enabled: "Once", Target: "Pxe", Mode: "UEFI"}, "Pxe (once)"},
		{control.Override{Target: "Cd", Enabled: "Continuous", Mode: "Legacy"}, control.Override{Enabled: "Continuous", Target: "Cd", Mode: "Legacy"}, "Cd (continuous)"},
		{control.Override{Target: "UefiHttp", Mode: "UEFI", URI: "http://192.0.2.1/boot.iso"},
			control.Override{Enabled: "Once", Target: "UefiHttp", Mode: "UEFI", URI: "http://192.0.2.1/boot.iso"}, "UefiHttp (once)"},
		{control.Override{}, control.Override{Enabled: "Disabled", Target: "None", Mode: "UEFI", URI: "http://192.0.2.1/boot.iso"}, "Hdd, Pxe"},
	} {
		d, err := c.Boot(t.Context(), "node-0", tt.in)
		if err != nil || d.Override != tt.want || d.Boot != tt.boot {
			t.Errorf("Boot(%+v) = %+v, %q, %v, want %+v, %q", tt.in, d.Override, d.Boot, err, tt.want, tt.boot)
		}
	}
	_, err := c.Boot(t.Context(), "node-0", control.Override{Target: "Toaster"})
	wantRefused(t, "Boot(Toaster)", err, http.StatusBadRequest, "Toaster")
	_, err = c.Boot(t.Context(), "node-0", control.Override{Target: "UefiHttp", Mode: "Legacy"})
	wantRefused(t, "Boot(UefiHttp in Legacy)", err, http.StatusConflict, "Mode")
}

func TestResetBMC(t *testing.T) {
	l, c := serve(t)
	if h, err := c.ResetBMC(t.Context(), "node-0", control.BMCReset{}); err != nil || h.Name != "node-0" {
		t.Fatalf("ResetBMC() = %+v, %v", h, err)
	}
	gone := false
	for range 600 {
		l.Advance(time.Second)
		h, err := c.Host(t.Context(), "node-0")
		if err != nil {
			t.Fatal(err)
		}
		gone = gone || h.Reach == "gone"
		if gone && h.Reach == "reachable" {
			break
		}
	}
	if h := l.First(); !gone || h.Reach() != rack.Reachable {
		t.Errorf("it was gone: %v; it is %s now", gone, h.Reach())
	}
	_, err := c.ResetBMC(t.Context(), "node-0", control.BMCReset{Kind: "Kick"})
	wantRefused(t, "ResetBMC(Kick)", err, http.StatusBadRequest, "Kick")
	if _, err := c.ResetBMC(t.Context(), "node-0", control.BMCReset{Defaults: "ResetAll"}); err != nil {
		t.Error(err)
	}
}

func TestDisks(t *testing.T) {
	l, c := serve(t)
	d, err := c.Disks(t.Context(), "node-0")
	if err != nil || len(d.Bays) < 2 || len(d.Shelf) != 0 || d.Bays[0].Health != "OK" || d.Bays[0].Capacity == 0 || d.Bays[0].Model == "" {
		t.Fatalf("Disks() = %+v, %v", d, err)
	}
	bay, serial := d.Bays[0].ID, d.Bays[0].Serial
	if d, err = c.PullDisk(t.Context(), "node-0", bay); err != nil || len(d.Shelf) != 1 || d.Shelf[0].Serial != serial || d.Shelf[0].ID != bay {
		t.Errorf("PullDisk() = %+v, %v", d, err)
	}
	_, err = c.PullDisk(t.Context(), "node-0", bay)
	wantRefused(t, "pulling from an empty bay", err, http.StatusNotFound, bay)
	if d, err = c.InsertDisk(t.Context(), "node-0", bay, control.DiskInsertion{What: "new"}); err != nil || len(d.Shelf) != 1 || d.Bays[0].Serial == serial || d.Bays[0].Serial == "" {
		t.Errorf("InsertDisk(new) = %+v, %v", d, err)
	}
	_, err = c.InsertDisk(t.Context(), "node-0", bay, control.DiskInsertion{})
	wantRefused(t, "a second drive", err, http.StatusConflict, bay)
	_, err = c.InsertDisk(t.Context(), "node-0", bay, control.DiskInsertion{What: "floppy"})
	wantRefused(t, "a floppy", err, http.StatusBadRequest, "use same, new or foreign")
	for _, tt := range []struct {
		how, health string
		predicted   bool
	}{{"predict", "Warning", true}, {"unpredict", "OK", false}, {"", "Critical", false}, {"revive", "OK", false}} {
		d, err := c.FailDisk(t.Context(), "node-0", bay, control.DiskFailure{How: tt.how})
		if err != nil || d.Bays[0].Health != tt.health || d.Bays[0].Predicted != tt.predicted {
			t.Errorf("FailDisk(%q) = %+v, %v, want %s", tt.how, d.Bays[0], err, tt.health)
		}
	}
	_, err = c.FailDisk(t.Context(), "node-0", bay, control.DiskFailure{How: "explode"})
	wantRefused(t, "exploding", err, http.StatusBadRequest, "use fail, predict")
	if got, _ := l.First().Machine().Storage.Drive(bay); got.Serial == serial {
		t.Error("the lab has the old drive still")
	}
}

func TestMediaInsertAndEject(t *testing.T) {
	l, c := serve(t)
	images := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, ok := r.BasicAuth(); r.URL.Path == "/secret.iso" && (!ok || user != "me") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, strings.Repeat("x", 2048))
	}))
	defer images.Close()
	slots, err := c.Media(t.Context(), "node-0")
	if err != nil || len(slots) == 0 || slots[0].Inserted {
		t.Fatalf("Media() = %+v, %v", slots, err)
	}
	slot := slots[0].Slot
	got, err := c.InsertMedia(t.Context(), "node-0", slot, control.Image{URL: images.URL + "/secret.iso", User: "me", Password: "pass", WriteProtected: true})
	want := control.Media{Slot: slot, Image: images.URL + "/secret.iso", Inserted: true, WriteProtected: true, Size: 2048}
	if err != nil || got[0] != want {
		t.Errorf("InsertMedia() = %+v, %v, want %+v", got, err, want)
	}
	_, err = c.InsertMedia(t.Context(), "node-0", slot, control.Image{URL: images.URL})
	wantRefused(t, "a second image", err, http.StatusConflict, "in use")
	if got, err := c.EjectMedia(t.Context(), "node-0", slot); err != nil || got[0].Inserted {
		t.Errorf("EjectMedia() = %+v, %v", got, err)
	}
	_, err = c.EjectMedia(t.Context(), "node-0", "Tape")
	wantRefused(t, "EjectMedia(Tape)", err, http.StatusNotFound, "Tape")
	_, err = c.InsertMedia(t.Context(), "node-0", slot, control.Image{URL: images.URL + "/secret.iso"})
	wantRefused(t, "an image that is denied", err, http.StatusBadRequest, "denied")
	if d, err := c.Host(t.Context(), "node-0"); err != nil || d.Media[0].Inserted || l.First().BMC().Slots[0].Inserted {
		t.Errorf("after all: %+v, %v", d.Media, err)
	}
}

func TestLogIsReadAndCleared(t *testing.T) {
	l, c := serve(t)
	if _, err := c.Power(t.Context(), "node-0", "On"); err != nil {
		t.Fatal(err)
	}
	l.Advance(time.Minute)
	entries, err := c.Log(t.Context(), "node-0", control.Events)
	if err != nil || len(entries) == 0 {
		t.Fatalf("Log() = %+v, %v", entries, err)
	}
	if e := entries[0]; e.Kind == "" || e.Text == "" || e.Severity == "" || e.Time.Before(racktest.Origin) || e.ID == 0 {
		t.Errorf("Log() begins with %+v", e)
	}
	if err := c.ClearLog(t.Context(), "node-0", control.Events); err != nil {
		t.Fatal(err)
	}
	if entries, err := c.Log(t.Context(), "node-0", control.Events); err != nil || entries == nil || len(entries) > 0 {
		t.Errorf("Log() after ClearLog = %+v, %v", entries, err)
	}
	if entries, err := c.Log(t.Context(), "node-0", control.Audit); err != nil || len(entries) == 0 {
		t.Errorf("Log(audit) = %+v, %v, want who has cleared the other", entries, err)
	}
	_, err = c.Log(t.Context(), "node-0", "diary")
	wantRefused(t, "Log(diary)", err, http.StatusNotFound, "use events or audit")
}

func TestFaults(t *testing.T) {
	l, c := serve(t)
	added, err := c.AddFaults(t.Context(), fault.Rule{BMC: "node-0", Status: 503, RetryAfter: fault.Duration{Duration: time.Second}}, fault.Rule{ID: "slow", Latency: "1s"})
	if err != nil || len(added) != 2 || added[0].ID != "fault-1" || added[1].ID != "slow" {
		t.Fatalf("AddFaults() = %+v, %v", added, err)
	}
	listed, err := c.Faults(t.Context())
	if err != nil || len(listed) != 2 {
		t.Fatalf("Faults() = %+v, %v", listed, err)
	}
	if d := cmp.Diff(l.Faults(), listed, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("Faults() (-lab +socket):\n%s", d)
	}
	_, err = c.AddFaults(t.Context(), fault.Rule{Stale: true}, fault.Rule{ID: "slow", Stale: true})
	wantRefused(t, "a rule that is there", err, http.StatusConflict, "id is taken: slow")
	_, err = c.AddFaults(t.Context(), fault.Rule{Stale: true}, fault.Rule{Status: 42})
	wantRefused(t, "a wrong rule", err, http.StatusBadRequest, "status: 42: must be from 200")
	if listed, _ := c.Faults(t.Context()); len(listed) != 2 {
		t.Errorf("after refusals there are %d rules, want 2", len(listed))
	}
	if err := c.RemoveFault(t.Context(), "slow"); err != nil {
		t.Error(err)
	}
	wantRefused(t, "RemoveFault() again", c.RemoveFault(t.Context(), "slow"), http.StatusNotFound, "no such rule")
	if st, err := c.Status(t.Context()); err != nil || st.Faults != 1 {
		t.Errorf("Status() = %+v, %v, want 1 fault", st, err)
	}
}

// get reads the service root of a BMC.
func get(t *testing.T, l *racktest.Rack, h *rack.Host) {
	t.Helper()
	resp, err := l.Client.Get(h.URL() + "/redfish/v1/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
}

func TestJournalQuery(t *testing.T) {
	l, c := serve(t)
	get(t, l, l.Hosts()[0])
	l.Advance(time.Minute)
	get(t, l, l.Hosts()[1])
	for _, tt := range []struct {
		q    control.Question
		want int
	}{
		{control.Question{}, 2},
		{control.Question{Host: "node-1"}, 1},
		{control.Question{Method: "get", Path: "/redfish/", Status: "2xx", Kind: "request"}, 2},
		{control.Question{Since: "30s"}, 1},
		{control.Question{Since: racktest.Origin.Format(time.RFC3339)}, 2},
		{control.Question{Last: 1}, 1},
		{control.Question{User: "admin"}, 0},
	} {
		got, err := c.Journal(t.Context(), tt.q)
		if err != nil || got == nil || len(got) != tt.want {
			t.Errorf("Journal(%+v) = %+v, %v, want %d", tt.q, got, err, tt.want)
		}
	}
	for text, q := range map[string]control.Question{
		"since": {Since: "yesterday"}, "status": {Status: "good"}, "host": {Host: "["}, "kind": {Kind: "song"},
	} {
		_, err := c.Journal(t.Context(), q)
		wantRefused(t, text, err, http.StatusBadRequest, text)
	}
	wantRefused(t, "Follow()", c.Follow(t.Context(), control.Question{Since: "yesterday"}, nil), http.StatusBadRequest, "since")
}

func TestJournalFollow(t *testing.T) {
	l, c := serve(t)
	get(t, l, l.First())
	came := make(chan journal.Entry)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- c.Follow(ctx, control.Question{Kind: "request"}, func(e journal.Entry) error {
			came <- e
			return nil
		})
	}()
	if e := <-came; e.Host != "node-0" {
		t.Errorf("first: %+v", e)
	}
	get(t, l, l.Hosts()[1])
	if e := <-came; e.Host != "node-1" || e.Path != "/redfish/v1/" {
		t.Errorf("then: %+v", e)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Follow() = %v, want nil when its context ends", err)
	}
	enough := errors.New("enough")
	if err := c.Follow(t.Context(), control.Question{}, func(journal.Entry) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("Follow() = %v, want %v", err, enough)
	}
}

// A lab that ends does not wait for clients that follow its journal.
func TestFollowEndsWithTheLab(t *testing.T) {
	runtimeDir(t)
	l := racktest.Start(t, rack.Config{})
	stop := start(t, control.Config{Rack: l.Rack})
	get(t, l, l.First())
	began := make(chan bool, 1)
	done := make(chan error, 1)
	go func() {
		done <- control.NewClient(l.Dir()).Follow(t.Context(), control.Question{}, func(journal.Entry) error { began <- true; return nil })
	}()
	<-began
	stop()
	if err := <-done; err != nil {
		t.Errorf("Follow() = %v", err)
	}
}

func TestSaveSnapshot(t *testing.T) {
	l, c := serve(t)
	to := filepath.Join(t.TempDir(), "s.tar")
	info, err := c.SaveSnapshot(t.Context(), to, nil)
	if err != nil || info.Hosts != 2 || !info.Time.Equal(l.Clock().Now()) {
		t.Errorf("SaveSnapshot() = %+v, %v", info, err)
	}
	if got, err := snapshot.Open(to); err != nil || got.Hosts != info.Hosts || !got.Time.Equal(info.Time) {
		t.Errorf("Open() = %+v, %v, want %+v", got, err, info)
	}
	_, err = c.SaveSnapshot(t.Context(), to, nil)
	wantRefused(t, "a second snapshot there", err, http.StatusInternalServerError, "exists")
	_, err = c.SaveSnapshot(t.Context(), "s.tar", nil)
	wantRefused(t, "a path that is not absolute", err, http.StatusBadRequest, "absolute")
}

func TestMetrics(t *testing.T) {
	l, c := serve(t)
	get(t, l, l.First())
	get(t, l, l.First())
	if _, err := c.Power(t.Context(), "node-1", "On"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddFaults(t.Context(), fault.Rule{ID: "out", BMC: "node-1", Offline: true}); err != nil {
		t.Fatal(err)
	}
	text, err := c.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`metalab_redfish_requests_total{bmc="node-0",method="GET",status="200"} 2`,
		`metalab_redfish_request_seconds_count{method="GET"} 2`,
		`metalab_bmc_requests_total{dialect="generic",method="GET",status="200"} 2`,
		`metalab_ipmi_sessions_total 0`,
		`metalab_redfish_jobs 0`,
		`metalab_store_commits_total `,
		`metalab_store_saves_total `,
		`metalab_store_full 0`,
		`metalab_time_speed_factor 60`,
		`metalab_redfish_request_seconds_bucket{method="GET",le="0.001"} 2`,
		`metalab_hosts{power="Off"} 1`,
		`metalab_hosts{power="PoweringOn"} 1`,
		`metalab_bmcs_offline 1`,
		`metalab_fault_hits_total{rule="out"} 0`,
		`metalab_time_seconds `,
		`go_goroutines `,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("metrics have no %s", want)
		}
	}
	if strings.Contains(string(text), `redfish_sent_bytes_total{bmc="node-0",method="GET",status="200"} 0`) {
		t.Error("no bytes were sent")
	}
}
