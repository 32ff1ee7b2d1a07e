package sandbox

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unique"
)

// unit is a unit with its drop-ins (systemd.unit(5)), by section and key.
type unit struct {
	name  string   // that of its file: an alias has another
	names []string // name, and the aliases by which it was asked for
	file  string   // path of its file; "": it is built in
	drops []string // paths of its drop-ins, in the order in which they were read
	mask  bool     // its file is empty or /dev/null
	keys  map[string][]string

	commands    []command // of the keys Exec…=
	environment []string  // of Environment=
	// problems are what systemd warns of: keys that are unknown, and lines that are no
	// assignments.
	problems []string
	inert    []string // keys without an effect here
}

// Bounds of the problems of a unit that are kept.
const (
	maxProblems = 20
	maxInert    = 200
)

// get returns the last value of a key, as systemd does for keys that are no lists.
func (u unit) get(key string) string {
	if v := u.keys[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// is reports a boolean (systemd.syntax(7)).
func (u unit) is(key string) bool { return isTrue(u.get(key)) }

// isNot reports a boolean whose default is true.
func (u unit) isNot(key string) bool {
	return slices.Contains([]string{"0", "no", "false", "off", "n", "f"}, strings.ToLower(u.get(key)))
}

func isTrue(text string) bool {
	return slices.Contains([]string{"1", "yes", "true", "on", "y", "t"}, strings.ToLower(text))
}

// duration returns a time span, or another one if there is none.
func (u unit) duration(key string, none time.Duration) time.Duration {
	if d, ok := parseSpan(u.get(key)); ok {
		return d
	}
	return none
}

// words returns the words of all values of a key.
func (u unit) words(keys ...string) (out []string) {
	for _, key := range keys {
		for _, v := range u.keys[key] {
			words, err := splitWords(v)
			if err != nil {
				words = strings.Fields(v)
			}
			out = append(out, words...)
		}
	}
	return out
}

func (u *unit) problem(format string, args ...any) {
	if len(u.problems) < maxProblems {
		u.problems = append(u.problems, fmt.Sprintf(format, args...))
	}
}

// kind returns the type of a unit: "service".
func kind(name string) string { return strings.TrimPrefix(path.Ext(name), ".") }

// appending are keys that an empty value does not reset (systemd.unit(5): dependencies cannot be
// reset to an empty list).
var appending = []string{
	"Unit.After", "Unit.Before", "Unit.Requires", "Unit.Requisite", "Unit.Wants", "Unit.BindsTo", "Unit.PartOf", "Unit.Upholds",
	"Unit.Conflicts", "Unit.OnFailure", "Unit.OnSuccess",
}

// parse reads a unit file or a drop-in (systemd.syntax(7)): an empty value resets a list.
func (u *unit) parse(file, text string) {
	section, number := "", 0
	var pending string // a line that goes on behind a backslash
	begun := 0
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		number++
		line = strings.TrimSpace(line)
		if line != "" && (line[0] == '#' || line[0] == ';') { // also between the parts of a line
			continue
		}
		if pending == "" {
			begun = number
		}
		if rest, more := strings.CutSuffix(line, `\`); more {
			pending += rest + " "
			continue
		}
		section = u.parseLine(file, begun, section, strings.TrimSpace(pending+line))
		pending = ""
	}
	u.parseLine(file, begun, section, strings.TrimSpace(pending))
}

// parseLine reads a line, and returns the section of the next.
func (u *unit) parseLine(file string, number int, section, line string) string {
	if line == "" {
		return section
	}
	if line[0] == '[' {
		if name, ok := strings.CutSuffix(line[1:], "]"); ok {
			if !knownSection(name) {
				u.problem("/%s:%d: Unknown section '%s'. Ignoring.", file, number, name)
			}
			return name
		}
		u.problem("/%s:%d: Invalid section header '%s'", file, number, line)
		return section
	}
	name, value, ok := strings.Cut(line, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	switch {
	case !ok || name == "":
		u.problem("/%s:%d: Missing '=', ignoring line.", file, number)
		return section
	case section == "":
		u.problem("/%s:%d: Assignment outside of section. Ignoring.", file, number)
		return section
	}
	// A unit that is active keeps its values, and not the text of its file.
	key := unique.Make(section + "." + name).Value()
	value = strings.Clone(value)
	switch effectOf(u.name, section, name) {
	case effectUnknown:
		u.problem("/%s:%d: Unknown key name '%s' in section '%s', ignoring.", file, number, name, section)
		return section
	case effectInert:
		if value != "" && !slices.Contains(u.inert, name+"=") && len(u.inert) < maxInert {
			u.inert = append(u.inert, name+"=")
		}
	}
	switch {
	case value != "":
		u.keys[key] = append(u.keys[key], value)
	case slices.Contains(appending, key):
	case strings.HasPrefix(key, "Unit.Condition"), strings.HasPrefix(key, "Unit.Assert"): // it resets all of them
		for k := range u.keys {
			if strings.HasPrefix(k, "Unit.Condition") == strings.HasPrefix(key, "Unit.Condition") && (strings.HasPrefix(k, "Unit.Condition") || strings.HasPrefix(k, "Unit.Assert")) {
				delete(u.keys, k)
			}
		}
	default:
		u.keys[key] = nil
	}
	return section
}

func (s *System) report(format string, args ...any) {
	if s.c.Report != nil {
		s.c.Report("systemd: " + fmt.Sprintf(format, args...))
	}
}
