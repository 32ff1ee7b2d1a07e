package redfish

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// input is something that a client may send: a property that can be written,
// one of a new resource, or the parameter of an action.
type input struct {
	name     string
	kind     kind
	required bool
	secret   bool                  // never repeated in an answer
	values   func(v view) []string // that it takes, as text; nil: any
	form     func(string) bool     // of a string; nil: any
	min, max int64                 // of an integer; of an array how many elements, max 0: maxElements
	of       []input               // of a group; of an array the one that each element is
	nullable bool                  // takes null, which stands in values as nil
}

// kind is the type of an input.
type kind string

const (
	text    kind = "string"
	boolean kind = "boolean"
	integer kind = "integer"
	// group is an object. Its properties stand or fall together: half of a
	// boot override is none.
	group kind = "object"
	// array stands in values as []any, of which each element is what its input
	// takes; of a group that is a values. It is taken whole or not at all.
	array kind = "array"
	// link is a reference to a resource, which stands in values as its address.
	link kind = "link"
	// named is an object of text under names of the client's choice, which
	// stands in values as map[string]string.
	named kind = "strings"
)

// maxElements bounds an array whose input does not.
const maxElements = 64

// values are what a client sent and the inputs took, by name or, within a
// group, by path: "Boot/BootSourceOverrideTarget".
type values map[string]any

// value is what a client sent under a name, or otherwise when it did not. Its
// type is that of the input's kind: string, bool or int64.
func value[T any](set values, name string, otherwise T) T {
	if v, ok := set[name].(T); ok {
		return v
	}
	return otherwise
}

// why says what is wrong with something that a client sent.
type why string

const (
	unknown    why = "unknown"
	readOnly   why = "read-only"
	duplicate  why = "duplicate"
	missing    why = "missing"
	wrongType  why = "type"
	wrongForm  why = "form"
	notListed  why = "not listed"
	outOfRange why = "range"
	tooLong    why = "too long"
	tooShort   why = "too short"
	secret     why = "secret" // wrong, but not to be repeated
)

// refusal is something that a client sent and that is not taken.
type refusal struct {
	path  []string // of the property
	below []string // from there, when it is within an array: "0", "Name"
	why   why
	value string
}

// property is the name of the property that is not taken.
func (r refusal) property() string { return r.path[len(r.path)-1] }

// name is the name of the innermost thing that is wrong; an element of an array
// is named as the array is.
func (r refusal) name() string {
	for _, n := range slices.Backward(r.below) {
		if _, err := strconv.Atoi(n); err != nil {
			return n
		}
	}
	return r.property()
}

// pointer is the JSON pointer to it, as a URI fragment (RFC 6901, §6).
func (r refusal) pointer() string {
	esc := strings.NewReplacer("~", "~0", "/", "~1")
	return "#/" + strings.Join(list(slices.Concat(r.path, r.below), esc.Replace), "/")
}

// ofProperty words a refusal as one of a property.
func (r refusal) ofProperty() message.Message {
	n := r.name()
	m := map[why]func() message.Message{
		unknown:    func() message.Message { return message.PropertyUnknown.With(n) },
		readOnly:   func() message.Message { return message.PropertyNotWritable.With(n) },
		duplicate:  func() message.Message { return message.PropertyDuplicate.With(n) },
		missing:    func() message.Message { return message.PropertyMissing.With(n) },
		wrongType:  func() message.Message { return message.PropertyValueTypeError.With(r.value, n) },
		wrongForm:  func() message.Message { return message.PropertyValueFormatError.With(r.value, n) },
		notListed:  func() message.Message { return message.PropertyValueNotInList.With(r.value, n) },
		outOfRange: func() message.Message { return message.PropertyValueOutOfRange.With(r.value, n) },
		tooLong:    func() message.Message { return message.ArraySizeTooLong.With(n, r.value) },
		tooShort:   func() message.Message { return message.ArraySizeTooShort.With(n, r.value) },
		secret:     func() message.Message { return message.PropertyValueError.With(n) },
	}
	return m[r.why]().About(r.pointer())
}

