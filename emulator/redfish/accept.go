package redfish

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
	above := ""
	for _, name := range path {
		above += name + "/"
	}
	refuse := func(name string, w why, value any) {
		bad = append(bad, refusal{path: append(slices.Clone(path), name), why: w, value: echo(value)})
	}
	for _, f := range in.fields {
		name, value := f.name, f.value
		i := inputOf(inputs, name)
		known := false
		if i < 0 && shown != nil {
			_, known = shown()[name]
		}
		switch {
		case strings.Contains(name, "@odata."): // payload annotations are ignored
		case f.twice:
			refuse(name, duplicate, nil)
		case i < 0 && known:
			refuse(name, readOnly, nil)
		case i < 0:
			refuse(name, unknown, nil)
		case inputs[i].kind == group && (value != nil || !inputs[i].nullable):
			below, ok := value.(document)
			if !ok {
				refuse(name, wrongType, value)
				continue
			}
			worse := below.accept(append(slices.Clone(path), name), inputs[i].of, v, inside(shown, name), set)
			if len(worse) > 0 { // it is taken whole or not at all
				bad = append(bad, worse...)
				maps.DeleteFunc(set, func(of string, _ any) bool { return strings.HasPrefix(of, above+name+"/") })
			}
		default:
			var was func() any
			if shown != nil && inputs[i].kind == array { // nothing else asks
				was = func() any { return shown()[name] }
			}
			took, wrong := inputs[i].take(value, v, was)
			if len(wrong) > 0 {
				for _, w := range wrong {
					w.path = append(slices.Clone(path), name)
					bad = append(bad, w)
				}
				continue
			}
			set[above+name] = took
		}
	}
	for i := range inputs {
		if i := &inputs[i]; i.required && in.at(i.name) < 0 {
			refuse(i.name, missing, nil)
		}
	}
	return bad
}

// inside is a group as it is read.
func inside(shown func() object, name string) func() object {
	if shown == nil {
		return nil
	}
	return func() object {
		o, _ := shown()[name].(object)
		return o
	}
}

// take checks a value, and says what is wrong with it or within it. was, if not
// nil, makes the value as it is read.
func (i *input) take(value any, v view, was func() any) (any, []refusal) {
	if value == nil && i.nullable {
		return nil, nil
	}
	switch i.kind {
	case array:
		return i.elements(value, v, was)
	case free:
		return i.freely(value)
	}
	took, r := i.one(value, v)
	if r.why == "" {
		return took, nil
	}
	r.value = echo(value)
	if i.secret {
		r.why = secret
	}
	return nil, []refusal{r}
}

// elements checks an array. A group among them has no resource to compare with,
// so that what it does not take is unknown.
func (i *input) elements(value any, v view, was func() any) (any, []refusal) {
	all, ok := value.([]any)
	if one, isObject := value.(document); isObject && i.lone {
		all, ok = []any{one}, true
	}
	if !ok {
		return nil, []refusal{{why: wrongType, value: echo(value)}}
	}
	var before []any
	if was != nil {
		before = elements(was())
	}
	took, bad := []any{}, []refusal(nil)
	each := &i.of[0]
	for n, x := range all {
		var old any
		if n < len(before) {
			old = before[n]
		}
		y, gone, wrong := each.element(x, v, old, n, was != nil)
		for _, w := range wrong {
			w.path, w.below = nil, slices.Concat([]string{strconv.Itoa(n)}, w.path, w.below)
			if i.secret {
				w.why = secret
			}
			bad = append(bad, w)
		}
		if !gone || i.fixed {
			took = append(took, y)
		}
	}
	if i.fixed && len(took) < len(before) {
		for n, old := range before[len(took):] {
			took = append(took, each.former(old, len(took)+n))
		}
	}
	switch {
	case len(bad) > 0:
		return nil, bad
	case int64(len(took)) > i.most():
		return nil, []refusal{{why: tooLong, limit: strconv.FormatInt(i.most(), 10)}}
	case int64(len(took)) < i.min:
		return nil, []refusal{{why: tooShort, limit: strconv.FormatInt(i.min, 10)}}
	}
	return took, nil
}

// most is how many elements an array takes.
func (i *input) most() int64 {
	if i.max == 0 {
		return maxElements
	}
	return i.max
}

// element checks an element of an array, of which old is what was at its place.
// In a PATCH null removes it, and what is not sent of it stays.
func (i *input) element(value any, v view, old any, n int, patch bool) (took any, gone bool, bad []refusal) {
	below, isObject := value.(document)
	switch {
	case patch && value == nil && !i.nullable:
		return nil, true, nil
	case patch && isObject && len(below.fields) == 0 && old != nil:
		return i.former(old, n), false, nil
	case i.kind != group || !isObject:
		took, bad = i.take(value, v, nil)
		return took, false, bad
	}
	its := values{}
	if its, ok := i.former(old, n).(values); ok && patch {
		sent := values{}
		bad = slices.DeleteFunc(below.accept(nil, i.of, v, nil, sent), func(r refusal) bool {
			_, there := its[r.path[0]]
			return r.why == missing && there
		})
		maps.Copy(its, sent)
		return its, false, bad
	}
	bad = below.accept(nil, i.of, v, nil, its)
	return its, false, bad
}

