package features

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// tagExpression tells whether a scenario with these tags is selected.
type tagExpression func(tags []string) bool

// tagToken is a token of a tag expression: an operator, a parenthesis, or a word.
var tagToken = regexp.MustCompile(`&&|\|\||[(),~!]|[^\s(),~!&|]+|[&|]`)

// operatorWords are Cucumber's words for operators that other tools write.
var operatorWords = map[string]string{"&&": "and", "||": "or", "~": "not", "!": "not"}

// parseTags reads a tag expression: Cucumber's ("@a and not (@b or @c)") with &&, ||,
// ~ and ! as further operators, and godog's comma, an "or" that binds tighter than
// "and". The error names the position and the mistake.
func parseTags(text string) (tagExpression, error) {
	p := tagParser{tokens: tagToken.FindAllString(text, -1)}
	e, err := p.anyOf()
	if err == nil && len(p.tokens) > 0 {
		err = fmt.Errorf("%q is one too many", p.tokens[0])
	}
	if err != nil {
		return nil, usage("tags %q: %w: write an expression such as '@B-91 and not (@slow or @fault)'", text, err)
	}
	return e, nil
}

type tagParser struct{ tokens []string }

// next returns the next token, "" at the end.
func (p *tagParser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	if word, ok := operatorWords[p.tokens[0]]; ok {
		return word
	}
	return p.tokens[0]
}

// take drops the next token if it is this one.
func (p *tagParser) take(token string) bool {
	if p.next() != token {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

func (p *tagParser) anyOf() (tagExpression, error) { return p.list("or", p.allOf, anyMatches) }
func (p *tagParser) allOf() (tagExpression, error) { return p.list("and", p.commas, allMatch) }
func (p *tagParser) commas() (tagExpression, error) {
	return p.list(",", p.operand, anyMatches)
}

// list reads operands with an operator between them.
func (p *tagParser) list(operator string, operand func() (tagExpression, error), join func([]tagExpression, []string) bool) (tagExpression, error) {
	var all []tagExpression
	for {
		e, err := operand()
		if err != nil {
			return nil, err
		}
		all = append(all, e)
		if !p.take(operator) {
			return func(tags []string) bool { return join(all, tags) }, nil
		}
	}
}

func anyMatches(all []tagExpression, tags []string) bool {
	return slices.ContainsFunc(all, func(e tagExpression) bool { return e(tags) })
}

func allMatch(all []tagExpression, tags []string) bool {
	return !slices.ContainsFunc(all, func(e tagExpression) bool { return !e(tags) })
}

func (p *tagParser) operand() (tagExpression, error) {
	switch token := p.next(); {
	case token == "":
		return nil, fmt.Errorf("a tag is missing at the end")
	case p.take("not"):
		e, err := p.operand()
		return func(tags []string) bool { return !e(tags) }, err
	case p.take("("):
		e, err := p.anyOf()
		if err == nil && !p.take(")") {
			err = fmt.Errorf("a ) is missing")
		}
		return e, err
	case !strings.HasPrefix(token, "@"):
		return nil, fmt.Errorf("%q stands where a tag is expected, which begins with @", token)
	default:
		p.take(token)
		return func(tags []string) bool { return slices.Contains(tags, token) }, nil
	}
}

// tagNames returns the tags that a valid expression names.
func tagNames(text string) (out []string) {
	for _, token := range tagToken.FindAllString(text, -1) {
		if token[0] == '@' {
			out = append(out, token)
		}
	}
	return out
}
