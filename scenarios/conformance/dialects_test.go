package conformance_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/scenarios/conformance"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

// found are the quirks that reversible runs find on the models of each dialect.
// Each is in the dialect's record (docs/vendors.md); nothing else is found.
var found = map[string]string{
	"generic":           "",
	"dell-r640":         "accounts-are-slots jobs-blocked session-limit",
	"dell-r730":         "accounts-are-slots extendedinfo-object jobs-blocked no-sessions",
	"dell-r760":         "accounts-are-slots jobs-blocked session-limit",
	"dell-r770":         "boot-readonly-use-settings etag-required jobs-blocked session-limit",
	"fujitsu-rx2530-m6": "etag-required session-limit",
	"fujitsu-rx2540-m7": "etag-required session-limit",
	"gigabyte-r282":     "etag-required session-limit vmedia-missing-params",
	"hpe-dl360-gen9":    "auth-delay identity-406 vmedia-patch-only",
	"hpe-dl360-gen10":   "auth-delay boot-minimal-request identity-406 vmedia-eject-needs-body",
	"hpe-dl360-gen11":   "auth-delay boot-minimal-request identity-406 vmedia-eject-needs-body",
	"hpe-dl360-gen12":   "auth-delay boot-minimal-request identity-406 vmedia-eject-needs-body",
	"huawei-1288h-v5":   "etag-required missing-links session-limit vmedia-own-way",
	"lenovo-sr650-v2":   "boot-no-continuous session-limit vmedia-patch-only",
	"lenovo-sr650-v3":   "boot-no-continuous session-limit vmedia-patch-only",
	"openbmc-mtjade":    "ipmi-cipher17-only vmedia-dead-slots vmedia-no-http",
	"supermicro-1029u":  "bios-registry-lag boot-enabled-required ipmi-smc-uefi-0x24 session-limit vmedia-strict-payload",
	"supermicro-621c":   "bios-registry-lag boot-enabled-required ipmi-smc-uefi-0x24 session-limit",
}

// modelsOf returns the names of a test's models, sorted.
func modelsOf[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

func TestDialectsHaveTheQuirksOfTheirRecords(t *testing.T) {
	for _, model := range sample.Rows(t, "dialects of conformance", 4, modelsOf(found)) {
		t.Run(model, func(t *testing.T) {
			got := newBench(t, model, conformance.Reversible).run()
			noErrors(t, got)
			if d := cmp.Diff(found[model], quirksOf(got)); d != "" {
				t.Errorf("quirks (-want +got):\n%s", d)
			}
		})
	}
}

func TestEveryDialectHasARowOfQuirks(t *testing.T) {
	seen := map[string]bool{}
	for _, model := range modelsOf(found) {
		p, _, err := rack.ReadProfile(nil, model)
		if err != nil {
			t.Fatal(err)
		}
		seen[p.Dialect] = true
	}
	for _, name := range rack.Dialects() {
		if !seen[name] {
			t.Errorf("no model of the dialect %s is in found", name)
		}
	}
}

// noErrors fails when the tool is at fault for a verdict.
func noErrors(t *testing.T, all map[string]conformance.Result) {
	t.Helper()
	for id, r := range all {
		if r.Verdict == conformance.Broken {
			t.Errorf("%s is error: %s", id, r.Reason)
		}
	}
}

// quirksOf returns the names of the quirks that a run has found.
func quirksOf(all map[string]conformance.Result) string {
	var names []string
	for _, r := range all {
		for _, q := range r.Quirks {
			names = append(names, q.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}
