package redfish

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

var (
	biosImage = firmware.Image{Kind: "bios", Vendor: "Metalab", Model: "Generic Server G1", Version: "2.4.0", Lowest: "2.1.0", Released: "2026-02-01"}
	nicImage  = firmware.Image{Kind: "nic", Vendor: "Metalab", Model: "ML25G-2P", Version: "22.40.1"}
	bmcImage  = firmware.Image{Kind: "bmc", Vendor: "Metalab", Model: "Generic Server G1", Version: "1.5.0"}
)

const simpleURI = resource.UpdateService + "/Actions/" + "UpdateService.SimpleUpdate"

func built(t testing.TB, h firmware.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	_, err := firmware.BuildImage(&b, h, strings.NewReader(strings.Repeat("payload ", 100)))
	must(t, err)
	return b.Bytes()
}

// newUpdate returns a bench whose firmware images are on a server.
func newUpdate(t *testing.T) *bench {
	b := newBench(t)
	b.h.images.remote = map[string][]byte{
		"http://images.test/bios.img": built(t, biosImage), "http://images.test/nic.img": built(t, nicImage),
		"https://images.test/bmc.img": built(t, bmcImage), "http://images.test/page": []byte("<html>Not Found</html>"),
	}
	return b
}

// begins sends a request whose response must be 202 with a task, and returns the task's
// URI.
func (b *bench) begins(w *httptest.ResponseRecorder) string {
	b.t.Helper()
	if w.Code != http.StatusAccepted || !strings.HasPrefix(w.Header().Get("Location"), "/redfish/v1/TaskService/TaskMonitors/") {
		b.t.Fatalf("%d %v %s, want 202 and a task monitor", w.Code, w.Header(), w.Body)
	}
	var task map[string]any
	must(b.t, json.Unmarshal(w.Body.Bytes(), &task))
	return task["@odata.id"].(string)
}

func (b *bench) simple(body string, header ...string) string {
	b.t.Helper()
	return b.begins(call(b.t, b.s, "admin", "POST", simpleURI, body, header...))
}

func (b *bench) task(uri, state string, keys ...string) {
	b.t.Helper()
	task := b.get(uri)
	var got []string
	for _, m := range task["Messages"].([]any) {
		id := at(m, "MessageId").(string)
		if strings.HasPrefix(id, "Update.") {
			got = append(got, id[strings.LastIndexByte(id, '.')+1:])
		}
	}
	if task["TaskState"] != state || len(keys) > 0 && !cmp.Equal(keys, got) {
		b.t.Errorf("%s is %v and says %q, want %s and %q", uri, task["TaskState"], got, state, keys)
	}
}

func (b *bench) version(component string) any {
	b.t.Helper()
	return b.get(resource.FirmwareURI(component))["Version"]
}

// All steps of an update that needs a reset: sent, verified, written,
// waiting, running; with the inventory at each step.
func TestSimpleUpdateOfTheBIOS(t *testing.T) {
	b := newUpdate(t)
	task := b.simple(`{"ImageURI":"http://images.test/bios.img"}`)
	b.task(task, "Running", "TransferringToComponent")
	if got := at(b.get(resource.FirmwareURI("BIOS")), "Status", "State"); got != "Enabled" {
		t.Errorf("State = %v before the image was verified", got)
	}
	b.h.pass(30 * time.Second)
	b.task(task, "Running", "TransferringToComponent", "VerifyingAtComponent", "InstallingOnComponent")
	if got := at(b.get(resource.FirmwareURI("BIOS")), "Status", "State"); got != "Updating" {
		t.Errorf("State = %v while it is written", got)
	}
	b.h.pass(10 * time.Minute)
	b.task(task, "Pending", "TransferringToComponent", "VerifyingAtComponent", "InstallingOnComponent", "AwaitToActivate")
	staged := b.get(resource.SoftwareInventory + "/BIOS.Staged")
	if staged["Version"] != "2.4.0" || staged["Staged"] != true || b.version("BIOS") != "2.3.1" {
		t.Errorf("staged: %v, and running %v", staged, b.version("BIOS"))
	}
	b.restart()
	b.task(task, "Completed", "TransferringToComponent", "VerifyingAtComponent", "InstallingOnComponent", "AwaitToActivate", "UpdateSuccessful")
	now := b.get(resource.FirmwareURI("BIOS"))
	if now["Version"] != "2.4.0" || now["LowestSupportedVersion"] != "2.1.0" || now["ReleaseDate"] != "2026-02-01T00:00:00Z" {
		t.Errorf("inventory = %v", now)
	}
	if got := b.get(sys)["BiosVersion"]; got != "2.4.0" {
		t.Errorf("BiosVersion = %v", got)
	}
	if got := b.attributes(biosURI)["SystemBiosVersion"]; got != "2.4.0" {
		t.Errorf("SystemBiosVersion = %v", got)
	}
	backup := b.get(resource.SoftwareInventory + "/BIOS.Backup")
	if backup["Version"] != "2.3.1" {
		t.Errorf("backup = %v", backup)
	}
	b.send(404, "GET", resource.SoftwareInventory+"/BIOS.Staged", "")

	// The previous version can be installed again.
	task = b.begins(call(t, b.s, "admin", "POST", resource.SoftwareInventory+"/BIOS.Backup/Actions/SoftwareInventory.Activate", "{}"))
	b.h.pass(time.Minute)
	b.restart()
	b.task(task, "Completed")
	if got := b.version("BIOS"); got != "2.3.1" {
		t.Errorf("version = %v after the backup was activated", got)
	}
}

