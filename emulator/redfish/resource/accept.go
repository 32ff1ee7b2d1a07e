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

// Accept sorts what a client sent into what the inputs take and what they do
// not. shown, if not nil, makes the resource as it is read, which tells a
// property that can only be read from one that is not known.
func Accept(in Document, inputs []Input, v View, shown func() Object) (Values, []Refusal) {
	set := Values{}
	bad := in.accept(nil, inputs, v, shown, set)
	return set, bad
}

func (in Document) accept(path []string, inputs []Input, v View, shown func() Object, set Values) []Refusal {
	var bad []Refusal
	above := ""
	for _, name := range path {
		above += name + "/"
	}
	refuse := func(name string, w Problem, value any) {
		bad = append(bad, Refusal{Path: append(slices.Clone(path), name), Problem: w, Value: Echo(value)})
	}
	for _, f := range in.Fields {
		name, value := f.Name, f.Value
		i := InputOf(inputs, name)
		known := false
		if i < 0 && shown != nil {
			_, known = shown()[name]
		}
		switch {
		case strings.Contains(name, "@odata."): // payload annotations are ignored
		case f.Twice:
			refuse(name, Duplicate, nil)
		case i < 0 && known:
			refuse(name, ReadOnly, nil)
		case i < 0:
			refuse(name, Unknown, nil)
		case inputs[i].Kind == Group && (value != nil || !inputs[i].Nullable):
			below, ok := value.(Document)
			if !ok {
				refuse(name, WrongType, value)
				continue
			}
			worse := below.accept(append(slices.Clone(path), name), inputs[i].Of, v, inside(shown, name), set)
			if len(worse) > 0 { // it is taken whole or not at all
				bad = append(bad, worse...)
				maps.DeleteFunc(set, func(of string, _ any) bool { return strings.HasPrefix(of, above+name+"/") })
			}
		default:
			var was func() any
			if shown != nil && inputs[i].Kind == Array { // nothing else asks
				was = func() any { return shown()[name] }
			}
			took, wrong := inputs[i].take(value, v, was)
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
		if i := &inputs[i]; i.Required && in.At(i.Name) < 0 {
			refuse(i.Name, Missing, nil)
		}
	}
	return bad
}

// inside is a group as it is read.
func inside(shown func() Object, name string) func() Object {
	if shown == nil {
		return nil
	}
	return func() Object {
		o, _ := shown()[name].(Object)
		return o
	}
}

// take checks a value, and says what is wrong with it or within it. was, if not
// nil, makes the value as it is read.
func (i *Input) take(value any, v View, was func() any) (any, []Refusal) {
	if value == nil && i.Nullable {
		return nil, nil
	}
	switch i.Kind {
	case Array:
		return i.elements(value, v, was)
	case Free:
		return i.freely(value)
	}
	took, r := i.one(value, v)
	if r.Problem == "" {
		return took, nil
	}
	r.Value = Echo(value)
	if i.Secret {
		r.Problem = secret
	}
	return nil, []Refusal{r}
}

// elements checks an array. A group among them has no resource to compare with,
// so that what it does not take is unknown.
func (i *Input) elements(value any, v View, was func() any) (any, []Refusal) {
	all, ok := value.([]any)
	if one, isObject := value.(Document); isObject && i.lone {
		all, ok = []any{one}, true
	}
	if !ok {
		return nil, []Refusal{{Problem: WrongType, Value: Echo(value)}}
	}
	var before []any
	if was != nil {
		before = Elements(was())
	}
	took, bad := []any{}, []Refusal(nil)
	each := &i.Of[0]
	for n, x := range all {
		var old any
		if n < len(before) {
			old = before[n]
		}
		y, gone, wrong := each.element(x, v, old, n, was != nil)
		for _, w := range wrong {
			w.Path, w.below = nil, slices.Concat([]string{strconv.Itoa(n)}, w.Path, w.below)
			if i.Secret {
				w.Problem = secret
			}
			bad = append(bad, w)
		}
		if !gone || i.Fixed {
			took = append(took, y)
		}
	}
	if i.Fixed && len(took) < len(before) {
		for n, old := range before[len(took):] {
			took = append(took, each.former(old, len(took)+n))
		}
	}
	switch {
	case len(bad) > 0:
		return nil, bad
	case int64(len(took)) > i.most():
		return nil, []Refusal{{Problem: tooLong, limit: strconv.FormatInt(i.most(), 10)}}
	case int64(len(took)) < i.Min:
		return nil, []Refusal{{Problem: tooShort, limit: strconv.FormatInt(i.Min, 10)}}
	}
	return took, nil
}

// most is how many elements an array takes.
func (i *Input) most() int64 {
	if i.Max == 0 {
		return MaxElements
	}
	return i.Max
}

// element checks an element of an array, of which old is what was at its place.
// In a PATCH null removes it, and what is not sent of it stays.
func (i *Input) element(value any, v View, old any, n int, patch bool) (took any, gone bool, bad []Refusal) {
	below, isObject := value.(Document)
	switch {
	case patch && value == nil && !i.Nullable:
		return nil, true, nil
	case patch && isObject && len(below.Fields) == 0 && old != nil:
		return i.former(old, n), false, nil
	case i.Kind != Group || !isObject:
		took, bad = i.take(value, v, nil)
		return took, false, bad
	}
	its := Values{}
	if its, ok := i.former(old, n).(Values); ok && patch {
		sent := Values{}
		bad = slices.DeleteFunc(below.accept(nil, i.Of, v, nil, sent), func(r Refusal) bool {
			_, there := its[r.Path[0]]
			return r.Problem == Missing && there
		})
		maps.Copy(its, sent)
		return its, false, bad
	}
	bad = below.accept(nil, i.Of, v, nil, its)
	return its, false, bad
}

// former is an element as it was, in the form in which inputs stand in values:
// what is shown of it, and where it was.
func (i *Input) former(old any, n int) any {
	shown, isObject := old.(Object)
	switch {
	case i.Kind == Link && isObject:
		return shown["@odata.id"]
	case i.Kind == Group && isObject:
		return i.formerGroup(shown, n)
	case i.Kind == Array:
		var all []any
		for n, x := range Elements(old) {
			all = append(all, i.Of[0].former(x, n))
		}
		return all
	case i.Kind == Integer || i.Kind == Number:
		return i.formerNumber(old)
	}
	return old
}

func (i *Input) formerGroup(shown Object, n int) Values {
	its := Values{Place: n}
	for j := range i.Of {
		of := &i.Of[j]
		old, there := shown[of.Name]
		if !there || of.Secret {
			continue
		}
		was := of.former(old, n)
		below, isGroup := was.(Values)
		if !isGroup {
			its[of.Name] = was
			continue
		}
		delete(below, Place)
		for name, x := range below {
			its[of.Name+"/"+name] = x
		}
	}
	return its
}

func (i *Input) formerNumber(old any) any {
	if old == nil {
		return nil
	}
	n, _ := Decode(Encode(Object{"x": old}))["x"].(json.Number)
	if i.Kind == Number {
		f, _ := fraction(n)
		return f
	}
	whole, _ := WholeNumber(n)
	return whole
}

// Elements are those of an array as a body has it.
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
	// Of a type that bodies seldom have.
	all, _ := Decode(Encode(Object{"x": shown}))["x"].([]any)
	return all
}

