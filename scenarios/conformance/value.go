package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Value is a part of a JSON document that may be absent or of any type. Its
// methods never panic: what is absent has no parts, and what has another type
// than the caller wants is a Finding that names the property and the value.
type Value struct {
	path  string // for messages: /redfish/v1/Systems/1#Boot/BootOrder/0
	v     any
	there bool
}

// NewValue wraps a decoded JSON document. The path names it in messages.
func NewValue(path string, v any) Value { return Value{path: path, v: v, there: true} }

// Path names the value in messages.
func (v Value) Path() string { return v.path }

// Exists reports whether the value is there, even as null.
func (v Value) Exists() bool { return v.there }

// Null reports whether the value is absent or null.
func (v Value) Null() bool { return !v.there || v.v == nil }

// Raw returns the decoded value: nil, bool, json.Number, string, []any or
// map[string]any.
func (v Value) Raw() any { return v.v }

// At returns the property below the names; names of array elements are numbers.
func (v Value) At(names ...string) Value {
	for _, n := range names {
		next := Value{path: v.path + separator(v.path) + n}
		switch parent := v.v.(type) {
		case map[string]any:
			next.v, next.there = parent[n], has(parent, n)
		case []any:
			if i, err := strconv.Atoi(n); err == nil && i >= 0 && i < len(parent) {
				next.v, next.there = parent[i], true
			}
		}
		v = next
	}
	return v
}

func separator(path string) string {
	if strings.Contains(path, "#") {
		return "/"
	}
	return "#"
}

func has(m map[string]any, name string) bool { _, there := m[name]; return there }

// Text returns a string, or a Finding.
func (v Value) Text() (string, error) {
	if s, ok := v.v.(string); ok {
		return s, nil
	}
	return "", v.not("a string")
}

// TextOr returns a string, or the default when the value is anything else.
func (v Value) TextOr(other string) string {
	if s, ok := v.v.(string); ok {
		return s
	}
	return other
}

// Number returns a number, or a Finding.
func (v Value) Number() (float64, error) {
	if n, ok := v.v.(json.Number); ok {
		if f, err := n.Float64(); err == nil && !math.IsInf(f, 0) {
			return f, nil
		}
	}
	return 0, v.not("a number")
}

// Bool returns a boolean, or a Finding.
func (v Value) Bool() (bool, error) {
	if b, ok := v.v.(bool); ok {
		return b, nil
	}
	return false, v.not("true or false")
}

// List returns the elements of an array, or a Finding.
func (v Value) List() ([]Value, error) {
	list, ok := v.v.([]any)
	if !ok {
		return nil, v.not("an array")
	}
	all := make([]Value, len(list))
	for i, e := range list {
		all[i] = Value{path: fmt.Sprintf("%s%s%d", v.path, separator(v.path), i), v: e, there: true}
	}
	return all, nil
}

// Texts returns the elements of an array of strings, or a Finding.
func (v Value) Texts() ([]string, error) {
	list, err := v.List()
	if err != nil {
		return nil, err
	}
	all := make([]string, len(list))
	for i, e := range list {
		if all[i], err = e.Text(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Names returns the names of an object's properties, or a Finding. Their order is
// undefined.
func (v Value) Names() ([]string, error) {
	object, ok := v.v.(map[string]any)
	if !ok {
		return nil, v.not("an object")
	}
	all := make([]string, 0, len(object))
	for n := range object {
		all = append(all, n)
	}
	return all, nil
}

// Link returns the URI of a reference to another resource, or a Finding.
func (v Value) Link() (string, error) {
	id, err := v.At("@odata.id").Text()
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(id, "/") {
		return "", Findingf("%s is %q, not a URI that begins with /", v.At("@odata.id").path, id)
	}
	return id, nil
}

// LinkOr returns the URI of a reference, or the default when there is none.
func (v Value) LinkOr(other string) string {
	if id, err := v.Link(); err == nil {
		return id
	}
	return other
}

func (v Value) not(want string) error {
	if !v.there {
		return Findingf("%s is absent", v.path)
	}
	return Findingf("%s is %s, not %s", v.path, abbreviate(v.v), want)
}

// abbreviate writes a value for a message, in at most 80 bytes.
func abbreviate(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v)
	}
	if len(b) > 80 {
		return string(b[:77]) + "..."
	}
	return string(b)
}
