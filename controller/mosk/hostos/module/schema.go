package module

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Schema is the JSON Schema (draft-07) of a module's values.
type Schema struct{ compiled *jsonschema.Schema }

// ParseSchema reads a JSON Schema. References to other documents are refused: nothing is
// fetched.
func ParseSchema(text []byte) (*Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	if m, ok := doc.(map[string]any); ok && m["$schema"] != nil {
		if uri, _ := m["$schema"].(string); strings.TrimSuffix(strings.TrimPrefix(uri, "https"), "#") != draft07 && strings.TrimSuffix(strings.TrimPrefix(uri, "http"), "#") != draft07 {
			return nil, fmt.Errorf("$schema %q: use http%s#", uri, draft07)
		}
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, fmt.Errorf("is not a JSON Schema: %w", err)
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, fmt.Errorf("is not a JSON Schema of draft-07: %w", err)
	}
	return &Schema{compiled}, nil
}

const (
	schemaURL = "module:///schema.json" // names the schema in messages alone
	draft07   = "://json-schema.org/draft-07/schema"
)

// noLoader is a jsonschema.URLLoader that loads nothing.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema cannot refer to another document: put it below definitions")
}

// ValuesError lists the violations of a schema. Its text contains names of values and the
// schema's demands, and never a value: values may be secret.
type ValuesError struct{ Violations []string }

// Error begins with the product's text, which operators search for.
func (e *ValuesError) Error() string {
	return "schema validation failed: " + strings.Join(e.Violations, "; ")
}

// Validate checks values. The error is a *ValuesError.
func (s *Schema) Validate(values map[string]any) error {
	b, err := json.Marshal(values)
	if err != nil {
		return &ValuesError{[]string{"the values are not JSON"}}
	}
	// The library demands numbers as json.Number.
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return &ValuesError{[]string{"the values are not JSON"}}
	}
	var bad *jsonschema.ValidationError
	if err := s.compiled.Validate(v); errors.As(err, &bad) {
		found := map[string]bool{}
		violations(bad, found)
		return &ValuesError{slices.Sorted(maps.Keys(found))}
	}
	return nil
}

// violations adds the innermost causes of an error to found.
func violations(e *jsonschema.ValidationError, found map[string]bool) {
	if len(e.Causes) == 0 {
		found[at(e.InstanceLocation)+": "+demand(e.ErrorKind)] = true
	}
	for _, cause := range e.Causes {
		violations(cause, found)
	}
}

// at returns the place of a value: values.options.a.
func at(location []string) string { return strings.Join(append([]string{"values"}, location...), ".") }

// demand returns what a schema demands of a value, without the value.
func demand(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Required:
		return "missing required " + quoted(k.Missing)
	case *kind.AdditionalProperties:
		return "unknown " + quoted(k.Properties) + ": the schema does not allow it"
	case *kind.Type:
		return fmt.Sprintf("is of type %s, must be %s", k.Got, strings.Join(k.Want, " or "))
	case *kind.Enum:
		return "must be one of " + asJSON(k.Want...)
	case *kind.Const:
		return "must be " + asJSON(k.Want)
	case *kind.Pattern:
		return fmt.Sprintf("must match %q", k.Want)
	case *kind.Format:
		return "must have the format " + k.Want
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items", k.Want)
	case *kind.OneOf:
		return "must match exactly one alternative of oneOf"
	}
	return "violates " + strings.Join(append(k.KeywordPath(), "of the schema"), " ")
}

func quoted(names []string) string {
	names = slices.Sorted(slices.Values(names))
	for i, n := range names {
		names[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(names, ", ")
}

func asJSON(values ...any) string {
	var out []string
	for _, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			b = []byte("another value")
		}
		out = append(out, string(b))
	}
	return strings.Join(out, ", ")
}

func number(r *big.Rat) string {
	return strings.TrimSuffix(strings.TrimRight(r.FloatString(6), "0"), ".")
}
