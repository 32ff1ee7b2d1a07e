package resource

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Validate checks the properties that a client sent against the inputs. It
// returns the valid values and an error for each property that is not valid. If
// shown is not nil, it returns the resource as a GET shows it; Validate uses it
// to tell a read-only property from an unknown one.
func Validate(in Document, inputs []Input, v View, shown func() Object) (Values, []InputError) {
	set := Values{}
	bad := in.validate(nil, inputs, v, shown, set)
	return set, bad
}

func (in Document) validate(path []string, inputs []Input, v View, shown func() Object, set Values) []InputError {
	var bad []InputError
	above := ""
	for _, name := range path {
		above += name + "/"
	}
	refuse := func(name string, w Problem, value any) {
		bad = append(bad, InputError{Path: append(slices.Clone(path), name), Problem: w, Value: Echo(value)})
	}
	for _, f := range in.Fields {
		name, value := f.Name, f.Value
		i := InputOf(inputs, name)
		if i >= 0 && inputs[i].when != nil && !inputs[i].when(v) {
			i = -1
		}
		known := false
		if i < 0 && shown != nil {
			_, known = shown()[name]
		}
		switch {
		case strings.Contains(name, "@odata."): // payload annotations are ignored
		case f.Duplicate:
			refuse(name, Duplicate, nil)
		case i < 0 && known:
			refuse(name, ReadOnly, nil)
		case i < 0:
			refuse(name, Unknown, nil)
		case inputs[i].Kind == Group && (value != nil || !inputs[i].nullable):
			below, ok := value.(Document)
			if !ok {
				refuse(name, WrongType, value)
				continue
			}
			worse := below.validate(append(slices.Clone(path), name), inputs[i].Of, v, groupReader(shown, name), set)
			if len(worse) > 0 { // a group is applied completely or not at all
				bad = append(bad, worse...)
				maps.DeleteFunc(set, func(of string, _ any) bool { return strings.HasPrefix(of, above+name+"/") })
			}
		default:
			var was func() any
			if shown != nil && inputs[i].Kind == Array { // only arrays use it
				was = func() any { return shown()[name] }
			}
			took, wrong := inputs[i].validate(value, v, was)
			if len(wrong) > 0 {
				for _, w := range wrong {
					w.Path = append(slices.Clone(path), name)
					bad = append(bad, w)
				}
				continue
			}
			set[above+name] = took
		}
	}
	for i := range inputs {
		if i := &inputs[i]; i.Required && in.Index(i.Name) < 0 {
			refuse(i.Name, Missing, nil)
		}
	}
	return bad
}

// groupReader returns a function that reads one group of the resource; nil if
// shown is nil.
func groupReader(shown func() Object, name string) func() Object {
	if shown == nil {
		return nil
	}
	return func() Object {
		o, _ := shown()[name].(Object)
		return o
	}
}

// validate checks a value and returns it in the form that Values holds, or the
// errors in it and below it. If was is not nil, it returns the current value.
func (i *Input) validate(value any, v View, was func() any) (any, []InputError) {
	if value == nil && i.nullable {
		return nil, nil
	}
	switch i.Kind {
	case Array:
		return i.validateArray(value, v, was)
	case ScalarMap:
		return i.validateScalarMap(value)
	}
	took, r := i.validateValue(value, v)
	if r.Problem == "" {
		return took, nil
	}
	r.Value = Echo(value)
	if i.Secret {
		r.Problem = invalidSecret
	}
	return nil, []InputError{r}
}

