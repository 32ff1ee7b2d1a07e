package resource

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CompactDate returns an RFC 3339 time in the zone UTC-6 with an offset without a colon. It
// returns any other text unchanged.
func CompactDate(text string) string {
	if len(text) < len("2006-01-02T15:04:05Z") || text[4] != '-' || text[10] != 'T' {
		return text
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return t.In(time.FixedZone("", -6*3600)).Format("2006-01-02T15:04:05-0700")
}

// Clone returns a deep copy of a JSON value.
func Clone(v any) any {
	switch x := v.(type) {
	case map[string]any:
		c := maps.Clone(x)
		for name := range c {
			c[name] = Clone(c[name])
		}
		return c
	case []any:
		c := slices.Clone(x)
		for i := range c {
			c[i] = Clone(c[i])
		}
		return c
	}
	return v
}

// ValueAt returns the property at a path, and whether there is one. A segment may be the
// index of an array element; a negative index counts from the end.
func ValueAt(in any, path string) (any, bool) {
	name, rest, deeper := strings.Cut(path, "/")
	var v any
	switch x := in.(type) {
	case Object:
		is, ok := x[name]
		if !ok {
			return nil, false
		}
		v = is
	case []any:
		i, err := strconv.Atoi(name)
		if i < 0 {
			i += len(x)
		}
		if err != nil || i < 0 || i >= len(x) {
			return nil, false
		}
		v = x[i]
	default:
		return nil, false
	}
	if !deeper {
		return v, true
	}
	return ValueAt(v, rest)
}

// SetAt sets the property at a path and creates the objects on the way. It does nothing
// when the path leads to an array element that does not exist.
func SetAt(in any, path string, v any) {
	name, rest, deeper := strings.Cut(path, "/")
	if all, ok := in.([]any); ok {
		switch i, err := strconv.Atoi(name); {
		case err != nil || i < 0 || i >= len(all):
		case deeper:
			SetAt(all[i], rest, v)
		default:
			all[i] = v
		}
		return
	}
	o, ok := in.(Object)
	if !ok {
		return
	}
	if !deeper {
		o[name] = v
		return
	}
	switch o[name].(type) {
	case Object, []any:
	default:
		o[name] = Object{}
	}
	SetAt(o[name], rest, v)
}

// RemoveAt removes the property at a path. The segment "*" stands for every element of an
// array.
func RemoveAt(in any, path string) {
	name, rest, deeper := strings.Cut(path, "/")
	switch x := in.(type) {
	case Object:
		if !deeper {
			delete(x, name)
			return
		}
		RemoveAt(x[name], rest)
	case []any:
		if name == "*" && deeper {
			for _, e := range x {
				RemoveAt(e, rest)
			}
			return
		}
		if i, err := strconv.Atoi(name); err == nil && deeper && i >= 0 && i < len(x) {
			RemoveAt(x[i], rest)
		}
	}
}
