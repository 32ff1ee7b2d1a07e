package module

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// doubling returns definitions, each of which refers twice to the next one.
func doubling(n int) string {
	out := ""
	for i := range n {
		out += fmt.Sprintf(`"d%d": {"allOf": [{"$ref": "#/definitions/d%d"}, {"$ref": "#/definitions/d%d"}]}, `, i, i+1, i+1)
	}
	return out + fmt.Sprintf(`"d%d": {"type": "object"}`, n)
}

// list returns values with a list of n copies of an item.
func list(n int, item any) map[string]any {
	out := make([]any, n)
	for i := range out {
		out[i] = item
	}
	return map[string]any{"x": out}
}

// A schema and values that would be validated for hours, or take all memory, are refused.
func TestValidationsHaveABudget(t *testing.T) {
	const steps = "the validation of these values by the schema takes more than 200000 steps"
	deep := any("x")
	for range 1000 {
		deep = []any{deep}
	}
	long := make(map[string]any)
	for i := range 3000 {
		long[fmt.Sprintf("name-%d", i)] = "x"
	}
	for name, tt := range map[string]struct {
		schema string
		values map[string]any
		want   string
	}{
		"definitions that double":          {`{"$ref": "#/definitions/d0", "definitions": {` + doubling(40) + `}}`, map[string]any{}, steps},
		"alternatives that double":         {`{"anyOf": [{"$ref": "#/definitions/d0"}], "definitions": {` + strings.ReplaceAll(doubling(40), "allOf", "oneOf") + `}}`, map[string]any{}, steps},
		"conditions that double":           {`{"if": {"$ref": "#/definitions/d0"}, "then": {"$ref": "#/definitions/d0"}, "definitions": {` + doubling(20) + `}}`, map[string]any{}, steps},
		"a reference to itself":            {`{"$ref": "#/definitions/a", "definitions": {"a": {"allOf": [{"$ref": "#/definitions/b"}]}, "b": {"not": {"$ref": "#/definitions/a"}}}}`, map[string]any{}, "the schema refers to itself for one value"},
		"values within each other":         {`{"additionalProperties": {"items": {"items": {"$ref": "#"}}}}`, map[string]any{"x": deep}, "more than 500 values are within each other"},
		"many alternatives of many values": {`{"additionalProperties": {"items": {"enum": [` + names(1000, "") + `]}}}`, list(1000, "c"), steps},
		"a list of lists that must differ": {`{"additionalProperties": {"uniqueItems": true}}`, map[string]any{"x": []any{list(20000, "a")["x"], list(20000, "b")["x"]}}, ""},
		"a long text":                      {`{"additionalProperties": {"pattern": "` + strings.Repeat("(a|b){100}", 30) + `"}}`, map[string]any{"x": strings.Repeat("ab", 100000)}, steps},
		"patterns of many names":           {`{"patternProperties": {` + patterns(200) + `}}`, long, steps},
		"a regular expression as a value":  {`{"additionalProperties": {"format": "regex"}}`, map[string]any{"x": strings.Repeat("x{1000}", 1000)}, steps},
		"contents of lists":                {`{"additionalProperties": {"contains": {"allOf": [` + strings.Repeat(`{"type": "string"}, `, 100) + `{"type": "number"}]}}}`, list(3000, "x"), steps},
		"names":                            {`{"propertyNames": {"allOf": [` + strings.Repeat(`{"minLength": 1}, `, 100) + `{}]}}`, long, steps},
	} {
		s, err := ParseSchema([]byte(tt.schema))
		if err != nil {
			t.Errorf("%s: ParseSchema() error = %v", name, err)
			continue
		}
		err = s.Validate(tt.values)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.HasPrefix(err.Error(), "schema validation failed: ") || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: Validate() = %.300v, want %q", name, err, tt.want)
		}
	}
}

// names returns n texts of JSON, each with this end.
func names(n int, end string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%q", fmt.Sprint("n", i, end)))
	}
	return strings.Join(all, ", ")
}

func patterns(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"^name-%d.*$": {}`, i))
	}
	return strings.Join(all, ", ")
}

// A schema whose numbers or regular expressions are large is refused before it is compiled.
func TestSchemasHaveABudget(t *testing.T) {
	for name, tt := range map[string]struct{ schema, want string }{
		"exponent":             {`{"properties": {"x": {"minimum": 1e999999}}}`, "/properties/x/minimum: the number 1e999999… has too many digits"},
		"digits":               {`{"maximum": ` + strings.Repeat("9", 500) + `}`, "/maximum: the number 99999999999999999999… has too many digits"},
		"long pattern":         {`{"pattern": "` + strings.Repeat("a", 5000) + `"}`, "/pattern: the regular expression has more than 4096 bytes"},
		"pattern that repeats": {`{"pattern": "` + strings.Repeat("a{1000}", 500) + `"}`, "/pattern: the regular expressions of the schema have more than 100000 instructions"},
		"patterns":             {`{"items": {"patternProperties": {"` + strings.Repeat("a{1000}", 101) + `": {}}}}`, "/items/patternProperties: the regular expressions"},
		"depth":                {strings.Repeat(`{"not": `, 600) + "{}" + strings.Repeat("}", 600), "more than 500 values are within each other"},
	} {
		if _, err := ParseSchema([]byte(tt.schema)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: ParseSchema() error = %.300v, want %q", name, err, tt.want)
		}
	}
}

// The message of a validation is short, however much is wrong.
func TestViolationsAreLimited(t *testing.T) {
	s, err := ParseSchema([]byte(`{"additionalProperties": {"items": {"enum": [` + names(90, strings.Repeat("y", 1000)) + `]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Validate(list(1000, "x"))
	var bad *ValuesError
	if !errors.As(err, &bad) || len(bad.Violations) != maxViolation+1 || bad.Violations[maxViolation] != "and more" || len(err.Error()) > 60*40*maxSchemaText {
		t.Errorf("Validate() = %d bytes, %.300v; want %d violations and more", len(fmt.Sprint(err)), err, maxViolation)
	}
}

// A schema whose references go in a circle says nothing of a Secret's values.
func TestMergeEndsWithACircleOfReferences(t *testing.T) {
	s, err := ParseSchema([]byte(`{"properties": {"x": {"$ref": "#/definitions/a"}}, "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	values := s.Merge(nil, map[string][]byte{"x": []byte("7")})
	if values["x"] != "7" {
		t.Errorf("Merge() = %v, want the text", values)
	}
	if err := s.Validate(values); err == nil || !strings.Contains(err.Error(), "the schema refers to itself for one value") {
		t.Errorf("Validate() = %v, want that the schema refers to itself", err)
	}
}