func TestSimpleUpdateOfTheBMC(t *testing.T) {
	b := newUpdate(t)
	task := b.simple(`{"ImageURI":"images.test/bmc.img","TransferProtocol":"HTTPS","Username":"u","Password":"hidden-3"}`)
	if d := cmp.Diff(resource.ImageSource{URL: "https://images.test/bmc.img", User: "u", Password: "hidden-3", Most: 256 << 20}, b.h.images.from); d != "" {
		t.Errorf("fetched from (-want +got):\n%s", d)
	}
	b.h.pass(10 * time.Minute)
	b.task(task, "Completed")
	if got := b.get("/redfish/v1/Managers/1")["FirmwareVersion"]; got != "1.5.0" {
		t.Errorf("FirmwareVersion = %v", got)
	}
	if w := call(t, b.s, "admin", "GET", task, ""); strings.Contains(w.Body.String(), "hidden-3") {
		t.Errorf("the task shows the password: %s", w.Body)
	}
}

func TestInvalidSimpleUpdateParameterIsRejected(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                        "ActionParameterMissing UpdateService.SimpleUpdate ImageURI",
		`{"ImageURI":7}`:            "ActionParameterValueTypeError 7 ImageURI UpdateService.SimpleUpdate",
		`{"ImageURI":"tftp://h/x"}`: "ActionParameterValueFormatError tftp://h/x ImageURI UpdateService.SimpleUpdate",
		`{"ImageURI":"http:///x"}`:  "ActionParameterValueFormatError http:///x ImageURI UpdateService.SimpleUpdate",
		`{"ImageURI":"h/x","TransferProtocol":"NFS"}`:                                        "ActionParameterValueNotInList NFS TransferProtocol UpdateService.SimpleUpdate",
		`{"ImageURI":"http://h/x","Colour":1}`:                                               "ActionParameterUnknown UpdateService.SimpleUpdate Colour",
		`{"ImageURI":"http://h/x","ForceUpdate":"yes"}`:                                      "ActionParameterValueTypeError yes ForceUpdate UpdateService.SimpleUpdate",
		`{"ImageURI":"http://h/x","Targets":"BIOS"}`:                                         "ActionParameterValueTypeError BIOS Targets UpdateService.SimpleUpdate",
		`{"ImageURI":"http://h/x","Targets":["/redfish/v1/Fans/1"]}`:                         "ActionParameterValueNotInList /redfish/v1/Fans/1 Targets UpdateService.SimpleUpdate",
		`{"ImageURI":"http://h/x","ExcludeTargets":["x"]}`:                                   "ActionParameterValueNotInList x ExcludeTargets UpdateService.SimpleUpdate",
		`{"ImageURI":"http://h/x","@Redfish.OperationApplyTime":"Soon"}`:                     "ActionParameterValueNotInList Soon @Redfish.OperationApplyTime UpdateService.SimpleUpdate",
		`{"ImageURI":"http://h/x","@Redfish.OperationApplyTime":"AtMaintenanceWindowStart"}`: "PropertyMissing MaintenanceWindowStartTime",
	} {
		b := newUpdate(t)
		got := messages(b.send(400, "POST", simpleURI, body))
		if len(got) == 0 || !strings.HasPrefix(got[0], want) {
			t.Errorf("SimpleUpdate %s: %q, want %q", body, got, want)
		}
		if n := len(b.h.BMC().Tasks.All()); n > 0 {
			t.Errorf("SimpleUpdate %s: rejected, but %d tasks", body, n)
		}
	}
}

