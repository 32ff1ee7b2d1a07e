package quirk

import (
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// protocols are quirks of how responses are sent, and of what they have.
var protocols = []Quirk{
	{
		ID: "identity-406", Does: "registries are sent packed; to a client that does not take gzip the answer is 406",
		Seen: "HPE Gen10 and later", Source: []string{"sushy, connector.py", "HPE's documentation of the API of iLO, BIOS data model"},
		change: func(r *dialect.Record, _ values) {
			r.Protocol.Gzip, r.Protocol.GzipOnly = true, append(r.Protocol.GzipOnly, "/redfish/v1/Registries/{registry}/{document}")
		},
	},
	{
		ID: "slow-patch-60s", Does: "a PATCH is done at once, and answered after a minute and more",
		Seen: "several", Source: []string{"ironic release note redfish-read-timeout"},
		Params: []Param{{"for", "65s", Span, "how long the answer takes, up to an hour"}},
		check: func(p values) string {
			if p.span("for") > time.Hour {
				return "for: must be an hour at most"
			}
			return ""
		},
		change: func(r *dialect.Record, p values) { r.Protocol.PatchDelay = p.span("for") },
	},
	{
		ID: "expand-broken", Does: "where $expand shows resources they lack Id, Name and what their types cannot do without",
		Seen: "AMI, NVIDIA DGX H100 and GB300", Source: []string{"nv-redfish, bmc_quirks.rs"},
		change: func(r *dialect.Record, _ values) {
			r.Protocol.ExpandOmits = append(r.Protocol.ExpandOmits, "Id", "Name", "ChassisType", "MemoryDeviceType", "DriveType")
		},
	},
	{
		ID: "ids-shift-on-reboot", Does: "with each start of the server its network interfaces have the IDs of others",
		Seen: "HPE iLO 6", Source: []string{"nv-redfish, bmc_quirks.rs"},
		change: func(r *dialect.Record, _ values) { r.NICsRenumberAtBoot = true },
	},
	{
		ID: "license-two-documents", Does: "reading is answered 200 with two documents of JSON in one body: that a licence is missing, and the resource",
		Seen: "iDRAC 8", Source: []string{"https://github.com/bb-Ricardo/check_redfish/issues/151"},
		Params: []Param{{"of", "Manager", Text, "types of the resources, with commas"}},
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

// logins are quirks of BMCs after logins that failed.
var logins = []Quirk{
	{
		ID: "auth-delay", Does: "after logins with a wrong password an account waits; each time that it is wrong again, twice as long",
		Seen: "HPE iLO", Source: []string{"mockup of iLO in its documentation, AccountService"},
		Params: []Param{
			{"after", "1", Count, "logins that may fail before"}, {"for", "10s", Span, "the first delay"}, {"most", "80s", Span, "the longest one"},
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
		ID: "ip-block", Does: "after some logins with a wrong password nobody gets in from where they came from, whatever the password",
		Seen: "iDRAC", Source: []string{"Dell's documentation of iDRAC, IP blocking"},
		Params: []Param{
			{"after", "3", Count, "logins that may fail"}, {"within", "60s", Span, "of one another"}, {"for", "10m", Span, "how long nobody gets in"},
		},
		change: func(r *dialect.Record, p values) {
			a := &r.BMC.Accounts.Policy
			a.BlockAfter, a.BlockWithin, a.BlockFor = p.count("after"), p.span("within"), p.span("for")
		},
	},
}
