package odata

import (
	"encoding/json"
	"strings"
	"time"
)

// Limits of a filter: nesting costs stack, length costs time for each member.
const (
	maxFilter      = 4 << 10 // bytes
	maxFilterDepth = 32
	maxComparisons = 128
)

// filterParser parses a filter by recursive descent. It records the first error.
//
//	or         = and *( "or" and )
//	and        = unary *( "and" unary )
//	unary      = "not" unary / "(" or ")" / comparison
//	comparison = path op literal / literal op path
//
// In DSP0266, as in OData, "not" binds closer than a comparison. OData also accepts a
// bare property as a condition, which this grammar does not: here "not" can only
// negate the comparison after it. For booleans both readings are equal.
type filterParser struct {
	rest        string
	depth       int
	comparisons int
	wrong       string
	why         Why
}

func parseFilter(text string) (*Filter, *Error) {
	f := &Filter{text: text}
	if len(text) > maxFilter {
		f.text = text[:64] + "…"
		return nil, f.refused(Form, "is too long")
	}
	p := &filterParser{rest: text}
	f.root = p.or()
	if t := p.next(); t.kind != atEnd {
		p.fail(Form, "has something after its end: "+t.text)
	}
	if p.wrong != "" {
		return nil, f.refused(p.why, p.wrong)
	}
	return f, nil
}

func (p *filterParser) fail(w Why, wrong string) {
	if p.wrong == "" {
		p.why, p.wrong = w, wrong
	}
	p.rest = "" // stops the parser
}

func (p *filterParser) or() condition {
	c := p.and()
	for p.keyword("or") {
		c = either{c, p.and()}
	}
	return c
}

func (p *filterParser) and() condition {
	c := p.unary()
	for p.keyword("and") {
		c = both{c, p.unary()}
	}
	return c
}

func (p *filterParser) unary() condition {
	if p.depth++; p.depth > maxFilterDepth {
		p.fail(Form, "nests too deep")
	}
	defer func() { p.depth-- }()
	before := p.rest
	switch t := p.next(); {
	case t.kind == aWord && t.text == "not":
		return negated{p.unary()}
	case t.kind == anOpening:
		c := p.or()
		if t := p.next(); t.kind != aClosing {
			p.fail(Form, "lacks a closing parenthesis")
		}
		return c
	}
	p.rest = before
	return p.comparison()
}

func (p *filterParser) comparison() condition {
	if p.comparisons++; p.comparisons > maxComparisons {
		p.fail(Form, "has too many comparisons")
	}
	left, word, right := p.next(), p.next(), p.next()
	op := operator(word.text)
	switch {
	case p.wrong != "":
		return comparison{op: equals}
	case word.kind != aWord || operators[op] == [3]bool{}:
		p.fail(Form, "wants eq, ne, gt, ge, lt or le after "+left.text)
	case left.isPath() && right.isLiteral():
	case left.isLiteral() && right.isPath():
		left, right, op = right, left, mirrored[op]
	default:
		p.fail(Form, "compares a property with a value: 'text', a number, true, false, null or an instant")
	}
	c := comparison{path: strings.Split(left.text, "/"), op: op, literal: right.literal}
	if _, isBool := c.literal.(bool); op.orders() && (isBool || c.literal == nil) {
		p.fail(Type, right.text+" is neither more nor less than another")
	}
	return c
}

// keyword consumes a word if it is the next token, and reports that.
func (p *filterParser) keyword(word string) bool {
	before := p.rest
	if t := p.next(); t.kind == aWord && t.text == word {
		return true
	}
	p.rest = before
	return false
}

// The kinds of tokens.
const (
	atEnd     = "end"
	anOpening = "("
	aClosing  = ")"
	aWord     = "word"
	aValue    = "value"
)

// token is one token of a filter.
type token struct {
	kind    string
	text    string
	literal any // the value of an aValue token
}

// reserved holds the words that cannot be properties.
var reserved = map[string]bool{"and": true, "or": true, "not": true, "eq": true, "ne": true, "gt": true, "ge": true, "lt": true, "le": true}

func (t token) isPath() bool    { return t.kind == aWord && !reserved[t.text] }
func (t token) isLiteral() bool { return t.kind == aValue }

// next consumes the next token.
func (p *filterParser) next() token {
	p.rest = strings.TrimLeft(p.rest, " \t")
	if p.rest == "" {
		return token{kind: atEnd}
	}
	switch c := p.rest[0]; c {
	case '(', ')':
		p.rest = p.rest[1:]
		return token{kind: string(c), text: string(c)}
	case '\'':
		return p.quoted()
	}
	n := strings.IndexAny(p.rest, " \t()'")
	if n < 0 {
		n = len(p.rest)
	}
	t := token{kind: aWord, text: p.rest[:n]}
	p.rest = p.rest[n:]
	switch c := t.text[0]; {
	case t.text == "true" || t.text == "false":
		t.kind, t.literal = aValue, t.text == "true"
	case t.text == "null":
		t.kind = aValue
	case c == '-' || c >= '0' && c <= '9':
		t.kind = aValue
		if at, err := time.Parse(time.RFC3339, t.text); err == nil {
			t.literal = at
		} else if json.Valid([]byte(t.text)) {
			t.literal = json.Number(t.text)
		} else {
			p.fail(Form, t.text+" is neither a number nor an instant")
		}
	case strings.HasPrefix(t.text, "/") || strings.HasSuffix(t.text, "/") || strings.Contains(t.text, "//") || strings.ContainsAny(t.text, ",=<>&|\"*$"):
		p.fail(Form, t.text+" is no property")
	}
	return t
}

// quoted consumes a string literal, in which a quote is written twice.
func (p *filterParser) quoted() token {
	var b strings.Builder
	rest := p.rest[1:]
	for {
		part, after, closed := strings.Cut(rest, "'")
		b.WriteString(part)
		if !closed {
			p.fail(Form, "lacks a closing quote")
			return token{kind: atEnd}
		}
		if !strings.HasPrefix(after, "'") {
			p.rest = after
			return token{kind: aValue, text: "'" + b.String() + "'", literal: b.String()}
		}
		b.WriteByte('\'')
		rest = after[1:]
	}
}
