// Package report writes the results of a run of conformance checks: report.json
// with a versioned schema, JUnit, HTML, Markdown, HAR, OCP diagnostics and
// quirks.yaml, all without secrets and without what identifies the server; it
// compares two reports. It knows results and no BMC.
package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// Version names the schema of report.json.
const Version = "labctl.conformance/v1"

// Document is report.json.
type Document struct {
	Schema   string                   `json:"schema"`
	Tool     string                   `json:"tool"`           // version of labctl
	Data     string                   `json:"data,omitempty"` // version of DMTF's archive, when there was one
	Target   Target                   `json:"target"`
	Level    conformance.Level        `json:"level"`
	Began    time.Time                `json:"began"`
	Seconds  float64                  `json:"seconds"`
	Requests int                      `json:"requests"`
	Summary  map[string]int           `json:"summary"` // number of checks by verdict
	Profiles []conformance.Conclusion `json:"profiles"`
	Quirks   []conformance.Quirk      `json:"quirks"`
	Checks   []Check                  `json:"checks"`
	// Unrestored are writes that the run could not take back; labctl conformance
	// restore tries again.
	Unrestored []string `json:"unrestored,omitempty"`
	Latency    Latency  `json:"latency"`
}

// Target is the server, without what identifies it.
type Target struct {
	Name     string               `json:"name,omitempty"` // as the user calls it
	Scheme   string               `json:"scheme"`
	IPMI     bool                 `json:"ipmi"` // IPMI was checked, too
	Title    string               `json:"title"`
	Identity conformance.Identity `json:"identity"`
}

// Check is one check with its result.
type Check struct {
	ID       string               `json:"id"`
	Title    string               `json:"title"`
	Level    conformance.Level    `json:"level"`
	Protocol conformance.Protocol `json:"protocol"`
	Verdict  conformance.Verdict  `json:"verdict"`
	Reason   string               `json:"reason,omitempty"`
	Step     conformance.Step     `json:"step"`
	Predicts string               `json:"predicts"`
	Remedy   string               `json:"remedy,omitempty"` // the operator's way out of a failure or warning
	Quirks   []conformance.Quirk  `json:"quirks,omitempty"`
	Facts    map[string]string    `json:"facts,omitempty"`
	Evidence []int                `json:"evidence"` // numbers of requests in evidence.har
	Seconds  float64              `json:"seconds"`
}

// Group is the part of the ID before the dash.
func (c Check) Group() string {
	group, _, _ := strings.Cut(c.ID, "-")
	return group
}

// Latency describes the times to the first byte of all responses, in milliseconds.
type Latency struct {
	P50     float64   `json:"p50"`
	P95     float64   `json:"p95"`
	Max     float64   `json:"max"`
	Slowest []Slow    `json:"slowest"`
	Times   []float64 `json:"times"` // in the order of the requests, at most 500
}

// Slow is a slow request.
type Slow struct {
	Request string  `json:"request"`
	Millis  float64 `json:"millis"`
}

// Run is the input of a report.
type Run struct {
	Tool, Data string
	Name       string // name of the server, as the user calls it
	URL        string
	IPMI       bool
	Identity   conformance.Identity
	Level      conformance.Level
	Began      time.Time
	Took       time.Duration
	Profiles   []conformance.Profile
	Results    []conformance.Result
	Exchanges  []conformance.Exchange
	Unrestored []string
}

