package odata

import "strings"

// Comparison compares one property with a value: Status/State eq 'Enabled'.
type Comparison struct {
	Property string
	Operator string // "eq", "ne", "gt", "ge", "lt", "le"
	Value    any    // nil, bool, string, json.Number or time.Time
}

// String is the filter as it was sent.
func (f *Filter) String() string { return f.text }

// Groups takes a filter apart into groups of alternatives, one of each of which
// must hold: (A or B) and C. That is all that fits into lists of allowed values,
// such as those of an event subscription. False when the filter is of another
// form.
func (f *Filter) Groups() ([][]Comparison, bool) { return groups(f.root) }

func groups(c condition) ([][]Comparison, bool) {
	if x, ok := c.(both); ok {
		a, fine := groups(x.a)
		b, alsoFine := groups(x.b)
		return append(a, b...), fine && alsoFine
	}
	one, ok := alternatives(c)
	return [][]Comparison{one}, ok
}

func alternatives(c condition) ([]Comparison, bool) {
	switch x := c.(type) {
	case either:
		a, fine := alternatives(x.a)
		b, alsoFine := alternatives(x.b)
		return append(a, b...), fine && alsoFine
	case comparison:
		return []Comparison{{Property: strings.Join(x.path, "/"), Operator: string(x.op), Value: x.literal}}, true
	}
	return nil, false
}
