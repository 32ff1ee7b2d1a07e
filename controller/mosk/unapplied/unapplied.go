// Package unapplied lists the fields of the family's kinds that nothing acts on, and finds those
// that an object sets. Kinds with conditions report them in the condition NotApplied; for the
// others the API warns whoever writes the object. The package reads no object of the API.
package unapplied

import (
	"encoding/json"
	"fmt"
	"strings"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
)

// Set returns the fields of Fields that an object of a kind sets, in the table's order. A field
// that is false, 0 or empty is not set. o is any value whose JSON is that of the object; the
// result is nil for one that has none.
func Set(kind string, o any) (out []string) {
	fields := Fields[kind]
	if len(fields) == 0 {
		return nil
	}
	b, err := json.Marshal(o)
	var object any
	if err != nil || json.Unmarshal(b, &object) != nil {
		return nil
	}
	for _, field := range fields {
		if has(object, strings.Split(field, "."), defaults[[2]string{kind, field}]) {
			out = append(out, field)
		}
	}
	return out
}

// has reports whether a value sets the field that names lead to, to another value than standard.
// A name that ends with [] is that of a list, of which one element with the field is enough.
func has(value any, names []string, standard any) bool {
	if len(names) == 0 {
		return !empty(value) && (standard == nil || value != standard)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	name, list := strings.CutSuffix(names[0], "[]")
	if !list {
		return has(object[name], names[1:], standard)
	}
	elements, _ := object[name].([]any)
	for _, e := range elements {
		if has(e, names[1:], standard) {
			return true
		}
	}
	return false
}

func empty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, below := range v { // an object whose fields are all empty says nothing
			if !empty(below) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return value == nil || value == false || value == "" || value == 0.0
}

// Message says that nothing acts on fields; "" for none.
func Message(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	return fmt.Sprintf("nothing acts on %s", strings.Join(fields, ", "))
}

// Condition returns the condition of an object that sets fields of the table, nil when it sets
// none. It is always ready: such a field withholds nothing.
func Condition(kind string, o any) *baremetalv1.Condition {
	fields := Set(kind, o)
	if len(fields) == 0 {
		return nil
	}
	return &baremetalv1.Condition{Type: baremetalv1.ConditionNotApplied, Ready: true, Message: Message(fields)}
}
