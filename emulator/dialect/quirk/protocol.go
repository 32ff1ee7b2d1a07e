package quirk

import (
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// protocols are quirks of responses: their encoding, timing and content.
var protocols = []Quirk{
	{
		ID: "identity-406", Does: "message registries are sent with gzip only; a GET that does not accept gzip is answered 406",
		Seen: "HPE Gen10 and later", Source: []string{"sushy, connector.py", "HPE's documentation of the API of iLO, BIOS data model"},
		change: func(r *dialect.Record, _ values) {
			r.Protocol.Gzip, r.Protocol.GzipOnly = true, append(r.Protocol.GzipOnly, "/redfish/v1/Registries/{registry}/{document}")
		},
	},
	{
		ID: "slow-patch-60s", Does: "a PATCH takes effect at once, and its response takes more than a minute",
		Seen: "several", Source: []string{"ironic release note redfish-read-timeout"},
		Params: []Param{{"for", "65s", Span, "delay of the response: an hour at most"}},
		check: func(p values) string {
			if p.span("for") > time.Hour {
				return "for: must be an hour at most"
			}
			return ""
		},
		change: func(r *dialect.Record, p values) { r.Protocol.PatchDelay = p.span("for") },
	},
	{
		ID: "expand-broken", Does: "members in a response to $expand lack Id, Name and required properties of their types",
		Seen: "AMI, NVIDIA DGX H100 and GB300", Source: []string{"nv-redfish, bmc_quirks.rs"},
		change: func(r *dialect.Record, _ values) {
			r.Protocol.ExpandOmits = append(r.Protocol.ExpandOmits, "Id", "Name", "ChassisType", "MemoryDeviceType", "DriveType")
		},
	},
	{
		ID: "collections-paged", Does: "a response has one member of a collection, or size of them, and a nextLink to the others",
		Seen: "iDRAC, with 50 members", Source: []string{"https://github.com/stmcginnis/gofish/pull/243", "https://github.com/dell/iDRAC-Redfish-Scripting/issues/12"},
		Params: []Param{{"size", "1", Count, "members of one response"}},
		change: func(r *dialect.Record, p values) { r.Protocol.PageSize = p.count("size") },
	},
	{
		ID: "ids-shift-on-reboot", Does: "the IDs of the system's EthernetInterfaces are exchanged among each other whenever the system boots",
		Seen: "HPE iLO 6", Source: []string{"nv-redfish, bmc_quirks.rs"},
		change: func(r *dialect.Record, _ values) { r.NICsRenumberAtBoot = true },
	},
	{
		ID: "license-two-documents", Does: "a GET is answered 200 with two JSON documents in one body: the error that a licence is missing, and the resource",
		Seen: "iDRAC 8", Source: []string{"https://github.com/bb-Ricardo/check_redfish/issues/151"},
		Params: []Param{{"of", "Manager", Text, "types of the resources, separated by commas"}},
		change: func(r *dialect.Record, p values) {
			for of := range strings.SplitSeq(p["of"], ",") {
				r.Protocol.ErrorPrefixes = append(r.Protocol.ErrorPrefixes, dialect.ErrorPrefix{ResourceType: of,
					Message: vendorMessage("Base", "1.0.0", "InternalError", "It failed: the user's licence does not cover the operation.")})
			}
		},
		check: func(p values) string {
			if slices.Contains(strings.Split(p["of"], ","), "") {
				return "of: must be types of resources, with commas between them"
			}
			return ""
		},
	},
}

// logins are quirks of failed logins.
var logins = []Quirk{
	{
		ID: "auth-delay", Does: "after failed logins an account is locked for a while, and twice as long after each further failure",
		Seen: "HPE iLO", Source: []string{"mockup of iLO in its documentation, AccountService"},
		Params: []Param{
			{"after", "1", Count, "failed logins before the first delay"}, {"for", "10s", Span, "the first delay"}, {"most", "80s", Span, "the longest delay"},
		},
		check: func(p values) string {
			if p.span("most") < p.span("for") {
				return "most: must not be less than for"
			}
			return ""
		},
		change: func(r *dialect.Record, p values) {
			a := &r.BMC.Accounts.Policy
			a.LockoutThreshold, a.LockoutDuration, a.LockoutCounterResetAfter, a.MaxLockoutDuration = p.count("after")+1, p.span("for"), p.span("for"), 0
			if p.span("most") > a.LockoutDuration {
				a.MaxLockoutDuration = p.span("most")
			}
		},
	},
	{
		ID: "ip-block", Does: "after some failed logins every login from the same IP address is rejected, even with the right password",
		Seen: "iDRAC", Source: []string{"Dell's documentation of iDRAC, IP blocking"},
		Params: []Param{
			{"after", "3", Count, "failed logins before the address is blocked"}, {"within", "60s", Span, "time within which the logins fail"}, {"for", "10m", Span, "how long the address is blocked"},
		},
		change: func(r *dialect.Record, p values) {
			a := &r.BMC.Accounts.Policy
			a.BlockAfter, a.BlockWithin, a.BlockFor = p.count("after"), p.span("within"), p.span("for")
		},
	},
}