// validateArray checks an array. A group in an array has no resource to compare
// with, so a property that it does not accept is reported as unknown.
func (i *Input) validateArray(value any, v View, was func() any) (any, []InputError) {
	all, ok := value.([]any)
	if i.AcceptsSingle && !ok {
		switch x := value.(type) {
		case Document:
			all, ok = []any{x}, true
		case string:
			for element := range strings.SplitSeq(x, ",") {
				all, ok = append(all, strings.TrimSpace(element)), true
			}
		}
	}
	if !ok {
		return nil, []InputError{{Problem: WrongType, Value: Echo(value)}}
	}
	var before []any
	if was != nil {
		before = Elements(was())
	}
	took, bad := []any{}, []InputError(nil)
	each := &i.Of[0]
	for n, x := range all {
		var old any
		if n < len(before) {
			old = before[n]
		}
		y, gone, wrong := each.validateElement(x, v, old, n, was != nil)
		for _, w := range wrong {
			w.Path, w.below = nil, slices.Concat([]string{strconv.Itoa(n)}, w.Path, w.below)
			if i.Secret {
				w.Problem = invalidSecret
			}
			bad = append(bad, w)
		}
		if !gone || i.fixed {
			took = append(took, y)
		}
	}
	if i.fixed && len(took) < len(before) {
		for n, old := range before[len(took):] {
			took = append(took, each.previous(old, len(took)+n))
		}
	}
	switch {
	case len(bad) > 0:
		return nil, bad
	case int64(len(took)) > i.maxElements():
		return nil, []InputError{{Problem: arrayTooLong, limit: strconv.FormatInt(i.maxElements(), 10)}}
	case int64(len(took)) < i.Min:
		return nil, []InputError{{Problem: arrayTooShort, limit: strconv.FormatInt(i.Min, 10)}}
	}
	return took, nil
}

// maxElements returns the greatest number of elements that the array accepts.
func (i *Input) maxElements() int64 {
	if i.Max == 0 {
		return MaxElements
	}
	return i.Max
}

// validateElement checks one array element; old is the current element at the
// same index. In a PATCH, null removes the element (gone), and properties that
// were not sent keep their values.
func (i *Input) validateElement(value any, v View, old any, n int, patch bool) (took any, gone bool, bad []InputError) {
	below, isObject := value.(Document)
	switch {
	case patch && value == nil && !i.nullable:
		return nil, true, nil
	case patch && isObject && len(below.Fields) == 0 && old != nil:
		return i.previous(old, n), false, nil
	case i.Kind != Group || !isObject:
		took, bad = i.validate(value, v, nil)
		return took, false, bad
	}
	its := Values{}
	if its, ok := i.previous(old, n).(Values); ok && patch {
		sent := Values{}
		bad = slices.DeleteFunc(below.validate(nil, i.Of, v, nil, sent), func(r InputError) bool {
			_, there := its[r.Path[0]]
			return r.Problem == Missing && there
		})
		maps.Copy(its, sent)
		return its, false, bad
	}
	bad = below.validate(nil, i.Of, v, nil, its)
	return its, false, bad
}

// previous converts an array element as a GET shows it to the form that Values
// holds. A group also gets its index under previousIndex.
func (i *Input) previous(old any, n int) any {
	shown, isObject := old.(Object)
	switch {
	case i.Kind == Link && isObject:
		return shown["@odata.id"]
	case i.Kind == Group && isObject:
		return i.previousGroup(shown, n)
	case i.Kind == Array:
		var all []any
		for n, x := range Elements(old) {
			all = append(all, i.Of[0].previous(x, n))
		}
		return all
	case i.Kind == Integer || i.Kind == Number:
		return i.previousNumber(old)
	}
	return old
}

// previousGroup converts a group as a GET shows it to Values. Secret inputs are
// left out.
func (i *Input) previousGroup(shown Object, n int) Values {
	its := Values{previousIndex: n}
	for j := range i.Of {
		of := &i.Of[j]
		old, there := shown[of.Name]
		if !there || of.Secret {
			continue
		}
		was := of.previous(old, n)
		below, isGroup := was.(Values)
		if !isGroup {
			its[of.Name] = was
			continue
		}
		delete(below, previousIndex)
		for name, x := range below {
			its[of.Name+"/"+name] = x
		}
	}
	return its
}

// previousNumber converts a number as a GET shows it to int64 or float64.
func (i *Input) previousNumber(old any) any {
	if old == nil {
		return nil
	}
	n, _ := Decode(Encode(Object{"x": old}))["x"].(json.Number)
	if i.Kind == Number {
		f, _ := fraction(n)
		return f
	}
	integer, _ := ParseInteger(n)
	return integer
}

// Elements returns the elements of an array property of a body, whatever its Go
// type.
func Elements(shown any) []any {
	switch x := shown.(type) {
	case []any:
		return x
	case []Object:
		return Map(x, func(o Object) any { return o })
	case []string:
		return Map(x, func(s string) any { return s })
	}
	if shown == nil {
		return nil
	}
	// Other types are rare in bodies.
	all, _ := Decode(Encode(Object{"x": shown}))["x"].([]any)
	return all
}

