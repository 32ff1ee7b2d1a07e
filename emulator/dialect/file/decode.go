package file

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// decoder puts YAML into values. It goes by the values' own types, so that a
// field that a record gets can be written in a file at once.
type decoder struct {
	file  string
	nodes int
	depth int
	errs  []error
}

var (
	durationType  = reflect.TypeFor[time.Duration]()
	unmarshalText = reflect.TypeFor[encoding.TextUnmarshaler]()
	marshalText   = reflect.TypeFor[encoding.TextMarshaler]()
)

func valueOf[T any](p *T) reflect.Value { return reflect.ValueOf(p).Elem() }

// maxErrors is how many mistakes are told at once.
const maxErrors = 50

func (d *decoder) wrong(n *yaml.Node, field, text string, args ...any) {
	if len(d.errs) >= maxErrors {
		return
	}
	at := d.file
	if n != nil && n.Line > 0 {
		at += ":" + strconv.Itoa(n.Line)
	}
	if field != "" {
		at += ": " + field
	}
	d.errs = append(d.errs, fmt.Errorf("dialect: %s: %s", at, fmt.Sprintf(text, args...)))
}

func (d *decoder) err() error { return errors.Join(d.errs...) }

// real is the node that a node stands for. Nodes are counted, since a name for
// a node can stand in many places.
func (d *decoder) real(n *yaml.Node, field string) *yaml.Node {
	for n != nil && (n.Kind == yaml.AliasNode || n.Kind == yaml.DocumentNode) {
		if d.nodes++; d.nodes > maxNodes {
			break
		}
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		} else if len(n.Content) > 0 {
			n = n.Content[0]
		} else {
			n = nil
		}
	}
	if d.nodes++; d.nodes > maxNodes {
		if d.nodes == maxNodes+1 {
			d.wrong(n, field, "the file is too large: it may have %d values", maxNodes)
		}
		return nil
	}
	return n
}

// maxDepth is how deep values may be in each other: a name can stand in what it
// is a name for.
const maxDepth = 60

// deeper is the node that a node in the last one stands for.
func (d *decoder) deeper(n *yaml.Node, field string) *yaml.Node {
	if d.depth >= maxDepth {
		d.nodes = maxNodes + 1 // no more of this file
		d.wrong(n, "", "values are in each other more than %d deep", maxDepth)
		return nil
	}
	if n = d.real(n, field); n != nil {
		d.depth++
	}
	return n
}

// mapping is a mapping's entries, of which each is taken once.
type mapping struct {
	names  []string
	keys   []*yaml.Node
	values []*yaml.Node
}

func (d *decoder) mapping(n *yaml.Node, field string) *mapping {
	m := &mapping{}
	r := d.real(n, field)
	if r == nil || r.Kind == yaml.ScalarNode && r.Tag == "!!null" {
		return m
	}
	if r.Kind != yaml.MappingNode {
		d.wrong(r, field, "must be a mapping: name: value")
		return m
	}
	for i := 0; i+1 < len(r.Content); i += 2 {
		k := d.real(r.Content[i], field)
		if k == nil {
			return m
		}
		if k.Kind != yaml.ScalarNode || slices.Contains(m.names, k.Value) {
			d.wrong(k, field, "%q: a name must be a text, and be there once", k.Value)
			continue
		}
		m.names, m.keys, m.values = append(m.names, k.Value), append(m.keys, k), append(m.values, r.Content[i+1])
	}
	return m
}

func (m *mapping) take(name string) *yaml.Node {
	i := slices.Index(m.names, name)
	if i < 0 {
		return nil
	}
	n := m.values[i]
	m.names, m.keys, m.values = slices.Delete(m.names, i, i+1), slices.Delete(m.keys, i, i+1), slices.Delete(m.values, i, i+1)
	return n
}

func (d *decoder) list(n *yaml.Node, field string) []*yaml.Node {
	r := d.real(n, field)
	if r == nil || r.Kind == yaml.ScalarNode && r.Tag == "!!null" {
		return nil
	}
	if r.Kind != yaml.SequenceNode {
		d.wrong(r, field, "must be a list: [a, b]")
		return nil
	}
	return r.Content
}

func (d *decoder) text(n *yaml.Node, field string) string {
	r := d.real(n, field)
	if r == nil {
		return ""
	}
	if r.Kind != yaml.ScalarNode || r.Tag == "!!null" {
		d.wrong(r, field, "must be a text")
		return ""
	}
	return r.Value
}

// fields puts the entries of a mapping into a struct.
func (d *decoder) fields(m *mapping, v reflect.Value, at string) {
	for i, name := range m.names {
		field := strings.TrimPrefix(at+"."+name, ".")
		f, ok := fieldOf(v, name)
		if now := renamedKeys[v.Type().Name()][name]; !ok && now != "" {
			d.wrong(m.keys[i], field, "is now called %s", now)
			f, ok = fieldOf(v, now) // go on, so that all old keys are listed at once
		}
		if !ok {
			d.wrong(m.keys[i], field, "there is no such field: use %s", strings.Join(namesOf(v.Type()), ", "))
			continue
		}
		d.into(m.values[i], f, field)
	}
}