// ofParameter words a refusal as one of an action's parameter.
func (r refusal) ofParameter(action string) message.Message {
	n := r.name()
	m := map[why]func() message.Message{
		unknown:    func() message.Message { return message.ActionParameterUnknown.With(action, n) },
		readOnly:   func() message.Message { return message.ActionParameterNotSupported.With(n, action) },
		duplicate:  func() message.Message { return message.ActionParameterDuplicate.With(action, n) },
		missing:    func() message.Message { return message.ActionParameterMissing.With(action, n) },
		wrongType:  func() message.Message { return message.ActionParameterValueTypeError.With(r.value, n, action) },
		wrongForm:  func() message.Message { return message.ActionParameterValueFormatError.With(r.value, n, action) },
		notListed:  func() message.Message { return message.ActionParameterValueNotInList.With(r.value, n, action) },
		outOfRange: func() message.Message { return message.ActionParameterValueOutOfRange.With(r.value, n, action) },
		tooLong:    func() message.Message { return message.ActionParameterValueError.With(n, action) },
		tooShort:   func() message.Message { return message.ActionParameterValueError.With(n, action) },
		secret:     func() message.Message { return message.ActionParameterValueError.With(n, action) },
	}
	return m[r.why]().About(r.pointer())
}

// accept sorts what a client sent into what the inputs take and what they do
// not. shown, if not nil, makes the resource as it is read, which tells a
// property that can only be read from one that is not known.
func accept(in document, inputs []input, v view, shown func() object) (values, []refusal) {
	set := values{}
	bad := in.accept(nil, inputs, v, shown, set)
	return set, bad
}

func (in document) accept(path []string, inputs []input, v view, shown func() object, set values) []refusal {
	var bad []refusal
	refuse := func(name string, w why, value any) {
		bad = append(bad, refusal{path: append(slices.Clone(path), name), why: w, value: echo(value)})
	}
	for _, name := range in.names {
		value := in.values[name]
		i := slices.IndexFunc(inputs, func(i input) bool { return i.name == name })
		known := false
		if i < 0 && shown != nil {
			_, known = shown()[name]
		}
		switch {
		case strings.Contains(name, "@odata."): // payload annotations are ignored
		case in.twice[name]:
			refuse(name, duplicate, nil)
		case i < 0 && known:
			refuse(name, readOnly, nil)
		case i < 0:
			refuse(name, unknown, nil)
		case inputs[i].kind == group:
			below, ok := value.(document)
			if !ok {
				refuse(name, wrongType, value)
				continue
			}
			its := values{}
			part := sync.OnceValue(func() object {
				if shown == nil {
					return nil
				}
				o, _ := shown()[name].(object)
				return o
			})
			worse := below.accept(append(slices.Clone(path), name), inputs[i].of, v, part, its)
			if len(worse) > 0 {
				bad = append(bad, worse...)
				continue
			}
			for k, x := range its {
				set[k] = x
			}
		default:
			took, wrong := inputs[i].take(value, v)
			if len(wrong) > 0 {
				for _, w := range wrong {
					w.path = append(slices.Clone(path), name)
					bad = append(bad, w)
				}
				continue
			}
			set[strings.Join(append(slices.Clone(path), name), "/")] = took
		}
	}
	for i := range inputs {
		i := &inputs[i]
		if _, sent := in.values[i.name]; i.required && !sent {
			refuse(i.name, missing, nil)
		}
	}
	return bad
}

// take checks a value, and says what is wrong with it or within it.
func (i *input) take(value any, v view) (any, []refusal) {
	if value == nil && i.nullable {
		return nil, nil
	}
	if i.kind == array {
		return i.elements(value, v)
	}
	took, w := i.one(value, v)
	if w == "" {
		return took, nil
	}
	if i.secret {
		w = secret
	}
	return nil, []refusal{{why: w, value: echo(value)}}
}

