package sandbox

import (
	"fmt"
	"strings"
)

// command is a command line of a unit (systemd.service(5), "Command lines").
type command struct {
	key        string   // "Service.ExecStart"
	args       []string // the program first
	name       string   // name that the program sees; "": the program
	ignore     bool     // its failure is none
	privileged bool     // it runs as root
	literal    bool     // variables are not replaced
	err        error    // why the line is none
}

// parseCommands reads the commands of a line. It is an error when no program follows the prefixes.
func parseCommands(line string) (out []command, err error) {
	words, err := splitQuoted(line)
	if err != nil {
		return nil, fmt.Errorf("the command %q: %w", line, err)
	}
	var c *command
	for _, w := range words {
		switch {
		case w.raw == ";":
			if c == nil && len(out) == 0 {
				return nil, fmt.Errorf("the command %q names no program", line)
			}
			c = nil
			continue
		case c != nil && w.raw == `\;`:
			c.args = append(c.args, ";")
			continue
		case c != nil && c.name == "@":
			c.name = w.text
			continue
		case c != nil:
			c.args = append(c.args, w.text)
			continue
		}
		program := strings.TrimLeft(w.text, "-@+!:")
		used := w.text[:len(w.text)-len(program)]
		if program == "" {
			return nil, fmt.Errorf("the command %q names no program", line)
		}
		out = append(out, command{
			args: []string{program}, ignore: strings.Contains(used, "-"), literal: strings.Contains(used, ":"),
			privileged: strings.Contains(used, "+") || strings.Contains(used, "!") && !strings.Contains(used, "!!"),
		})
		c = &out[len(out)-1]
		if strings.Contains(used, "@") {
			c.name = "@" // until the next word
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the command %q names no program", line)
	}
	for i := range out {
		if out[i].name == "@" {
			return nil, fmt.Errorf("the command %q names no program behind @: give its path and its name", line)
		}
	}
	return out, nil
}

// maxArguments is how many bytes the arguments of a command may have after its variables.
const maxArguments = 1 << 20

// argv returns the arguments of a command with the variables of its environment: "$NAME" that is a
// word becomes the words of the value, "${NAME}" the value, "$$" a dollar.
func (c command) argv(env []string) ([]string, error) {
	if c.literal {
		return c.args, nil
	}
	values := map[string]string{}
	for _, e := range env {
		if name, value, ok := strings.Cut(e, "="); ok {
			values[name] = value
		}
	}
	out, size := []string{c.args[0]}, 0
	for _, a := range c.args[1:] {
		if name, ok := strings.CutPrefix(a, "$"); ok && isVariable(name) {
			words, err := splitWords(values[name])
			if err != nil {
				return nil, fmt.Errorf("the variable %s of %s: %w", name, c.args[0], err)
			}
			out = append(out, words...)
			size += len(values[name])
		} else {
			a = replaceVariables(a, values)
			out = append(out, a)
			size += len(a)
		}
		if size > maxArguments {
			return nil, fmt.Errorf("the arguments of %s have more than %d KiB", c.args[0], maxArguments>>10)
		}
	}
	return out, nil
}

func isVariable(name string) bool {
	bad := func(r rune) bool {
		return !(r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	}
	return name != "" && !strings.ContainsFunc(name, bad) && (name[0] < '0' || name[0] > '9')
}

func replaceVariables(text string, values map[string]string) string {
	var b strings.Builder
	for i := 0; i < len(text) && b.Len() <= maxArguments; i++ {
		if text[i] == '$' && i+1 < len(text) {
			if text[i+1] == '$' {
				b.WriteByte('$')
				i++
				continue
			}
			if name, _, ok := strings.Cut(text[i+1:], "}"); ok && name[0] == '{' && isVariable(name[1:]) {
				b.WriteString(values[name[1:]])
				i += len(name) + 1
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
