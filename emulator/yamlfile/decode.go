package yamlfile

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/metalab-dev/metalab/emulator/suggest"
)

// ScalarUnmarshaler is implemented by lists and mappings that a file may also
// give as one scalar: "method: GET" for "method: [GET]".
type ScalarUnmarshaler interface {
	UnmarshalScalar(text string) error
}

var (
	durationType    = reflect.TypeFor[time.Duration]()
	unmarshalText   = reflect.TypeFor[encoding.TextUnmarshaler]()
	unmarshalJSON   = reflect.TypeFor[json.Unmarshaler]()
	unmarshalScalar = reflect.TypeFor[ScalarUnmarshaler]()
)

// The bounds of what one file makes: mistakes that are listed, values in values,
// and values that aliases repeat. A small file can have very many of the last.
const (
	maxErrors  = 50
	maxDepth   = 60
	maxAliased = 200_000
)

// decoder decodes the nodes of a file into values, by the values' Go types.
type decoder struct {
	file    *File
	errs    []error
	more    int // mistakes beyond maxErrors
	depth   int
	aliases int // that the current node is inside of
	aliased int // nodes inside of aliases so far
	stopped bool
}

func (d *decoder) errorf(n *yaml.Node, field, text string, args ...any) {
	switch {
	case d.stopped:
		return
	case len(d.errs) >= maxErrors:
		d.more++
		return
	}
	e := Errorf(field, text, args...)
	e.File, e.Line = d.file.name, n.Line
	d.errs = append(d.errs, e)
}

// err joins the mistakes that are listed, and the number of the others.
func (d *decoder) err() error {
	if d.more == 0 {
		return errors.Join(d.errs...)
	}
	return errors.Join(append(d.errs, &unlisted{file: d.file.name, count: d.more})...)
}

// pointer decodes a node into what v points to.
func (d *decoder) pointer(n *yaml.Node, v any, at string) {
	d.decode(n, reflect.ValueOf(v).Elem(), at)
}

// enter returns the node that n stands for, and nil when a bound is exceeded. A
// caller that gets a node calls the function that comes with it when it is done.
func (d *decoder) enter(n *yaml.Node, at string) (*yaml.Node, func()) {
	alias := n.Kind == yaml.AliasNode
	if alias {
		d.aliases++
	}
	if d.aliases > 0 {
		d.aliased++
	}
	d.depth++
	leave := func() {
		d.depth--
		if alias {
			d.aliases--
		}
	}
	switch {
	case d.stopped:
	case d.depth > maxDepth:
		d.errorf(n, at, "values are nested more than %d deep", maxDepth)
		d.stopped = true
	case d.aliased > maxAliased:
		d.errorf(n, at, "the file is too large: aliases may repeat %d values at most", maxAliased)
		d.stopped = true
	default:
		return target(n), leave
	}
	leave()
	return nil, nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// mapping returns the entries of a mapping, and reports keys that are no text or
// there twice.
func (d *decoder) mapping(n *yaml.Node, at string) []pair {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.mismatch(n, at, "a mapping, such as {name: value}")
		return nil
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := target(n.Content[i])
		if k.Kind != yaml.ScalarNode {
			d.errorf(k, at, "a key must be a text")
			continue
		}
		if first, twice := lines[k.Value]; twice && !isMerge(k) {
			d.errorf(k, Within(at, k.Value), "is there already in line %d: keep one", first)
		}
		lines[k.Value] = k.Line
	}
	var out []pair
	for _, e := range entries(n) {
		if e.key.Kind == yaml.ScalarNode && !slices.ContainsFunc(out, func(p pair) bool { return p.key.Value == e.key.Value }) {
			out = append(out, e)
		}
	}
	return out
}

func (d *decoder) sequence(n *yaml.Node, at string) []*yaml.Node {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.mismatch(n, at, "a list, such as [a, b]")
		return nil
	}
	return n.Content
}

