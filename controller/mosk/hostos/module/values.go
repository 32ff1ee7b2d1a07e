package module

import (
	"encoding/json"
	"maps"
	"slices"
)

// textTypes are the types of JSON Schema whose values a Secret can have as text.
var textTypes = []string{"boolean", "integer", "null", "number"}

// Merge returns values with the data of a Secret, which win where both have a name. Data of a
// Secret are text. Where the schema demands a number, a boolean or null for a name, and does
// not allow text, Merge converts a text that has a value of that type. s may be nil.
func (s *Schema) Merge(values map[string]any, secret map[string][]byte) map[string]any {
	out := maps.Clone(values)
	if out == nil {
		out = map[string]any{}
	}
	for name, data := range secret {
		out[name] = s.typed(name, string(data))
	}
	return out
}

// typed returns a text as the type that the schema wants for a name.
func (s *Schema) typed(name, text string) any {
	if s == nil {
		return text
	}
	property := s.compiled.Properties[name]
	for range maxLevels { // a schema may refer to itself
		if property == nil || property.Types != nil || property.Ref == nil {
			break
		}
		property = property.Ref
	}
	if property == nil || property.Types == nil {
		return text
	}
	if wanted := property.Types.ToStrings(); slices.Contains(wanted, "string") || !slices.ContainsFunc(wanted, func(w string) bool { return slices.Contains(textTypes, w) }) {
		return text
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	switch v.(type) {
	case map[string]any, []any: // only values that are not nested
		return text
	}
	return json.RawMessage(text) // keeps the digits of a number
}
