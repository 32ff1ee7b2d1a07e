package module

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The bounds of a schema and of a validation. Both are texts of users, and the validator can neither be
// interrupted nor limited: thirty definitions that each refer twice to the next one take a core for an
// hour. A validation within these bounds ends in a fraction of a second.
const (
	maxSteps     = 200_000 // schemas that are applied to values, and values that they compare
	maxLevels    = 500     // schemas and values within each other
	maxDigits    = 400     // characters of a number; a double has an exponent of 308 at most
	maxPattern   = 4 << 10 // bytes of a regular expression
	maxPrograms  = 100_000 // instructions of all regular expressions of a schema
	maxViolation = 50      // violations that an error lists
	maxCauses    = 200     // causes of an error that are looked at
)

// checkSchema returns an error when a part of a schema that is about to be compiled is too large.
func checkSchema(doc any) error {
	programs := 0
	return walk(doc, "", 0, func(at string, v any) error {
		switch v := v.(type) {
		case json.Number:
			return checkNumber(at, v.String())
		case map[string]any:
			if text, ok := v["pattern"].(string); ok {
				if err := checkPattern(at+"/pattern", text, &programs); err != nil {
					return err
				}
			}
			if all, ok := v["patternProperties"].(map[string]any); ok {
				for text := range all { // in any order: one mistake is enough
					if err := checkPattern(at+"/patternProperties", text, &programs); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

// walk calls f for a JSON value and those in it, each with its place.
func walk(v any, at string, level int, f func(at string, v any) error) error {
	if level > maxLevels {
		return fmt.Errorf("more than %d values are within each other", maxLevels)
	}
	if err := f(at, v); err != nil {
		return err
	}
	switch v := v.(type) {
	case map[string]any:
		for name, part := range v { // in any order: one mistake is enough
			if err := walk(part, at+"/"+name, level+1, f); err != nil {
				return err
			}
		}
	case []any:
		for i, part := range v {
			if err := walk(part, at+"/"+strconv.Itoa(i), level+1, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkNumber(at, text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if len(text) > maxDigits || err != nil || math.IsInf(n, 0) {
		return fmt.Errorf("%s: the number %.20s… has too many digits, or too large an exponent", at, text)
	}
	return nil
}

func checkPattern(at, text string, programs *int) error {
	if len(text) > maxPattern {
		return fmt.Errorf("%s: the regular expression has more than %d bytes", at, maxPattern)
	}
	*programs += instructions(text)
	if *programs > maxPrograms {
		return fmt.Errorf("%s: the regular expressions of the schema have more than %d instructions: repeat less", at, maxPrograms)
	}
	return nil
}

// instructions counts the instructions of a regular expression, 0 for one that does not compile: the
// compiler of the schema says so.
func instructions(text string) int {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0
	}
	p, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0
	}
	return len(p.Inst)
}

// meter counts the steps that a validation takes at most: each schema is counted once for each value,
// and added as often as it is applied.
type meter struct {
	known    map[applied]int // steps; negative while they are counted
	programs map[string]int  // instructions by pattern
}

type applied struct {
	schema *jsonschema.Schema
	value  *value
}

// value is a JSON value, whose address is its place.
type value struct {
	v     any
	size  int
	named map[string]*value
	items []*value
}

// valueOf returns a value with those in it.
func valueOf(v any) *value {
	out := &value{v: v, size: 1}
	switch v := v.(type) {
	case string:
		out.size += len(v) / 64
	case map[string]any:
		out.named = map[string]*value{}
		for name, part := range v {
			p := valueOf(part)
			out.named[name] = p
			out.size += p.size
		}
	case []any:
		for _, part := range v {
			p := valueOf(part)
			out.items = append(out.items, p)
			out.size += p.size
		}
	}
	return out
}

// check returns an error when the validation of a value may take too many steps.
func check(s *jsonschema.Schema, v any) error {
	err := walk(v, "values", 0, func(at string, v any) error {
		if n, ok := v.(json.Number); ok {
			return checkNumber(at, n.String())
		}
		return nil
	})
	if err != nil {
		return err
	}
	m := meter{known: map[applied]int{}, programs: map[string]int{}}
	_, err = m.steps(s, valueOf(v), 0)
	return err
}

func (m *meter) steps(s *jsonschema.Schema, v *value, level int) (int, error) {
	key := applied{s, v}
	if n, ok := m.known[key]; ok {
		if n < 0 {
			return 0, fmt.Errorf("the schema refers to itself for one value (%s)", s.Location)
		}
		return n, nil
	}
	if level > maxLevels {
		return 0, fmt.Errorf("more than %d schemas and values are within each other", maxLevels)
	}
	m.known[key] = -1
	total := 1 + m.compared(s, v)
	if total > maxSteps || len(m.known) > maxSteps {
		return 0, errSteps
	}
	err := m.parts(s, v, func(s *jsonschema.Schema, v *value) error {
		if s == nil {
			return nil
		}
		n, err := m.steps(s, v, level+1)
		if total += n; err == nil && total > maxSteps {
			err = errSteps
		}
		return err
	})
	m.known[key] = total
	return total, err
}

var errSteps = fmt.Errorf("the validation of these values by the schema takes more than %d steps: give fewer values, or repeat less in the schema", maxSteps)

// compared counts the parts of a value that a schema compares itself.
func (m *meter) compared(s *jsonschema.Schema, v *value) (n int) {
	n = len(s.Required) + len(v.named) + len(v.items)
	if s.Const != nil {
		n += v.size
	}
	if s.Enum != nil {
		n += len(s.Enum.Values) * v.size
	}
	if s.UniqueItems {
		n += v.size * min(len(v.items), 20)
	}
	text, ok := v.v.(string)
	if ok && s.Pattern != nil {
		n += m.match(s.Pattern.String(), text)
	}
	if ok && s.Format != nil {
		n += len(text) / 64
		if s.Format.Name == "regex" { // it is compiled: x{1000} has seven bytes and a thousand instructions
			n += 64 * len(text)
		}
	}
	for name := range v.named {
		for pattern := range s.PatternProperties {
			if n += m.match(pattern.String(), name); n > maxSteps {
				return n
			}
		}
	}
	return n
}

// match counts the steps of the match of a regular expression, in the unit of the others.
func (m *meter) match(pattern, text string) int {
	n, ok := m.programs[pattern]
	if !ok {
		n = instructions(pattern)
		m.programs[pattern] = n
	}
	return 1 + n*(len(text)+1)/64
}

// parts adds the schemas that a schema applies to a value and to the values in it.
func (m *meter) parts(s *jsonschema.Schema, v *value, add func(*jsonschema.Schema, *value) error) error {
	here := []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else}
	here = append(append(append(here, s.AllOf...), s.AnyOf...), s.OneOf...)
	for name, d := range s.Dependencies {
		if dependent, ok := d.(*jsonschema.Schema); ok && v.named[name] != nil {
			here = append(here, dependent)
		}
	}
	for _, part := range here {
		if err := add(part, v); err != nil {
			return err
		}
	}
	for name, part := range v.named {
		for _, p := range m.named(s, name) {
			if err := add(p, part); err != nil {
				return err
			}
		}
		if s.PropertyNames != nil {
			if err := add(s.PropertyNames, valueOf(name)); err != nil {
				return err
			}
		}
	}
	for i, part := range v.items {
		for _, p := range items(s, i) {
			if err := add(p, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// named returns the schemas that may be applied to a field of an object.
func (m *meter) named(s *jsonschema.Schema, name string) (out []*jsonschema.Schema) {
	out = append(out, s.Properties[name])
	for pattern, p := range s.PatternProperties {
		if pattern.MatchString(name) {
			out = append(out, p)
		}
	}
	if additional, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		out = append(out, additional)
	}
	return out
}

// items returns the schemas that may be applied to an item of a list.
func items(s *jsonschema.Schema, i int) (out []*jsonschema.Schema) {
	switch all := s.Items.(type) {
	case *jsonschema.Schema:
		out = append(out, all)
	case []*jsonschema.Schema:
		if i < len(all) {
			out = append(out, all[i])
		}
	}
	if additional, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
		out = append(out, additional)
	}
	return append(out, s.Contains)
}

// limitText cuts a text off that a message quotes.
func limitText(text string) string {
	if len(text) <= maxSchemaText {
		return text
	}
	return strings.ToValidUTF8(text[:maxSchemaText], "") + "…"
}
