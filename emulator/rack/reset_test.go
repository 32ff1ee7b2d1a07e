package rack_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/smalldisk"
)

// openRequest sends a request to a host and returns its response, of which the body may
// go on.
func openRequest(t *testing.T, l *racktest.Rack, h *rack.Host, method, path, token, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, h.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token == "" {
		req.SetBasicAuth(l.Credentials(h))
	} else {
		req.Header.Set("X-Auth-Token", token)
	}
	resp, err := l.Client.Do(req)
	if err != nil {
		t.Fatalf("%s %s of %s = %v", method, path, h.Name(), err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// login opens a Redfish session and returns its token and its URI.
func login(t *testing.T, l *racktest.Rack, h *rack.Host) (token, uri string) {
	t.Helper()
	user, password := l.Credentials(h)
	resp := openRequest(t, l, h, "POST", "/redfish/v1/SessionService/Sessions", "", `{"UserName":"`+user+`","Password":"`+password+`"}`)
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("login at %s = %d", h.Name(), resp.StatusCode)
	}
	return resp.Header.Get("X-Auth-Token"), resp.Header.Get("Location")
}

// statusOf returns the status of a GET of the system.
func statusOf(t *testing.T, l *racktest.Rack, h *rack.Host, token string) int {
	t.Helper()
	resp := openRequest(t, l, h, "GET", systemPath, token, "")
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// Resetting a host to its profile empties it: its disks, media, settings and sessions.
// Another host has a session, an event stream and a request under way throughout, and
// all three end well.
func TestResetToProfileLeavesOtherHostsAlone(t *testing.T) {
	image := strings.Repeat("an image ", 1000)
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow.iso" && r.Method == http.MethodGet { // the BMC waits
			arrived <- struct{}{}
			<-release
		}
		_, _ = io.WriteString(w, image)
	}))
	defer srv.Close()
	dir, d := t.TempDir(), &diary{}
	l := racktest.Start(t, rack.Config{Dir: dir, Rack: hosts(2), Events: d.event})
	h, other := l.First(), l.Hosts()[1]
	fresh := h.Machine()
	for _, x := range l.Hosts() {
		power(t, x, machine.ResetOn)
	}
	l.Advance(5 * time.Minute)
	for _, x := range l.Hosts() {
		mark(t, x, "Disk.0", "early")
		if code, _ := call(t, l, x, "PATCH", systemPath, `{"AssetTag":"used"}`); code >= 300 {
			t.Fatalf("PATCH = %d", code)
		}
	}
	if code, body := call(t, l, h, "POST", mediaPath+"/Actions/VirtualMedia.InsertMedia", `{"Image":"`+srv.URL+`/a.iso"}`); code >= 300 {
		t.Fatalf("InsertMedia = %d, %v", code, body)
	}
	fail(t, l, fault.Rule{ID: "stays", BMC: h.Name(), Method: fault.Methods{"PUT"}, Status: 503})
	lost, _ := login(t, l, h)
	token, session := login(t, l, other)
	stream := openRequest(t, l, other, "GET", "/redfish/v1/EventService/SSE", token, "")
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("event stream = %d", stream.StatusCode)
	}
	running := make(chan int, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		user, password := l.Credentials(other)
		req, err := http.NewRequestWithContext(ctx, "POST", other.URL()+mediaPath+"/Actions/VirtualMedia.InsertMedia", strings.NewReader(`{"Image":"`+srv.URL+`/slow.iso"}`))
		if err != nil {
			running <- 0
			return
		}
		req.SetBasicAuth(user, password)
		req.Header.Set("Content-Type", "application/json")
		resp, err := l.Client.Do(req)
		if err != nil {
			running <- 0
			return
		}
		resp.Body.Close()
		running <- resp.StatusCode
	}()
	<-arrived

	if err := h.ResetToProfile(t.Context()); err != nil {
		t.Fatal(err)
	}

	v := h.Machine()
	if v.Power != fresh.Power || v.Phase != fresh.Phase || v.Boots != fresh.Boots || v.OS != nil || v.Identity.Serial != fresh.Identity.Serial {
		t.Errorf("the machine is %s, %s after %d boots, want it as it came: %s, %s", v.Power, v.Phase, v.Boots, fresh.Power, fresh.Phase)
	}
	if got := marked(t, h, "Disk.0"); got != "" {
		t.Errorf("its disk has %q, want nothing", got)
	}
	if code, body := call(t, l, h, "GET", systemPath, ""); code != 200 || body["AssetTag"] == "used" {
		t.Errorf("GET = %d, AssetTag %v, want the profile's", code, body["AssetTag"])
	}
	if _, body := call(t, l, h, "GET", mediaPath, ""); body["Inserted"] != false {
		t.Errorf("its virtual media is Inserted: %v", body["Inserted"])
	}
	if code := statusOf(t, l, h, lost); code != http.StatusUnauthorized {
		t.Errorf("the session of the reset BMC = %d, want 401", code)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "disks", h.Name(), "*")); err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "media", h.Name()+"-*")); err != nil || len(left) > 0 {
		t.Errorf("images left: %v, %v", left, err)
	}
	if n := len(l.Faults()); n != 1 {
		t.Errorf("%d fault rules, want the one that was there", n)
	}

	if got := marked(t, other, "Disk.0"); got != "early" || other.Machine().Power != machine.PowerOn {
		t.Errorf("the other host is %s, its disk has %q", other.Machine().Power, got)
	}
	if code := statusOf(t, l, other, token); code != http.StatusOK {
		t.Errorf("the other host's session %s = %d", session, code)
	}
	close(release)
	if code := <-running; code != http.StatusNoContent {
		t.Errorf("the other host's request = %d, want 204", code)
	}
	line, err := bufio.NewReader(stream.Body).ReadString('\n')
	if err != nil || line == "" {
		t.Errorf("the other host's event stream ended: %q, %v", line, err)
	}

	// It works as a new one does, also after a restart of the rack.
	if code, _ := call(t, l, h, "PATCH", systemPath, `{"AssetTag":"again"}`); code >= 300 {
		t.Errorf("PATCH of the reset host = %d", code)
	}
	power(t, h, machine.ResetOn)
	l.Advance(5 * time.Minute)
	if got := h.Machine().Phase; got == fresh.Phase {
		t.Errorf("the reset host does not start: %s", got)
	}
	stream.Body.Close()
	l.Stop()
	l = racktest.Start(t, rack.Config{Dir: dir})
	if _, body := call(t, l, l.First(), "GET", systemPath, ""); body["AssetTag"] != "again" {
		t.Errorf("after a restart AssetTag = %v", body["AssetTag"])
	}
	if got := marked(t, l.First(), "Disk.0"); got != "" {
		t.Errorf("after a restart its disk has %q", got)
	}
}

