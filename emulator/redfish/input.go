package redfish

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

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
	min, max int64                 // of an integer
	of       []input               // of a group
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
)

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
	secret     why = "secret" // wrong, but not to be repeated
)

// refusal is something that a client sent and that is not taken.
type refusal struct {
	path  []string
	why   why
	value string
}

func (r refusal) name() string { return r.path[len(r.path)-1] }

// pointer is the JSON pointer to it, as a URI fragment (RFC 6901, §6).
func (r refusal) pointer() string {
	esc := strings.NewReplacer("~", "~0", "/", "~1")
	return "#/" + strings.Join(list(r.path, esc.Replace), "/")
}

// property words a refusal as one of a property.
func (r refusal) property() message.Message {
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
		secret:     func() message.Message { return message.PropertyValueError.With(n) },
	}
	return m[r.why]().About(r.pointer())
}

// parameter words a refusal as one of an action's parameter.
func (r refusal) parameter(action string) message.Message {
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
		secret:     func() message.Message { return message.ActionParameterValueError.With(n, action) },
	}
	return m[r.why]().About(r.pointer())
}

// accept sorts what a client sent into what the inputs take and what they do
// not. shown is the resource as it is read, which tells a property that can
// only be read from one that is not known.
func accept(in document, inputs []input, v view, shown object) (values, []refusal) {
	set := values{}
	bad := in.accept(nil, inputs, v, shown, set)
	return set, bad
}

func (in document) accept(path []string, inputs []input, v view, shown object, set values) []refusal {
	var bad []refusal
	refuse := func(name string, w why, value any) {
		bad = append(bad, refusal{path: append(slices.Clone(path), name), why: w, value: echo(value)})
	}
	for _, name := range in.names {
		value := in.values[name]
		i := slices.IndexFunc(inputs, func(i input) bool { return i.name == name })
		_, known := shown[name]
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
			its, part := values{}, object{}
			if o, ok := shown[name].(object); ok {
				part = o
			}
			worse := below.accept(append(slices.Clone(path), name), inputs[i].of, v, part, its)
			if len(worse) > 0 {
				bad = append(bad, worse...)
				continue
			}
			for k, x := range its {
				set[k] = x
			}
		default:
			took, w := inputs[i].take(value, v)
			if w != "" {
				refuse(name, w, value)
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

// take checks one value, and says what is wrong with it.
func (i *input) take(value any, v view) (took any, wrong why) {
	defer func() {
		if i.secret && wrong != "" {
			wrong = secret
		}
	}()
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
	}
	return nil, wrongType
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

// document is a JSON object that a client sent.
type document struct {
	names  []string        // in order, each once
	twice  map[string]bool // those that were sent more than once
	values map[string]any
}

// redacted is the document as a job remembers it: without what is secret.
func (in document) redacted(m *match) string {
	var inputs []input
	switch {
	case m.action != nil:
		inputs = m.action.inputs
	case m.patch != nil:
		inputs = m.patch.inputs
	case m.create != nil:
		inputs = m.create.inputs
	}
	if len(in.names) == 0 {
		return ""
	}
	return string(encode(in.without(inputs)))
}

// without is the document but for the inputs that are secret.
func (in document) without(inputs []input) object {
	o := object{}
	for _, name := range in.names {
		i := slices.IndexFunc(inputs, func(i input) bool { return i.name == name })
		switch value := in.values[name].(type) {
		case document:
			var of []input
			if i >= 0 {
				of = inputs[i].of
			}
			o[name] = value.without(of)
		case string:
			if i >= 0 && !inputs[i].secret {
				o[name] = withoutPassword(value)
			}
		default:
			if i >= 0 && !inputs[i].secret {
				o[name] = value
			}
		}
	}
	return o
}

// maxDepth bounds how deep a document nests.
const maxDepth = 32

// Errors of a body.
var (
	errMalformed    = errors.New("redfish: body is not JSON")
	errUnrecognized = errors.New("redfish: body is not an object")
)

// parse reads a JSON object. Numbers are json.Number, objects are documents.
func parse(body []byte) (document, error) {
	if !json.Valid(body) {
		return document{}, errMalformed
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	value, err := next(d, maxDepth)
	if err != nil {
		return document{}, err
	}
	in, ok := value.(document)
	if !ok {
		return document{}, errUnrecognized
	}
	return in, nil
}

// next reads one value; the body was found valid.
func next(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, errMalformed
	}
	open, ok := t.(json.Delim)
	if !ok {
		return t, nil
	}
	if depth == 0 {
		return nil, errUnrecognized
	}
	in, array := document{twice: map[string]bool{}, values: map[string]any{}}, []any{}
	for d.More() {
		var name string
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return nil, errMalformed
			}
			name, _ = key.(string)
		}
		value, err := next(d, depth-1)
		if err != nil {
			return nil, err
		}
		if open == '[' {
			array = append(array, value)
			continue
		}
		if _, seen := in.values[name]; !seen {
			in.names = append(in.names, name)
		} else {
			in.twice[name] = true
		}
		in.values[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, errMalformed
	}
	if open == '[' {
		return array, nil
	}
	return in, nil
}