// New makes the report and the evidence of a run. Neither holds what identifies
// the server; the secrets are gone already.
func New(r Run) (*Document, []conformance.Exchange) {
	hide := newRedactor(r.URL, r.Exchanges)
	scheme, _, _ := strings.Cut(r.URL, "://")
	d := &Document{
		Schema: Version, Tool: r.Tool, Data: r.Data, Level: r.Level, Began: r.Began.UTC().Round(time.Second), Seconds: seconds(r.Took),
		Target:  Target{Name: r.Name, Scheme: scheme, IPMI: r.IPMI, Title: hide.text(r.Identity.Title()), Identity: r.Identity},
		Summary: map[string]int{}, Requests: len(r.Exchanges), Profiles: []conformance.Conclusion{}, Quirks: []conformance.Quirk{}, Checks: []Check{},
	}
	d.Target.Identity.System = hide.text(d.Target.Identity.System)
	exchanges := make([]conformance.Exchange, len(r.Exchanges))
	for i, x := range r.Exchanges {
		exchanges[i] = hide.exchange(x)
	}
	for i, res := range r.Results {
		r.Results[i].Reason, r.Results[i].Advice = hide.text(res.Reason), hide.text(res.Advice)
		d.Checks = append(d.Checks, check(r.Results[i], hide))
		d.Summary[string(res.Verdict)]++
		for _, q := range res.Quirks {
			if !slices.ContainsFunc(d.Quirks, func(other conformance.Quirk) bool { return other.Name == q.Name }) {
				d.Quirks = append(d.Quirks, q)
			}
		}
	}
	for _, p := range r.Profiles {
		d.Profiles = append(d.Profiles, p.Conclude(r.Results))
	}
	for _, u := range r.Unrestored {
		d.Unrestored = append(d.Unrestored, hide.text(u))
	}
	d.Latency = latency(exchanges)
	return d, exchanges
}

func check(r conformance.Result, hide *redactor) Check {
	c := Check{
		ID: r.ID, Title: r.Title, Level: r.Level, Protocol: r.Protocol, Verdict: r.Verdict, Reason: r.Reason, Step: r.Step, Predicts: r.Predicts,
		Quirks: r.Quirks, Evidence: r.Evidence, Seconds: seconds(r.Took),
	}
	if r.Verdict == conformance.Fail || r.Verdict == conformance.Warn {
		if c.Remedy = r.Remedy; r.Advice != "" {
			c.Remedy = r.Advice
		}
	}
	if c.Evidence == nil {
		c.Evidence = []int{}
	}
	for name, value := range r.Facts {
		if c.Facts == nil {
			c.Facts = map[string]string{}
		}
		c.Facts[hide.text(name)] = hide.text(value)
	}
	return c
}

func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

func millis(d time.Duration) float64 { return float64(d.Microseconds()/10) / 100 }

// maxTimes bounds the chart.
const maxTimes = 500

func latency(all []conformance.Exchange) Latency {
	out := Latency{Slowest: []Slow{}, Times: []float64{}}
	worst := map[string]float64{}
	for _, x := range all {
		if x.TTFB <= 0 {
			continue
		}
		ms := millis(x.TTFB)
		if len(out.Times) < maxTimes {
			out.Times = append(out.Times, ms)
		}
		name := x.Method + " " + pathOf(x.URL)
		worst[name] = max(worst[name], ms)
	}
	if len(out.Times) == 0 {
		return out
	}
	sorted := slices.Sorted(slices.Values(out.Times))
	out.P50, out.P95, out.Max = sorted[len(sorted)/2], sorted[len(sorted)*95/100], sorted[len(sorted)-1]
	names := slices.SortedFunc(maps.Keys(worst), func(a, b string) int {
		if worst[a] != worst[b] {
			if worst[a] > worst[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, n := range names[:min(5, len(names))] {
		out.Slowest = append(out.Slowest, Slow{n, worst[n]})
	}
	return out
}

// pathOf returns a URL without scheme and host.
func pathOf(url string) string {
	_, rest, found := strings.Cut(url, "://")
	if i := strings.IndexByte(rest, '/'); found && i >= 0 {
		return rest[i:]
	}
	return url
}

// Load reads report.json.
func Load(path string) (*Document, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d := new(Document)
	if err := json.Unmarshal(b, d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if d.Schema != Version {
		return nil, fmt.Errorf("%s: schema %q is not %s", path, d.Schema, Version)
	}
	return d, nil
}
