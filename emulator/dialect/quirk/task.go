package quirk

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// tasks are quirks of asynchronous operations.
var tasks = []Quirk{
	{
		ID: "task-404-race", Does: "the first reads of a new task are answered 404",
		Seen: "iDRAC", Source: []string{"sushy release note fix-dell-bmc-404-on-task"},
		Params: []Param{{"n", "2", Count, "how many reads"}},
		change: func(r *dialect.Record, p values) { r.Tasks.MissingReads = p.count("n") },
	},
	{
		ID: "task-purged", Does: "a task and its monitor are removed soon after the task has ended",
		Seen: "iDRAC", Source: []string{"ironic release note fix-bios-update-silent-fail"},
		Params: []Param{{"after", "1m", Span, "how long a task remains after its end: a minute at least"}},
		check: func(p values) string {
			if p.span("after") < time.Minute {
				return "after: must be a minute at least"
			}
			return ""
		},
		change: func(r *dialect.Record, p values) { r.BMC.TaskRetention.Ended = p.span("after") },
	},
	{
		ID: "task-state-new", Does: "TaskState of a running task is New",
		Seen: "iDRAC, XCC", Source: []string{"ironic release note fix-firmware-update-new-task-state"},
		change: addTransforms(dialect.Transform{ResourceType: "Task", Set: []dialect.PropertyRule{
			{Path: "TaskState", From: "TaskState", Map: map[string]any{"Running": "New", "Pending": "New", "Starting": "New"}, Otherwise: dialect.LeaveUnchanged}}}),
	},
	{
		ID: "taskmonitor-get-deletes", Does: "the first GET of the monitor of an ended task removes the monitor",
		Seen: "XCC", Source: []string{"bmclib, providers/lenovo"},
		change: func(r *dialect.Record, _ values) { r.Tasks.MonitorReadOnce = true },
	},
}

// systems are quirks of the server, its clock and its BIOS.
var systems = []Quirk{
	{
		ID: "sse-malformed", Does: "event payloads have no @odata.id, and their events no MemberId and no EventType",
		Seen: "several", Source: []string{"nv-redfish, bmc_quirks.rs"},
		change: addTransforms(dialect.Transform{ResourceType: "Event", Remove: []string{"@odata.id", "Events/*/MemberId", "Events/*/EventType"}}),
	},
	{
		ID: "dates-bad", Does: "times have a UTC offset without a colon, and ReleaseDate of firmware is 0000-00-00T00:00:00Z",
		Seen: "several", Source: []string{"nv-redfish, bmc_quirks.rs"},
		change: func(r *dialect.Record, _ values) {
			r.Presentation.DateTimeFormat = dialect.CompactZone
			r.Presentation.Transforms = append(r.Presentation.Transforms, dialect.Transform{ResourceType: "SoftwareInventory", Set: []dialect.PropertyRule{{Path: "ReleaseDate", Value: "0000-00-00T00:00:00Z"}}})
		},
	},
	{
		ID: "bios-registry-lag", Does: "a PATCH of the BIOS settings is accepted, but POST does not apply the last attributes by name; the settings resource has no Attributes while nothing is pending",
		Seen: "HPE, Supermicro", Source: []string{"mockup of iLO 7 in its documentation", "libredfish, supermicro.rs"},
		Params: []Param{{"n", "1", Count, "how many attributes of a PATCH are not applied"}},
		change: func(r *dialect.Record, p values) {
			r.BIOS.UnknownToBIOS = p.count("n")
			r.Presentation.Transforms = append(r.Presentation.Transforms, dialect.Transform{ResourceType: "Bios", URI: settings, OmitEmpty: []string{"Attributes"}})
		},
	},
	{
		ID: "forcerestart-hangs", Does: "after ForceRestart the system hangs in POST until it is powered off and on",
		Seen: "Lenovo SR675", Source: []string{"libredfish, lenovo.rs"},
		change: func(r *dialect.Record, _ values) { r.HangsAfterReset = []machine.ResetKind{machine.ForceRestart} },
	},
	{
		ID: "clock-offset-same-value", Does: "a PATCH of DateTimeLocalOffset with its present value is answered 400",
		Seen: "several", Source: []string{"https://bugs.launchpad.net/ironic/+bug/2143772"},
		change: addRules(dialect.RejectRule{ResourceType: "Manager", Method: "PATCH", SendsUnchanged: []string{"DateTimeLocalOffset"},
			Message: baseMessage("PropertyValueError", "The value of the property %1 is not one that is taken.")}),
	},
}
