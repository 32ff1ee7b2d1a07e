package interop

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// compare applies a comparison of DSP0272 to a value. An unknown comparison holds,
// since nobody can tell that it does not.
func compare(how string, v any, there bool, values []any) bool {
	switch how {
	case "Absent":
		return !there
	case "Present":
		return there
	}
	if !there || len(values) == 0 {
		return false
	}
	all := []any{v}
	if list, ok := v.([]any); ok {
		all = list
	}
	among := func(v any) bool { return slices.ContainsFunc(values, func(w any) bool { return equal(v, w) }) }
	switch how {
	case "AnyOf":
		return slices.ContainsFunc(all, among)
	case "AllOf":
		return !slices.ContainsFunc(values, func(w any) bool { return !slices.ContainsFunc(all, func(v any) bool { return equal(v, w) }) })
	case "Equal":
		return equal(v, values[0])
	case "NotEqual":
		return !equal(v, values[0])
	case "Pattern":
		pattern, _ := values[0].(string)
		text, isText := v.(string)
		ok, err := regexp.MatchString(pattern, text)
		return err != nil || isText && ok
	case "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual", "Range":
		return ordered(how, v, values)
	}
	return true
}

func ordered(how string, v any, values []any) bool {
	x, ok := number(v)
	low, okLow := number(values[0])
	if !ok || !okLow {
		return false
	}
	switch how {
	case "GreaterThan":
		return x > low
	case "GreaterThanOrEqual":
		return x >= low
	case "LessThan":
		return x < low
	case "LessThanOrEqual":
		return x <= low
	}
	if len(values) < 2 {
		return false
	}
	high, okHigh := number(values[1])
	return okHigh && x >= low && x <= high
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	return 0, false
}

// equal compares numbers by value, all else by its text.
func equal(a, b any) bool {
	x, okX := number(a)
	y, okY := number(b)
	if okX && okY {
		return x == y
	}
	return fmt.Sprint(a) == fmt.Sprint(b)
}
