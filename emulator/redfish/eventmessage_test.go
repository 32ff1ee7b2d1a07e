package redfish

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// severities ranks severities from best to worst.
var severities = map[string]int{"OK": 0, "Warning": 1, "Critical": 2}

func TestEveryEventKindHasMessage(t *testing.T) {
	allowed := map[string][]string{}
	if _, err := openBundle(); err == nil {
		for _, name := range []string{"SensorType", "LogEntryCode"} {
			allowed[name] = theSchemas().enum(t, "LogEntry.v1_21_0", name)
		}
	}
	for kind, row := range event.Kinds {
		w, ok := resource.EventMessages[kind]
		if !ok {
			t.Errorf("event kind %s has no message", kind)
			continue
		}
		d, n := w.Message.Definition()
		if bad := severities[string(d.Severity)]; bad > severities[string(row.Severity)] || bad == 0 && row.Severity == event.Critical {
			t.Errorf("%s is %s, its message %s is %s", kind, row.Severity, d.Key, d.Severity)
		}
		if w.Args != nil && len(w.Args) != n {
			t.Errorf("%s: %s has %d arguments, not %q", kind, d.Key, n, w.Args)
		}
		for _, a := range w.Args {
			if at, err := strconv.Atoi(strings.TrimPrefix(a, "%")); strings.HasPrefix(a, "%") && (err != nil || at > strings.Count(row.Text, "%")) {
				t.Errorf("%s: its notes have no argument %s", kind, a)
			}
		}
		o := resource.Object{}
		resource.AddSELEvent(o, sel.Of(event.Note{Kind: kind, Args: []string{"", "", "Cel"}}))
		for name, of := range map[string]string{"SensorType": "SensorType", "EntryCode": "LogEntryCode"} {
			if values := allowed[of]; o[name] == "OEM" || values != nil && !slices.Contains(values, o[name].(string)) {
				t.Errorf("%s: %q is no %s", kind, o[name], name)
			}
		}
	}
	for kind := range resource.EventMessages {
		if _, ok := event.Kinds[kind]; !ok {
			t.Errorf("%s is worded, and there is no such kind", kind)
		}
	}
}

func TestOriginOfConditionExists(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	v := s.tree.Find(parsed(resource.TaskURI("1"))).View(resource.TakeSnapshot(h))
	raid := h.Machine().Identity.Storage[0].ID
	for _, tt := range []struct {
		subject event.Subject
		want    string
	}{
		{event.Subject{Part: event.System}, sys},
		{event.Subject{Part: event.BMC}, "/redfish/v1/Managers/1"},
		{event.Subject{Part: event.Drive, ID: "Disk.1", In: raid}, sys + "/Storage/" + raid + "/Drives/Disk.1"},
		{event.Subject{Part: event.Drive, ID: "Disk.77", In: raid}, ""},
		{event.Subject{Part: event.Drive, ID: "Disk.1", In: "AHCI.9"}, ""},
		{event.Subject{Part: event.Drive, ID: "Disk.1"}, ""},
		{event.Subject{Part: event.Account, ID: "3"}, "/redfish/v1/AccountService/Accounts/3"},
		{event.Subject{Part: event.Account, ID: "33"}, ""},
		{event.Subject{Part: "nothing"}, ""},
	} {
		if got, ok := v.OriginOfCondition(tt.subject); got != tt.want || ok != (tt.want != "") {
			t.Errorf("origin(%+v) = %q, %t, want %q", tt.subject, got, ok, tt.want)
		}
	}
}