func TestFailedUpdates(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		before     firmware.Command
		want       []string
		runs       any
	}{
		{"no such file", `{"ImageURI":"http://images.test/none"}`, nil, nil, "2.3.1"},
		{"no image", `{"ImageURI":"http://images.test/page"}`, nil, []string{"TransferringToComponent", "VerifyingAtComponent", "VerificationFailed"}, "2.3.1"},
		{"wrong target", `{"ImageURI":"http://images.test/bios.img","Targets":["/redfish/v1/Managers/1"]}`, nil,
			[]string{"TransferringToComponent", "VerifyingAtComponent", "UpdateNotApplicable"}, "2.3.1"},
		{"interrupted", `{"ImageURI":"http://images.test/bios.img"}`, firmware.Break{Component: "BIOS", Phase: firmware.Applying},
			[]string{"TransferringToComponent", "VerifyingAtComponent", "InstallingOnComponent", "ApplyFailed"}, "2.2.4"},
	} {
		b := newUpdate(t)
		if tt.before != nil {
			must(t, b.h.Apply(t.Context(), machine.Firmware{Command: tt.before}))
		}
		task := b.simple(tt.body)
		b.h.pass(time.Hour)
		b.task(task, "Exception", tt.want...)
		if got := b.version("BIOS"); got != tt.runs {
			t.Errorf("%s: version = %v, want %v", tt.name, got, tt.runs)
		}
	}
}

func TestFailedComponentIsCritical(t *testing.T) {
	b := newUpdate(t)
	b.restart()
	b.simple(`{"ImageURI":"http://images.test/nic.img"}`)
	b.h.pass(30 * time.Second)
	must(t, b.h.Apply(t.Context(), machine.Reset{Kind: machine.ForceOff}))
	got := b.get(resource.FirmwareURI("NIC.1"))
	if got["Version"] != nil || got["Active"] != false || at(got, "Status", "Health") != "Critical" {
		t.Errorf("NIC.1 = %v, want it broken", got)
	}
	b.h.pass(time.Minute)
	b.restart()
	b.simple(`{"ImageURI":"http://images.test/nic.img"}`)
	b.h.pass(time.Hour)
	b.restart()
	if got := b.version("NIC.1"); got != "22.40.1" {
		t.Errorf("version = %v after another update", got)
	}
}

func TestUpdateApplyTime(t *testing.T) {
	b := newUpdate(t)
	task := b.simple(`{"ImageURI":"http://images.test/bios.img","@Redfish.OperationApplyTime":"OnStartUpdateRequest"}`)
	b.h.pass(time.Hour)
	b.task(task, "Pending")
	b.send(204, "POST", resource.UpdateService+"/Actions/UpdateService.StartUpdate", "")
	b.h.pass(time.Minute)
	b.task(task, "Running")

	b = newUpdate(t)
	task = b.simple(`{"ImageURI":"http://images.test/bios.img","@Redfish.OperationApplyTime":"OnReset"}`)
	b.h.pass(time.Hour)
	b.task(task, "Pending", "TransferringToComponent", "VerifyingAtComponent", "AwaitToUpdate")
	b.restart()
	b.task(task, "Completed")

	b = newUpdate(t)
	task = b.simple(`{"ImageURI":"http://images.test/bios.img","@Redfish.OperationApplyTime":"AtMaintenanceWindowStart",` +
		`"@Redfish.MaintenanceWindow":{"MaintenanceWindowStartTime":"2026-03-01T18:00:00Z","MaintenanceWindowDurationInSeconds":3600}}`)
	b.h.pass(5 * time.Hour)
	b.task(task, "Pending")
	b.h.pass(61 * time.Minute)
	b.task(task, "Running")
	b.send(409, "DELETE", task, "") // the image is being written

	b = newUpdate(t)
	task = b.simple(`{"ImageURI":"http://images.test/bios.img","@Redfish.OperationApplyTime":"OnReset"}`)
	b.send(204, "DELETE", task, "")
	b.task(task, "Cancelled")
	b.restart()
	if got := b.version("BIOS"); got != "2.3.1" {
		t.Errorf("version = %v after the update was cancelled", got)
	}
}

