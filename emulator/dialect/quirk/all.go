package quirk

import (
	"maps"
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// vendorMessage returns a message of a version of a registry.
func vendorMessage(registry, version, key, text string) dialect.VendorMessage {
	return dialect.VendorMessage{Registry: registry, Version: version, Key: key, Text: text, Resolution: "Change the request, or try again later."}
}

func baseMessage(key, text string) dialect.VendorMessage {
	return vendorMessage("Base", "1.8.1", key, text)
}

const (
	slots    = "/redfish/v1/Systems/{system}/VirtualMedia/{slot}"
	insert   = "VirtualMedia.InsertMedia"
	eject    = "VirtualMedia.EjectMedia"
	reset    = "ComputerSystem.Reset"
	target   = "Boot/BootSourceOverrideTarget"
	enabled  = "Boot/BootSourceOverrideEnabled"
	mode     = "Boot/BootSourceOverrideMode"
	settings = "/redfish/v1/Systems/{system}/Bios/Settings"
)

// addRules returns a change that adds RejectRules before those of the record.
func addRules(all ...dialect.RejectRule) func(*dialect.Record, values) {
	return func(r *dialect.Record, _ values) {
		r.Presentation.RejectRules = append(slices.Clone(all), r.Presentation.RejectRules...)
	}
}

// prependRule adds a RejectRule before those of the record, so that it is checked
// first.
func prependRule(r *dialect.Record, u dialect.RejectRule) {
	r.Presentation.RejectRules = append([]dialect.RejectRule{u}, r.Presentation.RejectRules...)
}

func addTransforms(all ...dialect.Transform) func(*dialect.Record, values) {
	return func(r *dialect.Record, _ values) {
		r.Presentation.Transforms = append(r.Presentation.Transforms, all...)
	}
}

// missing are the transforms of missing-links, by the links that they remove.
var missing = map[string]dialect.Transform{
	"ManagedBy":          {ResourceType: "ComputerSystem", Remove: []string{"Links/ManagedBy"}},
	"EthernetInterfaces": {ResourceType: "ComputerSystem", Remove: []string{"EthernetInterfaces"}},
	"PowerState":         {ResourceType: "Manager", Remove: []string{"PowerState"}},
	"MACAddress": {
		ResourceType: "EthernetInterface", URI: "/redfish/v1/Systems/{system}/EthernetInterfaces/{nic}",
		Set: []dialect.PropertyRule{{Path: "MACAddress", Value: ""}},
	},
}

func changeETags(change func(*dialect.ETags)) func(*dialect.Record, values) {
	return func(r *dialect.Record, _ values) { change(&r.Protocol.ETags) }
}

// All has every quirk, by subject.
var All = slices.Concat(requests, media, boots, tasks, systems, protocols, logins, ipmis, freeIPMI)

// requests are the quirks that reject requests which the standard allows, or change
// their responses.
var requests = []Quirk{
	{
		ID: "vmedia-stale-inserted", Does: "InsertMedia is answered 500 for a while after media was ejected",
		Seen: "iDRAC", Source: []string{"https://storyboard.openstack.org/#!/story/2008504"},
		Params: []Param{{"for", "10s", Span, "how long InsertMedia fails after an eject"}},
		change: func(r *dialect.Record, p values) {
			prependRule(r, dialect.RejectRule{ResourceType: "VirtualMedia", Method: insert, While: dialect.AfterEject, For: p.span("for"), Status: 500,
				Message: vendorMessage("IDRAC", "2.8.0", "VRM0012", "The virtual media is attached already, or still in use.")})
		},
	},
	{
		ID: "vmedia-strict-payload", Does: "InsertMedia is answered 400 when the request has Inserted or WriteProtected",
		Seen: "Supermicro X11, X12", Source: []string{"sushy release note fix-insert-media-payload"},
		change: addRules(dialect.RejectRule{ResourceType: "VirtualMedia", Method: insert, SendsAny: []string{"Inserted", "WriteProtected"},
			Message: baseMessage("ActionParameterUnknown", "The action was given the parameter %1, which it does not know.")}),
	},
	{
		ID: "vmedia-patch-only", Does: "the slots have no InsertMedia action: a client inserts media with a PATCH that has both Image and Inserted",
		Seen: "Lenovo SD530, XCC", Source: []string{"sushy release note fix-virtual-media-fallback", "https://github.com/lenovo/python-redfish-lenovo/issues/21"},
		change: func(r *dialect.Record, _ values) {
			r.Media.InsertByPatch = true
			// HasPrefix "" is any text; null, which ejects, is none.
			prependRule(r, dialect.RejectRule{ResourceType: "VirtualMedia", Method: "PATCH", HasPrefix: map[string][]string{"Image": {""}}, Missing: []string{"Inserted"},
				Message: baseMessage("PropertyMissing", "The property %1 is required and was not sent.")})
		},
	},
	{
		ID: "vmedia-missing-params", Does: "InsertMedia is answered 400 unless the request has TransferProtocolType and TransferMethod, and, with account=yes, UserName and Password",
		Seen: "NVIDIA DGX, xFusion", Source: []string{"https://github.com/openshift/ironic-image/pull/819", "https://github.com/openshift/ironic-image/pull/560", "https://bugs.launchpad.net/ironic/+bug/2071945"},
		Params: []Param{{"account", "no", Text, "yes also requires UserName and Password: yes or no"}, {"error", "json", Text, "form of the error response: json, or text, a body that is no JSON"}},
		check:  oneOf(map[string][]string{"account": {"yes", "no"}, "error": {"json", "text"}}),
		change: func(r *dialect.Record, p values) {
			lacks := []string{"TransferProtocolType", "TransferMethod"}
			if p["account"] == "yes" {
				lacks = append(lacks, "UserName", "Password")
			}
			prependRule(r, dialect.RejectRule{ResourceType: "VirtualMedia", Method: insert, Missing: lacks, PlainText: p["error"] == "text",
				Message: baseMessage("ActionParameterMissing", "The action needs the parameter %1, which was not sent.")})
		},
	},
	{
		ID: "vmedia-eject-needs-body", Does: "EjectMedia without a request body is answered 400; the body {} is accepted",
		Seen: "HPE iLO", Source: []string{"sushy release note fix-eject-media-empty-dict"},
		change: addRules(dialect.RejectRule{ResourceType: "VirtualMedia", Method: eject, EmptyBody: true,
			Message: baseMessage("MalformedJSON", "The body of the request is no JSON.")}),
	},
	{
		ID: "vmedia-no-http", Does: "an image URI that begins with http:// is answered 400; https:// is accepted, except with but=nfs",
		Seen: "OpenBMC, Huawei", Source: []string{"bmcweb, redfish-core/lib/virtual_media.hpp"},
		Params: []Param{{"but", "https", Text, "what is accepted: https, or nfs, which rejects https:// too"}},
		check:  oneOf(map[string][]string{"but": {"https", "nfs"}}),
		change: func(r *dialect.Record, p values) {
			begins := []string{"http://"}
			if p["but"] == "nfs" {
				begins = append(begins, "https://")
			}
			prependRule(r, dialect.RejectRule{ResourceType: "VirtualMedia", HasPrefix: map[string][]string{"Image": begins},
				Message: baseMessage("ActionParameterNotSupported", "The parameter %1 cannot have the value %2 here.")})
		},
	},
	{
		ID: "vmedia-detached", Does: "InsertMedia is answered 500 with VRM0021 until the BMC has been reset once",
		Seen: "iDRAC", Source: []string{"https://github.com/microsoft/lisa/pull/4168"},
		change: addRules(dialect.RejectRule{ResourceType: "VirtualMedia", Method: insert, While: dialect.NeverReset, Status: 500,
			Message: vendorMessage("IDRAC", "2.8.0", "VRM0021", "The virtual media is detached, or its session is stale.")}),
	},
	{
		ID: "boot-enabled-required", Does: "a PATCH of BootSourceOverrideTarget or BootSourceOverrideMode is answered 400 unless it also has BootSourceOverrideEnabled",
		Seen: "Supermicro", Source: []string{"https://storyboard.openstack.org/#!/story/2008547"},
		change: addRules(dialect.RejectRule{ResourceType: "ComputerSystem", Method: "PATCH", SendsAny: []string{target, mode}, Missing: []string{enabled},
			Message: baseMessage("PropertyMissing", "The property %1 is required and was not sent.")}),
	},
	{
		ID: "boot-redundant-rejected", Does: "a PATCH of the boot override is answered 400 when it sends BootSourceOverrideTarget, Enabled or Mode with its present value",
		Seen: "several", Source: []string{"https://storyboard.openstack.org/#!/story/2007355", "https://storyboard.openstack.org/#!/story/2008252", "https://storyboard.openstack.org/#!/story/2008712"},
		change: addRules(dialect.RejectRule{ResourceType: "ComputerSystem", URI: "/redfish/v1/Systems/{system}", Method: "PATCH", SendsUnchanged: []string{target, enabled, mode},
			Message: baseMessage("PropertyValueConflict", "The property %1 is %2 already.")}),
	},
	{
		ID: "boot-full-request", Does: "a PATCH of the boot override is answered 400 unless it has BootSourceOverrideTarget, Enabled and Mode together",
		Seen: "AMI, ASRock Rack", Source: []string{"ironic, drivers/modules/redfish/management.py"},
		change: addRules(dialect.RejectRule{ResourceType: "ComputerSystem", Method: "PATCH", SendsIncomplete: []string{target, enabled, mode},
			Message: baseMessage("PropertyMissing", "The property %1 is required and was not sent.")}),
	},
	{
		ID: "boot-minimal-request", Does: "a PATCH of Boot with more than two properties is answered 400",
		Seen: "HPE DL160", Source: []string{"https://github.com/bmc-toolbox/bmclib/pull/318"},
		change: addRules(dialect.RejectRule{ResourceType: "ComputerSystem", Method: "PATCH", SendsAny: []string{"Boot"}, MaxProperties: 2,
			Message: baseMessage("PropertyValueConflict", "The property %1 was written with too many others.")}),
	},
	{
		ID: "boot-no-continuous", Does: "BootSourceOverrideEnabled Continuous is answered 400 with PropertyValueNotInList, and is not an allowable value",
		Seen: "Lenovo XCC", Source: []string{"bmclib, providers/lenovo/boot.go"},
		change: func(r *dialect.Record, _ values) {
			prependRule(r, dialect.RejectRule{ResourceType: "ComputerSystem", Method: "PATCH", OneOf: map[string][]string{enabled: {"Continuous"}},
				Message: baseMessage("PropertyValueNotInList", "The value %2 of the property %1 is not in the list of those that are taken.")})
			r.Presentation.Transforms = append(r.Presentation.Transforms, dialect.Transform{ResourceType: "ComputerSystem", Set: []dialect.PropertyRule{
				{Path: "Boot/BootSourceOverrideEnabled@Redfish.AllowableValues", Value: []any{"Once", "Disabled"}}}})
		},
	},
	{
		ID: "post-rejects-changes", Does: "a PATCH of the system or of its BIOS settings is answered 400 while the system is in POST",
		Seen: "HPE iLO", Source: []string{"https://github.com/ironcore-dev/metal-operator/issues/997", "https://bugs.launchpad.net/ironic/+bug/2136275"},
		change: addRules(
			dialect.RejectRule{ResourceType: "ComputerSystem", Method: "PATCH", While: dialect.InPOST,
				Message: vendorMessage("iLO", "2.37.0", "UnableToModifyDuringSystemPOST", "The system cannot be changed while it is in POST.")},
			dialect.RejectRule{ResourceType: "Bios", URI: settings, Method: "PATCH", While: dialect.InPOST,
				Message: vendorMessage("iLO", "2.37.0", "UnableToModifyDuringSystemPOST", "The system cannot be changed while it is in POST.")}),
	},
	{
		ID: "power-settle-409", Does: "Reset with On or ForceOn is answered 409 for a while after power off",
		Seen: "iDRAC 10", Source: []string{"https://bugs.launchpad.net/ironic/+bug/2162995"},
		Params: []Param{{"for", "10s", Span, "how long power on is rejected after power off"}},
		change: func(r *dialect.Record, p values) {
			prependRule(r, dialect.RejectRule{ResourceType: "ComputerSystem", Method: reset, OneOf: map[string][]string{"ResetType": {"On", "ForceOn"}}, While: dialect.AfterOff,
				For: p.span("for"), Status: 409, Message: baseMessage("ActionParameterValueConflict", "The value %2 of the parameter %1 does not go with the state of the server.")})
		},
	},
	{
		ID: "power-invalid-state-400", Does: "every Reset is answered 400 for a while after the system went on or off",
		Seen: "HPE iLO", Source: []string{"sushy release note retry-ilo-not-ready-error"},
		Params: []Param{{"for", "10s", Span, "how long Reset is rejected after a change of power"}},
		change: func(r *dialect.Record, p values) {
			for _, w := range []dialect.Condition{dialect.AfterOff, dialect.AfterOn} {
				prependRule(r, dialect.RejectRule{ResourceType: "ComputerSystem", Method: reset, While: w, For: p.span("for"),
					Message: vendorMessage("iLO", "2.14.0", "InvalidOperationForSystemState", "The operation was not successful due to the current power state.")})
			}
		},
	},
	{
		ID: "bmc-not-ready", Does: "for a while after the BMC has started, every write is answered 503 with SYS518, or 400 with SWC0700; with members=empty collections have no members during that time",
		Seen: "iDRAC", Source: []string{"https://github.com/quadsproject/badfish/issues/129", "https://github.com/redhat-performance/jetlag/pull/778"},
		Params: []Param{
			{"for", "3m", Span, "how long after the start of the BMC"}, {"how", "503", Text, "status of the response: 503 or 400"}, {"members", "shown", Text, "members of collections meanwhile: shown or empty"},
		},
		check: oneOf(map[string][]string{"how": {"503", "400"}, "members": {"shown", "empty"}}),
		change: func(r *dialect.Record, p values) {
			u := dialect.RejectRule{While: dialect.AfterStart, For: p.span("for"), Status: 503,
				Message: vendorMessage("IDRAC", "2.8.0", "SYS518", "The BMC is not ready: its data sources are not available yet.")}
			if p["how"] == "400" {
				u.Status, u.Message = 400, vendorMessage("IDRAC", "1.6.0", "SWC0700", "The BMC is not ready: try again in a while.")
			}
			prependRule(r, u)
			if p["members"] == "empty" {
				r.Protocol.EmptyCollectionsAfterBoot = p.span("for")
			}
		},
	},
	{
		ID: "jobs-blocked", Does: "a PATCH of the BIOS settings is answered 400 while earlier settings wait for a restart",
		Seen: "iDRAC", Source: []string{"https://github.com/quadsproject/badfish/issues/30", "https://github.com/dsx-ai-factory/libredfish/pull/105"},
		change: addRules(dialect.RejectRule{ResourceType: "Bios", URI: settings, Method: "PATCH", While: dialect.SettingsDue,
			Message: vendorMessage("IDRAC", "2.8.0", "SYS011", "A configuration that was committed waits to be applied.")}),
	},
	{
		ID: "no-sessions", Does: "a POST to the Sessions collection is answered 405: only Basic authentication works",
		Seen: "iDRAC 8", Source: []string{"https://github.com/quadsproject/badfish/issues/447"},
		change: addRules(dialect.RejectRule{ResourceType: "SessionCollection", Method: "POST", Status: 405,
			Message: vendorMessage("IDRAC", "1.6.0", "SYS402", "The method of the request is not allowed here.")}),
	},
	{
		ID: "session-limit", Does: "the number of open sessions is limited; the next login is answered 503",
		Seen: "iDRAC 9", Source: []string{"https://github.com/stmcginnis/gofish/issues/75", "https://github.com/mrlhansen/idrac_exporter/issues/132"},
		Params: []Param{{"most", "8", Count, "largest number of open sessions"}},
		change: func(r *dialect.Record, p values) { r.BMC.Sessions = p.count("most") },
	},
	{
		ID: "etag-required", Does: "a PATCH or DELETE without If-Match is answered 428",
		Seen: "AMI, Huawei", Source: []string{"https://github.com/stmcginnis/gofish/issues/171", "https://github.com/stmcginnis/gofish/issues/174"},
		change: changeETags(func(e *dialect.ETags) { e.IfMatchRequired = []string{"*"} }),
	},
	{
		ID: "etag-weak-vs-strong", Does: "ETags are weak (W/\"x\"), and If-Match matches only the bare x, without W/ and quotes",
		Seen: "iDRAC", Source: []string{"sushy release note releasenote-d7138d1e1d414632"},
		change: changeETags(func(e *dialect.ETags) { e.Format = dialect.Weak; e.Comparison = dialect.Unquoted }),
	},
	{
		ID: "etag-mismatch-own", Does: "a PATCH whose If-Match is the ETag that the BMC has just sent is answered 412",
		Seen: "Lenovo", Source: []string{"https://github.com/ansible-collections/community.general/issues/11270"},
		change: changeETags(func(e *dialect.ETags) { e.Comparison = dialect.Never }),
	},
	{
		ID: "etag-double-quoted", Does: "ETags have two pairs of quotes, and If-Match must have both",
		Seen: "several", Source: []string{"https://github.com/ansible-collections/community.general/issues/3268"},
		change: changeETags(func(e *dialect.ETags) { e.Format = dialect.DoubleQuoted }),
	},
	{
		ID: "etag-empty", Does: "the ETag header is empty; a PATCH that sends it back in If-Match is answered 412",
		Seen: "several", Source: []string{"https://github.com/stmcginnis/gofish/issues/174"},
		change: changeETags(func(e *dialect.ETags) { e.Format = dialect.Empty }),
	},
	{
		ID: "etag-gzip-suffix", Does: "the ETag of a compressed response ends in -gzip; a PATCH with that ETag in If-Match is answered 412",
		Seen: "iDRAC", Source: []string{"sushy release note releasenote-d7138d1e1d414632"},
		change: func(r *dialect.Record, _ values) { r.Protocol.Gzip, r.Protocol.ETags.GzipSuffix = true, true },
	},
	{
		ID: "etag-on-action-412", Does: "an action with If-Match is answered 412",
		Seen: "iDRAC", Source: []string{"https://github.com/ironcore-dev/metal-operator/issues/1015"},
		change: changeETags(func(e *dialect.ETags) { e.RejectIfMatchOnActions = true }),
	},
	{
		ID: "conn-abrupt-close", Does: "the BMC closes each connection after one response",
		Seen: "several", Source: []string{"sushy release note disable-conn-pooling"},
		change: func(r *dialect.Record, _ values) { r.Protocol.CloseAfterResponse = true },
	},
	{
		ID: "http-only", Does: "the service speaks HTTP without TLS at its port",
		Seen: "sushy-tools, BMCs whose TLS was put off", Source: []string{"https://docs.openstack.org/sushy-tools/latest/user/dynamic-emulator.html"},
		change: func(r *dialect.Record, _ values) { r.Protocol.PlainHTTP = true },
	},
	{
		ID: "license-denied", Does: "InsertMedia, and every write to VirtualMedia, SecureBoot and Bios, is answered 403",
		Seen: "Supermicro", Source: []string{"ironic, drivers/modules/redfish/management.py"},
		change: func(r *dialect.Record, _ values) {
			for _, of := range []string{"VirtualMedia", "SecureBoot", "Bios"} {
				prependRule(r, dialect.RejectRule{ResourceType: of, Status: 403,
					Message: vendorMessage("SMC", "1.0.0", "OemLicenseNotPassed", "The request needs a licence that is not installed.")})
			}
		},
	},
	{
		ID: "extendedinfo-object", Does: "@Message.ExtendedInfo is an object or a string instead of an array",
		Seen: "iDRAC", Source: []string{"sushy release note fix-extended-info-error-handling"},
		Params: []Param{{"as", "object", Text, "its JSON type: object or text"}},
		check:  oneOf(map[string][]string{"as": {"object", "text"}}),
		change: func(r *dialect.Record, p values) {
			r.Presentation.Errors.SingleObject, r.Presentation.Errors.SingleText = p["as"] == "object", p["as"] == "text"
		},
	},
	{
		ID: "missing-links", Does: "the system has no Links/ManagedBy and no EthernetInterfaces link, MACAddress of its interfaces is empty, and the manager has no PowerState",
		Seen: "Huawei 1288H, Cisco, iLO 6 1.70", Source: []string{"https://github.com/ironcore-dev/metal-operator/issues/594"},
		Params: []Param{{"which", "all", Text, "what is missing: all, ManagedBy, EthernetInterfaces, MACAddress or PowerState"}},
		check:  oneOf(map[string][]string{"which": slices.Concat([]string{"all"}, slices.Sorted(maps.Keys(missing)))}),
		change: func(r *dialect.Record, p values) {
			for _, name := range slices.Sorted(maps.Keys(missing)) {
				if p["which"] == "all" || p["which"] == name {
					addTransforms(missing[name])(r, p)
				}
			}
		},
	},
	{
		ID: "members-null", Does: "Members of an empty collection is null",
		Seen: "NVIDIA", Source: []string{"https://issues.redhat.com/browse/OCPBUGS-70226"},
		change: addTransforms(dialect.Transform{ResourceType: "*Collection", Set: []dialect.PropertyRule{{Path: "Members", From: "Members@odata.count", Map: map[string]any{"0": nil}, Otherwise: dialect.LeaveUnchanged}}}),
	},
	{
		ID: "volume-delete-applytime", Does: "a DELETE of a volume with @Redfish.OperationApplyTime is answered 400",
		Seen: "iDRAC from 6.00.02 on", Source: []string{"sushy release note fix-volume-delete"},
		change: addRules(dialect.RejectRule{ResourceType: "Volume", Method: "DELETE", SendsAny: []string{"@Redfish.OperationApplyTime"},
			Message: baseMessage("PropertyUnknown", "The property %1 is not known.")}),
	},
	{
		ID: "accounts-are-slots", Does: "a POST to the Accounts collection is answered 405",
		Seen: "iDRAC 8 and 9", Source: []string{"nv-redfish, bmc_quirks.rs"},
		change: addRules(dialect.RejectRule{ResourceType: "ManagerAccountCollection", Method: "POST", Status: 405,
			Message: baseMessage("OperationNotAllowed", "The method of the request is not allowed here.")}),
	},
	{
		ID: "ipmi-cipher17-only", Does: "IPMI accepts cipher suite 17 and no other",
		Seen: "OpenBMC", Source: []string{"https://github.com/bmc-toolbox/bmclib/pull/324"},
		change: func(r *dialect.Record, _ values) { r.IPMI.CipherSuites = []byte{17} },
	},
	{
		ID: "ipmi-disabled-by-default", Does: "IPMI over LAN is disabled until a client enables it through Redfish",
		Seen: "Fujitsu iRMC S6 from 2.00 on", Source: []string{"release notes of iRMC S6 2.00"},
		change: func(r *dialect.Record, _ values) { r.BMC.Network.IPMI.On = false },
	},
}