// A reset host is new after the rack is opened again, without a change in between.
func TestResetToProfileIsStored(t *testing.T) {
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir, Rack: hosts(1)})
	call(t, l, l.First(), "PATCH", systemPath, `{"AssetTag":"used"}`)
	mark(t, l.First(), "Disk.0", "early")
	if err := l.First().ResetToProfile(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.Stop()
	l = racktest.Start(t, rack.Config{Dir: dir})
	if _, body := call(t, l, l.First(), "GET", systemPath, ""); body["AssetTag"] == "used" || marked(t, l.First(), "Disk.0") != "" {
		t.Errorf("AssetTag %v, disk %q", body["AssetTag"], marked(t, l.First(), "Disk.0"))
	}
}

// A fetch and a session of IPMI end with the BMC that is reset.
func TestResetToProfileEndsTheWorkOfItsBMC(t *testing.T) {
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}))
	defer srv.Close()
	defer close(release)
	l := racktest.Start(t, rack.Config{Rack: hosts(1)})
	h := l.First()
	ended := make(chan error, 1)
	go func() {
		_, err := h.ApplyBMC(t.Context(), bmc.InsertMedia{Slot: h.BMC().Slots[0].ID, Image: srv.URL + "/a.iso"})
		ended <- err
	}()
	<-arrived
	if err := h.ResetToProfile(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("InsertMedia() of the BMC that was reset succeeds")
	}
	if s := h.BMC().Slots[0]; s.Image != "" {
		t.Errorf("the slot has %q", s.Image)
	}
}

// A reset that cannot be stored changes nothing but that the server was without power.
func TestResetToProfileOnAFullDisk(t *testing.T) {
	smalldisk.Run(t, 16<<20, func(dir string) {
		l := racktest.Start(t, rack.Config{Dir: dir, Rack: hosts(1)})
		h := l.First()
		call(t, l, h, "PATCH", systemPath, `{"AssetTag":"used"}`)
		mark(t, h, "Disk.0", "early")
		smalldisk.Fill(t, dir, 0)
		for i := 0; l.Storage() == nil && i < 10_000; i++ {
			call(t, l, h, "PATCH", systemPath, `{"AssetTag":"`+strings.Repeat("x", i%30+1)+`"}`)
		}
		if err := h.ResetToProfile(t.Context()); !errors.Is(err, bmc.ErrStorageFull) {
			t.Errorf("ResetToProfile() = %v, want %v", err, bmc.ErrStorageFull)
		}
		if got := marked(t, h, "Disk.0"); got != "early" {
			t.Errorf("the disk has %q", got)
		}
		if _, err := os.Stat(filepath.Join(dir, "disks", h.Name())); err != nil {
			t.Error(err)
		}
	})
}