// former is an element as it was, in the form in which inputs stand in values:
// what is shown of it, and where it was.
func (i *input) former(old any, n int) any {
	shown, isObject := old.(object)
	switch {
	case i.kind == link && isObject:
		return shown["@odata.id"]
	case i.kind == group && isObject:
		return i.formerGroup(shown, n)
	case i.kind == array:
		var all []any
		for n, x := range elements(old) {
			all = append(all, i.of[0].former(x, n))
		}
		return all
	case i.kind == integer || i.kind == number:
		return i.formerNumber(old)
	}
	return old
}

func (i *input) formerGroup(shown object, n int) values {
	its := values{place: n}
	for j := range i.of {
		of := &i.of[j]
		old, there := shown[of.name]
		if !there || of.secret {
			continue
		}
		was := of.former(old, n)
		below, isGroup := was.(values)
		if !isGroup {
			its[of.name] = was
			continue
		}
		delete(below, place)
		for name, x := range below {
			its[of.name+"/"+name] = x
		}
	}
	return its
}

func (i *input) formerNumber(old any) any {
	if old == nil {
		return nil
	}
	n, _ := decode(encode(object{"x": old}))["x"].(json.Number)
	if i.kind == number {
		f, _ := fraction(n)
		return f
	}
	whole, _ := wholeNumber(n)
	return whole
}

// elements are those of an array as a body has it.
func elements(shown any) []any {
	switch x := shown.(type) {
	case []any:
		return x
	case []object:
		return list(x, func(o object) any { return o })
	case []string:
		return list(x, func(s string) any { return s })
	}
	if shown == nil {
		return nil
	}
	// Of a type that bodies seldom have.
	all, _ := decode(encode(object{"x": shown}))["x"].([]any)
	return all
}

// freely checks an object whose names only its operation knows.
func (i *input) freely(value any) (any, []refusal) {
	d, ok := value.(document)
	if !ok {
		return nil, []refusal{{why: wrongType, value: echo(value)}}
	}
	out, bad := map[string]any{}, []refusal(nil)
	for _, f := range d.fields {
		name := f.name
		switch x := f.value.(type) {
		case nil, bool, string:
			out[name] = x
		case json.Number:
			if whole, ok := wholeNumber(x); ok {
				out[name] = whole
			} else {
				out[name], _ = fraction(x)
			}
		default:
			bad = append(bad, refusal{below: []string{name}, why: wrongType, value: echo(x)})
		}
		if f.twice {
			bad = append(bad, refusal{below: []string{name}, why: duplicate})
		}
	}
	if len(bad) > 0 {
		return nil, bad
	}
	return out, nil
}

// one checks a value that is no array and not free.
func (i *input) one(value any, v view) (took any, r refusal) {
	switch i.kind {
	case boolean:
		b, ok := value.(bool)
		switch {
		case !ok:
			r.why = wrongType
		case i.values != nil && !slices.Contains(i.values(v), strconv.FormatBool(b)):
			r.why = notListed
		}
		return b, r
	case text:
		t, ok := value.(string)
		length := int64(utf8.RuneCountInString(t))
		switch {
		case !ok:
			r.why = wrongType
		case i.values != nil && !slices.Contains(i.values(v), t):
			r.why = notListed
		case i.max > 0 && length > i.max:
			r.why, r.limit = longText, strconv.FormatInt(i.max, 10)
		case i.max > 0 && length < i.min:
			r.why, r.limit = shortText, strconv.FormatInt(i.min, 10)
		case i.form != nil && !i.form(t):
			r.why = wrongForm
		}
		return value, r
	case integer:
		n, ok := value.(json.Number)
		whole, isWhole := wholeNumber(n)
		switch {
		case !ok || !isWhole:
			r.why = wrongType
		case whole < i.min || whole > i.max:
			r.why = outOfRange
		}
		return whole, r
	case number:
		n, ok := value.(json.Number)
		f, finite := fraction(n)
		switch {
		case !ok:
			r.why = wrongType
		case !finite || (i.min != 0 || i.max != 0) && (f < float64(i.min) || f > float64(i.max)):
			r.why = outOfRange
		}
		return f, r
	case link:
		d, _ := value.(document)
		sent, _ := d.get("@odata.id")
		uri, ok := sent.(string)
		switch {
		case !ok || len(d.fields) > 1:
			r.why = wrongType
		case i.form != nil && !i.form(uri):
			r.why = wrongForm
		}
		return uri, r
	case anyObject:
		d, ok := value.(document)
		if !ok {
			r.why = wrongType
		}
		return normal(d), r
	case anyArray:
		all, ok := value.([]any)
		if !ok {
			r.why = wrongType
		}
		return normal(all), r
	case named:
		took, r.why = i.texts(value)
		return took, r
	}
	return nil, refusal{why: wrongType}
}

// texts checks an object of text. Its form, if any, is that of "name: text".
func (i *input) texts(value any) (any, why) {
	d, ok := value.(document)
	if !ok {
		return nil, wrongType
	}
	out := map[string]string{}
	for _, f := range d.fields {
		t, ok := f.value.(string)
		switch {
		case !ok:
			return nil, wrongType
		case f.twice || i.form != nil && !i.form(f.name+": "+t):
			return nil, wrongForm
		}
		out[f.name] = t
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

// fraction reads a JSON number; false when it is larger than there is room for.
func fraction(n json.Number) (float64, bool) {
	f, err := n.Float64()
	return f, err == nil
}
