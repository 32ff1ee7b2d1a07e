package conformance

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// robChecks are the checks of load and time.
var robChecks = []Check{
	{
		ID: "ROB-001", Title: "30 minutes of a controller's polls leak nothing", Level: ReadOnly, Protocol: Redfish, Step: Day2,
		Predicts: "sessions and file descriptors leak", Remedy: "reset the BMC regularly",
		After: []string{"SYS-001"}, Needs: []Facility{NeedsSoak}, Run: soakBearable,
	},
	{
		ID: "ROB-002", Title: "no request takes more than 30 s", Level: ReadOnly, Protocol: Redfish, Step: Inspect,
		Predicts: "clients give up after 60 s", Remedy: "avoid the URIs of the report",
		After: []string{"SYS-001"}, Run: tailShort,
	},
	{
		ID: "ROB-003", Title: "latency does not grow with log entries and $expand", Level: ReadOnly, Protocol: Redfish, Step: Day2,
		Predicts: "reads time out", Remedy: "clear the logs",
		After: []string{"SYS-001"}, Run: logsFast,
	},
}

// soakBearable polls as a controller does: the power each minute, and the inventory
// each tenth time.
func soakBearable(ctx context.Context, r *Run) Outcome {
	sessions, err := r.sessionsURI(ctx)
	if err != nil {
		return Judge(err)
	}
	count := func() (int, error) {
		r.Forget()
		all, err := r.Members(ctx, sessions)
		return len(all), err
	}
	before, err := count()
	if err != nil {
		return Judge(err)
	}
	polls, failed, why := 0, 0, ""
	_, err = r.nics(ctx)
	listed := err == nil // else SYS-006 reports it
	for end := r.Now().Add(r.Config().Soak); r.Now().Before(end); polls++ {
		_, err := r.powerState(ctx)
		if err == nil && listed && polls%10 == 0 {
			_, err = r.nics(ctx)
		}
		if err != nil {
			if ctx.Err() != nil {
				return Judge(ctx.Err())
			}
			failed++
			why = err.Error()
		}
		r.Forget()
		if err := r.Wait(ctx, time.Minute); err != nil {
			return Judge(err)
		}
	}
	after, err := count()
	if err != nil {
		return Judge(err)
	}
	o := Passed("").With("polls", "%d", polls).With("failed", "%d", failed)
	switch {
	case failed > 0:
		o.Verdict, o.Reason = Fail, fmt.Sprintf("%d of %d polls failed, the last one with: %s", failed, polls, why)
	case after > before:
		o.Verdict, o.Reason = Fail, fmt.Sprintf("%d polls leave %d sessions", polls, after-before)
	}
	return o
}

// Bounds of a response's time.
const (
	tooSlow = 30 * time.Second
	slow    = 5 * time.Second
)

// tailShort looks at the times of all responses of the run.
func tailShort(ctx context.Context, r *Run) Outcome {
	if _, err := r.Place(ctx); err != nil {
		return Judge(err)
	}
	longest := map[string]time.Duration{}
	for _, x := range r.bmc.Exchanges() {
		if x.Method != http.MethodGet {
			continue
		}
		if u, err := url.Parse(x.URL); err == nil && x.Took > longest[u.Path] {
			longest[u.Path] = x.Took
		}
	}
	var long []string
	for uri, d := range longest {
		if d > slow {
			long = append(long, fmt.Sprintf("%s %v", uri, d.Round(time.Second)))
		}
	}
	slices.Sort(long)
	worst := time.Duration(0)
	for _, d := range longest {
		worst = max(worst, d)
	}
	o := Passed("").With("slowest response", "%v", worst.Round(time.Millisecond))
	switch {
	case worst > tooSlow:
		o.Verdict, o.Reason = Fail, "responses take more than 30 s: "+strings.Join(long[:min(len(long), 10)], "; ")
	case worst > slow:
		o.Verdict, o.Reason = Warn, "responses take more than 5 s: "+strings.Join(long[:min(len(long), 10)], "; ")
	}
	return o
}

// logsFast reads log entries, with $expand where it is offered, and compares the
// time with that of the system.
func logsFast(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	_, base, err := r.Get(ctx, place.SystemURI)
	if err != nil {
		return Judge(err)
	}
	query := ""
	if on, err := place.Root.At("ProtocolFeaturesSupported", "ExpandQuery", "NoLinks").Bool(); err == nil && on {
		query = "?$expand=."
	}
	logs, err := r.logs(ctx, place)
	if err != nil {
		return Judge(err)
	}
	if len(logs) == 0 {
		return Skipped("there is no log with Entries")
	}
	var worst time.Duration
	at := ""
	for _, entries := range logs {
		_, resp, err := r.Get(ctx, entries+query)
		if err != nil {
			return Judge(err)
		}
		if resp.Took > worst {
			worst, at = resp.Took, entries+query
		}
	}
	o := Passed("").With("slowest log", "%v", worst.Round(time.Millisecond)).With("system", "%v", base.Took.Round(time.Millisecond))
	switch {
	case worst > tooSlow:
		o.Verdict, o.Reason = Fail, fmt.Sprintf("%s takes %v", at, worst.Round(time.Second))
	case worst > slow && worst > 5*base.Took:
		o.Verdict, o.Reason = Warn, fmt.Sprintf("%s takes %v, the system %v", at, worst.Round(time.Second), base.Took.Round(time.Millisecond))
	}
	return o
}
