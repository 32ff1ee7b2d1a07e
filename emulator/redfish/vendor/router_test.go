package vendor

import (
	"net/http"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

func TestOEMURIsAreRouted(t *testing.T) {
	tree, err := standardTree()
	if err != nil {
		t.Fatal(err)
	}
	const at = "/redfish/v1/Managers/{manager}/"
	d := dialect.Record{SystemID: "1", ManagerID: "1", ChassisID: "1"}
	d.OEM = dialect.OEM{
		Resources: []dialect.Resource{
			{URI: at + "Jobs/JID_{task:12}", Type: "Job.v1_0_0.Job"},
			{URI: at + "Bays/{drive}/Copy.{drive}", Type: "Bay.v1_0_0.Bay"},
			{URI: at + "{slot}", Type: "Slot.v1_0_0.Slot"},
			{URI: at + "Jobs", Type: "Jobs.v1_0_0.Jobs"},
		},
		Actions: []dialect.Action{
			{ResourceURI: at + "Jobs", Name: "Jobs.Create", Target: "/"},
			{ResourceURI: "/redfish/v1/Systems/{system}", Name: "Acme.Blink"},
		},
	}
	for _, ignoreCase := range []bool{false, true} {
		d.Presentation.IgnoreURICase = ignoreCase
		o := newOEM(tree, &d, newPresentation(tree, &d))
		for _, tt := range []struct {
			method, path, schema, action string
			variable, value              string
			otherCase                    bool // found only when the case is ignored
		}{
			{path: "/redfish/v1/Managers/1/Jobs/JID_000000000012", schema: "Job.v1_0_0", variable: "task", value: "12"},
			{path: "/redfish/v1/Managers/1/Jobs/JID_12"},
			{path: "/redfish/v1/managers/1/jobs/jid_000000000012", schema: "Job.v1_0_0", variable: "task", value: "12", otherCase: true},
			{path: "/redfish/v1/Managers/1/Bays/4/Copy.4", schema: "Bay.v1_0_0", variable: "drive", value: "4"},
			{path: "/redfish/v1/Managers/1/Bays/4/Copy.5"},
			{path: "/redfish/v1/Managers/1/Jobs", schema: "Jobs.v1_0_0"},
			{path: "/redfish/v1/Managers/1/Cd", schema: "Slot.v1_0_0", variable: "slot", value: "Cd"},
			{method: http.MethodPost, path: "/redfish/v1/Managers/1/Jobs", schema: "Jobs.v1_0_0", action: "Jobs.Create"},
			{method: http.MethodPost, path: "/redfish/v1/Systems/1/Actions/Oem/Acme.Blink", schema: "ComputerSystem", action: "Acme.Blink"},
			{method: http.MethodPost, path: "/redfish/v1/Systems/2/Actions/Oem/Acme.Blink", schema: ""},
		} {
			m, _ := o.find(tt.path, tt.method)
			want := tt.schema
			if tt.otherCase && !ignoreCase {
				want = ""
			}
			switch {
			case m == nil && want == "":
			case m == nil || want == "":
				t.Errorf("ignoreCase %v: find(%s %s) = %v, want schema %q", ignoreCase, tt.method, tt.path, m, want)
			case tt.action == "" && (m.Action != nil || m.Schema != want), tt.action != "" && (m.Action == nil || m.Action.Name != tt.action):
				t.Errorf("ignoreCase %v: find(%s %s) has schema %s, action %v, want %q, %q", ignoreCase, tt.method, tt.path, m.Schema, m.Action, want, tt.action)
			case m.IDs[tt.variable] != tt.value:
				t.Errorf("ignoreCase %v: find(%s %s): %s is %q, want %q", ignoreCase, tt.method, tt.path, tt.variable, m.IDs[tt.variable], tt.value)
			}
		}
	}
}
