package redfish

import (
	"net/http"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// keepsSettings returns a service whose BIOS settings are applied only by a task.
func keepsSettings(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.h.d.BIOS = dialect.BIOS{WaitForApplyTime: true, TaskForApplyTime: true, ApplyDuration: 60e9, ApplyTimes: []firmware.ApplyTime{firmware.OnReset}}
	b.h.d.Presentation.RejectRules = []dialect.RejectRule{{ResourceType: "Bios", URI: "/redfish/v1/Systems/{system}/Bios/Settings", Method: "PATCH", While: dialect.SettingsDue, Message: refusal400}}
	if err := b.h.d.Validate(); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestHeldBIOSSettingsAreAppliedByTask(t *testing.T) {
	b := keepsSettings(t)
	b.send(200, "PATCH", settingsURI, `{"Attributes":{"NumLock":"Off"}}`)
	b.send(200, "PATCH", settingsURI, `{"Attributes":{"BootMode":"LegacyBios"}}`)
	b.restart()
	if got := b.attributes(biosURI)["NumLock"]; got != "On" {
		t.Errorf("NumLock = %v without a job", got)
	}
	const onReset = `{"@Redfish.SettingsApplyTime":{"ApplyTime":"OnReset"}}`
	w := call(t, b.s, "admin", "PATCH", settingsURI, onReset)
	if at := w.Header().Get("Location"); w.Code != http.StatusAccepted || !strings.Contains(at, "/1") {
		t.Fatalf("%s, Location %q", shape("PATCH", settingsURI, onReset, w), at)
	}
	if got := messages(b.send(400, "PATCH", settingsURI, `{"Attributes":{"NumLock":"On"}}`)); !strings.HasPrefix(got[0], "Busy") {
		t.Errorf("a further change: %q", got)
	}
	if task := b.get(resource.TaskURI("1")); task["TaskState"] != "New" || task["Name"] != "Apply BIOS settings" {
		t.Errorf("the task before the reset: %v", task)
	}
	b.restart()
	if task := b.get(resource.TaskURI("1")); task["TaskState"] != "Completed" {
		t.Errorf("the task after the reset: %v", task)
	}
	if got := b.attributes(biosURI); got["NumLock"] != "Off" || got["BootMode"] != "LegacyBios" {
		t.Errorf("after the job: %v, %v", got["NumLock"], got["BootMode"])
	}
	b.send(400, "PATCH", settingsURI, onReset) // no settings are pending
	if got := at(b.get(biosURI), "@Redfish.Settings", "SupportedApplyTimes").([]any); len(got) != 1 || got[0] != "OnReset" {
		t.Errorf("SupportedApplyTimes = %v", got)
	}
	b.send(202, "PATCH", settingsURI, `{"Attributes":{"NumLock":"On"},"@Redfish.SettingsApplyTime":{"ApplyTime":"OnReset"}}`)
	b.send(204, "DELETE", resource.TaskURI("2"), "")
	if p := b.h.Machine().Firmware.Pending(); p != nil {
		t.Errorf("%+v waits, whose job was cancelled", p)
	}
}

func TestFlatBIOSAttributes(t *testing.T) {
	h := newHost(t)
	h.d.BIOS.FlatAttributes = true
	s := newService(t, h)
	answersWith(t, s,
		step{"admin", "PATCH", sys + "/Bios/Settings", `{"ProcVirtualization":"Disabled"}`, nil, 200, ""},
		step{"admin", "PATCH", sys + "/Bios/Settings", `{"Nonsense":"Disabled"}`, nil, 400, "PropertyUnknown"},
	)
	settings, _ := get(t, s, sys+"/Bios/Settings")
	bios, _ := get(t, s, sys+"/Bios")
	if settings["ProcVirtualization"] != "Disabled" || bios["ProcVirtualization"] != "Enabled" || bios["Attributes"] != nil {
		t.Errorf("settings %v, now %v, attributes %v", settings["ProcVirtualization"], bios["ProcVirtualization"], bios["Attributes"])
	}
}
