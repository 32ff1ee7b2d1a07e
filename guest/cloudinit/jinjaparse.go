package cloudinit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// expr is an expression of a template.
type expr struct {
	line  int
	op    string // literal, name, list, dot, index, slice, call, filter, test, not, neg, pos, if, and, or, or an operator
	value any    // of a literal
	name  string // of a name, dot, filter or test
	args  []*expr
	named map[string]*expr
}

// stmt is a part of a template's body.
type stmt struct {
	line    int
	kind    string // data, print, if, for, set
	text    string
	value   *expr
	names   []string // of for and set
	only    *expr    // the condition of for
	body    []stmt
	orElse  []stmt
	capture bool // set takes its body
}

// maxTags bounds tags and expressions within each other.
const maxTags = 64

// parser builds the tree of a template.
type parser struct {
	in    []token
	depth int
}

// parseTemplate reads a template.
func parseTemplate(text string, line int) (body []stmt, err error) {
	tokens, err := lex(text, line)
	if err != nil {
		return nil, err
	}
	p := parser{in: tokens}
	defer func() {
		if e := recover(); e != nil {
			failed, ok := e.(templateError) // of fail
			if !ok {
				panic(e)
			}
			body, err = nil, failed
		}
	}()
	body, _ = p.body()
	return body, nil
}

func (p *parser) fail(t token, format string, args ...any) {
	panic(templateError{t.line, fmt.Sprintf(format, args...)})
}

func (p *parser) enter() func() {
	if p.depth++; p.depth > maxTags {
		p.fail(p.in[0], "more than %d tags and expressions are within each other", maxTags)
	}
	return func() { p.depth-- }
}

func (p *parser) next() token {
	t := p.in[0]
	if t.kind != tokenEnd {
		p.in = p.in[1:]
	}
	return t
}

// is reports whether the next token is one of these.
func (p *parser) is(kind tokenKind, texts ...string) bool {
	return p.in[0].kind == kind && (len(texts) == 0 || slices.Contains(texts, p.in[0].text))
}

// take goes over the next token if it is one of these.
func (p *parser) take(kind tokenKind, texts ...string) bool {
	is := p.is(kind, texts...)
	if is {
		p.next()
	}
	return is
}

func (p *parser) want(kind tokenKind, text string) token {
	if !p.is(kind, text) {
		p.fail(p.in[0], "%q: %s is expected", p.in[0].text, text)
	}
	return p.next()
}

func (p *parser) aName() string {
	if !p.is(tokenName) {
		p.fail(p.in[0], "%q: a name is expected", p.in[0].text)
	}
	return p.next().text
}

// body reads statements up to a tag that is one of until, which it goes over but for its end; "" is the
// template's end.
func (p *parser) body(until ...string) (out []stmt, end string) {
	defer p.enter()()
	for {
		t := p.next()
		switch t.kind {
		case tokenData:
			out = append(out, stmt{line: t.line, kind: "data", text: t.text})
			continue
		case tokenEnd:
			if len(until) > 0 {
				p.fail(t, "%s is missing", until[len(until)-1])
			}
			return out, ""
		}
		if t.text == "{{" {
			e := p.tuple()
			p.want(tokenClose, "}}")
			out = append(out, stmt{line: t.line, kind: "print", value: e})
			continue
		}
		tag := p.next()
		if tag.kind == tokenName && slices.Contains(until, tag.text) {
			return out, tag.text
		}
		out = append(out, p.statement(tag))
	}
}

func (p *parser) statement(tag token) stmt {
	s := stmt{line: tag.line, kind: tag.text}
	end := func() { p.want(tokenClose, "%}") }
	switch {
	case tag.kind != tokenName:
		p.fail(tag, "%q: a tag begins with a name", tag.text)
	case tag.text == "if" || tag.text == "elif":
		s.kind = "if"
		s.value = p.tuple()
		end()
		var by string
		switch s.body, by = p.body("elif", "else", "endif"); by {
		case "elif":
			leave := p.enter()
			s.orElse = []stmt{p.statement(token{kind: tokenName, text: "elif", line: p.in[0].line})}
			leave()
			return s
		case "else":
			end()
			s.orElse, _ = p.body("endif")
		}
		end()
	case tag.text == "for":
		s.names = p.targets()
		p.want(tokenName, "in")
		s.value = p.list(p.or)
		if p.take(tokenName, "if") {
			s.only = p.expr()
		}
		if p.is(tokenName, "recursive") {
			p.fail(tag, "recursive loops are not supported")
		}
		end()
		var by string
		if s.body, by = p.body("else", "endfor"); by == "else" {
			end()
			s.orElse, _ = p.body("endfor")
		}
		end()
	case tag.text == "set":
		s.names = p.targets()
		if p.take(tokenOp, "=") {
			s.value = p.tuple()
			end()
			return s
		}
		if len(s.names) > 1 || !p.is(tokenClose) {
			p.fail(tag, "set: = or the end of the tag is expected")
		}
		end()
		s.capture = true
		s.body, _ = p.body("endset")
		end()
	default:
		p.fail(tag, "the tag %s is not supported: only if, for, set and raw are", tag.text)
	}
	return s
}