// Other emulators reject SimpleUpdate with any If-Match.
func TestSimpleUpdateHonoursIfMatch(t *testing.T) {
	b := newUpdate(t)
	body := `{"ImageURI":"http://images.test/bios.img"}`
	b.send(412, "POST", simpleURI, body, "If-Match", `"bogus"`)
	if n := len(b.h.BMC().Tasks.All()); n > 0 {
		t.Errorf("rejected, but %d tasks", n)
	}
	b.simple(body, "If-Match", b.get(resource.UpdateService)["@odata.etag"].(string))
	b.simple(strings.Replace(body, "bios", "nic", 1), "If-Match", "*")
}

func TestUpdateServicePatch(t *testing.T) {
	b := newUpdate(t)
	got := b.send(200, "PATCH", resource.UpdateService, `{"VerifyRemoteServerCertificate":false,"HttpPushUriTargetsBusy":true,"HttpPushUriTargets":["`+
		resource.FirmwareURI("BIOS")+`"],"HttpPushUriOptions":{"ForceUpdate":true,"HttpPushUriApplyTime":{"ApplyTime":"OnReset"}}}`)
	if options := got["HttpPushUriOptions"]; at(options, "ForceUpdate") != true || at(options, "HttpPushUriApplyTime", "ApplyTime") != "OnReset" {
		t.Errorf("HttpPushUriOptions = %v", options)
	}
	if got["VerifyRemoteServerCertificate"] != false || got["HttpPushUriTargetsBusy"] != true || len(got["HttpPushUriTargets"].([]any)) != 1 {
		t.Errorf("update service = %v", got)
	}
	b.simple(`{"ImageURI":"https://images.test/bmc.img"}`)
	if !b.h.images.from.Unverified {
		t.Error("the server's certificate is verified all the same")
	}
	b.send(400, "PATCH", resource.UpdateService, `{"HttpPushUriTargets":["/redfish/v1/Fans/1"]}`)
	b.send(200, "PATCH", resource.UpdateService, `{"ServiceEnabled":false}`)
	b.send(503, "POST", simpleURI, `{"ImageURI":"https://images.test/bmc.img"}`)
	if w := push(t, b, "application/octet-stream", built(t, bmcImage), resource.PlainPush); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a push to a disabled service = %d", w.Code)
	}
}

func push(t *testing.T, b *bench, mime string, body []byte, uri string) *httptest.ResponseRecorder {
	t.Helper()
	return call(t, b.s, "admin", "POST", uri, string(body), "Content-Type", mime)
}

func TestHTTPPushUsesServiceOptions(t *testing.T) {
	b := newUpdate(t)
	b.send(200, "PATCH", resource.UpdateService, `{"HttpPushUriTargets":["`+resource.FirmwareURI("BIOS")+`"],"HttpPushUriOptions":{"HttpPushUriApplyTime":{"ApplyTime":"OnReset"}}}`)
	task := b.begins(push(t, b, "application/octet-stream", built(t, biosImage), resource.PlainPush))
	b.h.pass(time.Hour)
	b.task(task, "Pending", "TransferringToComponent", "VerifyingAtComponent", "AwaitToUpdate")
	b.restart()
	b.task(task, "Completed")
	if got := b.version("BIOS"); got != "2.4.0" {
		t.Errorf("version = %v", got)
	}
	task = b.begins(push(t, b, "application/octet-stream", built(t, nicImage), resource.PlainPush)) // the image is not for the target BIOS
	b.h.pass(time.Hour)
	b.task(task, "Exception")
	for _, mime := range []string{"application/json", "multipart/form-data; boundary=x"} {
		if w := push(t, b, mime, built(t, biosImage), resource.PlainPush); w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("a push of %s = %d", mime, w.Code)
		}
	}
}

// form is a part of a multipart push.
type form struct {
	name, mime, file string
	body             []byte
}

func multipartPushOf(t *testing.T, b *bench, forms ...form) *httptest.ResponseRecorder {
	t.Helper()
	kind, body := encodeForms(t, forms...)
	return push(t, b, kind, body, resource.MultipartPush)
}

// encodeForms returns the Content-Type and the body of a multipart push.
func encodeForms(t *testing.T, forms ...form) (kind string, content []byte) {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, f := range forms {
		h := textproto.MIMEHeader{"Content-Type": {f.mime}}
		h.Set("Content-Disposition", fmt.Sprintf(`form-data; name=%q`, f.name))
		if f.file != "" {
			h.Set("Content-Disposition", fmt.Sprintf(`form-data; name=%q; filename=%q`, f.name, f.file))
		}
		part, err := w.CreatePart(h)
		must(t, err)
		_, err = part.Write(f.body)
		must(t, err)
	}
	must(t, w.Close())
	return w.FormDataContentType(), body.Bytes()
}

