package yamlfile

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Writer writes one file, key by key. Its zero value is ready for use.
type Writer struct{ top yaml.Node }

// Put adds a key with a value.
func (w *Writer) Put(key string, value any) { put(&w.top, key, node(reflect.ValueOf(value))) }

// PutDifferences adds the fields of the struct *v that differ from those of the
// struct *base, in their order.
func (w *Writer) PutDifferences(v, base any) {
	differences(&w.top, reflect.ValueOf(v).Elem(), reflect.ValueOf(base).Elem())
}

// Bytes returns the file.
func (w *Writer) Bytes() ([]byte, error) {
	w.top.Kind = yaml.MappingNode
	return written(&w.top)
}

// Write returns a file with the fields of a struct, in their order, without those
// that are zero.
func Write(v any) ([]byte, error) { return written(node(reflect.ValueOf(v))) }

func written(n *yaml.Node) ([]byte, error) {
	n.Style = 0 // each key at the top has lines of its own
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	if _, boolean := yaml11[strings.ToLower(s)]; boolean {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func bare(tag, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

func put(m *yaml.Node, name string, v *yaml.Node) {
	m.Content = append(m.Content, scalar(name), v)
}

// differences adds the fields of a struct that differ from the base's to m.
func differences(m *yaml.Node, v, base reflect.Value) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name := Key(f)
		if name == "" || reflect.DeepEqual(v.Field(i).Interface(), base.Field(i).Interface()) {
			continue
		}
		if f.Type.Kind() == reflect.Struct && !marshals(f.Type) {
			below := &yaml.Node{Kind: yaml.MappingNode}
			if differences(below, v.Field(i), base.Field(i)); len(below.Content) > 0 {
				put(m, name, below)
			}
			continue
		}
		n := node(v.Field(i))
		if f.Type.Kind() == reflect.Slice && v.Field(i).Len() == 0 {
			if base.Field(i).Len() == 0 {
				continue
			}
			n = &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		}
		put(m, name, n)
	}
}

var (
	marshalText = reflect.TypeFor[encoding.TextMarshaler]()
	marshalJSON = reflect.TypeFor[json.Marshaler]()
	numberType  = reflect.TypeFor[json.Number]()
)

func marshals(t reflect.Type) bool {
	return t.Implements(marshalText)
}

// maxFlow is how many characters a mapping or a list may have in one line.
const maxFlow = 140

// node makes the node of a value.

func node(v reflect.Value) *yaml.Node {
	t := v.Type()
	switch {
	case t == durationType:
		return scalar(time.Duration(v.Int()).String())
	case t.Kind() != reflect.Pointer && marshals(t):
		b, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err == nil {
			return scalar(string(b))
		}
	case t.Kind() == reflect.Struct && t.Implements(marshalJSON):
		b, err := v.Interface().(json.Marshaler).MarshalJSON()
		var x any
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.UseNumber()
		if err == nil && dec.Decode(&x) == nil {
			return node(reflect.ValueOf(&x).Elem())
		}
	case t == numberType:
		tag := "!!int"
		if strings.ContainsAny(v.String(), ".eE") {
			tag = "!!float"
		}
		return bare(tag, v.String())
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return bare("!!null", "null")
		}
		return node(v.Elem())
	case reflect.Struct:
		m := &yaml.Node{Kind: yaml.MappingNode}
		for i := range t.NumField() {
			if key := Key(t.Field(i)); key != "" && !v.Field(i).IsZero() {
				put(m, key, node(v.Field(i)))
			}
		}
		return tight(m)
	case reflect.Slice, reflect.Array:
		s := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			s.Content = append(s.Content, node(v.Index(i)))
		}
		return tight(s)
	case reflect.Map:
		m := &yaml.Node{Kind: yaml.MappingNode}
		keys := map[string]reflect.Value{}
		for _, k := range v.MapKeys() {
			keys[fmt.Sprint(k)] = k
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			m.Content = append(m.Content, node(keys[k]), node(v.MapIndex(keys[k])))
		}
		return tight(m)
	case reflect.Bool:
		return bare("!!bool", strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return bare("!!int", strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return bare("!!int", strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		text := strconv.FormatFloat(v.Float(), 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0" // else it would be read as an integer
		}
		return bare("!!float", text)
	case reflect.String:
		return scalar(v.String())
	}
	return bare("!!null", "null")
}

// tight makes a node that is short stand in one line.
func tight(n *yaml.Node) *yaml.Node {
	if width(n) <= maxFlow {
		n.Style = yaml.FlowStyle
	}
	return n
}

func width(n *yaml.Node) int {
	w := len(n.Value) + 2
	for _, c := range n.Content {
		w += width(c)
	}
	return w
}
