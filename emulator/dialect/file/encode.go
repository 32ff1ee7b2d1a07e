package file

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
	"unicode"

	"go.yaml.in/yaml/v3"
)

// irregularKeys has the keys that do not follow from the names of Go fields by
// keyOf's rule.
var irregularKeys = map[string]string{
	"ETags": "etags", "IDsOnly": "idsOnly", "NICs": "nics", "NICsRenumberAtBoot": "nicsRenumberAtBoot",
}

// keyOf returns the key of a struct field in a file: the name in its json tag if
// it has one, else its Go name with the first word in lower case: systemID for
// SystemID, bmc for BMC.
func keyOf(f reflect.StructField) string {
	if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" && tag != "-" {
		return tag
	}
	if s, ok := irregularKeys[f.Name]; ok {
		return s
	}
	runes := []rune(f.Name)
	n := 0
	for n < len(runes) && unicode.IsUpper(runes[n]) {
		n++
	}
	if n > 1 && n < len(runes) {
		n-- // the next word's first letter
	}
	for i := range n {
		runes[i] = unicode.ToLower(runes[i])
	}
	return string(runes)
}

// writable says whether a field can stand in a file: functions cannot.
func writable(f reflect.StructField) bool {
	return f.IsExported() && f.Type.Kind() != reflect.Func && f.Tag.Get("json") != "-"
}

func namesOf(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		if f := t.Field(i); writable(f) {
			out = append(out, keyOf(f))
		}
	}
	return out
}

func fieldOf(v reflect.Value, name string) (reflect.Value, bool) {
	t := v.Type()
	for i := range t.NumField() {
		if f := t.Field(i); writable(f) && keyOf(f) == name {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// encoder writes values as decoder reads them.
type encoder struct{}

// Write writes any of the emulator's data, a server model or a registry, as
// files have it: in the order of its fields, without those that are zero.
func Write(v any) ([]byte, error) { return written(encoder{}.node(reflect.ValueOf(v))) }

func written(n *yaml.Node) ([]byte, error) {
	n.Style = 0 // its fields have a line each
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return nil, fmt.Errorf("dialect: %w", err)
	}
	return b.Bytes(), nil
}

// switches are texts that are true or false to readers of YAML 1.1.
var switches = map[string]bool{"on": true, "off": true, "yes": true, "no": true, "y": true, "n": true}

func scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	if switches[strings.ToLower(s)] {
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

// differences writes the fields of a struct that are not as the base's.
func (e encoder) differences(m *yaml.Node, v, base reflect.Value) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if !writable(f) || reflect.DeepEqual(v.Field(i).Interface(), base.Field(i).Interface()) {
			continue
		}
		name := keyOf(f)
		if f.Type.Kind() == reflect.Struct && !marshals(f.Type) {
			below := &yaml.Node{Kind: yaml.MappingNode}
			if e.differences(below, v.Field(i), base.Field(i)); len(below.Content) > 0 {
				put(m, name, below)
			}
			continue
		}
		n := e.node(v.Field(i))
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
	marshalJSON = reflect.TypeFor[json.Marshaler]()
	numberType  = reflect.TypeFor[json.Number]()
)

func marshals(t reflect.Type) bool {
	return t.Implements(marshalText)
}

// flow is how many characters a struct or a list may take in one line.
const flow = 140

func (e encoder) node(v reflect.Value) *yaml.Node {
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
			return e.node(reflect.ValueOf(&x).Elem())
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
		return e.node(v.Elem())
	case reflect.Struct:
		m := &yaml.Node{Kind: yaml.MappingNode}
		for i := range t.NumField() {
			if f := t.Field(i); writable(f) && !v.Field(i).IsZero() {
				put(m, keyOf(f), e.node(v.Field(i)))
			}
		}
		return tight(m)
	case reflect.Slice, reflect.Array:
		s := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			s.Content = append(s.Content, e.node(v.Index(i)))
		}
		return tight(s)
	case reflect.Map:
		m := &yaml.Node{Kind: yaml.MappingNode}
		keys := map[string]reflect.Value{}
		for _, k := range v.MapKeys() {
			keys[k.String()] = k
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			put(m, k, e.node(v.MapIndex(keys[k])))
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
			text += ".0" // so that it stays what it is
		}
		return bare("!!float", text)
	case reflect.String:
		return scalar(v.String())
	}
	return bare("!!null", "null")
}

// tight writes what is short in one line.
func tight(n *yaml.Node) *yaml.Node {
	if width(n) <= flow {
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