func TestMultipartPush(t *testing.T) {
	parameters := func(s string) form { return form{"UpdateParameters", "application/json", "", []byte(s)} }
	file := form{"UpdateFile", "application/octet-stream", "bios.img", built(t, biosImage)}
	oem := form{"OemExample", "text/plain", "", []byte("anything")}
	b := newUpdate(t)
	task := b.begins(multipartPushOf(t, b, parameters(`{"Targets":["`+resource.FirmwareURI("BIOS")+`"],"@Redfish.OperationApplyTime":"OnReset","Oem":{}}`), file, oem))
	if got := b.get(task)["Name"]; got != "Update with bios.img" {
		t.Errorf("task name = %v", got)
	}
	payload := at(b.get(task), "Payload", "JsonBody").(string)
	if !strings.Contains(payload, resource.FirmwareURI("BIOS")) {
		t.Errorf("payload = %s", payload)
	}
	b.h.pass(time.Hour)
	b.task(task, "Pending", "TransferringToComponent", "VerifyingAtComponent", "AwaitToUpdate")
	b.restart()
	b.task(task, "Completed")

	small := newUpdate(t)
	small.h.d.MaxImageBytes = 100
	for _, tt := range []struct {
		name string
		b    *bench
		in   []form
		code int
		want string
	}{
		{"no file", b, []form{parameters(`{}`)}, 400, "MissingOrMalformedPart; PropertyMissing UpdateFile"},
		{"no parameters", b, []form{file}, 400, "MissingOrMalformedPart; PropertyMissing UpdateParameters"},
		{"nothing", b, []form{oem}, 400, "MissingOrMalformedPart; PropertyMissing UpdateParameters; PropertyMissing UpdateFile"},
		{"an empty file", b, []form{parameters(`{}`), {"UpdateFile", file.mime, "bios.img", nil}}, 400, "MissingOrMalformedPart; PropertyMissing UpdateFile"},
		{"empty parameters", b, []form{parameters(``), file}, 400, "MissingOrMalformedPart; MalformedJSON"},
		{"two files", b, []form{parameters(`{}`), file, file}, 400, "MissingOrMalformedPart; PropertyDuplicate UpdateFile"},
		{"parameters twice", b, []form{parameters(`{}`), parameters(`{}`), file}, 400, "MissingOrMalformedPart; PropertyDuplicate UpdateParameters"},
		{"another part", b, []form{parameters(`{}`), file, {"Colour", "text/plain", "", nil}}, 400, "PropertyUnknown Colour"},
		{"a part without a name", b, []form{parameters(`{}`), file, {"", "text/plain", "", nil}}, 400, `PropertyUnknown ""`},
		{"no JSON", b, []form{parameters(`{`), file}, 400, "MissingOrMalformedPart; MalformedJSON"},
		{"no JSON behind the file", b, []form{file, parameters(`{`)}, 400, "MissingOrMalformedPart; MalformedJSON"},
		{"no object", b, []form{parameters(`[]`), file}, 400, "MissingOrMalformedPart; PropertyValueTypeError [] UpdateParameters"},
		{"unknown parameter", b, []form{parameters(`{"Colour":1}`), file}, 400, "PropertyUnknown Colour"},
		{"another vendor's parameter", b, []form{parameters(`{"Oem":{"Acme":{"Colour":1}}}`), file}, 400, "PropertyUnknown Acme"},
		{"unknown target", b, []form{parameters(`{"Targets":["x"]}`), file}, 400, "PropertyValueNotInList x Targets"},
		{"unknown target behind the file", b, []form{file, parameters(`{"Targets":["x"]}`)}, 400, "PropertyValueNotInList x Targets"},
		{"Targets of another type", b, []form{parameters(`{"Targets":"x"}`), file}, 400, "PropertyValueTypeError x Targets"},
		{"a target of another type", b, []form{parameters(`{"Targets":[7]}`), file}, 400, "PropertyValueTypeError 7 Targets"},
		{"unknown apply time", b, []form{parameters(`{"@Redfish.OperationApplyTime":"Soon"}`), file}, 400, "PropertyValueNotInList Soon @Redfish.OperationApplyTime"},
		{"apply time of another type", b, []form{parameters(`{"@Redfish.OperationApplyTime":7}`), file}, 400, "PropertyValueTypeError 7 @Redfish.OperationApplyTime"},
		{"no window", b, []form{parameters(`{"@Redfish.OperationApplyTime":"AtMaintenanceWindowStart"}`), file}, 400, "PropertyMissing MaintenanceWindowStartTime"},
		{"other parts too large", b, []form{{"OemX", "text/plain", "", make([]byte, maxOtherParts+1)}}, 413, "PayloadTooLarge"},
		{"image too large", small, []form{parameters(`{}`), file}, 413, "PayloadTooLarge"},
	} {
		w := multipartPushOf(t, tt.b, tt.in...)
		var body map[string]any
		must(t, json.Unmarshal(w.Body.Bytes(), &body))
		if got := strings.Join(messages(body), "; "); w.Code != tt.code || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %d %q, want %d %q", tt.name, w.Code, got, tt.code, tt.want)
		}
		if len(tt.b.h.images.stored) > 1 { // nothing in this test deletes the image of the update above
			t.Errorf("%s: images are still stored: %v", tt.name, tt.b.h.images.stored)
		}
	}
	if w := push(t, b, "multipart/form-data", file.body, resource.MultipartPush); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("without a boundary = %d", w.Code)
	}
	if w := push(t, b, "multipart/form-data; boundary=x", []byte("--y\r\n"), resource.MultipartPush); w.Code != http.StatusBadRequest {
		t.Errorf("with another boundary = %d", w.Code)
	}
}

