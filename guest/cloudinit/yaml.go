package cloudinit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of network data, which no configuration of a server comes near.
const (
	maxNetwork = 1 << 20 // bytes of text
	maxScalars = 4 << 20 // bytes of all scalars, aliases expanded
	maxValues  = 1 << 16 // values, aliases expanded
	maxDepth   = 64      // lists and mappings within each other
)

// reader counts the bytes that it has read of a document.
type reader struct{ values, bytes int }

// count bounds a document: aliases make large values of a short text.
func (r *reader) count(length, depth int) error {
	r.values++
	r.bytes += length
	switch {
	case depth > maxDepth:
		return limitError(fmt.Sprintf("more than %d lists and mappings are within each other", maxDepth))
	case r.values > maxValues || r.bytes > maxScalars:
		return limitError(fmt.Sprintf("they have more than %d values, or %d bytes of them", maxValues, maxScalars))
	}
	return nil
}

// parseYAML reads one document of YAML 1.1.
func parseYAML(text []byte) (any, error) {
	if len(text) > maxNetwork {
		return nil, limitError(fmt.Sprintf("they have more than %d bytes", maxNetwork))
	}
	n, err := readYAML(text)
	if err != nil || n == nil {
		return nil, err
	}
	return new(reader).yaml(n, 0)
}

