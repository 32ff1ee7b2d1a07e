package redfish

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// compactDate is a text with the time that it is, if it is one, as a clock six
// hours west writes it without a colon.
func compactDate(text string) string {
	if len(text) < len("2006-01-02T15:04:05Z") || text[4] != '-' || text[10] != 'T' {
		return text
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return t.In(time.FixedZone("", -6*3600)).Format("2006-01-02T15:04:05-0700")
}

// cloned is a copy of a JSON value, all the way down.
func cloned(v any) any {
	switch x := v.(type) {
	case map[string]any:
		c := maps.Clone(x)
		for name := range c {
			c[name] = cloned(c[name])
		}
		return c
	case []any:
		c := slices.Clone(x)
		for i := range c {
			c[i] = cloned(c[i])
		}
		return c
	}
	return v
}

// valueAt is the property at a path. A segment may be the number of an element,
// from the end if it is negative.
func valueAt(in any, path string) (any, bool) {
	name, rest, deeper := strings.Cut(path, "/")
	var v any
	switch x := in.(type) {
	case object:
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
	return valueAt(v, rest)
}

func setAt(in any, path string, v any) {
	name, rest, deeper := strings.Cut(path, "/")
	if all, ok := in.([]any); ok {
		switch i, err := strconv.Atoi(name); {
		case err != nil || i < 0 || i >= len(all):
		case deeper:
			setAt(all[i], rest, v)
		default:
			all[i] = v
		}
		return
	}
	o, ok := in.(object)
	if !ok {
		return
	}
	if !deeper {
		o[name] = v
		return
	}
	switch o[name].(type) {
	case object, []any:
	default:
		o[name] = object{}
	}
	setAt(o[name], rest, v)
}

func dropAt(in any, path string) {
	name, rest, deeper := strings.Cut(path, "/")
	switch x := in.(type) {
	case object:
		if !deeper {
			delete(x, name)
			return
		}
		dropAt(x[name], rest)
	case []any:
		if name == "*" && deeper {
			for _, e := range x {
				dropAt(e, rest)
			}
			return
		}
		if i, err := strconv.Atoi(name); err == nil && deeper && i >= 0 && i < len(x) {
			dropAt(x[i], rest)
		}
	}
}
