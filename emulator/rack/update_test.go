package rack_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/integrity"
	"github.com/metalab-dev/metalab/emulator/rack/outbound"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

const (
	updateService = "/redfish/v1/UpdateService"
	simpleUpdate  = updateService + "/Actions/UpdateService.SimpleUpdate"
	inventory     = updateService + "/FirmwareInventory/"
)

// firmwareImage builds an image for the BIOS of the generic server.
func firmwareImage(t *testing.T, version string) []byte {
	t.Helper()
	var b bytes.Buffer
	h := firmware.Image{Kind: firmware.KindBIOS, Vendor: "Metalab", Model: "Generic Server G1", Version: version}
	if _, err := firmware.BuildImage(&b, h, strings.NewReader(strings.Repeat("firmware", 10_000))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// firmwareServer serves a valid image, a damaged one, one that never ends, and one
// that needs a password.
func firmwareServer(t *testing.T) http.Handler {
	good := firmwareImage(t, "2.4.0")
	bad := bytes.Clone(good)
	bad[len(bad)-1] ^= 1
	send := func(w http.ResponseWriter, b []byte) { _, _ = w.Write(b) } // some clients leave
	mux := http.NewServeMux()
	mux.HandleFunc("/bios.img", func(w http.ResponseWriter, _ *http.Request) { send(w, good) })
	mux.HandleFunc("/bad.img", func(w http.ResponseWriter, _ *http.Request) { send(w, bad) })
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { send(w, []byte("<html>")) })
	mux.HandleFunc("/secret.img", func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != "u" || p != "hidden-1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		send(w, good)
	})
	mux.HandleFunc("/stalls.img", func(w http.ResponseWriter, r *http.Request) {
		send(w, good[:1000])
		_ = http.NewResponseController(w).Flush() // fails when the fetch was cancelled
		<-r.Context().Done()
	})
	return mux
}

// storedImages lists the files of firmware images.
func storedImages(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "updates"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// update starts an update, and returns the URI of its task.
func update(t *testing.T, l *racktest.Rack, h *rack.Host, body string) string {
	t.Helper()
	code, got := call(t, l, h, "POST", simpleUpdate, body)
	if code != http.StatusAccepted {
		t.Fatalf("SimpleUpdate %s = %d, %v", body, code, got)
	}
	return got["@odata.id"].(string)
}

// taskState returns the state of a task and its messages.
func taskState(t *testing.T, l *racktest.Rack, h *rack.Host, uri string) string {
	t.Helper()
	code, got := call(t, l, h, "GET", uri, "")
	if code != http.StatusOK {
		t.Fatalf("GET %s = %d, %v", uri, code, got)
	}
	text := fmt.Sprint(got["TaskState"])
	for _, m := range got["Messages"].([]any) {
		id := m.(map[string]any)["MessageId"].(string)
		if strings.HasPrefix(id, "Update.") {
			text += " " + id[strings.LastIndexByte(id, '.')+1:]
		}
	}
	return text
}

func biosVersion(t *testing.T, l *racktest.Rack, h *rack.Host) any {
	t.Helper()
	_, got := call(t, l, h, "GET", inventory+"BIOS", "")
	return got["Version"]
}

func reset(t *testing.T, l *racktest.Rack, h *rack.Host, kind machine.ResetKind) {
	t.Helper()
	if err := h.Power(t.Context(), string(kind)); err != nil {
		t.Fatal(err)
	}
	l.Advance(30 * time.Minute)
}

func TestSimpleUpdateFetchesAndInstalls(t *testing.T) {
	srv := httptest.NewServer(firmwareServer(t))
	defer srv.Close()
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir, Media: outbound.Config{Stall: 200 * time.Millisecond}})
	h := l.First()
	for body, want := range map[string]string{
		`{"ImageURI":"` + srv.URL + `/none.img"}`:                                    "Exception TransferFailed",
		`{"ImageURI":"` + srv.URL + `/secret.img"}`:                                  "Exception TransferFailed",
		`{"ImageURI":"` + srv.URL + `/stalls.img"}`:                                  "Exception TransferFailed",
		`{"ImageURI":"` + srv.URL + `/page"}`:                                        "Exception TransferringToComponent VerifyingAtComponent VerificationFailed",
		`{"ImageURI":"` + srv.URL + `/bad.img"}`:                                     "Exception TransferringToComponent VerifyingAtComponent VerificationFailed",
		`{"ImageURI":"` + srv.URL + `/bios.img","Targets":["` + inventory + `BMC"]}`: "Exception TransferringToComponent VerifyingAtComponent UpdateNotApplicable",
	} {
		task := update(t, l, h, body)
		l.Advance(time.Minute)
		if got := taskState(t, l, h, task); got != want {
			t.Errorf("SimpleUpdate %s: %s, want %s", body, got, want)
		}
		if got := biosVersion(t, l, h); got != "2.3.1" {
			t.Errorf("SimpleUpdate %s: BIOS %v", body, got)
		}
		if names := storedImages(t, dir); len(names) > 0 {
			t.Errorf("SimpleUpdate %s: %v stays", body, names)
		}
	}
	task := update(t, l, h, `{"ImageURI":"`+srv.URL+`/secret.img","Username":"u","Password":"hidden-1"}`)
	l.Settle()
	if names := storedImages(t, dir); len(names) != 1 {
		t.Errorf("%v is stored while the update is under way, want its image", names)
	}
	l.Advance(time.Hour)
	if got := taskState(t, l, h, task); !strings.HasPrefix(got, "Pending ") {
		t.Errorf("the task is %s, want it to wait for a reset", got)
	}
	reset(t, l, h, machine.ResetOn)
	if got := taskState(t, l, h, task); !strings.HasPrefix(got, "Completed ") || biosVersion(t, l, h) != "2.4.0" {
		t.Errorf("the task is %s, BIOS %v", got, biosVersion(t, l, h))
	}
	if names := storedImages(t, dir); len(names) > 0 {
		t.Errorf("%v stays after the update", names)
	}
}

