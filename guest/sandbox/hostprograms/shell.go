package hostprograms

import (
	"fmt"
	"strings"
)

// assign reads the assignments of a text that a shell would source: NAME=VALUE with quotes and
// variables. Commands are not run: a value that one makes is empty if it is GRUB_DISTRIBUTOR's, and
// otherwise an error, as is everything else.
func assign(text string, to map[string]string) error {
	r := &shellReader{text: strings.ReplaceAll(text, "\\\n", ""), to: to}
	for {
		r.skip()
		if r.i == len(r.text) {
			return nil
		}
		if err := r.statement(); err != nil {
			return fmt.Errorf("line %d: %w", 1+strings.Count(r.text[:min(r.i, len(r.text))], "\n"), err)
		}
	}
}

type shellReader struct {
	text string
	i    int
	to   map[string]string
	runs bool // the value has a command
}

// skip skips the text between statements.
func (r *shellReader) skip() {
	for r.i < len(r.text) {
		switch r.text[r.i] {
		case ' ', '\t', '\n', '\r', ';':
			r.i++
		case '#':
			n := strings.IndexByte(r.text[r.i:], '\n')
			if n < 0 {
				n = len(r.text) - r.i
			}
			r.i += n
		default:
			return
		}
	}
}

func nameChar(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (r *shellReader) name() string {
	start := r.i
	for r.i < len(r.text) && nameChar(r.text[r.i]) {
		r.i++
	}
	return r.text[start:r.i]
}

func (r *shellReader) statement() error {
	name := r.name()
	if name == "export" {
		return nil // what follows is an assignment or a name
	}
	if name == "" || r.i == len(r.text) || r.text[r.i] != '=' {
		if _, ok := r.to[name]; ok && name != "" { // exported
			return nil
		}
		return fmt.Errorf("only assignments are read here: NAME=\"TEXT $VARIABLE\"")
	}
	r.i++
	r.runs = false
	value, err := r.word()
	if err != nil {
		return err
	}
	if r.runs && name != "GRUB_DISTRIBUTOR" {
		return fmt.Errorf("%s: commands are not run here", name)
	}
	if r.runs {
		value = ""
	}
	r.to[name] = value
	return nil
}

// word reads a word, which ends at a space.
func (r *shellReader) word() (string, error) {
	var b strings.Builder
	for r.i < len(r.text) {
		switch c := r.text[r.i]; c {
		case ' ', '\t', '\n', '\r', ';':
			return b.String(), nil
		case '&', '|', '<', '>', '(', ')':
			return "", fmt.Errorf("%q is not read here", c)
		case '\'':
			n := strings.IndexByte(r.text[r.i+1:], '\'')
			if n < 0 {
				return "", fmt.Errorf("a quote has no end")
			}
			b.WriteString(r.text[r.i+1 : r.i+1+n])
			r.i += n + 2
		case '"':
			r.i++
			if err := r.quoted(&b); err != nil {
				return "", err
			}
		case '\\':
			if r.i++; r.i < len(r.text) {
				b.WriteByte(r.text[r.i])
				r.i++
			}
		case '$', '`':
			if err := r.expand(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
			r.i++
		}
	}
	return b.String(), nil
}

// quoted reads a text in double quotes.
func (r *shellReader) quoted(b *strings.Builder) error {
	for r.i < len(r.text) {
		switch c := r.text[r.i]; {
		case c == '"':
			r.i++
			return nil
		case c == '\\' && r.i+1 < len(r.text) && strings.IndexByte("$`\"\\", r.text[r.i+1]) >= 0:
			b.WriteByte(r.text[r.i+1])
			r.i += 2
		case c == '$', c == '`':
			if err := r.expand(b); err != nil {
				return err
			}
		default:
			b.WriteByte(c)
			r.i++
		}
	}
	return fmt.Errorf("a quote has no end")
}

// expand reads a variable or a command.
func (r *shellReader) expand(b *strings.Builder) error {
	if r.text[r.i] == '`' {
		n := strings.IndexByte(r.text[r.i+1:], '`')
		if n < 0 {
			return fmt.Errorf("a command has no end")
		}
		r.i, r.runs = r.i+n+2, true
		return nil
	}
	r.i++ // the dollar
	if r.i == len(r.text) {
		b.WriteByte('$')
		return nil
	}
	switch c := r.text[r.i]; {
	case c == '(':
		depth := 0
		for ; r.i < len(r.text); r.i++ {
			switch r.text[r.i] {
			case '(':
				depth++
			case ')':
				depth--
			}
			if depth == 0 {
				r.i, r.runs = r.i+1, true
				return nil
			}
		}
		return fmt.Errorf("a command has no end")
	case c == '{':
		r.i++
		name := r.name()
		rest, _, ok := strings.Cut(r.text[r.i:], "}")
		fallback, isDefault := strings.CutPrefix(rest, ":-")
		if !ok || name == "" || rest != "" && (!isDefault || strings.ContainsAny(fallback, "$`\"'\\{")) {
			return fmt.Errorf("of ${…} only ${NAME} and ${NAME:-TEXT} are read here")
		}
		r.i += len(rest) + 1
		if v := r.to[name]; v != "" {
			fallback = v
		}
		b.WriteString(fallback)
	case nameChar(c):
		b.WriteString(r.to[r.name()])
	default:
		b.WriteByte('$')
	}
	if b.Len() > maxInput {
		return fmt.Errorf("the values have more than %d KiB", maxInput>>10)
	}
	return nil
}