// parseJSON reads one value of JSON.
func parseJSON(text []byte) (any, error) {
	if len(text) > maxNetwork {
		return nil, limitError(fmt.Sprintf("they have more than %d bytes", maxNetwork))
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err == nil {
		if _, next := d.Token(); !errors.Is(next, io.EOF) {
			err = errors.New("there is more than one JSON value")
		}
	}
	if err != nil {
		return nil, err
	}
	return new(reader).json(v, 0)
}

func (r *reader) json(v any, depth int) (any, error) {
	length := 0
	if s, ok := v.(string); ok {
		length = len(s)
	}
	if err := r.count(length, depth); err != nil {
		return nil, err
	}
	var err error
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return i, nil
		}
		return v.Float64()
	case []any:
		for i := range v {
			if v[i], err = r.json(v[i], depth+1); err != nil {
				return nil, err
			}
		}
	case dict:
		for k := range v {
			if v[k], err = r.json(v[k], depth+1); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func (r *reader) yaml(n *yaml.Node, depth int) (any, error) {
	if err := r.count(len(n.Value), depth); err != nil {
		return nil, err
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return r.yaml(n.Content[0], depth+1)
	case yaml.AliasNode:
		return r.yaml(n.Alias, depth+1)
	case yaml.SequenceNode:
		out := []any{}
		for _, c := range n.Content {
			v, err := r.yaml(c, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.MappingNode:
		return r.mapping(n, depth)
	case yaml.ScalarNode:
		return scalar(n)
	}
	return nil, nil
}

// mapping reads a mapping: the later of two equal keys counts, and merge keys give what the others
// don't (YAML's "merge" type).
func (r *reader) mapping(n *yaml.Node, depth int) (dict, error) {
	out, merged := dict{}, dict{}
	for k := 0; k+1 < len(n.Content); k += 2 {
		v, err := r.yaml(n.Content[k+1], depth+1)
		if err != nil {
			return nil, err
		}
		if n.Content[k].Tag == "!!merge" {
			all, isList := v.([]any)
			if !isList {
				all = []any{v}
			}
			for _, m := range all {
				values, ok := m.(dict)
				if !ok {
					return nil, fmt.Errorf("line %d: << takes mappings", n.Content[k].Line)
				}
				for name, v := range values {
					if _, set := merged[name]; !set {
						merged[name] = v
					}
				}
			}
			continue
		}
		key, err := r.yaml(n.Content[k], depth+1)
		if err != nil {
			return nil, err
		}
		if isCollection(key) {
			return nil, fmt.Errorf("line %d: a list or mapping is no key", n.Content[k].Line)
		}
		out[pyText(key)] = v
	}
	for name, v := range merged {
		if _, set := out[name]; !set {
			out[name] = v
		}
	}
	return out, nil
}

// The scalars of YAML 1.1 (yaml.org/type) as PyYAML resolves them: a float has a point.
var (
	isBool  = regexp.MustCompile(`^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)
	isInt   = regexp.MustCompile(`^[-+]?(?:0b[0-1_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)
	isDate  = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}`)
	isFloat = regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])*\.[0-9_]*|\.[0-9][0-9_]*|[-+]?[0-9][0-9_]*\.[0-9_]*[eE][-+][0-9]+|\.[0-9][0-9_]*[eE][-+][0-9]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
)

// scalar reads a scalar.
func scalar(n *yaml.Node) (any, error) {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	tagged := n.Style&yaml.TaggedStyle != 0
	s := n.Value
	switch tag := n.ShortTag(); {
	case tagged && tag == "!!binary":
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s), ""))
		return string(b), err
	case tagged && tag != "!!str" && tag != "!!int" && tag != "!!bool" && tag != "!!null" && tag != "!!float":
		return nil, fmt.Errorf("line %d: there is no tag %s", n.Line, n.Tag)
	case tagged && tag == "!!str", !tagged && n.Style&quoted != 0:
		return s, nil
	}
	v := plain(s)
	if _, isText := v.(string); isText && (s == "<<" || s == "=" || isInt.MatchString(s)) {
		return nil, fmt.Errorf("line %d: %s is no value: quote it", n.Line, s) // 0x_ looks like a number
	}
	if tagged {
		_, isText := v.(string)
		if _, isInt := v.(int64); isText || n.ShortTag() == "!!int" && !isInt || n.ShortTag() == "!!float" && v == nil {
			return nil, fmt.Errorf("line %d: %q is no %s", n.Line, s, n.Tag)
		}
	}
	return v, nil
}

// plain resolves a scalar without quotes.
func plain(s string) any {
	switch {
	case s == "" || s == "~" || s == "null" || s == "Null" || s == "NULL":
		return nil
	case isBool.MatchString(s):
		return strings.ContainsAny(s[:1], "yYtT") || strings.EqualFold(s, "on")
	case isInt.MatchString(s):
		if i, ok := parseInt(s); ok {
			return i
		}
	case isFloat.MatchString(s):
		if f, ok := parseFloat(s); ok {
			return f
		}
	}
	return s
}

// nodeOf returns a value for the encoder. Texts that YAML 1.1 takes for something else are quoted:
// the encoder knows YAML 1.2.
func nodeOf(v any) *yaml.Node {
	n := &yaml.Node{}
	switch v := v.(type) {
	case string:
		n.SetString(v)
		if plain(v) != any(v) || isInt.MatchString(v) || isDate.MatchString(v) || v == "<<" || v == "=" {
			n.Style = yaml.DoubleQuotedStyle
		}
	case []any:
		n.Kind = yaml.SequenceNode
		for _, e := range v {
			n.Content = append(n.Content, nodeOf(e))
		}
	case dict:
		n.Kind = yaml.MappingNode
		for _, k := range slices.Sorted(maps.Keys(v)) {
			n.Content = append(n.Content, nodeOf(k), nodeOf(v[k]))
		}
	default:
		_ = n.Encode(v) // a number, a boolean or nil
	}
	return n
}

// parseInt reads an integer of YAML 1.1: of base 2, 8, 10, 16 or 60.
func parseInt(s string) (int64, bool) {
	s = strings.ReplaceAll(s, "_", "")
	digits := strings.TrimLeft(s, "+-")
	sign := int64(1)
	if strings.HasPrefix(s, "-") {
		sign = -1
	}
	if strings.Contains(digits, ":") {
		sum := int64(0)
		for part := range strings.SplitSeq(digits, ":") {
			i, err := strconv.ParseInt(part, 10, 64)
			if err != nil || sum > math.MaxInt64/60-60 || i > math.MaxInt32 {
				return 0, false
			}
			sum = sum*60 + i
		}
		return sign * sum, true
	}
	i, err := strconv.ParseInt(digits, 0, 64) // 010 is of base 8, as in YAML 1.1
	return sign * i, err == nil
}

// parseFloat reads a float of YAML 1.1: of base 10 or 60, infinite, or none.
func parseFloat(s string) (float64, bool) {
	s = strings.ToLower(strings.ReplaceAll(s, "_", ""))
	s = strings.Replace(strings.Replace(s, ".inf", "inf", 1), ".nan", "nan", 1)
	sum := 0.0
	for part := range strings.SplitSeq(strings.TrimLeft(s, "+-"), ":") {
		f, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return 0, false
		}
		sum = sum*60 + f
	}
	if strings.HasPrefix(s, "-") {
		sum = -sum
	}
	return sum, true
}
