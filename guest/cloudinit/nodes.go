package cloudinit

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// loadYAML reads one document of YAML, or nil where it is empty. Its nodes have their lines, and
// neither aliases nor merge keys, which are replaced by what they stand for. Of equal keys the later
// one counts.
func loadYAML(text []byte) (*yaml.Node, error) {
	n, err := readYAML(text)
	if err != nil || n == nil {
		return nil, err
	}
	return expand(n)
}

// readYAML reads one document of YAML as it is written.
func readYAML(text []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var n, more yaml.Node
	err := d.Decode(&n)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		if next := d.Decode(&more); !errors.Is(next, io.EOF) {
			err = errors.New("there is more than one YAML document")
		}
	}
	if err != nil || value(n.Content[0]) == nil {
		return nil, err
	}
	return n.Content[0], nil
}

// loadMapping is loadYAML for a mapping at the top. A value that aliases make endless, or much longer
// than its text, is lost alone, and lost gets its key and the reason.
func loadMapping(text []byte, lost func(key string, err error)) (*yaml.Node, error) {
	n, err := readYAML(text)
	if err != nil || n == nil {
		return nil, err
	}
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: it is no mapping", n.Line)
	}
	whole := *n
	whole.Content = nil
	for k := 0; k+1 < len(n.Content); k += 2 {
		v, err := expand(n.Content[k+1])
		if err != nil {
			lost(n.Content[k].Value, err)
			continue
		}
		whole.Content = append(whole.Content, n.Content[k], v)
	}
	return expand(&whole)
}

func expand(n *yaml.Node) (*yaml.Node, error) { return new(expander).expand(n, 0) }

// maxText bounds the bytes of the scalars that aliases repeat.
const maxText = 64 << 20

// expander replaces aliases and merge keys. It counts what it copies, since aliases make large values of a
// short text.
type expander struct{ values, bytes int }

func (x *expander) expand(n *yaml.Node, depth int) (*yaml.Node, error) {
	x.values++
	x.bytes += len(n.Value)
	switch {
	case depth > maxDepth:
		return nil, fmt.Errorf("line %d: more than %d lists and mappings are within each other", n.Line, maxDepth)
	case x.values > maxValues || x.bytes > maxText:
		return nil, fmt.Errorf("it has more than %d values, or %d bytes of them", maxValues, maxText)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return x.expand(n.Alias, depth+1)
	case yaml.MappingNode:
		return x.mapping(n, depth)
	}
	out := *n
	out.Anchor, out.Content = "", nil
	for _, c := range n.Content {
		e, err := x.expand(c, depth+1)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, e)
	}
	return &out, nil
}

// mapping expands a mapping. A merge key gives what the others don't (YAML's type "merge").
func (x *expander) mapping(n *yaml.Node, depth int) (*yaml.Node, error) {
	out := *n
	out.Anchor, out.Content = "", nil
	at := map[string]int{} // the places of the values
	var merged []*yaml.Node
	for k := 0; k+1 < len(n.Content); k += 2 {
		key, err := x.expand(n.Content[k], depth+1)
		if err != nil {
			return nil, err
		}
		v, err := x.expand(n.Content[k+1], depth+1)
		if err != nil {
			return nil, err
		}
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a list or mapping is no key", key.Line)
		}
		if key.Tag == "!!merge" {
			merged = append(merged, v)
			continue
		}
		set(&out, at, key, v)
	}
	for _, m := range merged {
		all := []*yaml.Node{m}
		if m.Kind == yaml.SequenceNode {
			all = m.Content
		}
		for _, from := range all {
			if from.Kind != yaml.MappingNode {
				return nil, fmt.Errorf("line %d: << takes mappings", from.Line)
			}
			for k := 0; k+1 < len(from.Content); k += 2 {
				if _, has := at[text(from.Content[k])]; !has {
					set(&out, at, from.Content[k], from.Content[k+1])
				}
			}
		}
	}
	return &out, nil
}

// set sets a key of a mapping; at has the places of its values by their keys.
func set(n *yaml.Node, at map[string]int, key, v *yaml.Node) {
	if place, has := at[text(key)]; has {
		n.Content[place] = v
		return
	}
	at[text(key)] = len(n.Content) + 1
	n.Content = append(n.Content, key, v)
}
