package cloudinit

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// cloud-init reads YAML 1.1 into Python's types and asks them for truth and text. What is here
// gives the same answers (cloud-init 22.4.2, modules "util" and "type_utils").

// yes and no are the plain scalars that are booleans in YAML 1.1 and texts in 1.2.
var (
	yes = []string{"yes", "on", "true"}
	no  = []string{"no", "off", "false"}
)

// value returns a node as Python has it: nil, bool, int64, string or, for a list or mapping, the
// node.
func value(n *yaml.Node) any {
	if n == nil || n.Kind == 0 {
		return nil
	}
	if n.Kind != yaml.ScalarNode {
		return n
	}
	plain := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0
	lower := strings.ToLower(n.Value)
	switch {
	case n.Tag == "!!null":
		return nil
	case plain && slices.Contains(yes, lower):
		return true
	case plain && slices.Contains(no, lower):
		return false
	case n.Tag == "!!int":
		var i int64
		if n.Decode(&i) == nil {
			return i
		}
	case n.Tag == "!!binary":
		if b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), "")); err == nil {
			return string(b)
		}
	}
	return n.Value
}

// text returns a scalar as Python's str does.
func text(n *yaml.Node) string {
	switch v := value(n).(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case int64:
		return strconv.FormatInt(v, 10)
	case string:
		return v
	}
	return ""
}

// truth reports whether Python takes a value for true: all but null, false, 0, and what is empty.
func truth(n *yaml.Node) bool {
	switch v := value(n).(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case string:
		return v != ""
	}
	return len(n.Content) > 0
}

// isTrue reports a boolean option (cloud-init, util.translate_bool): a text is one when it says so.
func isTrue(n *yaml.Node) bool {
	if b, ok := value(n).(bool); ok {
		return b
	}
	return truth(n) && slices.Contains([]string{"true", "1", "on", "yes"}, strings.ToLower(strings.TrimSpace(text(n))))
}

// aText returns a node that must be a text, or another scalar in its place; a list or mapping is an
// error that names the line.
func aText(n *yaml.Node) (string, error) {
	switch value(n).(type) {
	case nil:
		return "", nil
	case *yaml.Node:
		return "", fmt.Errorf("line %d: it is no text", n.Line)
	}
	return text(n), nil
}

// fields returns the values of a mapping by key, merge keys applied.
func fields(n *yaml.Node) (map[string]yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: it is no mapping", n.Line)
	}
	var out map[string]yaml.Node
	if err := n.Decode(&out); err != nil {
		return nil, err
	}
	return out, nil
}
