package cloudinit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// merger merges cloud-configs as merge_how says (cloud-init, "Merging user data sections"). Each rule
// is for the values of one type; those without a rule stay as they are.
type merger struct{ dict, list, str *rule }

// rule is how values of a type are merged, by its options.
type rule struct{ options []string }

func (r *rule) has(options ...string) bool {
	return slices.ContainsFunc(options, func(o string) bool { return slices.Contains(r.options, o) })
}

// method returns the first of these that is an option, else otherwise.
func (r *rule) method(otherwise string, names ...string) string {
	for _, n := range names {
		if r.has(n) {
			return n
		}
	}
	return otherwise
}

// Rules of cloud-init 22.4.2: parts of user data replace the keys of those before, and vendor data give
// what user data don't.
const (
	mergeParts  = "dict(replace)+list()+str()"
	mergeVendor = "list()+dict()+str()"
)

var aRule = regexp.MustCompile(`^([a-z_][a-z0-9_]*)\((.*?)\)$`)

// add adds the rules of a text such as "list(append)+dict(recurse_array)". The first rule of a type counts.
func (m *merger) add(how string) error {
	for text := range strings.SplitSeq(how, "+") {
		if text = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(text)), "-", "_"); text == "" {
			continue
		}
		found := aRule.FindStringSubmatch(text)
		if found == nil {
			return fmt.Errorf("%q is no way to merge: write one such as list(append)", text)
		}
		var options []string
		for o := range strings.SplitSeq(found[2], ",") {
			options = append(options, strings.TrimSpace(o))
		}
		if err := m.rule(found[1], options); err != nil {
			return err
		}
	}
	return nil
}

func (m *merger) rule(name string, options []string) error {
	to := map[string]**rule{"dict": &m.dict, "list": &m.list, "str": &m.str}[strings.TrimPrefix(name, "m_")]
	if to == nil {
		return fmt.Errorf("there is no way to merge called %q: use dict, list or str", name)
	}
	if *to == nil {
		*to = &rule{options}
	}
	return nil
}

// mergerOf returns how a cloud-config is merged: merge_how or merge_type in it, which it takes out, and then the
// header of its part; without either as otherwise says.
func mergerOf(n *yaml.Node, header, otherwise string) (m merger, err error) {
	for _, key := range []string{"merge_how", "merge_type"} {
		how := take(n, key)
		if value(how) == nil {
			continue
		}
		if err := m.addNode(how); err != nil {
			return m, fmt.Errorf("%s: %w", key, err)
		}
		break
	}
	if err := m.add(header); err != nil {
		return m, fmt.Errorf("Merge-Type: %w", err)
	}
	if m == (merger{}) {
		err = m.add(otherwise)
	}
	return m, err
}

// addNode adds rules that are a text, or a list of mappings with name and settings, or of lists.
func (m *merger) addNode(n *yaml.Node) error {
	if how, ok := value(n).(string); ok {
		return m.add(how)
	}
	if n.Kind != yaml.SequenceNode {
		return fmt.Errorf("line %d: it is no text or list", n.Line)
	}
	for _, e := range n.Content {
		words := scalars(e)
		if e.Kind == yaml.MappingNode {
			name := scalars(find(e, "name"))
			if words = append(name, scalars(find(e, "settings"))...); len(name) != 1 {
				return fmt.Errorf("line %d: it has no name", e.Line)
			}
		}
		if len(words) == 0 {
			return fmt.Errorf("line %d: it has no name", e.Line)
		}
		if err := m.rule(strings.TrimSpace(strings.ReplaceAll(words[0], "-", "_")), words[1:]); err != nil {
			return err
		}
	}
	return nil
}

// find returns the value of a key of a mapping; a node without a kind where there is none.
func find(n *yaml.Node, key string) *yaml.Node {
	for k := 0; k+1 < len(n.Content); k += 2 {
		if text(n.Content[k]) == key {
			return n.Content[k+1]
		}
	}
	return &yaml.Node{}
}

// take is find, and takes the key out.
func take(n *yaml.Node, key string) *yaml.Node {
	out := find(n, key)
	for k := 0; k+1 < len(n.Content); k += 2 {
		if text(n.Content[k]) == key {
			n.Content = slices.Delete(slices.Clone(n.Content), k, k+2)
			break
		}
	}
	return out
}

// merge merges a value into an older one. It changes neither.
func (m merger) merge(old, given *yaml.Node) *yaml.Node {
	_, isText := value(old).(string)
	switch {
	case old.Kind == yaml.MappingNode && m.dict != nil:
		return m.dicts(old, given)
	case old.Kind == yaml.SequenceNode && m.list != nil:
		return m.lists(old, given)
	case isText && m.str != nil:
		return m.texts(old, given)
	}
	return old
}

// inner merges the values of a key or place whose rule is r: of types that are not recursed into, otherwise
// counts.
func (m merger) inner(r *rule, old, given, otherwise *yaml.Node, dicts bool) *yaml.Node {
	_, isText := value(given).(string)
	if given.Kind == yaml.SequenceNode && r.has("recurse_array", "recurse_list") || isText && r.has("recurse_str") || given.Kind == yaml.MappingNode && dicts {
		return m.merge(old, given)
	}
	return otherwise
}

func (m merger) dicts(old, given *yaml.Node) *yaml.Node {
	if given.Kind != yaml.MappingNode {
		return old
	}
	out := *old
	out.Content = slices.Clone(old.Content)
	at := map[string]int{}
	for k := 0; k+1 < len(out.Content); k += 2 {
		at[text(out.Content[k])] = k + 1
	}
	gone := map[string]bool{}
	for k := 0; k+1 < len(given.Content); k += 2 {
		key, v := given.Content[k], given.Content[k+1]
		place, has := at[text(key)]
		switch {
		case !has:
			set(&out, at, key, v)
		case value(v) == nil && m.dict.has("allow_delete"):
			gone[text(key)] = true
		case m.dict.method("no_replace", "replace") == "replace":
			out.Content[place] = v
		default:
			out.Content[place] = m.inner(m.dict, out.Content[place], v, out.Content[place], true)
		}
	}
	for key := range gone {
		take(&out, key)
	}
	return &out
}

func (m merger) lists(old, given *yaml.Node) *yaml.Node {
	method := m.list.method("replace", "append", "prepend", "replace", "no_replace")
	if given.Kind != yaml.SequenceNode {
		if method == "replace" {
			return given
		}
		return old
	}
	out := *old
	switch method {
	case "append":
		out.Content = slices.Concat(old.Content, given.Content)
	case "prepend":
		out.Content = slices.Concat(given.Content, old.Content)
	case "replace":
		out.Content = slices.Clone(old.Content)
		for n := range min(len(out.Content), len(given.Content)) {
			out.Content[n] = m.inner(m.list, out.Content[n], given.Content[n], given.Content[n], m.list.has("recurse_dict"))
		}
	}
	return &out
}

func (m merger) texts(old, given *yaml.Node) *yaml.Node {
	more, isText := value(given).(string)
	if !isText || !m.str.has("append") {
		return given
	}
	out := *old
	out.SetString(text(old) + more)
	return &out
}
