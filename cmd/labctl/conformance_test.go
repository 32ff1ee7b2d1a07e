package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/scenarios/conformance"
)

func TestConformanceExitCodes(t *testing.T) {
	of := func(all ...conformance.Readiness) (out []conformance.Conclusion) {
		for _, r := range all {
			out = append(out, conformance.Conclusion{Readiness: r})
		}
		return out
	}
	for name, tt := range map[string]struct {
		all    []conformance.Conclusion
		strict bool
		want   error
	}{
		"ready":                        {of(conformance.Ready), true, nil},
		"quirks":                       {of(conformance.Ready, conformance.ReadyWithQuirks), false, nil},
		"quirks under --strict":        {of(conformance.Ready, conformance.ReadyWithQuirks), true, exitQuirks},
		"one of two is not ready":      {of(conformance.ReadyWithQuirks, conformance.NotReady), true, exitNotReady},
		"undecided":                    {of(conformance.ReadyWithQuirks, conformance.Undecided), true, exitTool},
		"not ready, another undecided": {of(conformance.Undecided, conformance.NotReady), false, exitNotReady},
	} {
		if got := conclude(tt.all, tt.strict); !errors.Is(got, tt.want) {
			t.Errorf("%s: conclude = %v, want %v", name, got, tt.want)
		}
	}
}

// Servers of one chassis wait for each other, those of another do not.
func TestOneServerOfAChassisRestartsAtATime(t *testing.T) {
	var gates chassisGates
	release := gates.hold("enclosure-1")
	gates.hold("enclosure-2")()
	second := make(chan struct{})
	go func() {
		gates.hold("enclosure-1")()
		close(second)
	}()
	select {
	case <-second:
		t.Fatal("two servers of a chassis restart at once")
	default:
	}
	if gates.held["enclosure-1"].TryLock() {
		t.Fatal("the gate of enclosure-1 is open while a server holds it")
	}
	release()
	<-second
}

// A resumed run keeps verdicts, but not skips and errors, nor a line that a crash has
// cut off; the evidence goes on behind that of the first run.
func TestResumeKeepsVerdicts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	first, err := openResults(path, false)
	if err != nil {
		t.Fatal(err)
	}
	var exchanges []conformance.Exchange
	for i, id := range []string{"NET-001", "NET-002", "NET-003"} {
		exchanges = append(exchanges, conformance.Exchange{ID: i + 1, Check: id})
		c, err := conformance.Find(id)
		if err != nil {
			t.Fatal(err)
		}
		o := []conformance.Outcome{conformance.Failed("slow").Quirky("conn-abrupt-close"), conformance.Skipped("needs --ipmi"), {Verdict: conformance.Broken}}[i]
		first.add(conformance.Result{Check: c, Outcome: o, Evidence: []int{i + 1}}, exchanges)
	}
	if err := first.failed(); err != nil {
		t.Fatal(err)
	}
	first.close()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"id": "NET-004", "outc`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	second, err := openResults(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer second.close()
	if got := second.done["NET-001"]; len(second.done) != 1 || got.Reason != "slow" || len(got.Quirks) != 1 || !cmp.Equal(got.Evidence, []int{1}) {
		t.Errorf("done = %+v, want NET-001 alone", second.done)
	}
	if diff := cmp.Diff(exchanges, second.exchanges); diff != "" {
		t.Errorf("exchanges (-want +got):\n%s", diff)
	}
	fresh, err := openResults(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.close()
	if len(fresh.done)+len(fresh.exchanges) != 0 {
		t.Errorf("a run without --resume keeps %v", fresh.done)
	}
}

func TestMistakesInARackAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"bmcs: []":                    "bmcs has 0 entries, not 1 to 1000",
		"bmcs: [{name: a/b, url: x}]": `bmcs[0]: name "a/b"`,
		"bmcs: [{name: a}]":           "bmcs[0]: url is missing",
		"bmcs: [{name: a, url: x}, {name: a, url: y}]": `bmcs[1]: name "a" is there twice`,
		"bmcs: [{name: a, url: x, password: secret}]":  `unknown field "password"`,
	} {
		path := filepath.Join(t.TempDir(), "rack.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := loadBMCs(path)
		if !usage.Is(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}

func TestLinesOfARackHaveTheNameOfTheirBMC(t *testing.T) {
	var out bytes.Buffer
	p := &prefixed{w: &out}
	a, b := p.named("a"), p.named("b")
	for _, w := range []struct {
		to   interface{ Write([]byte) (int, error) }
		text string
	}{{a, "one "}, {b, "two\n"}, {a, "line\nand"}} {
		if _, err := w.to.Write([]byte(w.text)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := out.String(), "b: two\na: one line\n"; got != want {
		t.Errorf("the lines are %q, want %q", got, want)
	}
}

func TestInteropProfileOfAFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"mine.json":           `{"ProfileName": "Mine", "ProfileVersion": "1.0.0", "RequiredProfiles": {"Base": {}}, "Resources": {}}`,
		"Base.v1_0_0.json":    `{"ProfileName": "Base", "Resources": {"Memory": {}}}`,
		"no-profile.json":     `{}`,
		"lacks-required.json": `{"ProfileName": "Lacks", "RequiredProfiles": {"Other": {}}, "Resources": {}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := interopProfile(filepath.Join(dir, "mine.json"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name() != "Mine 1.0.0" || !p.Types()["Memory"] {
		t.Errorf("the profile is %s with %v, want Mine 1.0.0 with Base's types", p.Name(), p.Types())
	}
	for _, bad := range []string{"no-profile.json", "lacks-required.json", "nowhere.json"} {
		if _, err := interopProfile(filepath.Join(dir, bad), nil); err == nil {
			t.Errorf("interopProfile(%s) succeeds", bad)
		}
	}
}
