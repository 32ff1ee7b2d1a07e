package resource

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// Input is something that a client may send: a property that can be written,
// one of a new resource, or the parameter of an action.
type Input struct {
	Name     string
	Kind     kind
	Required bool
	Secret   bool                  // never repeated in an answer
	Allowed  func(v View) []string // that it takes, as text; nil: any
	Form     func(string) bool     // of a string; nil: any
	// Min and max bound an integer; a number, unless both are 0; how many
	// elements an array has, max 0: maxElements; how many characters a string
	// has, max 0: any.
	Min, Max int64
	Of       []Input // of a group; of an array the one that each element is
	Nullable bool    // takes null, which stands in values as nil
	// Fixed is an array whose elements keep their places (DSP0266, "Array
	// properties"): null leaves an empty one, which stands in values as nil.
	Fixed bool
	lone  bool // an array of objects for which a single one may stand
}

// InputOf is where the input of a name is; -1 when there is none.
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

const (
	Text    kind = "string"
	Boolean kind = "boolean"
	Integer kind = "integer"
	Number  kind = "number" // with a fraction, or none
	// Group is an object. Its properties stand or fall together: half of a
	// boot override is none.
	Group kind = "object"
	// Array stands in values as []any, of which each element is what its input
	// takes; of a group that is a values. It is taken whole or not at all. In a
	// PATCH it stands as it is to be: null elements are gone, empty ones are
	// what they were, and of a group that was sent in part the rest is there
	// (DSP0266, "PATCH (update)"). Its key place says where it was.
	Array kind = "array"
	// Link is a reference to a resource, which stands in values as its address.
	Link kind = "link"
	// Named is an object of text under names of the client's choice, which
	// stands in values as map[string]string.
	Named kind = "strings"
	// AnyObject and anyArray are such of anything, which stand in values as
	// map[string]any and []any.
	AnyObject kind = "any object"
	AnyArray  kind = "any array"
	// Free is an object of strings, numbers, booleans and nulls under names
	// that its operation knows, which stands in values as map[string]any.
	Free kind = "free"
)

// Place is the key under which an element of an array that was there before
// has its former index, an int. What is not shown can be found by it.
const Place = "@place"

// MaxElements bounds an array whose input does not.
const MaxElements = 64

// Values are what a client sent and the inputs took, by name or, within a
// group, by path: "Boot/BootSourceOverrideTarget".
type Values map[string]any

// Value is what a client sent under a name, or otherwise when it did not. Its
// type is that of the input's kind: string, bool, int64 or float64.
func Value[T any](set Values, name string, otherwise T) T {
	if v, ok := set[name].(T); ok {
		return v
	}
	return otherwise
}

// Problem says what is wrong with something that a client sent.
type Problem string

const (
	Unknown    Problem = "unknown"
	ReadOnly   Problem = "read-only"
	Duplicate  Problem = "duplicate"
	Missing    Problem = "missing"
	WrongType  Problem = "type"
	wrongForm  Problem = "form"
	NotListed  Problem = "not listed"
	outOfRange Problem = "range"
	tooLong    Problem = "too long"
	tooShort   Problem = "too short"
	longText   Problem = "long text"
	shortText  Problem = "short text"
	secret     Problem = "secret"   // wrong, but not to be repeated
	Outright   Problem = "outright" // as the refusal says itself
)

// Refusal is something that a client sent and that is not taken.
type Refusal struct {
	Path    []string // of the property
	below   []string // from there, when it is within an array: "0", "Name"
	Problem Problem
	Value   string
	limit   string // that the value passes, of an array or a text

	Message message.Message // of one that is outright
	Status  int             // when nothing else is wrong; 0 is 400
}

// Property is the name of the property that is not taken.
func (r Refusal) Property() string { return r.Path[len(r.Path)-1] }

// Name is the name of the innermost thing that is wrong; an element of an array
// is named as the array is.
func (r Refusal) Name() string {
	for _, n := range slices.Backward(r.below) {
		if _, err := strconv.Atoi(n); err != nil {
			return n
		}
	}
	return r.Property()
}

// Pointer is the JSON pointer to it, as a URI fragment (RFC 6901, §6).
func (r Refusal) Pointer() string {
	esc := strings.NewReplacer("~", "~0", "/", "~1")
	return "#/" + strings.Join(Map(slices.Concat(r.Path, r.below), esc.Replace), "/")
}

// OfProperty words a refusal as one of a property.
func (r Refusal) OfProperty() message.Message {
	n := r.Name()
	m := map[Problem]func() message.Message{
		Unknown:    func() message.Message { return message.PropertyUnknown.With(n) },
		ReadOnly:   func() message.Message { return message.PropertyNotWritable.With(n) },
		Duplicate:  func() message.Message { return message.PropertyDuplicate.With(n) },
		Missing:    func() message.Message { return message.PropertyMissing.With(n) },
		WrongType:  func() message.Message { return message.PropertyValueTypeError.With(r.Value, n) },
		wrongForm:  func() message.Message { return message.PropertyValueFormatError.With(r.Value, n) },
		NotListed:  func() message.Message { return message.PropertyValueNotInList.With(r.Value, n) },
		outOfRange: func() message.Message { return message.PropertyValueOutOfRange.With(r.Value, n) },
		tooLong:    func() message.Message { return message.ArraySizeTooLong.With(n, r.limit) },
		tooShort:   func() message.Message { return message.ArraySizeTooShort.With(n, r.limit) },
		longText:   func() message.Message { return message.StringValueTooLong.With(r.Value, r.limit) },
		shortText:  func() message.Message { return message.StringValueTooShort.With(r.Value, r.limit) },
		secret:     func() message.Message { return message.PropertyValueError.With(n) },
		Outright:   func() message.Message { return r.Message },
	}
	return m[r.Problem]().About(r.Pointer())
}

// OfParameter words a refusal as one of an action's parameter.
func (r Refusal) OfParameter(action string) message.Message {
	n := r.Name()
	m := map[Problem]func() message.Message{
		Unknown:    func() message.Message { return message.ActionParameterUnknown.With(action, n) },
		ReadOnly:   func() message.Message { return message.ActionParameterNotSupported.With(n, action) },
		Duplicate:  func() message.Message { return message.ActionParameterDuplicate.With(action, n) },
		Missing:    func() message.Message { return message.ActionParameterMissing.With(action, n) },
		WrongType:  func() message.Message { return message.ActionParameterValueTypeError.With(r.Value, n, action) },
		wrongForm:  func() message.Message { return message.ActionParameterValueFormatError.With(r.Value, n, action) },
		NotListed:  func() message.Message { return message.ActionParameterValueNotInList.With(r.Value, n, action) },
		outOfRange: func() message.Message { return message.ActionParameterValueOutOfRange.With(r.Value, n, action) },
		tooLong:    func() message.Message { return message.ActionParameterValueError.With(n, action) },
		tooShort:   func() message.Message { return message.ActionParameterValueError.With(n, action) },
		longText:   func() message.Message { return message.ActionParameterValueFormatError.With(r.Value, n, action) },
		shortText:  func() message.Message { return message.ActionParameterValueFormatError.With(r.Value, n, action) },
		secret:     func() message.Message { return message.ActionParameterValueError.With(n, action) },
		Outright:   func() message.Message { return r.Message },
	}
	return m[r.Problem]().About(r.Pointer())
}

// Echo is a value as a message repeats it.
func Echo(value any) string {
	switch x := value.(type) {
	case nil:
		return "null"
	case string:
		return withoutPassword(x)
	case Document:
		return "{…}"
	case []any:
		return "[…]"
	default:
		return fmt.Sprint(x)
	}
}
