package odata

import "strings"

// Comparison compares one property with a value: Status/State eq 'Enabled'.
type Comparison struct {
	Property string
	Operator string // "eq", "ne", "gt", "ge", "lt", "le"
	Value    any    // nil, bool, string, json.Number or time.Time
}

// String returns the filter as the client sent it.
func (f *Filter) String() string { return f.text }

// Groups splits a filter of the form (A or B) and C into groups of alternatives: at
// least one comparison of each group must hold. The lists of allowed values of an
// event subscription can express this form alone. It returns false for a filter of
// another form.
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
