package fault

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseReadsEveryField(t *testing.T) {
	got, err := Parse("f.yaml", []byte(`
- {id: busy, bmc: "node-*", path: /redfish/v1/Systems/, method: PATCH, status: 503, retryAfter: 30s, count: 2, after: 1}
- method: [GET, HEAD]
  latency: p50=200ms,p99=3s
  probability: 0.5
  from: 1m
  until: 2m
- {path: /a, patch: {A: {B: [1, null]}}, set: {/C: null}, body: "", truncate: 10, lengthError: -2}
- {bmc: n, tls: expired}
- {drop: reset, performed: true}
- {stuck: true, path: /redfish/v1/UpdateService/**, count: 1}
`))
	if err != nil {
		t.Fatal(err)
	}
	none, s := "", Duration{time.Second}
	want := []Rule{
		{ID: "busy", BMC: "node-*", Path: "/redfish/v1/Systems/", Method: Methods{"PATCH"}, Status: 503, RetryAfter: Duration{30 * s.Duration}, Count: 2, After: 1},
		{Method: Methods{"GET", "HEAD"}, Latency: "p50=200ms,p99=3s", Probability: .5, From: Duration{60 * s.Duration}, Until: Duration{120 * s.Duration}},
		{Path: "/a", Patch: map[string]any{"A": map[string]any{"B": []any{1, nil}}}, Set: Values{"/C": nil}, Body: &none, Truncate: "10", LengthError: -2},
		{BMC: "n", TLS: Expired},
		{Drop: Reset, Performed: true},
		{Stuck: true, Path: "/redfish/v1/UpdateService/**", Count: 1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("Parse() (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"truncate", "lengthError", "patch", "set", "body"}, got[2].Effects()); d != "" {
		t.Errorf("Effects() (-want +got):\n%s", d)
	}
}

func TestParseNamesFileLineAndField(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
	}{
		{"empty", "", []string{"f.yaml: is empty: begin with - status: 503"}},
		{"no YAML", "- {", []string{"f.yaml:1: is not YAML"}},
		{"two documents", "- stale: true\n---\n- stale: true\n", []string{"more than one document"}},
		{"no list", "status: 503\n", []string{"f.yaml:1: must be a list, such as [a, b], not a mapping"}},
		{"no rule", "- 503\n", []string{`f.yaml:1: [0]: "503": must be a mapping`}},
		{"unknown field", "- status: 503\n  retry: 1s\n", []string{"f.yaml:2: [0].retry: there is no such field: use one of id, bmc,"}},
		{"wrong types", "- status: many\n  from: soon\n  method: {}\n", []string{
			`f.yaml:1: [0].status: "many": must be an integer`, `f.yaml:2: [0].from: "soon": use a form like 90s`, "f.yaml:3: [0].method: must be a list"}},
		{"nothing to do", "- bmc: a\n", []string{"f.yaml:1: [0]: does nothing: add one of status"}},
		{"values", "- status: 99\n  bmc: '['\n  path: x\n  method: get\n  after: -1\n  count: -1\n  until: 1s\n  from: 2s\n  id: a b\n", []string{
			`:1: [0].status: 99: must be from 200 to 599`, `:2: [0].bmc: "[": is no pattern`, `:3: [0].path: "x": must begin with /`,
			`:4: [0].method: "get"`, `:5: [0].after: -1`, `:6: [0].count: -1`, `:7: [0].until: 1s: must be after from, 2s`, `:9: [0].id: "a b"`}},
		{"probability 0", "- status: 500\n  probability: 0\n", []string{":2: [0].probability: 0: must be above 0"}},
		{"probability 2", "- {status: 500, probability: 2}\n", []string{"[0].probability: 2: must be above 0 and at most 1"}},
		{"texts", "- {latency: x, limit: y, truncate: z, set: {a: 1}}\n", []string{`latency: "x"`, `limit: "y"`, `truncate: "z"`, `set: "a": must be a JSON pointer`}},
		{"ways", "- {drop: it}\n- {tls: bad}\n", []string{`[0].drop: "it": must be one of connect, silent, reset, close, hang, body`, `[1].tls: "bad": must be one of refused`}},
		{"without status", "- {stale: true, retryAfter: 1s, message: a, messageID: b, performed: true, contentType: c}\n", []string{
			"retryAfter: has no effect without status", "message: has no effect", "messageID: has", "performed: has", "contentType: has no effect without body"}},
		{"sites", "- {tls: expired, status: 500, path: /a, method: GET}\n", []string{"status: cannot be in a rule with tls", "path: has no effect on tls", "method: has no effect on tls"}},
		{"drop sites", "- {drop: connect, path: /a}\n", []string{"path: has no effect on drop: there is no path yet"}},
		{"datagrams", "- {wire: burn}\n- {wire: late}\n- {wire: lose, path: /a}\n- {wire: lose, method: GET}\n- {wire: lose, code: 0xc0}\n", []string{
			`[0].wire: "burn": must be one of lose, double`, "[1].wire: late needs latency", "[2].path: has no effect on wire",
			`[3].method: "GET": of wire must be IN or OUT`, "[4].code: cannot be in a rule with wire"}},
		{"bodies", "- {status: 500, sends: {a: 1}}\n- {stuck: true, sends: {/a: 1}}\n", []string{`[0].sends: "a": must be a JSON pointer`, "[1].sends: has no effect on stuck"}},
		{"states", "- {offline: true, count: 1, after: 1, probability: 0.5}\n", []string{"after: has no effect on offline, which lasts", "count: has", "probability: has"}},
		{"patch is a list", "- {patch: [1]}\n", []string{"patch: must be an object"}},
		{"patch is no JSON", "- {patch: {[1]: 2}}\n", []string{"patch"}},
		{"no content", "- {status: 204, body: x}\n", []string{"body: an answer 204 has none"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(tt.in))
			if err == nil {
				t.Fatalf("Parse() = nil, want %q", tt.want)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Parse() = %v\nwant %q in it", err, want)
				}
			}
		})
	}
}