// validateScalarMap checks an object whose property names only the operation
// knows.
func (i *Input) validateScalarMap(value any) (any, []InputError) {
	d, ok := value.(Document)
	if !ok {
		return nil, []InputError{{Problem: WrongType, Value: Echo(value)}}
	}
	out, bad := map[string]any{}, []InputError(nil)
	for _, f := range d.Fields {
		name := f.Name
		switch x := f.Value.(type) {
		case nil, bool, string:
			out[name] = x
		case json.Number:
			if integer, ok := ParseInteger(x); ok {
				out[name] = integer
			} else {
				out[name], _ = fraction(x)
			}
		default:
			bad = append(bad, InputError{below: []string{name}, Problem: WrongType, Value: Echo(x)})
		}
		if f.Duplicate {
			bad = append(bad, InputError{below: []string{name}, Problem: Duplicate})
		}
	}
	if len(bad) > 0 {
		return nil, bad
	}
	return out, nil
}

// validateValue checks a value that is neither an Array nor a ScalarMap.
func (i *Input) validateValue(value any, v View) (took any, r InputError) {
	switch i.Kind {
	case Boolean:
		b, ok := value.(bool)
		switch {
		case !ok:
			r.Problem = WrongType
		case i.Allowed != nil && !slices.Contains(i.Allowed(v), strconv.FormatBool(b)):
			r.Problem = NotListed
		}
		return b, r
	case Text:
		t, ok := value.(string)
		length := int64(utf8.RuneCountInString(t))
		switch {
		case !ok:
			r.Problem = WrongType
		case i.Allowed != nil && !slices.Contains(i.Allowed(v), t):
			r.Problem = NotListed
		case i.Max > 0 && length > i.Max:
			r.Problem, r.limit = stringTooLong, strconv.FormatInt(i.Max, 10)
		case i.Max > 0 && length < i.Min:
			r.Problem, r.limit = stringTooShort, strconv.FormatInt(i.Min, 10)
		case i.form != nil && !i.form(t):
			r.Problem = wrongFormat
		}
		return value, r
	case Integer:
		n, ok := value.(json.Number)
		integer, isInteger := ParseInteger(n)
		switch {
		case !ok || !isInteger:
			r.Problem = WrongType
		case integer < i.Min || integer > i.Max:
			r.Problem = outOfRange
		}
		return integer, r
	case Number:
		n, ok := value.(json.Number)
		f, finite := fraction(n)
		switch {
		case !ok:
			r.Problem = WrongType
		case !finite || (i.Min != 0 || i.Max != 0) && (f < float64(i.Min) || f > float64(i.Max)):
			r.Problem = outOfRange
		}
		return f, r
	case Link:
		d, _ := value.(Document)
		sent, _ := d.Get("@odata.id")
		uri, ok := sent.(string)
		switch {
		case !ok || len(d.Fields) > 1:
			r.Problem = WrongType
		case i.form != nil && !i.form(uri):
			r.Problem = wrongFormat
		}
		return uri, r
	case AnyObject:
		d, ok := value.(Document)
		if !ok {
			r.Problem = WrongType
		}
		return Normalize(d), r
	case AnyArray:
		all, ok := value.([]any)
		if !ok {
			r.Problem = WrongType
		}
		return Normalize(all), r
	case StringMap:
		took, r.Problem = i.validateStringMap(value)
		return took, r
	}
	return nil, InputError{Problem: WrongType}
}

// validateStringMap checks an object whose values are strings. The input's Form,
// if any, checks "name: value".
func (i *Input) validateStringMap(value any) (any, Problem) {
	d, ok := value.(Document)
	if !ok {
		return nil, WrongType
	}
	out := map[string]string{}
	for _, f := range d.Fields {
		t, ok := f.Value.(string)
		switch {
		case !ok:
			return nil, WrongType
		case f.Duplicate || i.form != nil && !i.form(f.Name+": "+t):
			return nil, wrongFormat
		}
		out[f.Name] = t
	}
	return out, ""
}

// ParseInteger parses a JSON number that is an integer: 30, 30.0 or 3e1. A number
// beyond int64 becomes the nearest int64.
func ParseInteger(n json.Number) (int64, bool) {
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

// fraction parses a JSON number. It returns false for a number that overflows
// float64.
func fraction(n json.Number) (float64, bool) {
	f, err := n.Float64()
	return f, err == nil
}
