package rack_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/emulator/rack/space"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/smalldisk"
)

// On a full disk BMCs answer, refuse requests that change a resource, and machines stop in
// their state; when there is space again, all goes on. The rack watches no space here: the
// file system itself refuses the writes.
func TestFullDisk(t *testing.T) {
	prerequisites.Need(t, "small file system")
	smalldisk.Run(t, 16<<20, func(dir string) {
		d := &diary{}
		l := racktest.Start(t, rack.Config{Dir: dir, Rack: hosts(2), Events: d.event, Clock: clock.NewScaled(racktest.Origin, 500)})
		h := l.First()
		at := l.Clock().Now()
		power(t, h, machine.ResetOn) // its POST ends while the disk is full
		empty := smalldisk.Fill(t, dir, 0)
		stored := 0
		for l.Storage() == nil && stored < 10_000 { // the log's last block may have room
			code, _ := call(t, l, h, "PATCH", systemPath, `{"AssetTag":"`+strings.Repeat("x", stored%30+1)+`"}`)
			if code >= 300 && code != http.StatusInsufficientStorage {
				t.Fatalf("PATCH = %d", code)
			}
			stored++
		}
		code, body := call(t, l, h, "PATCH", systemPath, `{"AssetTag":"later"}`)
		if code != http.StatusInsufficientStorage || !strings.Contains(fmt.Sprint(body), "InsufficientStorage") {
			t.Errorf("PATCH = %d, %v, want 507", code, body)
		}
		if err := l.Storage(); err == nil || !strings.Contains(err.Error(), "no space left on the file system of "+dir) {
			t.Errorf("Storage() = %v", err)
		}
		if code, _ := call(t, l, h, "GET", systemPath, ""); code != http.StatusOK {
			t.Errorf("GET = %d", code)
		}
		if err := h.Power(t.Context(), "ForceOff"); !errors.Is(err, bmc.ErrStorageFull) || !space.Full(err) {
			t.Errorf("Power(ForceOff) = %v", err)
		}
		m, err := h.Medium("Disk.0")
		if err == nil {
			_, err = m.WriteAt(make([]byte, 1<<20), 0)
		}
		if !space.Full(err) {
			t.Errorf("WriteAt() to a disk = %v", err)
		}
		before := h.Machine().Phase
		var now time.Time
		patience.Await(t, "time goes on", func() bool { now = l.Clock().Now(); return now.After(at.Add(10 * time.Minute)) }, &now)
		if got := h.Machine().Phase; got != before {
			t.Errorf("the machine went from %s to %s, which cannot be stored", before, got)
		}

		empty()
		var phase machine.Phase
		patience.Await(t, "with space the system runs", func() bool { phase = h.Machine().Phase; return phase == machine.Running }, &phase)
		if code, body := call(t, l, h, "PATCH", systemPath, `{"AssetTag":"later"}`); code >= 300 {
			t.Errorf("PATCH with space = %d, %v", code, body)
		}
		if err := l.Storage(); err != nil {
			t.Errorf("Storage() with space = %v", err)
		}
		l.Stop()
		last, err := rack.LastTime(dir)
		if err != nil {
			t.Fatal(err)
		}
		l = racktest.Start(t, rack.Config{Dir: dir, Clock: clock.NewVirtual(last)})
		if _, body := call(t, l, l.First(), "GET", systemPath, ""); body["AssetTag"] != "later" {
			t.Errorf("after a restart the asset tag is %v", body["AssetTag"])
		}
	})
}

// Below the reserve requests are refused, and machines still change their states.
func TestLittleSpaceRefusesRequests(t *testing.T) {
	var free atomic.Int64
	dir := t.TempDir()
	watch := space.New(space.Config{Dir: dir, Reserve: 1 << 20, Free: func() (int64, error) { return free.Load(), nil }})
	free.Store(2 << 20)
	watch.Look()
	d := &diary{}
	srv := httptest.NewServer(http.FileServer(http.Dir(t.TempDir())))
	defer srv.Close()
	l := racktest.Start(t, rack.Config{Dir: dir, Rack: hosts(1), Events: d.event, Space: watch})
	h := l.First()
	power(t, h, machine.ResetOn)
	free.Store(1000)
	watch.Look()
	for _, tt := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", systemPath, "", 200},
		{"PATCH", systemPath, `{"AssetTag":"later"}`, 507},
		{"POST", systemPath + "/Actions/ComputerSystem.Reset", `{"ResetType":"ForceOff"}`, 507},
		{"POST", mediaPath + "/Actions/VirtualMedia.InsertMedia", `{"Image":"` + srv.URL + `/a.iso"}`, 507},
		{"POST", mediaPath + "/Actions/VirtualMedia.EjectMedia", `{}`, 204}, // gives space
	} {
		if code, body := call(t, l, h, tt.method, tt.path, tt.body); code != tt.want {
			t.Errorf("%s %s = %d, want %d: %v", tt.method, tt.path, code, tt.want, body)
		}
	}
	if n := len(h.BMC().Sessions); n > 0 {
		t.Fatalf("%d sessions", n)
	}
	user, password := l.Credentials(h)
	if code, body := call(t, l, h, "POST", "/redfish/v1/SessionService/Sessions", `{"UserName":"`+user+`","Password":"`+password+`"}`); code != 201 {
		t.Errorf("a session, with which clients can read = %d, %v", code, body)
	}
	l.Advance(5 * time.Minute)
	if got := h.Machine().Phase; got != machine.Running {
		t.Errorf("the machine is %s, want it to go on", got)
	}
	free.Store(2 << 20)
	watch.Look()
	if code, body := call(t, l, h, "PATCH", systemPath, `{"AssetTag":"later"}`); code >= 300 {
		t.Errorf("PATCH with space = %d, %v", code, body)
	}
}
