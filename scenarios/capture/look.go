package capture

import (
	"maps"
	"slices"
	"strings"
)

// Of are the addresses of the resources of a type, or of all, sorted.
func (c *Capture) Of(kind string) []string {
	var out []string
	for _, at := range slices.Sorted(maps.Keys(c.Pages)) {
		if kind == "" || Type(c.Pages[at]) == kind {
			out = append(out, at)
		}
	}
	slices.SortFunc(out, Natural)
	return out
}

// Members are the members of a collection that were read, in its order.
func (c *Capture) Members(collection string) []string {
	var out []string
	for _, m := range list(c.Pages[collection]["Members"]) {
		if at := clean(text(m, "@odata.id")); c.Pages[at] != nil {
			out = append(out, at)
		}
	}
	return out
}

// Link is where a property that is a link leads; "" when it is none.
func (c *Capture) Link(at, name string) string { return clean(text(c.Pages[at][name], "@odata.id")) }

// Natural compares texts as people do: numbers in them by their value.
func Natural(a, b string) int {
	for a != "" && b != "" {
		x, restA := run(a)
		y, restB := run(b)
		if digit(x[0]) && digit(y[0]) {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
		}
		if n := strings.Compare(x, y); n != 0 {
			return n
		}
		a, b = restA, restB
	}
	return len(a) - len(b)
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// run is the run of digits, or of others, that a text begins with.
func run(s string) (head, rest string) {
	i := 1
	for i < len(s) && digit(s[i]) == digit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}
