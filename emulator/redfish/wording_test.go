package redfish

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

// severities in the order of how bad they are.
var severities = map[string]int{"OK": 0, "Warning": 1, "Critical": 2}

func TestEveryKindOfEventIsWorded(t *testing.T) {
	allowed := map[string][]string{}
	if _, err := openBundle(); err == nil {
		for _, name := range []string{"SensorType", "LogEntryCode"} {
			allowed[name] = theSchemas().enum(t, "LogEntry.v1_21_0", name)
		}
	}
	for kind, row := range event.Kinds {
		w, ok := wordings[kind]
		if !ok {
			t.Errorf("no message tells %s", kind)
			continue
		}
		d, n := w.is.Definition()
		if bad := severities[string(d.Severity)]; bad > severities[string(row.Severity)] || bad == 0 && row.Severity == event.Critical {
			t.Errorf("%s is %s, its message %s is %s", kind, row.Severity, d.Key, d.Severity)
		}
		if w.args != nil && len(w.args) != n {
			t.Errorf("%s: %s takes %d arguments, not %q", kind, d.Key, n, w.args)
		}
		for _, a := range w.args {
			if at, err := strconv.Atoi(strings.TrimPrefix(a, "%")); strings.HasPrefix(a, "%") && (err != nil || at > strings.Count(row.Text, "%")) {
				t.Errorf("%s: its notes have no argument %s", kind, a)
			}
		}
		o := object{}
		showRecord(o, sel.Of(event.Note{Kind: kind, Args: []string{"", "", "Cel"}}))
		for name, of := range map[string]string{"SensorType": "SensorType", "EntryCode": "LogEntryCode"} {
			if values := allowed[of]; o[name] == "OEM" || values != nil && !slices.Contains(values, o[name].(string)) {
				t.Errorf("%s: %q is no %s", kind, o[name], name)
			}
		}
	}
	for kind := range wordings {
		if _, ok := event.Kinds[kind]; !ok {
			t.Errorf("%s is worded, and there is no such kind", kind)
		}
	}
}

// A part is shown by one resource, never by the collection that it is in.
func TestOriginsAreResources(t *testing.T) {
	rows := rows()
	for part, pattern := range origins {
		i := slices.IndexFunc(rows, func(r resource) bool { return r.uri == pattern })
		if i < 0 || rows[i].of != "" || rows[i].schema == "" {
			t.Errorf("%s: %s is not the row of a resource", part, pattern)
		}
	}
}

func TestOriginIsThereOrNot(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	v := s.tree.find(parsed(taskURI("1"))).view(look(h))
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
		if got, ok := v.origin(tt.subject); got != tt.want || ok != (tt.want != "") {
			t.Errorf("origin(%+v) = %q, %t, want %q", tt.subject, got, ok, tt.want)
		}
	}
}
