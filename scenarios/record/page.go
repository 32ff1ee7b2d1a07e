package record

import (
	"strconv"
	"strings"
)

// page is the body of a resource.
type page map[string]any

func (p page) at(path string) any {
	var v any = map[string]any(p)
	for _, name := range strings.Split(path, "/") {
		m, _ := v.(map[string]any)
		if v = m[name]; v == nil {
			return nil
		}
	}
	return v
}

func (p page) str(path string) string {
	s, _ := p.at(path).(string)
	return strings.TrimSpace(s)
}

func (p page) num(path string) float64 {
	switch v := p.at(path).(type) {
	case float64:
		return v
	case string:
		n, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return n
	}
	return 0
}

func (p page) int(path string) int { return int(p.num(path)) }

// sub is an object in it.
func (p page) sub(path string) page {
	m, _ := p.at(path).(map[string]any)
	return m
}

// objects are the objects of a list in it.
func (p page) objects(path string) []page {
	var out []page
	for _, v := range list(p.at(path)) {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func (p page) texts(path string) []string {
	var out []string
	for _, v := range list(p.at(path)) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// refs are the addresses that a list of links leads to.
func (p page) refs(path string) []string {
	var out []string
	for _, l := range p.objects(path) {
		out = append(out, strings.TrimRight(l.str("@odata.id"), "/"))
	}
	return out
}

// absent says whether what the page is of is not there.
func (p page) absent() bool {
	s := p.str("Status/State")
	return s == "Absent"
}

func list(v any) []any { l, _ := v.([]any); return l }

// last is the last segment of an address.
func last(at string) string { return at[strings.LastIndexByte(at, '/')+1:] }

// or is the first value that is not zero.
func or[T comparable](all ...T) T {
	var zero T
	for _, v := range all {
		if v != zero {
			return v
		}
	}
	return zero
}
