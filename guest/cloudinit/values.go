package cloudinit

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Network data are read as Python has them: nil, bool, int64, float64, string, []any and dict.
// What cloud-init does with a value depends on its type: a MAC address that YAML 1.1 takes for a
// number of base 60 is none.

// dict is a mapping by key. A key that is no text is what Python's str makes of it.
type dict = map[string]any

func isCollection(v any) bool {
	switch v.(type) {
	case []any, dict:
		return true
	}
	return false
}

// truthy reports what Python takes for true.
func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case dict:
		return len(v) > 0
	}
	n, _ := numeric(v)
	return n != 0
}

// numeric returns a number, or a boolean, which is one in Python.
func numeric(v any) (float64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// same reports whether Python takes two values for equal.
func same(a, b any) bool {
	x, isX := numeric(a)
	y, isY := numeric(b)
	if isX && isY {
		return x == y
	}
	return isX == isY && reflect.DeepEqual(a, b)
}

// pyText returns what Python's str makes of a scalar.
func pyText(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e16 {
			return strconv.FormatFloat(v, 'f', 1, 64)
		}
	}
	return fmt.Sprint(v)
}

// wholeOf returns what Python's int makes of a scalar.
func wholeOf(v any) (int64, error) {
	if s, ok := v.(string); ok {
		i, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is no number", s)
		}
		return i, nil
	}
	n, ok := numeric(v)
	if !ok || math.IsNaN(n) || math.Abs(n) > 1<<53 {
		return 0, fmt.Errorf("%v is no number", v)
	}
	return int64(n), nil
}

// saysTrue reports an option that may be a text (cloud-init, util.is_true).
func saysTrue(v any) bool {
	if b, ok := v.(bool); ok {
		return b
	}
	switch strings.ToLower(strings.TrimSpace(pyText(v))) {
	case "true", "1", "on", "yes":
		return true
	}
	return false
}

// listAt returns the list at a key, which may be absent.
func listAt(d dict, key string) ([]any, error) {
	v, has := d[key]
	if !has {
		return nil, nil
	}
	l, ok := v.([]any)
	if !ok && (isCollection(v) || v == "") && !truthy(v) {
		return nil, nil // Python takes nothing from an empty mapping, or text
	}
	if !ok {
		return nil, fmt.Errorf("%s: it is no list", key)
	}
	return l, nil
}
