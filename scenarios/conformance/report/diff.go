package report

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// Difference compares two reports, such as those of two firmware versions.
type Difference struct {
	From, To   string   // titles
	Introduced []Change `json:"introduced"` // passed before, fails or warns now
	Fixed      []Change `json:"fixed"`
	Unchanged  []Change `json:"unchanged"` // fails and warnings that both have
	Quirks     struct {
		Introduced []string `json:"introduced"`
		Fixed      []string `json:"fixed"`
	} `json:"quirks"`
	Facts      []Change `json:"facts"`      // other values of checks that pass in both
	Incomplete []string `json:"incomplete"` // checks that only one report has decided
}

// Change is one check in both reports.
type Change struct {
	ID     string              `json:"id"`
	Title  string              `json:"title"`
	Before conformance.Verdict `json:"before"`
	Now    conformance.Verdict `json:"now"`
	Reason string              `json:"reason,omitempty"` // the present one, or the one that was fixed
}

// Diff compares two reports.
func Diff(from, to *Document) Difference {
	d := Difference{From: from.Target.Title, To: to.Target.Title, Introduced: []Change{}, Fixed: []Change{}, Unchanged: []Change{}, Facts: []Change{}, Incomplete: []string{}}
	before := map[string]Check{}
	for _, c := range from.Checks {
		before[c.ID] = c
	}
	for _, now := range to.Checks {
		old, there := before[now.ID]
		delete(before, now.ID)
		c := Change{ID: now.ID, Title: now.Title, Before: old.Verdict, Now: now.Verdict, Reason: now.Reason}
		switch {
		case !there || decided(old) != decided(now):
			if decided(now) || there {
				d.Incomplete = append(d.Incomplete, now.ID)
			}
		case !decided(now):
		case bad(now) > bad(old):
			d.Introduced = append(d.Introduced, c)
		case bad(now) < bad(old):
			c.Reason = old.Reason
			d.Fixed = append(d.Fixed, c)
		case bad(now) > 0:
			d.Unchanged = append(d.Unchanged, c)
		default:
			if other := otherFacts(old, now); other != "" {
				c.Reason = other
				d.Facts = append(d.Facts, c)
			}
		}
	}
	d.Incomplete = append(d.Incomplete, slices.Sorted(maps.Keys(before))...)
	d.Quirks.Introduced, d.Quirks.Fixed = missing(to.Quirks, from.Quirks), missing(from.Quirks, to.Quirks)
	return d
}

// decided reports whether a check has a verdict about the BMC.
func decided(c Check) bool { return c.Verdict != conformance.Skip && c.Verdict != conformance.Broken }

func bad(c Check) int {
	return slices.Index([]conformance.Verdict{conformance.Pass, conformance.Warn, conformance.Fail}, c.Verdict)
}

// measured matches facts that differ between any two runs: durations.
var measured = regexp.MustCompile(`\d(?:ns|µs|ms|s|m|h)\b`)

func otherFacts(old, now Check) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(now.Facts)) {
		if !measured.MatchString(now.Facts[name]) && old.Facts[name] != now.Facts[name] {
			all = append(all, fmt.Sprintf("%s was %q and is %q", name, old.Facts[name], now.Facts[name]))
		}
	}
	return strings.Join(all, "; ")
}

func missing(in, from []conformance.Quirk) []string {
	all := []string{}
	for _, q := range in {
		if !slices.ContainsFunc(from, func(o conformance.Quirk) bool { return o.Name == q.Name }) {
			all = append(all, q.Name)
		}
	}
	return all
}

// Print writes the difference for people.
func (d Difference) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "from %s\nto   %s\n", d.From, d.To)
	for _, part := range []struct {
		name string
		all  []Change
	}{{"introduced", d.Introduced}, {"fixed", d.Fixed}, {"unchanged", d.Unchanged}, {"other facts", d.Facts}} {
		fmt.Fprintf(&b, "\n%s: %d\n", part.name, len(part.all))
		for _, c := range part.all {
			fmt.Fprintf(&b, "  %-9s %s -> %s  %s\n", c.ID, c.Before, c.Now, c.Reason)
		}
	}
	for _, part := range []struct {
		name string
		all  []string
	}{{"quirks introduced", d.Quirks.Introduced}, {"quirks fixed", d.Quirks.Fixed}, {"decided in one report only", d.Incomplete}} {
		if len(part.all) > 0 {
			fmt.Fprintf(&b, "\n%s: %s\n", part.name, strings.Join(part.all, ", "))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
