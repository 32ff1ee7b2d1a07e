package capture

import (
	"maps"
	"slices"
	"strings"
)

// OfType returns the URIs of the resources of a type, sorted; "" means all
// types.
func (c *Capture) OfType(kind string) []string {
	var out []string
	for _, at := range slices.Sorted(maps.Keys(c.Resources)) {
		if kind == "" || Type(c.Resources[at]) == kind {
			out = append(out, at)
		}
	}
	slices.SortFunc(out, CompareNatural)
	return out
}

// Members returns the URIs of the collection's members that were read, in the
// collection's order.
func (c *Capture) Members(collection string) []string {
	var out []string
	for _, m := range list(c.Resources[collection]["Members"]) {
		if at := trimURI(text(m, "@odata.id")); c.Resources[at] != nil {
			out = append(out, at)
		}
	}
	return out
}

// Link returns the URI to which a property of the resource at a URI links; ""
// when it is no link.
func (c *Capture) Link(at, name string) string {
	return trimURI(text(c.Resources[at][name], "@odata.id"))
}

// CompareNatural compares texts and takes runs of digits in them as numbers.
func CompareNatural(a, b string) int {
	for a != "" && b != "" {
		x, restA := leadingRun(a)
		y, restB := leadingRun(b)
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

// leadingRun splits a text after its first run of digits or of other characters.
func leadingRun(s string) (head, rest string) {
	i := 1
	for i < len(s) && digit(s[i]) == digit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}
