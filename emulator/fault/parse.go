package fault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse reads a YAML list of rules, as it stands below faults: in the
// definition of a rack. The error joins one for each thing that is wrong, with
// file, line and field.
func Parse(file string, data []byte) ([]Rule, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("fault: %s: is empty: begin with - status: 503", file)
	} else if err != nil {
		return nil, fmt.Errorf("fault: %s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("fault: %s: holds more than one document", file)
	}
	list := doc.Content[0]
	if list.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("fault: %s:%d: must be a list of rules: begin with - status: 503", file, list.Line)
	}
	var rules []Rule
	var errs []error
	for i, n := range list.Content {
		at := func(line int, field, text string) {
			if field != "" {
				field = "." + field
			}
			errs = append(errs, fmt.Errorf("fault: %s:%d: [%d]%s: %s", file, line, i, field, text))
		}
		var r Rule
		if parseRule(n, &r, at) {
			rules = append(rules, r)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return rules, nil
}

// parseRule reads one rule and tells what is wrong; it reports whether nothing
// is.
func parseRule(n *yaml.Node, r *Rule, tell func(line int, field, text string)) bool {
	ok := true
	wrong := func(line int, field, text string) {
		ok = false
		tell(line, field, text)
	}
	if n.Kind != yaml.MappingNode {
		wrong(n.Line, "", "is no rule: use a form like {bmc: node-0, status: 503}")
		return false
	}
	known, lines := Fields(), map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		lines[key.Value] = key.Line
		if !slices.Contains(known, key.Value) {
			wrong(key.Line, key.Value, "there is no such field: use one of "+strings.Join(known, ", "))
			continue
		}
		one := yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Content: []*yaml.Node{key, value}}
		if err := one.Decode(r); err != nil {
			wrong(key.Line, key.Value, fmt.Sprintf("`%s` does not belong here", value.Value))
		}
	}
	if !ok {
		return false
	}
	if lines["probability"] > 0 && r.Probability == 0 {
		wrong(lines["probability"], "probability", "0: must be above 0 and at most 1")
	}
	for _, p := range r.Problems() {
		line := lines[p.Field]
		if line == 0 {
			line = n.Line
		}
		wrong(line, p.Field, p.Text)
	}
	return ok
}

// Fields are the names of a rule's fields, as they are written.
func Fields() []string {
	var out []string
	t := reflect.TypeFor[Rule]()
	for i := range t.NumField() {
		out = append(out, t.Field(i).Tag.Get("yaml"))
	}
	return out
}
