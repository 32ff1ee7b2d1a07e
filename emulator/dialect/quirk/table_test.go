package quirk

import (
	"slices"
	"strings"
	"testing"
)

// table is the table of real BMCs' quirks with which this package began, by the
// numbers of its rows: what they name, and "=" the switch where that is called
// otherwise.
var table = map[int][]string{
	1:  {"vmedia-stale-inserted"},
	2:  {"vmedia-detached-vrm0021=vmedia-detached"},
	3:  {"vmedia-uri-moved"},
	4:  {"vmedia-strict-payload"},
	5:  {"vmedia-patch-only"},
	6:  {"vmedia-dead-slots"},
	7:  {"vmedia-missing-params"},
	8:  {"vmedia-eject-needs-body"},
	9:  {"vmedia-no-http"},
	10: {"vmedia-cd-alias"},
	11: {"boot-silently-ignored"},
	12: {"boot-enabled-required", "boot-redundant-rejected"},
	13: {"boot-full-request", "mirror image=boot-minimal-request"},
	14: {"boot-readonly-use-settings"},
	15: {"boot-no-continuous"},
	16: {"post-rejects-changes"},
	17: {"power-settle-409"},
	18: {"power-invalid-state-400"},
	19: {"bmc-not-ready"},
	20: {"jobs-blocked"},
	21: {"task-404-race", "task-purged", "task-state-new", "taskmonitor-get-deletes"},
	22: {"session-limit", "no-sessions"},
	23: {
		"required=etag-required", "weak-vs-strong=etag-weak-vs-strong", "mismatch-own=etag-mismatch-own", "empty=etag-empty",
		"double-quoted=etag-double-quoted", "gzip-suffix=etag-gzip-suffix", "on-action-412=etag-on-action-412",
	},
	24: {"conn-abrupt-close", "identity-406", "slow-patch-60s"},
	25: {"license-denied", "two JSON documents in one body=license-two-documents"},
	26: {"extendedinfo-object"},
	27: {"missing-links"},
	28: {"expand-broken", "members-null", "ids-shift-on-reboot"},
	29: {"sse-malformed", "dates-bad"},
	30: {"bios-registry-lag"},
	31: {"forcerestart-hangs"},
	32: {"clock-offset-same-value"},
	33: {"volume-delete-applytime"},
	34: {"accounts-are-slots", "auth-delay", "ip-block"},
	35: {
		"ipmi-cipher17-only", "ipmi-cipher-list-silent", "ipmi-cipher-list-lies", "ipmi-off-when-off-errors", "ipmi-no-bootparam3",
		"ipmi-smc-uefi-0x24", "ipmi-disabled-by-default",
		"supermicro20=ipmi-supermicro20", "intel20=ipmi-intel20", "sun20=ipmi-sun20", "opensesspriv=ipmi-opensesspriv", "authcap=ipmi-authcap",
		"idzero=ipmi-idzero", "endianseq=ipmi-endianseq", "integritycheckvalue=ipmi-integritycheckvalue", "solpayloadsize=ipmi-solpayloadsize",
		"slowcommit=ipmi-slowcommit", "discretereading=ipmi-discretereading",
		// "and so on": more of FreeIPMI's that change what a BMC sends.
		"ipmi-noauthcodecheck", "ipmi-nochecksumcheck", "ipmi-assumebmcowner", "ipmi-ignorescanningdisabled",
	},
}

// beside are switches of no row: what older boards and BMCs without TLS are
// like, and what the standard allows and clients forget.
var beside = []string{"collections-paged", "http-only", "vmedia-own-way"}

func TestEveryRowOfTheQuirkTableIsAQuirk(t *testing.T) {
	const rows = 35
	var named []string
	for n := 1; n <= rows; n++ {
		if len(table[n]) == 0 {
			t.Errorf("row %d names nothing", n)
		}
		for _, name := range table[n] {
			if _, id, other := strings.Cut(name, "="); other {
				name = id
			}
			if _, ok := Find(name); !ok {
				t.Errorf("row %d: there is no switch %s", n, name)
			}
			named = append(named, name)
		}
	}
	for _, q := range All {
		if slices.Contains(named, q.ID) == slices.Contains(beside, q.ID) {
			t.Errorf("%s is of no row, or is of one and beside them, too", q.ID)
		}
	}
}
