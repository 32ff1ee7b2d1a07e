package resource

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// Input describes a value that a client may send: a writable property, a
// property of a new resource, or an action parameter. Package vendor declares the
// inputs of OEM actions with the exported fields.
type Input struct {
	Name     string
	Kind     kind
	Required bool
	Secret   bool                  // never repeated in a response
	Allowed  func(v View) []string // allowed values as strings; nil: any
	form     func(string) bool     // reports whether a string is valid; nil: any is
	// Min and Max bound an Integer; a Number, unless both are 0; the number of
	// elements of an Array (Max 0: MaxElements); the characters of a Text (Max 0:
	// unbounded).
	Min, Max int64
	Of       []Input           // the properties of a Group; the one input of each element of an Array
	nullable bool              // accepts null, which is nil in Values
	when     func(v View) bool // reports whether the resource accepts it; nil: always
	// fixed marks a fixed-length array, whose elements keep their indexes (DSP0266,
	// "Array properties"): null empties an element, which is nil in Values.
	fixed         bool
	AcceptsSingle bool // an array for which a single object may stand, or a text with the elements and commas between them
}

// InputOf returns the index of the input with a name; -1 when there is none.
func InputOf(inputs []Input, name string) int {
	for i := range inputs {
		if inputs[i].Name == name {
			return i
		}
	}
	return -1
}

// kind is the type of an input.
type kind string

// Kinds of inputs.
const (
	Text    kind = "string"
	Boolean kind = "boolean"
	Integer kind = "integer"
	Number  kind = "number" // with a fraction, or none
	// Group is an object. It is applied completely or not at all: half a boot
	// override makes no sense.
	Group kind = "object"
	// Array is []any in Values, with elements as its input defines them; a Group
	// element is a Values. It is applied completely or not at all. In a PATCH,
	// Values holds the resulting array: null elements are removed, empty objects
	// keep the current element, and a partial group is completed from it
	// (DSP0266, "PATCH (update)"). previousIndex in it is its former index.
	Array kind = "array"
	// Link is a reference to a resource; Values holds its URI.
	Link kind = "link"
	// StringMap is an object of strings under names of the client's choice; Values
	// holds a map[string]string.
	StringMap kind = "strings"
	// AnyObject and AnyArray accept any object and any array; Values holds a
	// map[string]any and a []any.
	AnyObject kind = "any object"
	AnyArray  kind = "any array"
	// ScalarMap is an object of strings, numbers, booleans and nulls under names
	// that its operation knows; Values holds a map[string]any.
	ScalarMap kind = "free"
)

// previousIndex is the key in the Values of an array element for its former
// index, an int. It lets an operation find properties that a GET does not show.
const previousIndex = "@place"

// MaxElements is the greatest number of elements of an array whose input has no
// Max.
const MaxElements = 64

// Values are the valid values that a client sent, by name or, within a group, by
// path: "Boot/BootSourceOverrideTarget".
type Values map[string]any

// Value returns the value that a client sent under a name, or otherwise if it
// sent none. Its type is that of the input's kind: string, bool, int64 or
// float64.
func Value[T any](set Values, name string, otherwise T) T {
	if v, ok := set[name].(T); ok {
		return v
	}
	return otherwise
}

// Problem is the reason for which a value that a client sent is not valid.
type Problem string

// Problems of values.
const (
	Unknown        Problem = "unknown"
	ReadOnly       Problem = "read-only"
	Duplicate      Problem = "duplicate"
	Missing        Problem = "missing"
	WrongType      Problem = "type"
	wrongFormat    Problem = "form"
	NotListed      Problem = "not listed"
	outOfRange     Problem = "range"
	arrayTooLong   Problem = "too long"
	arrayTooShort  Problem = "too short"
	stringTooLong  Problem = "long text"
	stringTooShort Problem = "short text"
	invalidSecret  Problem = "secret"   // invalid, and not to be quoted
	CustomMessage  Problem = "outright" // InputError.Message describes the problem
)

// InputError is a property or parameter that a client sent and that is not
// valid, or that is missing.
type InputError struct {
	Path    []string // path of the property
	below   []string // path below that, in an array: "0", "Name"
	Problem Problem
	Value   string
	limit   string // that the length of the array or string exceeds

	Message message.Message // message of a CustomMessage
	Status  int             // status of the response when this is the only error; 0: 400
}