func TestAddRefusesAnInvalidRule(t *testing.T) {
	if _, err := new(Plan).Add(t0, Rule{Status: 42}); err == nil || !strings.Contains(err.Error(), "status: 42: must be from 200 to 599") {
		t.Errorf("Add() = %v", err)
	}
}

// FuzzParse checks that no text panics, and that accepted rules can be added, decided
// on, stored and restored.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"- {id: busy, bmc: 'node-*', path: /redfish/v1/**, method: PATCH, status: 503, retryAfter: 30s, count: 2, after: 1}",
		"- {latency: 'p50=1s,p99=2s', probability: 0.5, from: 1s, until: 2s}",
		"- {patch: {A: [1]}, set: {/B/-: null}, body: x, truncate: 50%, lengthError: 1, invalidJSON: true}",
		"- {headers: {ETag: '', Link: a}}\n- {limit: 3/s}\n- {stuck: true}\n- {offline: true}\n- {tls: refused}\n- {drop: body}",
		"- &a {patch: *a}", "- <<: {status: 500}", "[]", "- ~",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := Parse("f.yaml", []byte(text))
		if err != nil {
			return
		}
		p := new(Plan)
		for _, r := range rules {
			if _, err := p.Add(t0, r); err != nil && !strings.Contains(err.Error(), "taken") && !strings.Contains(err.Error(), "too many") {
				t.Fatalf("Add(%+v) = %v, and Parse took it", r, err)
			}
		}
		for _, s := range []Subject{get("node-1"), {Site: Connect, BMC: "a"}, {Site: Task}} {
			d := p.Decide(s, t0)
			d.Rewrite("application/json", []byte(`{"A":{"B":[1,2]}}`))
		}
		if _, err := New(0, p.State()); err != nil {
			t.Fatalf("New() of a state = %v", err)
		}
	})
}
