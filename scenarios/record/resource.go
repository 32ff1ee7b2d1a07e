package record

import (
	"strconv"
	"strings"
)

// resource is the body of a Redfish resource.
type resource map[string]any

// at returns the value at a path of property names, separated by slashes; nil
// if there is none.
func (p resource) at(path string) any {
	var v any = map[string]any(p)
	for _, name := range strings.Split(path, "/") {
		m, _ := v.(map[string]any)
		if v = m[name]; v == nil {
			return nil
		}
	}
	return v
}

// str returns the text at a path without surrounding spaces.
func (p resource) str(path string) string {
	s, _ := p.at(path).(string)
	return strings.TrimSpace(s)
}

// num returns the number at a path; a text is parsed, and 0 stands for no
// number.
func (p resource) num(path string) float64 {
	switch v := p.at(path).(type) {
	case float64:
		return v
	case string:
		n, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return n
	}
	return 0
}

func (p resource) int(path string) int { return int(p.num(path)) }

// sub returns the object at a path.
func (p resource) sub(path string) resource {
	m, _ := p.at(path).(map[string]any)
	return m
}

// objects returns the objects in the list at a path.
func (p resource) objects(path string) []resource {
	var out []resource
	for _, v := range list(p.at(path)) {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// texts returns the texts in the list at a path.
func (p resource) texts(path string) []string {
	var out []string
	for _, v := range list(p.at(path)) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// refs returns the URIs in the list of links at a path.
func (p resource) refs(path string) []string {
	var out []string
	for _, l := range p.objects(path) {
		out = append(out, strings.TrimRight(l.str("@odata.id"), "/"))
	}
	return out
}

// absent reports whether Status/State is Absent.
func (p resource) absent() bool {
	s := p.str("Status/State")
	return s == "Absent"
}

func list(v any) []any { l, _ := v.([]any); return l }

// last returns the last segment of a URI.
func last(at string) string { return at[strings.LastIndexByte(at, '/')+1:] }
