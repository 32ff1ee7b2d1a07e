package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// managerEnvironment is that of all services (systemd.exec(5), "Environment Variables in Spawned
// Processes").
var managerEnvironment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}

// maxVariables is how many variables a service has.
const maxVariables = 4096

// variables returns the environment of a service: a later assignment replaces an earlier.
func (u unit) variables(f files, own []string) ([]string, error) {
	env := slices.Concat(managerEnvironment, own)
	for _, e := range u.environment {
		if name, _, ok := strings.Cut(e, "="); ok && isVariable(name) {
			env = append(env, e)
		}
	}
	for _, value := range u.keys["Service.EnvironmentFile"] {
		name, optional := strings.CutPrefix(strings.Trim(value, `"'`), "-")
		found := []string{name}
		if strings.ContainsAny(name, "*?[") {
			if found = glob(f, name); len(found) == 0 && !optional {
				return nil, fmt.Errorf("EnvironmentFile=%s: no file matches", value)
			}
		}
		for _, name := range found {
			b, err := f.readFile(name, maxConfig)
			if err != nil && optional {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("EnvironmentFile=%s: %w", value, err)
			}
			if env = append(env, assignmentsOf(string(b))...); len(env) > maxVariables {
				return nil, fmt.Errorf("EnvironmentFile=%s: more than %d variables", value, maxVariables)
			}
		}
	}
	for _, unset := range u.words("Service.UnsetEnvironment") {
		env = slices.DeleteFunc(env, func(e string) bool { return e == unset || strings.HasPrefix(e, unset+"=") })
	}
	return lastAssignments(env), nil
}

// lastAssignments keeps the last assignment of each variable, in the order of the first.
func lastAssignments(env []string) (out []string) {
	at := map[string]int{}
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if i, ok := at[name]; ok {
			out[i] = e
			continue
		}
		at[name] = len(out)
		out = append(out, e)
	}
	return out
}

// assignments returns the assignments of a text as a map.
func assignments(text string) map[string]string {
	out := map[string]string{}
	for _, e := range assignmentsOf(text) {
		name, value, _ := strings.Cut(e, "=")
		out[name] = value
	}
	return out
}

// assignmentsOf reads an environment file (systemd.exec(5), "EnvironmentFile="), a line "NAME=value"
// each: values may be quoted in parts, and go on behind a backslash. Lines that are none are left
// out.
func assignmentsOf(text string) (out []string) {
	for text = strings.TrimPrefix(text, "\ufeff"); text != ""; {
		text = strings.TrimLeft(text, " \t\r\n")
		if text == "" {
			break
		}
		if text[0] == '#' || text[0] == ';' {
			text = afterComment(text)
			continue
		}
		line, rest, _ := strings.Cut(text, "\n")
		name, _, ok := strings.Cut(line, "=")
		if !ok {
			text = rest
			continue
		}
		var value string
		value, text = environmentValue(text[len(name)+1:])
		if name = strings.TrimSpace(name); isVariable(name) {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// afterComment returns the text behind a comment, which goes on behind a backslash, too.
func afterComment(text string) string {
	for {
		line, rest, more := strings.Cut(text, "\n")
		if !more || !strings.HasSuffix(line, `\`) {
			return rest
		}
		text = rest
	}
}

// environmentValue reads a value to the end of its line, and returns the text of the next.
func environmentValue(text string) (value, rest string) {
	var b strings.Builder
	kept := 0 // blanks at the end are dropped, but those of a quotation
	quote := byte(0)
	i := 0
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case quote == 0 && (c == '\n' || c == '\r'):
			return b.String()[:kept], text[i+1:]
		case c == '\\' && quote != '\'' && i+1 < len(text):
			i++
			if next := text[i]; next == '\n' {
				continue
			} else if quote == '"' && !strings.ContainsRune("\"\\`$", rune(next)) {
				b.WriteByte('\\')
			}
			b.WriteByte(text[i])
			kept = b.Len()
		case quote != 0 && c == quote:
			quote = 0
			kept = b.Len()
		case quote == 0 && (c == '"' || c == '\'') && kept == len(strings.TrimRight(b.String()[kept:], " \t"))+kept:
			quote = c
		case quote == 0 && (c == ' ' || c == '\t'):
			if b.Len() > 0 {
				b.WriteByte(c)
			}
		default:
			b.WriteByte(c)
			kept = b.Len()
		}
	}
	return b.String()[:kept], ""
}
