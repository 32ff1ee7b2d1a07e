package vendor

import (
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// pattern is a URI pattern of a dialect, segment by segment: what dialect.URIMapping
// describes. nil is no pattern.
type pattern []segment

// segment is one segment of a pattern: a text, and variables with texts behind them.
type segment struct {
	lead string // text before the first variable; without variables the whole segment
	vars []variable
}

// variable is a variable of a segment.
type variable struct {
	name  string
	width int    // digits to which a number is padded with zeros; 0: no padding
	tail  string // text behind it, up to the next variable or the end
}

// parsePattern parses a pattern, and fills in the IDs of the record for {system},
// {manager} and {chassis}. It returns nil for "".
func parsePattern(text string, d *dialect.Record) pattern {
	if text == "" {
		return nil
	}
	text = strings.NewReplacer("{system}", d.SystemID, "{manager}", d.ManagerID, "{chassis}", d.ChassisID).Replace(text)
	var out pattern
	for s := range strings.SplitSeq(strings.TrimPrefix(text, "/"), "/") {
		out = append(out, parseSegment(s))
	}
	return out
}

func parseSegment(text string) segment {
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

// letterCase says whether a match regards the case of letters.
type letterCase bool

const (
	exactCase  letterCase = false
	ignoreCase letterCase = true
)

// cutPrefix returns text without prefix, and whether text begins with it.
func (c letterCase) cutPrefix(text, prefix string) (rest string, ok bool) {
	if len(text) < len(prefix) || text[:len(prefix)] != prefix && !(c == ignoreCase && strings.EqualFold(text[:len(prefix)], prefix)) {
		return "", false
	}
	return text[len(prefix):], true
}

// index returns the index of the first part in text, or -1.
func (c letterCase) index(text, part string) int {
	if c == ignoreCase {
		text, part = strings.ToLower(text), strings.ToLower(part)
	}
	return strings.Index(text, part)
}

// match adds the values of the segment's variables to vars, and reports whether text
// matches. A variable that has a value already must have the same one here.
func (s segment) match(text string, vars map[string]string, c letterCase) bool {
	rest, ok := c.cutPrefix(text, s.lead)
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
			end = c.index(rest, v.tail)
		}
		if end <= 0 || end > len(rest) {
			return false
		}
		value := rest[:end]
		if rest, ok = c.cutPrefix(rest[end:], v.tail); !ok {
			return false
		}
		if v.width > 0 {
			if len(value) != v.width {
				return false
			}
			value = trimZeros(value)
		}
		if first, known := vars[v.name]; known && first != value {
			return false
		}
		vars[v.name] = value
	}
	return rest == ""
}

// trimZeros removes the zeros with which a number is padded: "0012" is "12", "0000"
// is "0".
func trimZeros(value string) string {
	last := len(value) - 1
	return strings.TrimLeft(value[:last], "0") + value[last:]
}

func (s segment) fill(vars map[string]string) string {
	if len(s.vars) == 0 {
		return s.lead
	}
	out := s.lead
	for _, v := range s.vars {
		value := vars[v.name]
		if n := v.width - len(value); n > 0 {
			value = strings.Repeat("0", n) + value
		}
		out += value + v.tail
	}
	return out
}

// variables returns the names of the pattern's variables in their order, each once.
func (p pattern) variables() []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range p {
		for _, v := range s.vars {
			if !seen[v.name] {
				seen[v.name] = true
				out = append(out, v.name)
			}
		}
	}
	return out
}

// fill returns the URI in which the variables have these values.
func (p pattern) fill(vars map[string]string) string {
	var b strings.Builder
	for _, s := range p {
		b.WriteString("/" + s.fill(vars))
	}
	return b.String()
}

// String returns the pattern as text, with the record's IDs filled in.
func (p pattern) String() string {
	names := map[string]string{}
	for _, name := range p.variables() {
		names[name] = "{" + name + "}"
	}
	return p.fill(names)
}

// splitPath returns the segments of a path.
func splitPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "/"), "/") }

// covers reports whether a URI matches the pattern, or is below a URI that does.
func (p pattern) covers(path string) bool {
	if !p.hasPrefixOf(path) {
		return false
	}
	_, _, ok := p.matchPrefix(splitPath(path), exactCase)
	return ok
}

// coversAny reports whether one of the patterns covers a URI.
func coversAny(all []pattern, path string) bool {
	return slices.ContainsFunc(all, func(p pattern) bool { return p.covers(path) })
}

// hasPrefixOf reports whether a path begins with the pattern's text up to the first
// variable. It excludes most paths without splitting them.
func (p pattern) hasPrefixOf(path string) bool {
	rest := strings.TrimPrefix(path, "/")
	for i := range p {
		s := &p[i]
		if !strings.HasPrefix(rest, s.lead) {
			return false
		}
		if len(s.vars) > 0 {
			return true
		}
		rest = rest[len(s.lead):]
		if rest == "" {
			return i == len(p)-1
		}
		if rest[0] != '/' {
			return false
		}
		rest = rest[1:]
	}
	return true
}

// match reports whether a URI matches the whole pattern, and returns the values of
// the variables.
func (p pattern) match(path string, c letterCase) (vars map[string]string, ok bool) {
	if c == exactCase && !p.hasPrefixOf(path) {
		return nil, false
	}
	segments := splitPath(path)
	if len(segments) != len(p) {
		return nil, false
	}
	vars, _, ok = p.matchPrefix(segments, c)
	return vars, ok
}

// matchPrefix matches the pattern with the first segments of a path, and returns the
// segments behind them.
func (p pattern) matchPrefix(segments []string, c letterCase) (vars map[string]string, rest []string, ok bool) {
	if len(segments) < len(p) {
		return nil, nil, false
	}
	vars = map[string]string{}
	for i, s := range p {
		if !s.match(segments[i], vars, c) {
			return nil, nil, false
		}
	}
	return vars, segments[len(p):], true
}
