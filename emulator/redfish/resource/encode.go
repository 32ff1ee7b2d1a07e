package resource

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Encode returns the JSON of a body: names in order, no spaces. Bodies are made of
// a few types; others are left to encoding/json, which takes 2.5 times as long for
// a ComputerSystem, so that one rendering would take 1.4 times as long
// (BenchmarkEncode, BenchmarkRender).
func Encode(o Object) []byte { return AppendObject(make([]byte, 0, 1024), o) }

func AppendObject(b []byte, o Object) []byte {
	if o == nil {
		return append(b, "null"...)
	}
	return append(AppendMembers(append(b, '{'), o), '}')
}

// AppendMembers is an object without its braces.
func AppendMembers(b []byte, o Object) []byte {
	var few [40]string // on the stack: most bodies have fewer names
	names := slices.AppendSeq(few[:0], maps.Keys(o))
	slices.Sort(names)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendText(b, name), ':')
		b = appendValue(b, o[name])
	}
	return b
}

func appendValue(b []byte, v any) []byte {
	switch x := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return AppendText(b, x)
	case bool:
		return strconv.AppendBool(b, x)
	case int:
		return strconv.AppendInt(b, int64(x), 10)
	case int64:
		return strconv.AppendInt(b, x, 10)
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1e15 {
			return strconv.AppendInt(b, int64(x), 10)
		}
	case Object:
		return AppendObject(b, x)
	case []Object:
		return appendAll(b, x, AppendObject)
	case []string:
		return appendAll(b, x, AppendText)
	case []any:
		return appendAll(b, x, appendValue)
	case json.Number:
		return append(b, x...)
	}
	var other bytes.Buffer
	e := json.NewEncoder(&other)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a body of ours that is no JSON
	}
	return append(b, bytes.TrimSuffix(other.Bytes(), []byte("\n"))...)
}

func appendAll[T any](b []byte, all []T, one func([]byte, T) []byte) []byte {
	if all == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, all[i])
	}
	return append(b, ']')
}

// AppendText makes a JSON string (RFC 8259, §7). What is not UTF-8 is replaced.
func AppendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			b = append(append(b, s[from:i]...), "\ufffd"...)
			i++
			from = i
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

// Normal is a value in the types that decoding its JSON gives: object, []any,
// string, json.Number, bool and nil. It shares nothing with the value.
func Normal(v any) any {
	switch x := v.(type) {
	case nil, string, bool, json.Number:
		return v
	case int, int64, float64:
		return json.Number(appendValue(nil, x))
	case Object:
		if x == nil {
			return nil
		}
		return Normalized(x)
	case []any:
		return normalAll(x)
	case []Object:
		return normalAll(x)
	case []string:
		return normalAll(x)
	case Document:
		o := make(Object, len(x.Fields))
		for _, f := range x.Fields {
			o[f.Name] = Normal(f.Value)
		}
		return o
	}
	return Decode(Encode(Object{"x": v}))["x"]
}

func normalAll[T any](all []T) any {
	if all == nil {
		return nil
	}
	return Map(all, func(v T) any { return Normal(v) })
}

// Normalized is a body in those types.
func Normalized(o Object) Object {
	is := make(Object, len(o))
	for name, v := range o {
		is[name] = Normal(v)
	}
	return is
}

// Decode reads a body of ours.
func Decode(body []byte) Object {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // as they were written
	var o Object
	if err := d.Decode(&o); err != nil {
		panic(err) // a body of ours that is no object
	}
	return o
}
