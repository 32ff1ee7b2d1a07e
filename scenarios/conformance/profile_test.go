package conformance

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func result(t *testing.T, id string, o Outcome) Result {
	t.Helper()
	c, err := Find(id)
	if err != nil {
		t.Fatal(err)
	}
	return Result{Check: c, Outcome: o}
}

func TestConclusions(t *testing.T) {
	vmedia, err := FindProfile("metal3-redfish-vmedia")
	if err != nil {
		t.Fatal(err)
	}
	pass := result(t, "NET-001", Passed(""))
	for name, tt := range map[string]struct {
		results []Result
		want    string
	}{
		"all pass": {[]Result{pass}, "READY for metal3-redfish-vmedia"},
		"the first blocker is that of the first step, not of the first check": {
			[]Result{pass, result(t, "VM-003", Failed("400")), result(t, "PWR-001", Failed("no On"))},
			"NOT READY for metal3-redfish-vmedia: PWR-001 breaks the step register: no On. Remedy: give the client the reset types, or use IPMI for power",
		},
		"an exact remedy":            {[]Result{{Check: result(t, "VM-003", Outcome{}).Check, Outcome: Outcome{Verdict: Fail, Reason: "403", Advice: "buy it"}}}, "NOT READY for metal3-redfish-vmedia: VM-003 breaks the step boot: 403. Remedy: buy it"},
		"a quirk":                    {[]Result{result(t, "VM-003", Passed("").Quirky("vmedia-strict-payload"))}, "READY WITH QUIRKS for metal3-redfish-vmedia: vmedia-strict-payload"},
		"a failure that is no must":  {[]Result{pass, result(t, "NET-003", Failed("expired"))}, "READY WITH QUIRKS for metal3-redfish-vmedia: NET-003"},
		"a failure that only may be": {[]Result{pass, result(t, "VM-014", Failed("one slot"))}, "READY for metal3-redfish-vmedia"},
		"a failure of another use":   {[]Result{pass, result(t, "STO-004", Failed("405"))}, "READY for metal3-redfish-vmedia"},
		"an error decides nothing":   {[]Result{result(t, "SYS-001", Judge(cmpError("no route")))}, "UNDECIDED for metal3-redfish-vmedia: the tool or the network failed in SYS-001"},
		"nothing ran":                {[]Result{result(t, "PWR-002", Skipped("after NET-001 (skip)"))}, "UNDECIDED for metal3-redfish-vmedia: none of its checks ran"},
		"left out":                   {[]Result{pass, result(t, "PWR-002", Skipped("needs --level disruptive"))}, "READY for metal3-redfish-vmedia (the run left out 1 that must hold)"},
	} {
		if diff := cmp.Diff(tt.want, vmedia.Conclude(whole(tt.results)).String()); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}

// whole adds results that decide nothing for the checks that are missing.
func whole(results []Result) []Result {
	out := slices.Clone(results)
	for _, c := range Checks() {
		if !slices.ContainsFunc(results, func(r Result) bool { return r.ID == c.ID }) {
			out = append(out, Result{Check: c, Outcome: Skipped("the server has no such resource")})
		}
	}
	return out
}

// A run that was interrupted, or made selected checks, says that it did not make the others.
func TestConclusionNamesChecksThatWereNotReached(t *testing.T) {
	vmedia, err := FindProfile("metal3-redfish-vmedia")
	if err != nil {
		t.Fatal(err)
	}
	all := whole([]Result{result(t, "NET-001", Passed(""))})
	if got := vmedia.Conclude(all).Untested; len(got) != 0 {
		t.Errorf("a whole run leaves out %v", got)
	}
	all = slices.DeleteFunc(all, func(r Result) bool { return r.ID == "SYS-001" || r.ID == "PWR-002" })
	if diff := cmp.Diff([]string{"PWR-002", "SYS-001"}, vmedia.Conclude(all).Untested); diff != "" {
		t.Errorf("untested (-want +got):\n%s", diff)
	}
}

type cmpError string

func (e cmpError) Error() string { return string(e) }

// A profile names checks of the table, each once, and has the prerequisites of its
// checks.
func TestProfilesNameChecks(t *testing.T) {
	for _, p := range Profiles {
		for id := range p.Importances() {
			if _, err := Find(id); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
		weights := p.Importances()
		for id, w := range weights {
			c, _ := Find(id)
			for _, a := range c.After {
				if weights[a] == "" || (w == Must && weights[a] != Must) {
					t.Errorf("%s: %s is %s, but %s, which it needs, is %q", p.Name, id, w, a, weights[a])
				}
			}
		}
	}
	if _, err := FindProfile("metal4"); err == nil {
		t.Error("FindProfile(metal4) succeeds")
	}
}
