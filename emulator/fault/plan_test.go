package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var t0 = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)

func planOf(t *testing.T, seed uint64, rules ...Rule) *Plan {
	t.Helper()
	p, err := New(seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if _, err := p.Add(t0, r); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func get(bmc string) Subject {
	return Subject{Site: Request, BMC: bmc, Method: "GET", Path: "/redfish/v1/Systems/1"}
}

// statuses asks n times and tells what was answered.
func statuses(p *Plan, s Subject, now time.Time, n int) (out []int) {
	for range n {
		out = append(out, p.Decide(s, now).Status)
	}
	return out
}

func TestRuleMatchesByBMCPathAndMethod(t *testing.T) {
	p := planOf(t, 1,
		Rule{BMC: "node-[12]", Path: "/redfish/v1/Systems/**", Method: Methods{"GET", "HEAD"}, Status: 503, RetryAfter: Duration{30 * time.Second}, Message: "busy", MessageID: "Base.1.0.Busy"},
	)
	want := Decision{Rules: []string{"fault-1"}, Status: 503, RetryAfter: 30 * time.Second, Message: "busy", MessageID: "Base.1.0.Busy"}
	if d := cmp.Diff(want, p.Decide(get("node-1"), t0), cmpopts.IgnoreUnexported(Decision{})); d != "" {
		t.Errorf("Decide() (-want +got):\n%s", d)
	}
	for _, s := range []Subject{
		get("node-3"),
		{Site: Connect, BMC: "node-1"},
		{Site: Request, BMC: "node-1", Method: "PATCH", Path: "/redfish/v1/Systems/1"},
		{Site: Request, BMC: "node-1", Method: "GET", Path: "/redfish/v1/Managers/1"},
	} {
		if got := p.Decide(s, t0); !got.Nothing() {
			t.Errorf("Decide(%+v) = %+v, want nothing", s, got)
		}
	}
	if !p.Asks(Request) || p.Asks(Connect) || p.Asks(Task) {
		t.Error("Asks: want Request alone")
	}
}

func TestRuleMatchesDatagramsAndIPMICommands(t *testing.T) {
	p := planOf(t, 1,
		Rule{BMC: "node-1", Method: Methods{In}, Wire: Late, Latency: "2s"},
		Rule{Path: "/ipmi/00/02", Code: 0xc0, Performed: true},
	)
	for _, tt := range []struct {
		of   Subject
		want Decision
	}{
		{Subject{Site: Datagram, BMC: "node-1", Method: In}, Decision{Rules: []string{"fault-1"}, Wire: Late, Delay: 2 * time.Second}},
		{Subject{Site: Datagram, BMC: "node-1", Method: Out}, Decision{}},
		{Subject{Site: Datagram, BMC: "node-2", Method: In}, Decision{}},
		{Subject{Site: Command, BMC: "node-2", Path: "/ipmi/00/02"}, Decision{Rules: []string{"fault-2"}, Code: 0xc0, Performed: true}},
		{Subject{Site: Command, BMC: "node-2", Path: "/ipmi/00/01"}, Decision{}},
		{get("node-1"), Decision{}},
	} {
		if d := cmp.Diff(tt.want, p.Decide(tt.of, t0), cmpopts.IgnoreUnexported(Decision{})); d != "" {
			t.Errorf("Decide(%+v) (-want +got):\n%s", tt.of, d)
		}
	}
}

func TestCountsApplyToEachBMCSeparately(t *testing.T) {
	p := planOf(t, 1, Rule{After: 1, Count: 2, Status: 500})
	want := []int{0, 500, 500, 0, 0}
	counted := planOf(t, 1, Rule{After: 1, Count: 2, Status: 500})
	for i, want := range []bool{true, true, true, false, false} {
		if got := counted.Decide(get("a"), t0).Counted; got != want {
			t.Errorf("request %d: Counted = %v, want %v", i, got, want)
		}
	}
	for _, name := range []string{"a", "b"} {
		if d := cmp.Diff(want, statuses(p, get(name), t0, 5)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if got := p.List(t0)[0].Hits; got != 4 {
		t.Errorf("hits = %d, want 4", got)
	}
}

func TestRuleIsActiveFromFromUntilUntil(t *testing.T) {
	p := planOf(t, 1, Rule{Offline: true, From: Duration{time.Minute}, Until: Duration{3 * time.Minute}}, Rule{BMC: "b", Stale: true, Until: Duration{2 * time.Minute}})
	var got []string
	for now, ok := t0, true; ok; now, ok = p.Deadline(now) {
		got = append(got, strings.TrimSpace(fmt.Sprintln(now.Sub(t0), p.Decide(Subject{Site: Connect}, now).Offline, p.Means("offline", Subject{Site: Connect, BMC: "a"}, now),
			p.Means("stale", get("a"), now), p.Means("stale", get("b"), now), p.List(now)[0].Phase, p.List(now)[1].Phase)))
	}
	want := []string{
		"0s false false false true waiting active",
		"1m0s true true false true active active",
		"2m0s true true false false active over",
		"3m0s false false false false over over",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("at each deadline (-want +got):\n%s", d)
	}
}

func TestDecisionCombinesAllMatchingRules(t *testing.T) {
	p := planOf(t, 1,
		Rule{Latency: "1s", Stale: true},
		Rule{Latency: "2s", Status: 503, Performed: true},
		Rule{Drop: Reset},
		Rule{Status: 500, Message: "not me", LengthError: -3},
		Rule{Drop: Hang, LengthError: 5},
	)
	got := p.Decide(get("a"), t0)
	want := Decision{
		Rules: []string{"fault-1", "fault-2", "fault-3", "fault-4", "fault-5"},
		Delay: 3 * time.Second, Stale: true, Status: 503, Performed: true, Drop: Reset, LengthError: -3,
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Decision{})); d != "" {
		t.Errorf("Decide() (-want +got):\n%s", d)
	}
}

func TestRequestsBeyondALimitReturn429(t *testing.T) {
	p := planOf(t, 1, Rule{Limit: "2/10s"}, Rule{BMC: "b", Limit: "1/h", Status: 503, RetryAfter: Duration{time.Minute}})
	if d := cmp.Diff([]int{0, 0, 429, 429}, statuses(p, get("a"), t0, 4)); d != "" {
		t.Errorf("four at once (-want +got):\n%s", d)
	}
	if got := p.Decide(get("a"), t0).RetryAfter; got != 5*time.Second {
		t.Errorf("RetryAfter = %v, want 5s", got)
	}
	if d := cmp.Diff([]int{0, 429}, statuses(p, get("a"), t0.Add(5*time.Second), 2)); d != "" {
		t.Errorf("two 5 s later (-want +got):\n%s", d)
	}
	p.Decide(get("b"), t0)
	if got := p.Decide(get("b"), t0); got.Status != 503 || got.RetryAfter != time.Minute {
		t.Errorf("b: %+v, want 503 with the rule's own RetryAfter", got)
	}
}

// chance is a plan of all that is drawn.
func chance(t *testing.T, seed uint64) *Plan {
	return planOf(t, seed, Rule{Status: 503, Probability: 0.3}, Rule{Latency: "p50=100ms,p99=2s"}, Rule{Latency: "1s..2s", Probability: 0.5})
}

func record(p *Plan, bmc string) string {
	d := p.Decide(get(bmc), t0)
	return fmt.Sprint(d.Rules, d.Status, d.Delay)
}

func TestDecisionsDoNotDependOnTheOrderOfBMCs(t *testing.T) {
	a, b := map[string][]string{}, map[string][]string{}
	one, other := chance(t, 42), chance(t, 42)
	for range 200 {
		for _, name := range []string{"x", "y"} {
			a[name] = append(a[name], record(one, name))
		}
	}
	for _, name := range []string{"y", "x"} {
		for range 200 {
			b[name] = append(b[name], record(other, name))
		}
	}
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("interleaved and one after the other (-one +other):\n%s", d)
	}
	if cmp.Equal(a["x"], a["y"]) {
		t.Error("two BMCs have the same luck")
	}
	third := chance(t, 43)
	var c []string
	for range 200 {
		c = append(c, record(third, "x"))
	}
	if cmp.Equal(a["x"], c) {
		t.Error("two seeds give the same luck")
	}
}

func TestProbability(t *testing.T) {
	p := planOf(t, 7, Rule{Status: 503, Probability: 0.2})
	hits := 0
	for i := range 5000 {
		if p.Decide(get(fmt.Sprint(i%50)), t0).Status != 0 {
			hits++
		}
	}
	if hits < 900 || hits > 1100 {
		t.Errorf("%d of 5000 hit, want about 1000", hits)
	}
}

func TestRestoredPlanContinues(t *testing.T) {
	rules := []Rule{{Status: 503, Probability: 0.3, Count: 20}, {ID: "slow", Latency: "1s..2s", Set: Values{"/A": nil}}, {Limit: "3/s", After: 2}}
	p := planOf(t, 9, rules...)
	for i := range 30 {
		record(p, fmt.Sprint("n", i%3))
	}
	raw, err := json.Marshal(p.State())
	if err != nil {
		t.Fatal(err)
	}
	st := new(State)
	if err := json.Unmarshal(raw, st); err != nil {
		t.Fatal(err)
	}
	again, err := New(9, st)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p.List(t0), again.List(t0)); d != "" {
		t.Errorf("List() (-before +after):\n%s", d)
	}
	for i := range 60 {
		name := fmt.Sprint("n", i%3)
		if a, b := record(p, name), record(again, name); a != b {
			t.Fatalf("request %d of %s: %s before, %s after", i, name, a, b)
		}
	}
	a, err := p.Add(t0, Rule{Stale: true})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := again.Add(t0, Rule{Stale: true}); err != nil || a.ID != b.ID || b.ID != "fault-3" {
		t.Errorf("next rule: %s before, %s after (%v), want fault-3", a.ID, b.ID, err)
	}
}

func TestStateIsACopy(t *testing.T) {
	p := planOf(t, 1, Rule{Count: 5, Status: 500})
	p.Decide(get("a"), t0)
	st := p.State()
	p.Decide(get("a"), t0)
	if got := st.Rules[0]; got.Hits != 1 || got.By["a"].Hits != 1 {
		t.Errorf("the state handed out became %+v", got)
	}
}

func TestAddAndRemoveRules(t *testing.T) {
	p := planOf(t, 1, Rule{ID: "fault-2", Status: 500}, Rule{Status: 501}, Rule{Status: 502})
	var ids []string
	for _, r := range p.List(t0) {
		ids = append(ids, r.ID)
	}
	if d := cmp.Diff([]string{"fault-2", "fault-1", "fault-3"}, ids); d != "" {
		t.Errorf("IDs (-want +got):\n%s", d)
	}
	if _, err := p.Add(t0, Rule{ID: "fault-3", Status: 500}); !errors.Is(err, ErrTaken) {
		t.Errorf("Add() of an ID that is there = %v, want %v", err, ErrTaken)
	}
	if err := p.Remove("nix"); !errors.Is(err, ErrUnknown) {
		t.Errorf("Remove(nix) = %v, want %v", err, ErrUnknown)
	}
	for _, want := range []int{500, 501, 502, 0} {
		if got := p.Decide(get("a"), t0).Status; got != want {
			t.Errorf("status = %d, want %d", got, want)
		}
		if rules := p.List(t0); len(rules) > 0 {
			if err := p.Remove(rules[0].ID); err != nil {
				t.Error(err)
			}
		}
	}
	if p.Asks(Request) || p.List(t0) == nil {
		t.Errorf("Asks() = %v, List() = %v of an empty plan", p.Asks(Request), p.List(t0))
	}
	if r, err := p.Add(t0, Rule{Status: 500}); err != nil || r.ID != "fault-4" {
		t.Errorf("Add() = %s, %v, want an ID that none had before", r.ID, err)
	}
}

func TestAPlanIsBounded(t *testing.T) {
	p := new(Plan)
	for range MaxRules {
		if _, err := p.Add(t0, Rule{Stale: true}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Add(t0, Rule{Stale: true}); !errors.Is(err, ErrFull) {
		t.Errorf("Add() = %v, want %v", err, ErrFull)
	}
}

func BenchmarkDecideOfOthers(b *testing.B) {
	p := new(Plan)
	for i := range 20 {
		if _, err := p.Add(t0, Rule{BMC: fmt.Sprint("other-", i), Status: 500}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if d := p.Decide(get("node-0"), t0); !d.Nothing() {
			b.Fatal(d)
		}
	}
}