// targets reads the names that for and set give values to.
func (p *parser) targets() []string {
	open := p.take(tokenOp, "(")
	out := []string{p.aName()}
	for p.take(tokenOp, ",") && p.is(tokenName) {
		out = append(out, p.aName())
	}
	if open {
		p.want(tokenOp, ")")
	}
	if p.is(tokenOp, ".") {
		p.fail(p.in[0], "attributes cannot be set: namespaces are not supported")
	}
	return out
}

// tuple reads an expression, or several with commas, which make a list.
func (p *parser) tuple() *expr { return p.list(p.expr) }

func (p *parser) list(item func() *expr) *expr {
	e := item()
	if !p.is(tokenOp, ",") {
		return e
	}
	e = &expr{line: e.line, op: "list", args: []*expr{e}}
	for p.take(tokenOp, ",") && !p.is(tokenClose) && !p.is(tokenOp, ")") {
		e.args = append(e.args, item())
	}
	return e
}

func (p *parser) expr() *expr {
	defer p.enter()()
	e := p.or()
	for p.is(tokenName, "if") {
		t := p.next()
		cond := p.or()
		otherwise := &expr{line: t.line, op: "undefined"}
		if p.take(tokenName, "else") {
			otherwise = p.expr()
		}
		e = &expr{line: t.line, op: "if", args: []*expr{cond, e, otherwise}}
	}
	return e
}

// binary reads operators that group to the left.
func (p *parser) binary(kind tokenKind, item func() *expr, ops ...string) *expr {
	e := item()
	for p.is(kind, ops...) {
		t := p.next()
		e = &expr{line: t.line, op: t.text, args: []*expr{e, item()}}
	}
	return e
}

func (p *parser) or() *expr  { return p.binary(tokenName, p.and, "or") }
func (p *parser) and() *expr { return p.binary(tokenName, p.not, "and") }

func (p *parser) not() *expr {
	if t := p.in[0]; p.take(tokenName, "not") {
		defer p.enter()()
		return &expr{line: t.line, op: "not", args: []*expr{p.not()}}
	}
	return p.compare()
}

// compare reads comparisons: a < b < c is a < b and b < c.
func (p *parser) compare() *expr {
	left := p.sum()
	var all *expr
	for {
		t := p.in[0]
		op := t.text
		switch {
		case p.take(tokenOp, "==", "!=", "<", "<=", ">", ">=") || p.take(tokenName, "in"):
		case p.is(tokenName, "not") && p.in[1].text == "in" && p.in[1].kind == tokenName:
			p.next()
			p.next()
			op = "not in"
		default:
			if all == nil {
				return left
			}
			return all
		}
		right := p.sum()
		e := &expr{line: t.line, op: op, args: []*expr{left, right}}
		if left = right; all == nil {
			all = e
		} else {
			all = &expr{line: t.line, op: "and", args: []*expr{all, e}}
		}
	}
}

func (p *parser) sum() *expr     { return p.binary(tokenOp, p.concat, "+", "-") }
func (p *parser) concat() *expr  { return p.binary(tokenOp, p.product, "~") }
func (p *parser) product() *expr { return p.binary(tokenOp, p.power, "*", "/", "//", "%") }
func (p *parser) power() *expr   { return p.binary(tokenOp, p.unary, "**") }

// unary reads a sign and filters, which bind closest.
func (p *parser) unary() *expr { return p.filters(p.signed()) }

func (p *parser) signed() *expr {
	if t := p.in[0]; p.take(tokenOp, "-", "+") {
		defer p.enter()()
		return p.postfix(&expr{line: t.line, op: map[string]string{"-": "neg", "+": "pos"}[t.text], args: []*expr{p.signed()}})
	}
	return p.postfix(p.primary())
}

