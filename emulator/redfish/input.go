package redfish

import (
	"fmt"
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
	// min and max bound an integer; a number, unless both are 0; how many
	// elements an array has, max 0: maxElements; how many characters a string
	// has, max 0: any.
	min, max int64
	of       []input // of a group; of an array the one that each element is
	nullable bool    // takes null, which stands in values as nil
	// fixed is an array whose elements keep their places (DSP0266, "Array
	// properties"): null leaves an empty one, which stands in values as nil.
	fixed bool
	lone  bool // an array of objects for which a single one may stand
}

// inputOf is where the input of a name is; -1 when there is none.
func inputOf(inputs []input, name string) int {
	for i := range inputs {
		if inputs[i].name == name {
			return i
		}
	}
	return -1
}

// kind is the type of an input.
type kind string

const (
	text    kind = "string"
	boolean kind = "boolean"
	integer kind = "integer"
	number  kind = "number" // with a fraction, or none
	// group is an object. Its properties stand or fall together: half of a
	// boot override is none.
	group kind = "object"
	// array stands in values as []any, of which each element is what its input
	// takes; of a group that is a values. It is taken whole or not at all. In a
	// PATCH it stands as it is to be: null elements are gone, empty ones are
	// what they were, and of a group that was sent in part the rest is there
	// (DSP0266, "PATCH (update)"). Its key place says where it was.
	array kind = "array"
	// link is a reference to a resource, which stands in values as its address.
	link kind = "link"
	// named is an object of text under names of the client's choice, which
	// stands in values as map[string]string.
	named kind = "strings"
	// anyObject and anyArray are such of anything, which stand in values as
	// map[string]any and []any.
	anyObject kind = "any object"
	anyArray  kind = "any array"
	// free is an object of strings, numbers, booleans and nulls under names
	// that its operation knows, which stands in values as map[string]any.
	free kind = "free"
)

// place is the key under which an element of an array that was there before
// has its former index, an int. What is not shown can be found by it.
const place = "@place"

// maxElements bounds an array whose input does not.
const maxElements = 64

// values are what a client sent and the inputs took, by name or, within a
// group, by path: "Boot/BootSourceOverrideTarget".
type values map[string]any

// value is what a client sent under a name, or otherwise when it did not. Its
// type is that of the input's kind: string, bool, int64 or float64.
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
	longText   why = "long text"
	shortText  why = "short text"
	secret     why = "secret"   // wrong, but not to be repeated
	outright   why = "outright" // as the refusal says itself
)

// refusal is something that a client sent and that is not taken.
type refusal struct {
	path  []string // of the property
	below []string // from there, when it is within an array: "0", "Name"
	why   why
	value string
	limit string // that the value passes, of an array or a text

	says   message.Message // of one that is outright
	status int             // when nothing else is wrong; 0 is 400
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
		tooLong:    func() message.Message { return message.ArraySizeTooLong.With(n, r.limit) },
		tooShort:   func() message.Message { return message.ArraySizeTooShort.With(n, r.limit) },
		longText:   func() message.Message { return message.StringValueTooLong.With(r.value, r.limit) },
		shortText:  func() message.Message { return message.StringValueTooShort.With(r.value, r.limit) },
		secret:     func() message.Message { return message.PropertyValueError.With(n) },
		outright:   func() message.Message { return r.says },
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
		longText:   func() message.Message { return message.ActionParameterValueFormatError.With(r.value, n, action) },
		shortText:  func() message.Message { return message.ActionParameterValueFormatError.With(r.value, n, action) },
		secret:     func() message.Message { return message.ActionParameterValueError.With(n, action) },
		outright:   func() message.Message { return r.says },
	}
	return m[r.why]().About(r.pointer())
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