func TestSimpleUpdateVerifiesTheServersCertificate(t *testing.T) {
	srv := httptest.NewUnstartedServer(firmwareServer(t))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // the server logs the client that leaves
	srv.StartTLS()
	defer srv.Close()
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	body := `{"ImageURI":"` + srv.URL + `/bios.img"}`
	task := update(t, l, h, body)
	l.Settle()
	if got := taskState(t, l, h, task); got != "Exception TransferFailed" {
		t.Errorf("from an untrusted server: %s", got)
	}
	if code, got := call(t, l, h, "PATCH", updateService, `{"VerifyRemoteServerCertificate":false}`); code != http.StatusOK {
		t.Fatalf("PATCH = %d, %v", code, got)
	}
	task = update(t, l, h, body)
	l.Advance(time.Hour)
	if got := taskState(t, l, h, task); !strings.HasPrefix(got, "Pending ") {
		t.Errorf("from a server that is trusted unseen: %s", got)
	}
}

func TestDeleteOfTaskCancelsSimpleUpdate(t *testing.T) {
	srv := httptest.NewServer(firmwareServer(t))
	defer srv.Close()
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir})
	h := l.First()
	task := update(t, l, h, `{"ImageURI":"`+srv.URL+`/stalls.img"}`)
	if code, got := call(t, l, h, "DELETE", task, ""); code >= 300 {
		t.Fatalf("DELETE %s = %d, %v", task, code, got)
	}
	l.Settle()
	if got := taskState(t, l, h, task); !strings.HasPrefix(got, "Cancelled") {
		t.Errorf("the task is %s", got)
	}
	if names := storedImages(t, dir); len(names) > 0 {
		t.Errorf("%v stays", names)
	}
}

// An update continues after a restart of the rack, in whichever phase it was.
func TestFirmwareUpdateSurvivesARestart(t *testing.T) {
	srv := httptest.NewServer(firmwareServer(t))
	defer srv.Close()
	for _, at := range []time.Duration{time.Second, 15 * time.Second, time.Minute, time.Hour} {
		dir := t.TempDir()
		l := racktest.Start(t, rack.Config{Dir: dir})
		task := update(t, l, l.First(), `{"ImageURI":"`+srv.URL+`/bios.img"}`)
		l.Advance(at)
		before := taskState(t, l, l.First(), task)
		l.Stop()
		if names := storedImages(t, dir); len(names) != 1 {
			t.Errorf("after %v %v is stored, want the image", at, names)
		}
		l = racktest.Start(t, rack.Config{Dir: dir})
		h := l.First()
		if got := taskState(t, l, h, task); got != before {
			t.Errorf("after %v the task was %q, and is %q after the restart", at, before, got)
		}
		for _, u := range h.Machine().Firmware.Updates() {
			f, err := h.Image(u.ID)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(f)
			f.Close()
			if err != nil || !bytes.Equal(b, firmwareImage(t, "2.4.0")) {
				t.Errorf("after %v the image has %d bytes, %v", at, len(b), err)
			}
		}
		l.Advance(time.Hour)
		reset(t, l, h, machine.ResetOn)
		if got := biosVersion(t, l, h); got != "2.4.0" {
			t.Errorf("after %v: BIOS %v", at, got)
		}
		l.Stop()
	}
}

func TestFirmwareUpdateFailsWhenItsImageIsLost(t *testing.T) {
	srv := httptest.NewServer(firmwareServer(t))
	defer srv.Close()
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir})
	task := update(t, l, l.First(), `{"ImageURI":"`+srv.URL+`/bios.img","@Redfish.OperationApplyTime":"OnReset"}`)
	l.Advance(time.Minute)
	l.Stop()
	for _, name := range storedImages(t, dir) {
		if err := os.Remove(filepath.Join(dir, "updates", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, integrity.File)); err != nil { // the user goes on with the files as they are
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "updates", "node-0-7.part"), nil, 0o600); err != nil { // as a killed rack leaves it
		t.Fatal(err)
	}
	l = racktest.Start(t, rack.Config{Dir: dir})
	if got := taskState(t, l, l.First(), task); !strings.HasPrefix(got, "Exception") {
		t.Errorf("the task is %s", got)
	}
	if u := l.First().Machine().Firmware.Updates(); len(u) > 0 {
		t.Errorf("%+v is still under way", u)
	}
	if names := storedImages(t, dir); len(names) > 0 {
		t.Errorf("%v stays", names)
	}
}

func TestMultipartPushInstallsFirmware(t *testing.T) {
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir})
	h := l.First()
	user, password := l.Credentials(h)
	push := func(body []byte) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", h.URL()+updateService+"/Upload", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(user, password)
		r.Header.Set("Content-Type", "application/octet-stream")
		resp, err := l.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for range 3 { // each with its own file
		if code := push(firmwareImage(t, "2.5.0")); code != http.StatusAccepted {
			t.Fatalf("push = %d", code)
		}
	}
	if names := storedImages(t, dir); len(names) != 3 {
		t.Errorf("%v is stored, want three images", names)
	}
	l.Advance(time.Hour)
	reset(t, l, h, machine.ResetOn)
	if got := biosVersion(t, l, h); got != "2.5.0" {
		t.Errorf("BIOS %v", got)
	}
	if names := storedImages(t, dir); len(names) > 0 {
		t.Errorf("%v stays", names)
	}
}