func (d *decoder) into(n *yaml.Node, v reflect.Value, at string) {
	if n = d.deeper(n, at); n == nil {
		return
	}
	defer func() { d.depth-- }()
	t := v.Type()
	switch {
	case t == durationType:
		span, err := time.ParseDuration(d.text(n, at))
		if err != nil {
			d.wrong(n, at, "%q: use a form like 90s or 2m", n.Value)
		}
		v.SetInt(int64(span))
		return
	case t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(unmarshalText):
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(d.text(n, at))); err != nil {
			d.wrong(n, at, "%v", err)
		}
		return
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		switch t.Kind() {
		case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
			v.SetZero()
		default:
			d.wrong(n, at, "must not be null")
		}
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		d.fields(d.mapping(n, at), v, at)
	case reflect.Pointer:
		p := reflect.New(t.Elem())
		if !v.IsNil() {
			p.Elem().Set(v.Elem()) // what others share stays as it is
		}
		d.into(n, p.Elem(), at)
		v.Set(p)
	case reflect.Slice:
		all := d.list(n, at)
		s := reflect.MakeSlice(t, len(all), len(all))
		for i := range all {
			d.into(all[i], s.Index(i), fmt.Sprintf("%s[%d]", at, i))
		}
		v.Set(s)
	case reflect.Array:
		all := d.list(n, at)
		if len(all) != t.Len() {
			d.wrong(n, at, "must have %d elements", t.Len())
			return
		}
		for i := range all {
			d.into(all[i], v.Index(i), fmt.Sprintf("%s[%d]", at, i))
		}
	case reflect.Map:
		d.entries(n, v, at)
	case reflect.Interface:
		if x := d.value(n, at); x != nil {
			v.Set(reflect.ValueOf(x))
		} else {
			v.SetZero()
		}
	default:
		d.scalar(n, v, at)
	}
}

// entries puts a mapping into a map, beside what the base has there.
func (d *decoder) entries(n *yaml.Node, v reflect.Value, at string) {
	t := v.Type()
	m := d.mapping(n, at)
	out := reflect.MakeMap(t)
	for it := v.MapRange(); it.Next(); {
		out.SetMapIndex(it.Key(), it.Value())
	}
	for i, name := range m.names {
		e := reflect.New(t.Elem()).Elem()
		d.into(m.values[i], e, at+"."+name)
		out.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), e)
	}
	v.Set(out)
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, at string) {
	text := d.text(n, at)
	t := v.Type()
	must := ""
	switch t.Kind() {
	case reflect.String:
		if n.Tag == "!!bool" || n.Tag == "!!int" || n.Tag == "!!float" || n.Tag == "!!str" || n.Tag == "!!timestamp" {
			v.SetString(text)
			return
		}
		must = "a text"
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err == nil && n.Tag == "!!bool" {
			v.SetBool(b)
			return
		}
		must = "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(text, 0, t.Bits())
		if err == nil {
			v.SetInt(i)
			return
		}
		must = "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		i, err := strconv.ParseUint(text, 0, t.Bits())
		if err == nil {
			v.SetUint(i)
			return
		}
		must = fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<(t.Bits()-1)*2-1)
	case reflect.Float32, reflect.Float64:
		x, err := strconv.ParseFloat(text, 64)
		if err == nil {
			v.SetFloat(x)
			return
		}
		must = "a number"
	default:
		must = "left out: it can be said only in Go"
	}
	if n.Kind == yaml.ScalarNode { // else text has said so
		d.wrong(n, at, "%q: must be %s", n.Value, must)
	}
}

// value is a value of JSON.
func (d *decoder) value(n *yaml.Node, at string) any {
	if n = d.deeper(n, at); n == nil {
		return nil
	}
	defer func() { d.depth-- }()
	switch n.Kind {
	case yaml.MappingNode:
		m := d.mapping(n, at)
		out := map[string]any{}
		for i, name := range m.names {
			out[name] = d.value(m.values[i], at+"."+name)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for i, c := range n.Content {
			out = append(out, d.value(c, fmt.Sprintf("%s[%d]", at, i)))
		}
		return out
	}
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		b, err := strconv.ParseBool(n.Value)
		if err == nil {
			return b
		}
	case "!!int":
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			return int(i)
		}
		d.wrong(n, at, "%q: must be a number that fits 64 bits", n.Value)
	case "!!float":
		if x, err := strconv.ParseFloat(n.Value, 64); err == nil && x-x == 0 {
			return x
		}
		d.wrong(n, at, "%q: must be a number as JSON has it", n.Value)
	}
	return n.Value
}
