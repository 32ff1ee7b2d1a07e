package resource

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CompactDate is a text with the time that it is, if it is one, as a clock six
// hours west writes it without a colon.
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

// Cloned is a copy of a JSON value, all the way down.
func Cloned(v any) any {
	switch x := v.(type) {
	case map[string]any:
		c := maps.Clone(x)
		for name := range c {
			c[name] = Cloned(c[name])
		}
		return c
	case []any:
		c := slices.Clone(x)
		for i := range c {
			c[i] = Cloned(c[i])
		}
		return c
	}
	return v
}

// ValueAt is the property at a path. A segment may be the number of an element,
// from the end if it is negative.
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

func DropAt(in any, path string) {
	name, rest, deeper := strings.Cut(path, "/")
	switch x := in.(type) {
	case Object:
		if !deeper {
			delete(x, name)
			return
		}
		DropAt(x[name], rest)
	case []any:
		if name == "*" && deeper {
			for _, e := range x {
				DropAt(e, rest)
			}
			return
		}
		if i, err := strconv.Atoi(name); err == nil && deeper && i >= 0 && i < len(x) {
			DropAt(x[i], rest)
		}
	}
}