// mismatch reports a value that is not what it must be.
func (d *decoder) mismatch(n *yaml.Node, at, must string) {
	switch n.Kind {
	case yaml.MappingNode:
		d.errorf(n, at, "must be %s, not a mapping", must)
	case yaml.SequenceNode:
		d.errorf(n, at, "must be %s, not a list", must)
	default:
		d.errorf(n, at, "%q: must be %s", n.Value, must)
	}
}

// decode decodes a node into v. A null leaves a value that is zero as it is,
// empties lists, mappings and pointers, and is refused where it would hide what
// v has already.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, at string) {
	n, leave := d.enter(n, at)
	if n == nil {
		return
	}
	defer leave()
	t := v.Type()
	to := func(of reflect.Type) bool { return t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(of) }
	switch {
	case isNull(n) && !to(unmarshalJSON):
		switch t.Kind() {
		case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
			v.SetZero()
		default:
			if !v.IsZero() {
				d.errorf(n, at, "must not be null: leave the field out to keep what it is")
			}
		}
		return
	case t == durationType:
		span, err := time.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			d.mismatch(n, at, "a duration, such as 90s or 2m")
		}
		v.SetInt(int64(span))
		return
	case to(unmarshalScalar) && n.Kind == yaml.ScalarNode:
		if err := v.Addr().Interface().(ScalarUnmarshaler).UnmarshalScalar(n.Value); err != nil {
			d.errorf(n, at, "%v", err)
		}
		return
	case to(unmarshalText):
		if n.Kind != yaml.ScalarNode {
			d.mismatch(n, at, "a text")
		} else if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
			d.errorf(n, at, "%v", err)
		}
		return
	case to(unmarshalJSON):
		raw, err := json.Marshal(d.value(n, at))
		if err == nil {
			err = v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(raw)
		}
		if err != nil {
			d.errorf(n, at, "%v", err)
		}
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		d.fields(n, v, at)
	case reflect.Pointer:
		p := reflect.New(t.Elem())
		if !v.IsNil() {
			p.Elem().Set(v.Elem()) // others may share what v points to
		}
		d.decode(n, p.Elem(), at)
		v.Set(p)
	case reflect.Slice:
		all := d.sequence(n, at)
		s := reflect.MakeSlice(t, len(all), len(all))
		for i := range all {
			d.decode(all[i], s.Index(i), fmt.Sprintf("%s[%d]", at, i))
		}
		v.Set(s)
	case reflect.Array:
		all := d.sequence(n, at)
		if len(all) != t.Len() {
			d.errorf(n, at, "%d elements: must have %d", len(all), t.Len())
			return
		}
		for i := range all {
			d.decode(all[i], v.Index(i), fmt.Sprintf("%s[%d]", at, i))
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

// fields decodes a mapping into a struct.
func (d *decoder) fields(n *yaml.Node, v reflect.Value, at string) {
	t := v.Type()
	for _, e := range d.mapping(n, at) {
		key := e.key.Value
		if at == "" && slices.Contains(d.file.taken, key) {
			continue
		}
		field := Within(at, key)
		f, ok := fieldOf(v, key)
		if now := d.file.renamed[t.String()][key]; !ok && now != "" {
			d.errorf(e.key, field, "is now called %s", now)
			f, ok = fieldOf(v, now) // go on, so that all old keys are listed at once
		}
		if !ok {
			keys := Keys(t)
			if at == "" {
				for _, key := range d.file.taken {
					if !slices.Contains(keys, key) {
						keys = append(keys, key)
					}
				}
			}
			d.errorf(e.key, field, "there is no such field: use one of %s%s", strings.Join(keys, ", "), suggest.DidYouMean(key, keys))
			continue
		}
		d.decode(e.value, f, field)
	}
}

// entries decodes a mapping into a map, beside the entries that v has.
func (d *decoder) entries(n *yaml.Node, v reflect.Value, at string) {
	t := v.Type()
	out := reflect.MakeMap(t)
	for it := v.MapRange(); it.Next(); {
		out.SetMapIndex(it.Key(), it.Value())
	}
	for _, e := range d.mapping(n, at) {
		field := Within(at, e.key.Value)
		k := reflect.New(t.Key()).Elem()
		d.decode(e.key, k, field)
		x := reflect.New(t.Elem()).Elem()
		d.decode(e.value, x, field)
		out.SetMapIndex(k, x)
	}
	v.Set(out)
}

// yaml11 has the words for true and false of YAML 1.1, which a plain scalar may
// still have for a boolean.
var yaml11 = map[string]bool{
	"y": true, "yes": true, "on": true, "n": false, "no": false, "off": false,
}

// scalar decodes a scalar into a string, a boolean or a number.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, at string) {
	var x any
	if n.Kind == yaml.ScalarNode {
		if err := n.Decode(&x); err != nil {
			x = nil
		}
	}
	must := ""
	t := v.Type()
	switch t.Kind() {
	case reflect.String:
		if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!binary" {
			v.SetString(n.Value)
			return
		}
		must = "a text"
	case reflect.Bool:
		b, ok := x.(bool)
		if s, isText := x.(string); isText && n.Style == 0 {
			b, ok = yaml11[strings.ToLower(s)]
		}
		if ok {
			v.SetBool(b)
			return
		}
		must = "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if i, ok := integer(x); ok && !v.OverflowInt(i) {
			v.SetInt(i)
			return
		}
		must = "an integer"
		if t.Bits() < 64 {
			must += fmt.Sprintf(" from %d to %d", -1<<(t.Bits()-1), 1<<(t.Bits()-1)-1)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if u, ok := x.(uint64); ok && !v.OverflowUint(u) {
			v.SetUint(u)
			return
		}
		if i, ok := integer(x); ok && i >= 0 && !v.OverflowUint(uint64(i)) {
			v.SetUint(uint64(i))
			return
		}
		must = fmt.Sprintf("an integer from 0 to %d", uint64(1)<<(t.Bits()-1)*2-1)
	case reflect.Float32, reflect.Float64:
		switch x := x.(type) {
		case float64:
			if x-x == 0 { // neither infinite nor NaN
				v.SetFloat(x)
				return
			}
		case int:
			v.SetFloat(float64(x))
			return
		case int64:
			v.SetFloat(float64(x))
			return
		case uint64:
			v.SetFloat(float64(x))
			return
		}
		must = "a number"
	default:
		must = "left out: it can be set only in Go"
	}
	d.mismatch(n, at, must)
}