// Property returns the name of the top-level property or, in a group, of the
// property in it.
func (r InputError) Property() string { return r.Path[len(r.Path)-1] }

// Name returns the name of the innermost invalid property. An array element has
// the name of its array.
func (r InputError) Name() string {
	for _, n := range slices.Backward(r.below) {
		if _, err := strconv.Atoi(n); err != nil {
			return n
		}
	}
	return r.Property()
}

// Pointer returns the JSON pointer to the value, as a URI fragment (RFC 6901,
// §6).
func (r InputError) Pointer() string {
	esc := strings.NewReplacer("~", "~0", "/", "~1")
	return "#/" + strings.Join(Map(slices.Concat(r.Path, r.below), esc.Replace), "/")
}

// PropertyMessage returns the message for an invalid property.
func (r InputError) PropertyMessage() message.Message {
	n := r.Name()
	m := map[Problem]func() message.Message{
		Unknown:        func() message.Message { return message.PropertyUnknown.With(n) },
		ReadOnly:       func() message.Message { return message.PropertyNotWritable.With(n) },
		Duplicate:      func() message.Message { return message.PropertyDuplicate.With(n) },
		Missing:        func() message.Message { return message.PropertyMissing.With(n) },
		WrongType:      func() message.Message { return message.PropertyValueTypeError.With(r.Value, n) },
		wrongFormat:    func() message.Message { return message.PropertyValueFormatError.With(r.Value, n) },
		NotListed:      func() message.Message { return message.PropertyValueNotInList.With(r.Value, n) },
		outOfRange:     func() message.Message { return message.PropertyValueOutOfRange.With(r.Value, n) },
		arrayTooLong:   func() message.Message { return message.ArraySizeTooLong.With(n, r.limit) },
		arrayTooShort:  func() message.Message { return message.ArraySizeTooShort.With(n, r.limit) },
		stringTooLong:  func() message.Message { return message.StringValueTooLong.With(r.Value, r.limit) },
		stringTooShort: func() message.Message { return message.StringValueTooShort.With(r.Value, r.limit) },
		invalidSecret:  func() message.Message { return message.PropertyValueError.With(n) },
		CustomMessage:  func() message.Message { return r.Message },
	}
	return m[r.Problem]().About(r.Pointer())
}

// ParameterMessage returns the message for an invalid action parameter.
func (r InputError) ParameterMessage(action string) message.Message {
	n := r.Name()
	m := map[Problem]func() message.Message{
		Unknown:        func() message.Message { return message.ActionParameterUnknown.With(action, n) },
		ReadOnly:       func() message.Message { return message.ActionParameterNotSupported.With(n, action) },
		Duplicate:      func() message.Message { return message.ActionParameterDuplicate.With(action, n) },
		Missing:        func() message.Message { return message.ActionParameterMissing.With(action, n) },
		WrongType:      func() message.Message { return message.ActionParameterValueTypeError.With(r.Value, n, action) },
		wrongFormat:    func() message.Message { return message.ActionParameterValueFormatError.With(r.Value, n, action) },
		NotListed:      func() message.Message { return message.ActionParameterValueNotInList.With(r.Value, n, action) },
		outOfRange:     func() message.Message { return message.ActionParameterValueOutOfRange.With(r.Value, n, action) },
		arrayTooLong:   func() message.Message { return message.ActionParameterValueError.With(n, action) },
		arrayTooShort:  func() message.Message { return message.ActionParameterValueError.With(n, action) },
		stringTooLong:  func() message.Message { return message.ActionParameterValueFormatError.With(r.Value, n, action) },
		stringTooShort: func() message.Message { return message.ActionParameterValueFormatError.With(r.Value, n, action) },
		invalidSecret:  func() message.Message { return message.ActionParameterValueError.With(n, action) },
		CustomMessage:  func() message.Message { return r.Message },
	}
	return m[r.Problem]().About(r.Pointer())
}

// Echo returns a value as messages quote it, without the secrets of a URI.
func Echo(value any) string {
	switch x := value.(type) {
	case nil:
		return "null"
	case string:
		return HideURISecrets(x)
	case Document:
		return "{…}"
	case []any:
		return "[…]"
	default:
		return fmt.Sprint(x)
	}
}
