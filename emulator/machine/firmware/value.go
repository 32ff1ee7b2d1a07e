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

// kind is a Value's JSON type.
type kind string

const (
	null    kind = "" // no value: what a password reads as
	text    kind = "text"
	integer kind = "integer"
	boolean kind = "boolean"
)

// Value is an attribute's value: a string, an integer, a boolean, or none.
// Values compare with ==.
type Value struct {
	kind kind
	s    string
	n    int64
	b    bool
}

// Text returns a string value.
func Text(s string) Value { return Value{kind: text, s: s} }

// Integer returns an integer value.
func Integer(n int64) Value { return Value{kind: integer, n: n} }

// Boolean returns a boolean value.
func Boolean(b bool) Value { return Value{kind: boolean, b: b} }

// ValueOf converts what a JSON decoder has made: a string, a bool, nil, or an
// integral number. It is false for anything else.
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

// Any returns the value as encoding/json decodes it, except that integers are
// int64.
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

// String returns the value for display.
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

// IsZero reports whether there is no value.
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

// Setting is an attribute's name and value.
type Setting struct {
	Name  string `json:"name"`
	Value Value  `json:"value"`
}

// Settings are attributes with their values, by name. They are immutable.
type Settings []Setting

func byName(s Setting, name string) int { return strings.Compare(s.Name, name) }

// Lookup returns an attribute's value.
func (s Settings) Lookup(name string) (Value, bool) {
	i, ok := slices.BinarySearchFunc(s, name, byName)
	if !ok {
		return Value{}, false
	}
	return s[i].Value, true
}

// with returns s with a value added or replaced.
func (s Settings) with(name string, v Value) Settings {
	i, ok := slices.BinarySearchFunc(s, name, byName)
	out := slices.Clone(s)
	if ok {
		out[i].Value = v
		return out
	}
	return slices.Insert(out, i, Setting{Name: name, Value: v})
}

// without returns s without a value; nil when none is left.
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