// freely checks an object whose names only its operation knows.
func (i *Input) freely(value any) (any, []Refusal) {
	d, ok := value.(Document)
	if !ok {
		return nil, []Refusal{{Problem: WrongType, Value: Echo(value)}}
	}
	out, bad := map[string]any{}, []Refusal(nil)
	for _, f := range d.Fields {
		name := f.Name
		switch x := f.Value.(type) {
		case nil, bool, string:
			out[name] = x
		case json.Number:
			if whole, ok := WholeNumber(x); ok {
				out[name] = whole
			} else {
				out[name], _ = fraction(x)
			}
		default:
			bad = append(bad, Refusal{below: []string{name}, Problem: WrongType, Value: Echo(x)})
		}
		if f.Twice {
			bad = append(bad, Refusal{below: []string{name}, Problem: Duplicate})
		}
	}
	if len(bad) > 0 {
		return nil, bad
	}
	return out, nil
}

// one checks a value that is no array and not free.
func (i *Input) one(value any, v View) (took any, r Refusal) {
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
			r.Problem, r.limit = longText, strconv.FormatInt(i.Max, 10)
		case i.Max > 0 && length < i.Min:
			r.Problem, r.limit = shortText, strconv.FormatInt(i.Min, 10)
		case i.Form != nil && !i.Form(t):
			r.Problem = wrongForm
		}
		return value, r
	case Integer:
		n, ok := value.(json.Number)
		whole, isWhole := WholeNumber(n)
		switch {
		case !ok || !isWhole:
			r.Problem = WrongType
		case whole < i.Min || whole > i.Max:
			r.Problem = outOfRange
		}
		return whole, r
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
		case i.Form != nil && !i.Form(uri):
			r.Problem = wrongForm
		}
		return uri, r
	case AnyObject:
		d, ok := value.(Document)
		if !ok {
			r.Problem = WrongType
		}
		return Normal(d), r
	case AnyArray:
		all, ok := value.([]any)
		if !ok {
			r.Problem = WrongType
		}
		return Normal(all), r
	case Named:
		took, r.Problem = i.texts(value)
		return took, r
	}
	return nil, Refusal{Problem: WrongType}
}

// texts checks an object of text. Its form, if any, is that of "name: text".
func (i *Input) texts(value any) (any, Problem) {
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
		case f.Twice || i.Form != nil && !i.Form(f.Name+": "+t):
			return nil, wrongForm
		}
		out[f.Name] = t
	}
	return out, ""
}

// WholeNumber reads a JSON number that is an integer: 30, 30.0 or 3e1.
func WholeNumber(n json.Number) (int64, bool) {
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

// fraction reads a JSON number; false when it is larger than there is room for.
func fraction(n json.Number) (float64, bool) {
	f, err := n.Float64()
	return f, err == nil
}
