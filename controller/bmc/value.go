package bmc

import (
	"fmt"
	"math"
	"strconv"
)

// FormatValue returns the value of a setting as text: "" for one that the BMC does
// not show.
func FormatValue(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return strconv.FormatInt(int64(v), 10)
		}
	}
	return fmt.Sprint(v)
}

// SameValue reports whether two values of an attribute are the same by its type:
// "0123", "+123" and 123 are the same Integer, but not the same String. Without a type
// the value that is a number or a boolean gives the type of the other.
func SameValue(a *Attribute, x, y any) bool {
	return FormatValue(typed(a, x, y)) == FormatValue(typed(a, y, x))
}

// typed converts a value that is text to its attribute's type: see Setting.
func typed(a *Attribute, v, other any) any {
	if text, ok := v.(string); ok {
		return Setting(text, a, other)
	}
	return v
}
