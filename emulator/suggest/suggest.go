// Package suggest finds the existing names that are nearest to a misspelled one. It
// knows no kind of name: callers pass those that exist.
package suggest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// DidYouMean returns a sentence with the up to three names that are closest to
// one that does not exist: ". Did you mean generic?". It is empty when none is
// close. It follows a text without a full stop.
func DidYouMean(name string, names []string) string {
	near := Near(name, names)
	if len(near) == 0 {
		return ""
	}
	return ". Did you mean " + strings.Join(near, " or ") + "?"
}

// most is how many names UseOneOf lists.
const most = 8

// UseOneOf returns what follows the text that a name does not exist: the names that do, or the
// first of many, and those that are close: ": use one of a, b. Did you mean b?". It is empty when
// there are no names.
func UseOneOf(name string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	listed := strings.Join(names[:min(len(names), most)], ", ")
	if n := len(names) - most; n > 0 {
		listed = fmt.Sprintf("%s and %d more", listed, n)
	}
	return ": use one of " + listed + DidYouMean(name, names)
}

type scored struct {
	name     string
	distance int
}

// Near returns up to three names that are close to a name, the closest first. A
// third of the letters may differ, and case does not matter; the beginning and the
// end of a name are close, too.
func Near(name string, names []string) []string {
	var near []scored
	for _, n := range names {
		given, known := strings.ToLower(name), strings.ToLower(n)
		d := distance(given, known)
		if part := min(len(given), len(known)); part >= 3 && (strings.HasPrefix(known, given) || strings.HasPrefix(given, known) || strings.HasSuffix(known, given)) {
			d = min(d, 1)
		}
		if d < len(name) && d <= max(1, (min(len(name), len(n))+1)/3) {
			near = append(near, scored{n, d})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return cmp.Or(a.distance-b.distance, strings.Compare(a.name, b.name)) })
	var out []string
	for _, n := range near[:min(len(near), 3)] {
		out = append(out, n.name)
	}
	return out
}

// Closest returns the index of the text that differs least from another, however
// much that is, and -1 when there is no text.
func Closest(text string, texts []string) int {
	best, index := 0, -1
	for i, t := range texts {
		if d := distance(strings.ToLower(text), strings.ToLower(t)); index < 0 || d < best {
			best, index = d, i
		}
	}
	return index
}

// distance is the number of bytes that differ between two strings: inserted, left out, changed,
// or two neighbours in the other order (the optimal string alignment distance).
func distance(a, b string) int {
	last, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := last
		last, row = row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
