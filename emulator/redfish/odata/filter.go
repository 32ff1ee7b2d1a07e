package odata

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Filter is a condition on a resource (DSP0266, "The $filter query parameter").
type Filter struct {
	text string
	root condition
}

// ParseFilter parses a filter. The error is an *Error of $filter.
func ParseFilter(text string) (*Filter, error) {
	f, err := parseFilter(text)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (q *Query) readFilter(p pair, _ Support) *Error {
	f, err := parseFilter(p.value)
	q.Filter = f
	return err
}

// Match reports whether a resource meets the condition. An absent property counts as
// null. An array meets a comparison when one of its elements does.
func (f *Filter) Match(o Object) (bool, *Error) {
	ok, wrong := f.root.holds(o)
	if wrong != "" {
		return false, f.refused(Type, wrong)
	}
	return ok, nil
}

func (f *Filter) refused(w Why, detail string) *Error {
	return &Error{Parameter: "$filter", Value: f.text, Why: w, Detail: detail}
}

// condition is a part of a filter. wrong describes a literal that is compared with a
// property of another type; "" none.
type condition interface {
	holds(o Object) (ok bool, wrong string)
}

type (
	both    struct{ a, b condition }
	either  struct{ a, b condition }
	negated struct{ a condition }
	// comparison compares the property at a path with a literal.
	comparison struct {
		path    []string
		op      operator
		literal any // nil, bool, string, json.Number or time.Time
	}
)

// holds evaluates both sides in any case, so that the order of the parts does not
// decide whether the filter is refused.
func (c both) holds(o Object) (bool, string) {
	a, wrong := c.a.holds(o)
	b, worse := c.b.holds(o)
	return a && b, first(wrong, worse)
}

func (c either) holds(o Object) (bool, string) {
	a, wrong := c.a.holds(o)
	b, worse := c.b.holds(o)
	return a || b, first(wrong, worse)
}

func (c negated) holds(o Object) (bool, string) {
	ok, wrong := c.a.holds(o)
	return !ok, wrong
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (c comparison) holds(o Object) (bool, string) {
	found := lookUp(o, c.path, nil)
	if len(found) == 0 {
		found = []any{nil}
	}
	ok := false
	for _, value := range found {
		meets, alike := c.meets(value)
		if !alike {
			return false, strings.Join(c.path, "/") + " is of another type than the value that it is compared with"
		}
		ok = ok || meets
	}
	return ok, ""
}

// lookUp appends the values at a path to found. It descends into arrays.
func lookUp(value any, path []string, found []any) []any {
	if all, ok := value.([]any); ok {
		for _, y := range all {
			found = lookUp(y, path, found)
		}
		return found
	}
	if len(path) == 0 {
		return append(found, value)
	}
	if o, ok := value.(Object); ok {
		if next, ok := o[path[0]]; ok {
			return lookUp(next, path[1:], found)
		}
	}
	return found
}

// meets compares a value with the literal; alike is false when their types differ.
// Null equals null, and is neither less nor greater than any value.
func (c comparison) meets(value any) (ok, alike bool) {
	if value == nil || c.literal == nil {
		equal := value == nil && c.literal == nil
		return c.op == equals && equal || c.op == differs && !equal, true
	}
	switch want := c.literal.(type) {
	case bool:
		got, ok := value.(bool)
		return (got == want) == (c.op == equals), ok
	case json.Number:
		order, ok := compareNumbers(value, want)
		return c.op.fits(order), ok
	case time.Time:
		got, ok := value.(string)
		at, err := time.Parse(time.RFC3339, got)
		return c.op.fits(at.Compare(want)), ok && err == nil
	case string:
		got, ok := value.(string)
		// Times with different UTC offsets can be equal.
		if a, err := time.Parse(time.RFC3339, got); err == nil {
			if b, err := time.Parse(time.RFC3339, want); err == nil {
				return c.op.fits(a.Compare(b)), ok
			}
		}
		return c.op.fits(strings.Compare(got, want)), ok
	}
	return false, false
}

// compareNumbers compares integers exactly and other numbers as float64; false when
// the value is no number.
func compareNumbers(value any, with json.Number) (order int, ok bool) {
	var text string
	switch x := value.(type) {
	case json.Number:
		text = string(x)
	case float64:
		text = strconv.FormatFloat(x, 'g', -1, 64)
	default:
		return 0, false
	}
	a, errA := strconv.ParseInt(text, 10, 64)
	b, errB := strconv.ParseInt(string(with), 10, 64)
	if errA == nil && errB == nil {
		return compare(a, b), true
	}
	// ParseFloat returns an infinity for a number out of range.
	x, _ := strconv.ParseFloat(text, 64)
	y, _ := strconv.ParseFloat(string(with), 64)
	return compare(x, y), true
}

func compare[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// operator is a comparison operator, spelled as in a filter.
type operator string

// The operators (DSP0266, "The $filter query parameter").
const (
	equals       operator = "eq"
	differs      operator = "ne"
	greater      operator = "gt"
	greaterEqual operator = "ge"
	less         operator = "lt"
	lessEqual    operator = "le"
)

// operators lists for each operator whether it holds when the property is less than,
// equal to and greater than the literal.
var operators = map[operator][3]bool{
	equals:       {false, true, false},
	differs:      {true, false, true},
	greater:      {false, false, true},
	greaterEqual: {false, true, true},
	less:         {true, false, false},
	lessEqual:    {true, true, false},
}

// mirrored maps an operator to its equivalent with the sides exchanged.
var mirrored = map[operator]operator{
	equals: equals, differs: differs, greater: less, greaterEqual: lessEqual, less: greater, lessEqual: greaterEqual,
}

func (op operator) fits(order int) bool { return operators[op][order+1] }

// orders reports whether an operator depends on which value is greater.
func (op operator) orders() bool { return op != equals && op != differs }
