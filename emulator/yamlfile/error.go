package yamlfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Error is one mistake in a file. A package that checks values returns it with
// Field and Text alone; File.Locate adds the rest.
type Error struct {
	File  string // "" when the value came from no file
	Line  int    // counted from 1; 0 when it is not known
	Field string // path from the top of the file: "hosts[1].count"; "" for the whole file
	Text  string // the value, what is allowed, and the fix
}

// Errorf returns an Error for a field.
func Errorf(field, text string, args ...any) *Error {
	return &Error{Field: field, Text: fmt.Sprintf(text, args...)}
}

// Error returns "rack.yaml:12: hosts[1].count: 0: must be 1 or more".
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			b.WriteString(":" + strconv.Itoa(e.Line))
		}
		b.WriteString(": ")
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Text)
	return b.String()
}

// Within puts a field of a part into the whole: Within("faults[2]", "status") is
// "faults[2].status".
func Within(path, field string) string {
	switch {
	case path == "":
		return field
	case field == "", field[0] == '[':
		return path + field
	}
	return path + "." + field
}

// DidYouMean returns a sentence with the up to three names that are closest to
// one that does not exist: " Did you mean generic?". It is empty when none is
// close. It begins with a blank.
func DidYouMean(name string, names []string) string {
	near := nearest(name, names)
	if len(near) == 0 {
		return ""
	}
	return ". Did you mean " + strings.Join(near, " or ") + "?"
}

// nearest lists up to three names that are close to a name, the closest first.
func nearest(name string, names []string) []string {
	type scored struct {
		name     string
		distance int
	}
	var near []scored
	for _, n := range names {
		// A third of the letters may differ; the beginning of a name is close too.
		d := distance(strings.ToLower(name), strings.ToLower(n))
		if part := min(len(name), len(n)); part >= 3 && (strings.HasPrefix(n, name) || strings.HasPrefix(name, n)) {
			d = min(d, 1)
		}
		if d <= max(1, (min(len(name), len(n))+1)/3) {
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

// distance is the Levenshtein distance of two strings, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