// integer returns a number that has no fraction and fits 64 bits.
func integer(x any) (int64, bool) {
	switch x := x.(type) {
	case int:
		return int64(x), true
	case int64:
		return x, true
	case float64:
		return int64(x), x == math.Trunc(x) && math.Abs(x) < 1<<53
	}
	return 0, false
}

// value decodes a node into a value as encoding/json has them, but for integers,
// which are int.
func (d *decoder) value(n *yaml.Node, at string) any {
	n, leave := d.enter(n, at)
	if n == nil {
		return nil
	}
	defer leave()
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for _, e := range d.mapping(n, at) {
			out[e.key.Value] = d.value(e.value, Within(at, e.key.Value))
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for i, c := range n.Content {
			out = append(out, d.value(c, fmt.Sprintf("%s[%d]", at, i)))
		}
		return out
	}
	var x any
	if err := n.Decode(&x); err != nil {
		d.errorf(n, at, "%q: %v", n.Value, err)
	}
	switch x := x.(type) {
	case nil, bool, int:
		return x
	case float64:
		if x-x == 0 {
			return x
		}
		d.errorf(n, at, "%q: must be a number as JSON has it", n.Value)
	case int64, uint64:
		d.errorf(n, at, "%q: must be a number that fits 63 bits", n.Value)
	}
	return n.Value
}
