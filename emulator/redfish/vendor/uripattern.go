package vendor

import (
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// pattern is what addresses have in common, segment by segment.
type pattern []segment

// segment is a segment of addresses: a text, and variables with texts behind
// them.
type segment struct {
	lead string // before the first variable; all where there is none
	vars []variable
}

// variable is a part of a segment that differs from address to address.
type variable struct {
	name  string
	width int    // to which a number is filled with zeros; 0: as it is
	tail  string // behind it, up to the next
}

// uriMapping puts what is at some addresses, and below them, to others.
type uriMapping struct {
	from, to pattern
	slash    bool // they end with one
}

// PatternOf reads a pattern; nil where there is none.
func PatternOf(text string, d *dialect.Record) pattern {
	if text == "" {
		return nil
	}
	text = strings.NewReplacer("{system}", d.SystemID, "{manager}", d.ManagerID, "{chassis}", d.ChassisID).Replace(text)
	var out pattern
	for s := range strings.SplitSeq(strings.TrimPrefix(text, "/"), "/") {
		out = append(out, segmentOf(s))
	}
	return out
}

func segmentOf(text string) segment {
	lead, rest, more := strings.Cut(text, "{")
	s := segment{lead: lead}
	for more {
		var name, tail string
		name, rest, _ = strings.Cut(rest, "}")
		tail, rest, more = strings.Cut(rest, "{")
		name, width, _ := strings.Cut(name, ":")
		n, _ := strconv.Atoi(width)
		s.vars = append(s.vars, variable{name, n, tail})
	}
	return s
}

// caseRule is whether their case matters.
type caseRule bool

const (
	ExactCase caseRule = false
	AnyCase   caseRule = true
)

// cutLead takes a text off the beginning of another.
func (f caseRule) cutLead(text, lead string) (rest string, ok bool) {
	if len(text) < len(lead) || text[:len(lead)] != lead && !(f == AnyCase && strings.EqualFold(text[:len(lead)], lead)) {
		return "", false
	}
	return text[len(lead):], true
}

// index is where a text begins in another; -1 where it does not.
func (f caseRule) index(text, part string) int {
	if f == AnyCase {
		text, part = strings.ToLower(text), strings.ToLower(part)
	}
	return strings.Index(text, part)
}

// read takes the values of a segment's variables. One that has a value already
// must have the same.
func (s segment) read(text string, into map[string]string, f caseRule) bool {
	rest, ok := f.cutLead(text, s.lead)
	if !ok {
		return false
	}
	for i, v := range s.vars {
		end := len(rest)
		switch {
		case i == len(s.vars)-1:
			end -= len(v.tail)
		case v.width > 0:
			end = v.width
		default:
			end = f.index(rest, v.tail)
		}
		if end <= 0 || end > len(rest) {
			return false
		}
		value := rest[:end]
		if rest, ok = f.cutLead(rest[end:], v.tail); !ok {
			return false
		}
		if v.width > 0 {
			if len(value) != v.width {
				return false
			}
			value = strings.TrimLeft(value[:len(value)-1], "0") + value[len(value)-1:]
		}
		if was, known := into[v.name]; known && was != value {
			return false
		}
		into[v.name] = value
	}
	return rest == ""
}

func (s segment) write(from map[string]string) string {
	if len(s.vars) == 0 {
		return s.lead
	}
	out := s.lead
	for _, v := range s.vars {
		value := from[v.name]
		if n := v.width - len(value); n > 0 {
			value = strings.Repeat("0", n) + value
		}
		out += value + v.tail
	}
	return out
}

// names are the variables of a pattern, outermost first, each once.
func (a pattern) names() []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range a {
		for _, v := range s.vars {
			if !seen[v.name] {
				seen[v.name] = true
				out = append(out, v.name)
			}
		}
	}
	return out
}

// Write is the address with these values.
func (a pattern) Write(vars map[string]string) string {
	var b strings.Builder
	for _, s := range a {
		b.WriteString("/" + s.write(vars))
	}
	return b.String()
}

// split are the segments of an address.
func split(path string) []string { return strings.Split(strings.TrimPrefix(path, "/"), "/") }

// holds says whether an address is one of these, or below one.
func (a pattern) holds(path string) bool {
	if !a.begins(path) {
		return false
	}
	_, _, ok := a.match(split(path), ExactCase)
	return ok
}

// begins says whether an address can be one of these, or below one: it is like
// them up to their first variable. Most are not, and this is soon found out.
func (a pattern) begins(path string) bool {
	rest := strings.TrimPrefix(path, "/")
	for i := range a {
		s := &a[i]
		if !strings.HasPrefix(rest, s.lead) {
			return false
		}
		if len(s.vars) > 0 {
			return true
		}
		rest = rest[len(s.lead):]
		if rest == "" {
			return i == len(a)-1
		}
		if rest[0] != '/' {
			return false
		}
		rest = rest[1:]
	}
	return true
}

// Is says whether an address is one of these, and what its variables are.
func (a pattern) Is(path string, f caseRule) (vars map[string]string, ok bool) {
	if f == ExactCase && !a.begins(path) {
		return nil, false
	}
	segments := split(path)
	if len(segments) != len(a) {
		return nil, false
	}
	vars, _, ok = a.match(segments, f)
	return vars, ok
}

func (a pattern) match(segments []string, f caseRule) (vars map[string]string, rest []string, ok bool) {
	if len(segments) < len(a) {
		return nil, nil, false
	}
	vars = map[string]string{}
	for i, s := range a {
		if !s.read(segments[i], vars, f) {
			return nil, nil, false
		}
	}
	return vars, segments[len(a):], true
}

// mapURI is the address that an address becomes.
func mapURI(all []uriMapping, path string) (string, bool) {
	return mapURIWith(all, path, nil, ExactCase)
}

// mapURIWith is moved where some variables are known beforehand.
func mapURIWith(all []uriMapping, path string, known map[string]string, f caseRule) (string, bool) {
	var segments []string
	for i := range all {
		m := &all[i]
		if f == ExactCase && !m.from.begins(path) {
			continue
		}
		if segments == nil {
			segments = split(path)
		}
		vars, rest, ok := m.from.match(segments, f)
		if !ok {
			continue
		}
		for name, value := range known {
			if _, has := vars[name]; !has {
				vars[name] = value
			}
		}
		at := m.to.Write(vars)
		for _, s := range rest {
			at += "/" + s
		}
		if m.slash && !strings.HasSuffix(at, "/") {
			at += "/"
		}
		return at, true
	}
	return path, false
}
