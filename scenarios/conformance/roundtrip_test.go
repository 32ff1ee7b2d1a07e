package conformance_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/scenarios/capture"
	"github.com/metalab-dev/metalab/scenarios/conformance"
	"github.com/metalab-dev/metalab/scenarios/conformance/report"
	"github.com/metalab-dev/metalab/scenarios/record"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

// timed are the checks whose verdicts depend on how busy this computer is.
var timed = []string{"NET-001", "ROB-002", "ROB-003"}

// outcome is the part of a run's results that a user acts on.
type outcome struct {
	Quirks   string
	Profiles []conformance.Conclusion
}

func outcomeOf(all map[string]conformance.Result) outcome {
	var results []conformance.Result
	for _, c := range conformance.Checks() {
		if r, ran := all[c.ID]; ran && !slices.Contains(timed, c.ID) {
			results = append(results, r)
		}
	}
	o := outcome{Quirks: quirksOf(all)}
	for _, p := range conformance.Profiles {
		c := p.Conclude(results)
		if c.Blocker != nil { // its reason names the server
			c.Blocker = &conformance.Blocker{ID: c.Blocker.ID, Step: c.Blocker.Step}
		}
		o.Profiles = append(o.Profiles, c)
	}
	return o
}

// A run of the checks writes a rack file with the quirks, and a capture of the BMC as a
// server model. A lab of both has the same verdicts and the same quirks.
func TestRunOfTheEmittedModelFindsTheSame(t *testing.T) {
	for _, model := range sample.Rows(t, "round trips of conformance", 2, modelsOf(found)) {
		t.Run(model, func(t *testing.T) {
			b := newBench(t, model, conformance.Reversible)
			first, bmc := execute(t, b.conf)
			noErrors(t, first)
			var results []conformance.Result
			for _, c := range conformance.Checks() {
				results = append(results, first[c.ID])
			}
			document, _ := report.New(report.Run{
				URL: b.conf.URL, Level: b.conf.Level, Profiles: conformance.Profiles, Results: results, Exchanges: bmc.Exchanges(),
			})
			taken, err := capture.Take(t.Context(), capture.Config{URL: b.conf.URL, Username: b.conf.Username, Password: b.conf.Password, CAs: b.conf.CAs, Parallel: 1})
			if err != nil {
				t.Fatal(err)
			}
			made, err := record.Make(t.Context(), taken, "")
			if err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			if err := report.Quirks(&file, document, made.Name); err != nil {
				t.Fatal(err)
			}
			again, err := rackfile.Parse("quirks.yaml", file.Bytes())
			if err != nil {
				t.Fatalf("%v of\n%s", err, file.String())
			}
			if profile := again.Hosts[0].Profile; profile != made.Name {
				t.Fatalf("the rack file has the profile %q, want %q", profile, made.Name)
			}
			second := newBenchOf(t, again, made.Files(), conformance.Reversible).run()
			noErrors(t, second)
			if d := cmp.Diff(outcomeOf(first), outcomeOf(second)); d != "" {
				t.Errorf("the outcomes differ (-first +second):\n%s", d)
				for _, c := range conformance.Checks() {
					if x, y := first[c.ID], second[c.ID]; x.Verdict != y.Verdict {
						t.Logf("%s: %s %q, then %s %q", c.ID, x.Verdict, x.Reason, y.Verdict, y.Reason)
					}
				}
			}
		})
	}
}
