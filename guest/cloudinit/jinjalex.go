package cloudinit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Templates are those of Jinja2 (jinja.palletsprojects.com, "Template Designer Documentation") as
// cloud-init sets it up: trim_blocks, and no lstrip_blocks.

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokenEnd     tokenKind = iota
	tokenData              // text outside of tags
	tokenBegin             // {% or {{
	tokenClose             // %} or }}
	tokenName              // also the keywords
	tokenText              // a string, unquoted
	tokenInteger           //
	tokenFloat             //
	tokenOp
)

type token struct {
	kind tokenKind
	text string
	line int
}

// templateError is a template that cannot be read or rendered.
type templateError struct {
	line int
	text string
}

func (e templateError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.text) }

var (
	tagStart  = regexp.MustCompile(`\{[{%#]`)
	rawEnd    = regexp.MustCompile(`\{%[-+]?\s*endraw\s*([-+]?)%\}`)
	rawStart  = regexp.MustCompile(`^\{%[-+]?\s*raw\s*([-+]?)%\}`)
	aName     = regexp.MustCompile(`^[\pL_][\pL\pN_]*`)
	aNumber   = regexp.MustCompile(`^(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:[eE][-+]?[0-9]+)?)`)
	operators = []string{"**", "//", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "(", ")", "[", "]", "{", "}", ",", ".", ":", "|", "=", "<", ">"}
)

// lexer splits a template into tokens.
type lexer struct {
	rest string
	line int
	out  []token
}

func (l *lexer) add(kind tokenKind, text string) {
	l.out = append(l.out, token{kind: kind, text: text, line: l.line})
}

// skip goes over the first n bytes.
func (l *lexer) skip(n int) {
	l.line += strings.Count(l.rest[:n], "\n")
	l.rest = l.rest[n:]
}

// lex returns the tokens of a template. line is that of its beginning, for messages.
func lex(text string, line int) ([]token, error) {
	l := lexer{rest: text, line: line}
	trim := false // the tag before ends in -
	for {
		at := tagStart.FindStringIndex(l.rest)
		data, end := l.rest, len(l.rest)
		if at != nil {
			data, end = l.rest[:at[0]], at[0]
		}
		if trim {
			data = strings.TrimLeft(data, " \t\r\n\v\f")
		}
		if at != nil && strings.HasPrefix(l.rest[at[1]:], "-") {
			data = strings.TrimRight(data, " \t\r\n\v\f")
		}
		if data != "" {
			l.add(tokenData, data)
		}
		l.skip(end)
		if at == nil {
			l.add(tokenEnd, "")
			return l.out, nil
		}
		var err error
		if trim, err = l.tag(); err != nil {
			return nil, err
		}
	}
}

// tag reads a tag. trim reports that the text behind it loses its space.
func (l *lexer) tag() (trim bool, err error) {
	if m := rawStart.FindStringSubmatch(l.rest); m != nil {
		return l.raw(m)
	}
	if strings.HasPrefix(l.rest, "{#") {
		n := strings.Index(l.rest, "#}")
		if n < 0 {
			return false, templateError{l.line, "the comment has no end: write #}"}
		}
		trim = n > 2 && l.rest[n-1] == '-'
		l.skip(n + 2)
		l.newline(trim)
		return trim, nil
	}
	begin, end := l.rest[:2], map[string]string{"{{": "}}", "{%": "%}"}[l.rest[:2]]
	first := l.line
	l.add(tokenBegin, begin)
	l.skip(2)
	if strings.HasPrefix(l.rest, "-") || strings.HasPrefix(l.rest, "+") {
		l.skip(1)
	}
	for nested := 0; ; {
		l.skip(len(l.rest) - len(strings.TrimLeft(l.rest, " \t\r\n\v\f")))
		switch {
		case l.rest == "":
			return false, templateError{first, "the tag has no end: write " + end}
		case nested == 0 && strings.HasPrefix(l.rest, end):
			l.add(tokenClose, end)
			l.skip(2)
			if end == "%}" {
				l.newline(false)
			}
			return false, nil
		case strings.HasPrefix(l.rest, "-"+end), strings.HasPrefix(l.rest, "+%}") && end == "%}":
			trim = l.rest[0] == '-'
			l.add(tokenClose, end)
			l.skip(3)
			return trim, nil
		}
		if err := l.token(&nested); err != nil {
			return false, err
		}
	}
}

// newline drops the line end behind a block (trim_blocks).
func (l *lexer) newline(trimmed bool) {
	if !trimmed && strings.HasPrefix(l.rest, "\n") {
		l.skip(1)
	}
}

// raw reads the text between raw and endraw.
func (l *lexer) raw(m []string) (trim bool, err error) {
	first := l.line
	l.skip(len(m[0]))
	end := rawEnd.FindStringSubmatchIndex(l.rest)
	if end == nil {
		return false, templateError{first, "raw has no endraw"}
	}
	data := l.rest[:end[0]]
	if m[1] == "-" {
		data = strings.TrimLeft(data, " \t\r\n\v\f")
	}
	if l.rest[end[0]+2] == '-' {
		data = strings.TrimRight(data, " \t\r\n\v\f")
	}
	l.add(tokenData, data)
	how := l.rest[end[2]:end[3]]
	l.skip(end[1])
	if how == "" {
		l.newline(false)
	}
	return how == "-", nil
}

// token reads a token within a tag. nested counts the braces that are open.
func (l *lexer) token(nested *int) error {
	if name := aName.FindString(l.rest); name != "" {
		l.add(tokenName, name)
		l.skip(len(name))
		return nil
	}
	if number := aNumber.FindString(l.rest); number != "" {
		kind := tokenInteger
		if !strings.HasPrefix(strings.ToLower(number), "0x") && strings.ContainsAny(number, ".eE") {
			kind = tokenFloat
		}
		l.add(kind, strings.ReplaceAll(number, "_", ""))
		l.skip(len(number))
		return nil
	}
	if q := l.rest[0]; q == '\'' || q == '"' {
		return l.quoted(q)
	}
	for _, op := range operators {
		if strings.HasPrefix(l.rest, op) {
			switch op {
			case "{", "(", "[":
				*nested++
			case "}", ")", "]":
				*nested--
			}
			l.add(tokenOp, op)
			l.skip(len(op))
			return nil
		}
	}
	return templateError{l.line, fmt.Sprintf("%q is no part of an expression", []rune(l.rest)[:1])}
}

// quoted reads a string, whose escapes are Python's.
func (l *lexer) quoted(q byte) error {
	var b strings.Builder
	for n := 1; n < len(l.rest); n++ {
		switch c := l.rest[n]; {
		case c == q:
			l.add(tokenText, b.String())
			l.skip(n + 1)
			return nil
		case c != '\\' || n+1 == len(l.rest):
			b.WriteByte(c)
		default:
			n++
			digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[l.rest[n]]
			if plain, ok := escapes[l.rest[n]]; ok {
				b.WriteString(plain)
			} else if r, err := strconv.ParseUint(l.rest[n+1:min(n+1+digits, len(l.rest))], 16, 32); digits > 0 && err == nil {
				b.WriteRune(rune(r))
				n += digits
			} else {
				b.WriteString(l.rest[n-1 : n+1])
			}
		}
	}
	return templateError{l.line, "the text has no closing quote"}
}

var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': "\"", '\n': "", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '0': "\x00"}