func (p *parser) primary() *expr {
	t := p.next()
	e := &expr{line: t.line, op: "literal"}
	switch t.kind {
	case tokenText:
		text := t.text
		for p.is(tokenText) {
			text += p.next().text
		}
		e.value = text
	case tokenInteger:
		i, err := strconv.ParseInt(t.text, 0, 64)
		if d := strings.TrimLeft(t.text, "0"); err != nil || d != t.text && strings.Trim(d, "0123456789") == "" {
			if i, err = strconv.ParseInt(t.text, 10, 64); err != nil {
				p.fail(t, "%s is too large", t.text)
			}
		}
		e.value = i
	case tokenFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			p.fail(t, "%s is no number", t.text)
		}
		e.value = f
	case tokenName:
		switch t.text {
		case "true", "True":
			e.value = true
		case "false", "False":
			e.value = false
		case "none", "None":
		default:
			e.op, e.name = "name", t.text
		}
	case tokenOp:
		switch t.text {
		case "(":
			if p.take(tokenOp, ")") {
				return &expr{line: t.line, op: "list"}
			}
			e = p.tuple()
			p.want(tokenOp, ")")
			return e
		case "[":
			e.op = "list"
			for !p.take(tokenOp, "]") {
				e.args = append(e.args, p.expr())
				if !p.is(tokenOp, "]") {
					p.want(tokenOp, ",")
				}
			}
			return e
		case "{":
			p.fail(t, "mappings within an expression are not supported")
		}
		p.fail(t, "%q: an expression is expected", t.text)
	default:
		p.fail(t, "%q: an expression is expected", t.text)
	}
	return e
}

// postfix reads attributes, indexes, slices and calls.
func (p *parser) postfix(e *expr) *expr {
	for n := 0; ; n++ {
		t := p.in[0]
		if n > maxTags {
			p.fail(t, "more than %d attributes and indexes follow each other", maxTags)
		}
		switch {
		case p.take(tokenOp, "."):
			if p.is(tokenInteger) {
				i, _ := strconv.ParseInt(p.next().text, 10, 64)
				e = &expr{line: t.line, op: "index", args: []*expr{e, {line: t.line, op: "literal", value: i}}}
				continue
			}
			e = &expr{line: t.line, op: "dot", name: p.aName(), args: []*expr{e}}
		case p.take(tokenOp, "["):
			e = p.index(t, e)
		case p.take(tokenOp, "("):
			e = &expr{line: t.line, op: "call", args: []*expr{e}}
			p.arguments(e)
		default:
			return e
		}
	}
}

func (p *parser) index(t token, e *expr) *expr {
	none := func() *expr { return &expr{line: t.line, op: "literal"} }
	bound := func() *expr {
		if p.is(tokenOp, ":", "]") {
			return none()
		}
		return p.expr()
	}
	from := bound()
	if !p.take(tokenOp, ":") {
		p.want(tokenOp, "]")
		return &expr{line: t.line, op: "index", args: []*expr{e, from}}
	}
	to := bound()
	if p.is(tokenOp, ":") {
		p.fail(t, "slices with a step are not supported")
	}
	p.want(tokenOp, "]")
	return &expr{line: t.line, op: "slice", args: []*expr{e, from, to}}
}

// arguments reads the arguments of a call behind its bracket.
func (p *parser) arguments(e *expr) {
	for !p.take(tokenOp, ")") {
		if p.is(tokenName) && p.in[1].kind == tokenOp && p.in[1].text == "=" {
			name := p.next().text
			p.next()
			if e.named == nil {
				e.named = map[string]*expr{}
			}
			e.named[name] = p.expr()
		} else {
			e.args = append(e.args, p.expr())
		}
		if !p.is(tokenOp, ")") {
			p.want(tokenOp, ",")
		}
	}
}

// filters reads filters and tests behind a value.
func (p *parser) filters(e *expr) *expr {
	for n := 0; ; n++ {
		t := p.in[0]
		if n > maxTags {
			p.fail(t, "more than %d filters follow each other", maxTags)
		}
		switch {
		case p.take(tokenOp, "|"):
			e = &expr{line: t.line, op: "filter", name: p.aName(), args: []*expr{e}}
			if p.take(tokenOp, "(") {
				p.arguments(e)
			}
		case p.take(tokenName, "is"):
			not := p.take(tokenName, "not")
			e = &expr{line: t.line, op: "test", name: p.aName(), args: []*expr{e}}
			if p.take(tokenOp, "(") {
				p.arguments(e)
			} else if p.is(tokenText) || p.is(tokenInteger) || p.is(tokenFloat) || p.is(tokenOp, "[") || p.is(tokenName) && !p.is(tokenName, "else", "or", "and", "is", "if", "in", "not") {
				e.args = append(e.args, p.postfix(p.primary()))
			}
			if not {
				e = &expr{line: t.line, op: "not", args: []*expr{e}}
			}
		default:
			return e
		}
	}
}
