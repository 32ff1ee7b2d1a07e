package firmware

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// kind is what sort of JSON value a Value is.
type kind string

const (
	null    kind = "" // nothing: what a password shows
	text    kind = "text"
	integer kind = "integer"
	boolean kind = "boolean"
)

// Value is the value of an attribute: a string, an integer, a boolean, or
// nothing. Values compare with ==.
type Value struct {
	kind kind
	s    string
	n    int64
	b    bool
}

// Text makes a string.
func Text(s string) Value { return Value{kind: text, s: s} }

// Integer makes an integer.
func Integer(n int64) Value { return Value{kind: integer, n: n} }

// Boolean makes a boolean.
func Boolean(b bool) Value { return Value{kind: boolean, b: b} }

// ValueOf makes a Value of what a JSON decoder made: a string, a bool, nil, or
// a number without a fraction. False means that x is none of these.
func ValueOf(x any) (Value, bool) {
	switch x := x.(type) {
	case nil:
		return Value{}, true
	case string:
		return Text(x), true
	case bool:
		return Boolean(x), true
	case int:
		return Integer(int64(x)), true
	case int64:
		return Integer(x), true
	case float64:
		if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			return Value{}, false
		}
		return Integer(int64(x)), true
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return Integer(n), true
		}
		f, err := x.Float64()
		if err != nil {
			return Value{}, false
		}
		return ValueOf(f)
	}
	return Value{}, false
}

// Any is the value as encoding/json would have decoded it, but for integers,
// which are int64.
func (v Value) Any() any {
	switch v.kind {
	case text:
		return v.s
	case integer:
		return v.n
	case boolean:
		return v.b
	}
	return nil
}

// String is the value for people.
func (v Value) String() string {
	switch v.kind {
	case text:
		return v.s
	case integer:
		return strconv.FormatInt(v.n, 10)
	case boolean:
		return strconv.FormatBool(v.b)
	}
	return "null"
}

// IsZero tells whether the value is nothing.
func (v Value) IsZero() bool { return v.kind == null }

// MarshalJSON implements json.Marshaler.
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(v.Any()) }

// UnmarshalJSON implements json.Unmarshaler.
func (v *Value) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var x any
	if err := d.Decode(&x); err != nil {
		return err
	}
	got, ok := ValueOf(x)
	if !ok {
		return fmt.Errorf("firmware: value %s: must be a string, an integer, a boolean or null", b)
	}
	*v = got
	return nil
}

// order compares two values of one kind; false when their kinds differ or have
// no order.
func (v Value) order(w Value) (int, bool) {
	switch {
	case v.kind != w.kind:
		return 0, false
	case v.kind == integer:
		return cmp.Compare(v.n, w.n), true
	case v.kind == text:
		return strings.Compare(v.s, w.s), true
	}
	return 0, false
}

// Setting is an attribute and its value.
type Setting struct {
	Name  string `json:"name"`
	Value Value  `json:"value"`
}

// Settings are attributes with their values, by name. They are immutable.
type Settings []Setting

func byName(s Setting, name string) int { return strings.Compare(s.Name, name) }

// Lookup finds the value of an attribute.
func (s Settings) Lookup(name string) (Value, bool) {
	i, ok := slices.BinarySearchFunc(s, name, byName)
	if !ok {
		return Value{}, false
	}
	return s[i].Value, true
}

// with is s with one more value, or another one.
func (s Settings) with(name string, v Value) Settings {
	i, ok := slices.BinarySearchFunc(s, name, byName)
	out := slices.Clone(s)
	if ok {
		out[i].Value = v
		return out
	}
	return slices.Insert(out, i, Setting{Name: name, Value: v})
}

// without is s without one value; nil when none is left.
func (s Settings) without(name string) Settings {
	i, ok := slices.BinarySearchFunc(s, name, byName)
	switch {
	case !ok:
		return s
	case len(s) == 1:
		return nil
	}
	return slices.Delete(slices.Clone(s), i, i+1)
}