func TestPushURIsAcceptPostOnly(t *testing.T) {
	b := newUpdate(t)
	for _, uri := range []string{resource.MultipartPush, resource.PlainPush} {
		for _, method := range []string{"GET", "HEAD", "PATCH", "DELETE"} {
			w := call(t, b.s, "admin", method, uri, "")
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST, OPTIONS" {
				t.Errorf("%s", shape(method, uri, "", w))
			}
		}
		if w := call(t, b.s, "reader", "POST", uri, "x", "Content-Type", "application/octet-stream"); w.Code != http.StatusForbidden {
			t.Errorf("POST %s by a reader = %d", uri, w.Code)
		}
		if w := call(t, b.s, "", "POST", uri, "x"); w.Code != http.StatusUnauthorized {
			t.Errorf("POST %s by nobody = %d", uri, w.Code)
		}
	}
}

func TestFailedUpdateIsLoggedAndKeepsPendingUpdate(t *testing.T) {
	b := newUpdate(t)
	first := b.simple(`{"ImageURI":"http://images.test/bios.img"}`)
	b.h.pass(20 * time.Second)
	second := b.simple(`{"ImageURI":"http://images.test/bios.img"}`)
	b.h.pass(time.Hour)
	b.task(first, "Pending")
	b.task(second, "Exception", "TransferringToComponent", "VerifyingAtComponent", "UpdateSkipped")
	var kinds []string
	for e := range b.h.BMC().Log.Entries() {
		kinds = append(kinds, string(e.Kind))
	}
	if d := cmp.Diff([]string{"update.failed"}, kinds); d != "" {
		t.Errorf("log (-want +got):\n%s", d)
	}
	if j := b.h.BMC().Tasks.All(); j[0].State != bmc.TaskPending {
		t.Errorf("job = %+v", j[0])
	}
}

func TestUpdateTargets(t *testing.T) {
	manager, bmcURI := "/redfish/v1/Managers/1", resource.FirmwareURI("BMC")
	for parameters, want := range map[string]any{
		``:                               "1.5.0",
		`,"Targets":[]`:                  "1.5.0",
		`,"Targets":["` + bmcURI + `"]`:  "1.5.0",
		`,"Targets":["` + manager + `"]`: "1.5.0",
		`,"Targets":["/redfish/v1/UpdateService/FirmwareInventory"]`:        "1.5.0",
		`,"Targets":["` + sys + `"]`:                                        "1.4.2", // the BMC is not part of the system
		`,"ExcludeTargets":["` + manager + `"]`:                             "1.4.2",
		`,"ExcludeTargets":["` + sys + `"]`:                                 "1.5.0",
		`,"Targets":["` + bmcURI + `"],"ExcludeTargets":["` + bmcURI + `"]`: "1.5.0",
	} {
		b := newUpdate(t)
		b.simple(`{"ImageURI":"https://images.test/bmc.img"` + parameters + `}`)
		b.h.pass(time.Hour)
		if got := b.version("BMC"); got != want {
			t.Errorf("with %s the BMC runs %v, want %v", parameters, got, want)
		}
	}
}
