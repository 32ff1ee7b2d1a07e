package quirk

import (
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// insertParameters are the parameters of InsertMedia.
var insertParameters = []dialect.Parameter{
	{Name: "Image"}, {Name: "Inserted", Type: dialect.BooleanParameter}, {Name: "WriteProtected", Type: dialect.BooleanParameter},
	{Name: "TransferMethod"}, {Name: "TransferProtocolType"}, {Name: "UserName"}, {Name: "Password", Secret: true},
}

// rejectSlotPatch rejects a PATCH of a slot where only an OEM action inserts media.
var rejectSlotPatch = dialect.RejectRule{ResourceType: "VirtualMedia", Method: "PATCH", Status: 405,
	Message: baseMessage("OperationNotAllowed", "The method of the request is not allowed here.")}

// media are quirks of virtual media at other URIs, or without actions.
var media = []Quirk{
	{
		ID: "vmedia-uri-moved", Does: "virtual media slots are below the system; InsertMedia and EjectMedia at their earlier URIs, below the manager, are answered 404 with RAC0904",
		Seen: "iDRAC 9 from 6.00.00 on", Source: []string{"https://github.com/dell/iDRAC-Redfish-Scripting/issues/265"},
		Params: []Param{{"slots", "CD,RemovableDisk", Text, "earlier IDs of the slots, separated by commas"}},
		change: func(r *dialect.Record, p values) {
			var left []dialect.URIMapping
			for _, m := range r.Presentation.URIMappings {
				if !strings.Contains(m.From, "/VirtualMedia") {
					left = append(left, m)
				}
			}
			r.Presentation.URIMappings = left
			gone := vendorMessage("IDRAC", "2.8.0", "RAC0904", "The remote file location is not accessible here.")
			actions := r.OEM.Actions
			for slot := range strings.SplitSeq(p["slots"], ",") {
				for _, verb := range []string{"Insert", "Eject"} {
					actions = append(actions[:len(actions):len(actions)], dialect.Action{
						ResourceURI: "/redfish/v1/Managers/{manager}", Name: "VirtualMedia." + verb + "Media", Hidden: true, Parameters: insertParameters,
						Target:  "/VirtualMedia/" + slot + "/Actions/VirtualMedia." + verb + "Media",
						Effects: []dialect.Effect{{Reject: &gone, Status: 404}},
					})
				}
			}
			r.OEM.Actions = actions
		},
	},
	{
		ID: "vmedia-dead-slots", Does: "the first slots, which belong to the remote console, have no InsertMedia action, or InsertMedia is answered 400 or 405",
		Seen: "Cisco UCS, OpenBMC, Lenovo XCC", Source: []string{"https://bugs.launchpad.net/ironic/+bug/2031595", "https://bugs.launchpad.net/ironic/+bug/2039042"},
		Params: []Param{{"n", "1", Count, "number of such slots"}, {"how", "missing", Text, "how InsertMedia fails: missing, 400 or 405"}},
		check: func(p values) string {
			switch p["how"] {
			case "missing", "400", "405":
				return ""
			}
			return "how: must be missing, 400 or 405"
		},
		change: func(r *dialect.Record, p values) {
			for _, s := range r.BMC.Slots[:min(p.count("n"), len(r.BMC.Slots))] {
				at := strings.Replace(slots, "{slot}", s.ID, 1)
				switch p["how"] {
				case "400":
					prependRule(r, dialect.RejectRule{ResourceType: "VirtualMedia", URI: at, Method: insert, Message: baseMessage("ActionNotSupported", "The action is not supported by this drive.")})
				case "405":
					prependRule(r, dialect.RejectRule{ResourceType: "VirtualMedia", URI: at, Method: insert, Status: 405, Message: baseMessage("OperationNotAllowed", "The method of the request is not allowed here.")})
				default:
					r.Presentation.Hidden = append(r.Presentation.Hidden, at+"/Actions/"+insert, at+"/InsertMediaActionInfo")
				}
			}
		},
	},
	{
		ID: "vmedia-own-way", Does: "the slots have neither InsertMedia nor EjectMedia, and a PATCH of a slot is answered 405: only the vendor's OEM actions insert media",
		Seen: "Supermicro X11 with older firmware, whose images are configured at VM1/CfgCD and mounted", Source: []string{"https://github.com/jgato/jgato/blob/main/random_docs/Configuring_SuperMicro_UEFI.md", "https://github.com/redhat-performance/badfish"},
		change: func(r *dialect.Record, _ values) {
			r.Presentation.Hidden = append(r.Presentation.Hidden, slots+"/Actions/"+insert, slots+"/Actions/"+eject, slots+"/InsertMediaActionInfo")
			prependRule(r, rejectSlotPatch)
		},
	},
	{
		ID: "vmedia-cd-alias", Does: "the boot override Cd is accepted and boots from the server's own optical drive; virtual media boot with UsbCd",
		Seen: "Supermicro, iDRAC 8 and 9", Source: []string{"sushy release notes change-bootdev-smc and supermicro-vmedia-dev-workaround", "https://github.com/dell/iDRAC-Redfish-Scripting/issues/90"},
		change: func(r *dialect.Record, _ values) {
			r.Media.BootTarget = machine.UsbCd
			r.BootTargets = append(r.BootTargets[:len(r.BootTargets):len(r.BootTargets)], machine.UsbCd)
		},
	},
}

const applyTime = "@Redfish.SettingsApplyTime/ApplyTime"

// boots are quirks of the boot override.
var boots = []Quirk{
	{
		ID: "boot-silently-ignored", Does: "a PATCH of Boot is answered 200 and changes nothing",
		Seen: "Supermicro AS-1015CS", Source: []string{"https://github.com/bmc-toolbox/bmclib/pull/459"},
		change: func(r *dialect.Record, _ values) {
			r.OEM.WritableProperties = append(r.OEM.WritableProperties[:len(r.OEM.WritableProperties):len(r.OEM.WritableProperties)],
				dialect.WritableProperty{ResourceType: "ComputerSystem", Path: "Boot", Type: dialect.ObjectParameter, Effects: []dialect.Effect{{}}})
		},
	},
	{
		ID: "boot-readonly-use-settings", Does: "Boot is read-only in the system: a client changes it with a PATCH of the SettingsObject of @Redfish.Settings, with the ETag of that resource in If-Match",
		Seen: "iDRAC 10", Source: []string{"https://github.com/stmcginnis/gofish/pull/511"},
		change: func(r *dialect.Record, _ values) {
			const system = "/redfish/v1/Systems/{system}"
			prependRule(r, dialect.RejectRule{ResourceType: "ComputerSystem", URI: system, Method: "PATCH", SendsAny: []string{"Boot"}, Status: 405,
				Message: baseMessage("PropertyNotWritable", "The property %1 is read-only here.")})
			r.Presentation.Transforms = append(r.Presentation.Transforms, dialect.Transform{ResourceType: "ComputerSystem", URI: system, Set: []dialect.PropertyRule{{Path: "@Redfish.Settings", Value: map[string]any{
				"@odata.type": "#Settings.v1_4_0.Settings", "SettingsObject": map[string]any{"@odata.id": system + "/Settings"}, "SupportedApplyTimes": []any{"OnReset"},
			}}}}, dialect.Transform{ResourceType: "ComputerSystem", URI: system + "/Settings", Remove: []string{"@Redfish.Settings"}})
			prependRule(r, dialect.RejectRule{ResourceType: "ComputerSystem", URI: system + "/Settings", Method: "PATCH", NotOneOf: map[string][]string{applyTime: {"OnReset"}},
				Message: baseMessage("PropertyValueNotInList", "The value %2 is none that the property %1 takes.")})
			// A change counts at the next start, whether a client says so or not.
			r.Presentation.InputAliases = append(r.Presentation.InputAliases[:len(r.Presentation.InputAliases):len(r.Presentation.InputAliases)],
				dialect.InputAlias{ResourceType: "ComputerSystem", URI: system + "/Settings", Method: "PATCH", Path: "@Redfish.SettingsApplyTime", To: dialect.Discard})
			r.OEM.Resources = append(r.OEM.Resources[:len(r.OEM.Resources):len(r.OEM.Resources)], dialect.Resource{
				URI: system + "/Settings", Type: "ComputerSystem.v1_27_0.ComputerSystem", Name: "System Settings", BasedOn: system,
				PassedMethods: []string{"PATCH"}, RequiresIfMatch: true, Privilege: "ConfigureComponents",
				Remove: []string{"Actions", "Links", "Bios", "Storage", "Processors", "Memory", "VirtualMedia", "LogServices", "EthernetInterfaces", "SecureBoot", "NetworkInterfaces", "SimpleStorage"},
			})
		},
	},
}
