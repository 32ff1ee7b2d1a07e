package module

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Schema is the JSON Schema (draft-07) of a module's values.
type Schema struct {
	compiled *jsonschema.Schema
	doc      any // the schema as it was read, for messages
}

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
	if err := checkSchema(doc); err != nil {
		return nil, err
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
	return &Schema{compiled, doc}, nil
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
	if err := check(s.compiled, v); err != nil {
		return &ValuesError{[]string{err.Error()}}
	}
	var bad *jsonschema.ValidationError
	if err := s.compiled.Validate(v); errors.As(err, &bad) {
		found, left := map[string]bool{}, maxCauses
		s.violations(bad, found, &left)
		all := slices.Sorted(maps.Keys(found))
		if len(all) > maxViolation || left <= 0 {
			all = append(all[:min(len(all), maxViolation)], "and more")
		}
		return &ValuesError{all}
	}
	return nil
}

// violations adds the innermost causes of an error to found, up to left of them.
func (s *Schema) violations(e *jsonschema.ValidationError, found map[string]bool, left *int) {
	if *left <= 0 {
		return
	}
	_, name := e.ErrorKind.(*kind.PropertyNames) // its causes lie at no value
	if len(e.Causes) == 0 || name {
		text := demand(e.ErrorKind)
		if _, ok := e.ErrorKind.(*kind.Not); ok {
			text = "must not match " + s.text(e.SchemaURL, "not")
		}
		found[limitText(at(e.InstanceLocation))+": "+text] = true
		*left--
	}
	if name {
		return
	}
	for _, cause := range e.Causes {
		s.violations(cause, found, left)
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
		return fmt.Sprintf("must match %q", limitText(k.Want))
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
		return "must match exactly one alternative of oneOf" + alternatives(k.Subschemas)
	case *kind.Dependency:
		return fmt.Sprintf("with %q also give %s", k.Prop, quoted(k.Missing))
	case *kind.DependentRequired:
		return fmt.Sprintf("with %q also give %s", k.Prop, quoted(k.Missing))
	case *kind.FalseSchema:
		return "must not be given"
	case *kind.PropertyNames:
		return fmt.Sprintf("the name %q is not allowed", limitText(k.Property))
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are the same", k.Duplicates[0], k.Duplicates[1])
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d fields", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d fields", k.Want)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d items more than the schema allows", k.Count)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	}
	return "violates " + strings.Join(append(k.KeywordPath(), "of the schema"), " ")
}

// alternatives names those of oneOf that match, beyond the one that may.
func alternatives(indexes []int) string {
	if len(indexes) < 2 {
		return ""
	}
	return fmt.Sprintf(", and matches the numbers %d and %d", indexes[0]+1, indexes[1]+1)
}

// What a message shows of a schema: the bytes of a part, and how many names or values it lists.
const (
	maxSchemaText = 256
	maxNames      = 32
)

// text returns the part of the schema that a keyword has at a URL, as JSON: a schema is not
// secret.
func (s *Schema) text(at, keyword string) string {
	_, fragment, _ := strings.Cut(at, "#")
	part := s.doc
	for name := range strings.SplitSeq(strings.TrimPrefix(fragment+"/"+keyword, "/"), "/") {
		if decoded, err := url.PathUnescape(name); err == nil {
			name = decoded
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch v := part.(type) {
		case map[string]any:
			part = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return keyword + " of the schema"
			}
			part = v[i]
		}
	}
	if part == nil {
		return keyword + " of the schema"
	}
	return asJSON(part)
}

func quoted(names []string) string {
	names = slices.Sorted(slices.Values(names))
	more := ""
	if len(names) > maxNames {
		names, more = names[:maxNames], ", …"
	}
	for i, n := range names {
		names[i] = fmt.Sprintf("%q", limitText(n))
	}
	return strings.Join(names, ", ") + more
}

// asJSON returns the values of a schema, cut off where they are long.
func asJSON(values ...any) string {
	var out []string
	for i, v := range values {
		if i == maxNames {
			out = append(out, "…")
			break
		}
		b, err := json.Marshal(v)
		if err != nil {
			b = []byte("another value")
		}
		out = append(out, limitText(string(b)))
	}
	return strings.Join(out, ", ")
}

func number(r *big.Rat) string {
	return limitText(strings.TrimSuffix(strings.TrimRight(r.FloatString(6), "0"), "."))
}