// elements checks an array. A group among them has no resource to compare with,
// so that what it does not take is unknown.
func (i *input) elements(value any, v view) (any, []refusal) {
	all, ok := value.([]any)
	most := i.max
	if most == 0 {
		most = maxElements
	}
	switch {
	case !ok:
		return nil, []refusal{{why: wrongType, value: echo(value)}}
	case int64(len(all)) > most:
		return nil, []refusal{{why: tooLong, value: strconv.FormatInt(most, 10)}}
	case int64(len(all)) < i.min:
		return nil, []refusal{{why: tooShort, value: strconv.FormatInt(i.min, 10)}}
	}
	took, bad := []any{}, []refusal(nil)
	each := &i.of[0]
	for n, x := range all {
		at := strconv.Itoa(n)
		below, isObject := x.(document)
		if each.kind == group && isObject {
			its := values{}
			for _, w := range below.accept(nil, each.of, v, nil, its) {
				w.path, w.below = nil, slices.Concat([]string{at}, w.path, w.below)
				bad = append(bad, w)
			}
			took = append(took, its)
			continue
		}
		y, wrong := each.take(x, v)
		for _, w := range wrong {
			w.below = append([]string{at}, w.below...)
			if i.secret {
				w.why = secret
			}
			bad = append(bad, w)
		}
		took = append(took, y)
	}
	if len(bad) > 0 {
		return nil, bad
	}
	return took, nil
}

// one checks a value that is no array.
func (i *input) one(value any, v view) (took any, wrong why) {
	switch i.kind {
	case boolean:
		b, ok := value.(bool)
		switch {
		case !ok:
			return nil, wrongType
		case i.values != nil && !slices.Contains(i.values(v), strconv.FormatBool(b)):
			return nil, notListed
		}
		return b, ""
	case text:
		t, ok := value.(string)
		switch {
		case !ok:
			return nil, wrongType
		case i.values != nil && !slices.Contains(i.values(v), t):
			return nil, notListed
		case i.form != nil && !i.form(t):
			return nil, wrongForm
		}
		return t, ""
	case integer:
		n, ok := value.(json.Number)
		whole, isWhole := wholeNumber(n)
		switch {
		case !ok || !isWhole:
			return nil, wrongType
		case whole < i.min || whole > i.max:
			return nil, outOfRange
		}
		return whole, ""
	case link:
		d, _ := value.(document)
		uri, ok := d.values["@odata.id"].(string)
		switch {
		case !ok || len(d.names) > 1:
			return nil, wrongType
		case i.form != nil && !i.form(uri):
			return nil, wrongForm
		}
		return uri, ""
	case named:
		return i.texts(value)
	}
	return nil, wrongType
}

// texts checks an object of text. Its form, if any, is that of "name: text".
func (i *input) texts(value any) (any, why) {
	d, ok := value.(document)
	if !ok {
		return nil, wrongType
	}
	out := map[string]string{}
	for _, name := range d.names {
		t, ok := d.values[name].(string)
		switch {
		case !ok:
			return nil, wrongType
		case d.twice[name] || i.form != nil && !i.form(name+": "+t):
			return nil, wrongForm
		}
		out[name] = t
	}
	return out, ""
}

// wholeNumber reads a JSON number that is an integer: 30, 30.0 or 3e1.
func wholeNumber(n json.Number) (int64, bool) {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i, true
	}
	f, err := n.Float64()
	if err != nil && !errors.Is(err, strconv.ErrRange) || string(n) == "" {
		return 0, false
	}
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), f == math.Trunc(f)
}

// echo is a value as a message repeats it.
func echo(value any) string {
	switch x := value.(type) {
	case nil:
		return "null"
	case string:
		return withoutPassword(x)
	case document:
		return "{…}"
	case []any:
		return "[…]"
	default:
		return fmt.Sprint(x)
	}
}
