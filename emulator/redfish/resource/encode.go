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

// Encode returns the JSON of a body: names sorted, no spaces. It encodes the few
// types that bodies consist of; encoding/json encodes any other type.
// encoding/json alone takes 2.5 times as long for a ComputerSystem, which makes
// one rendering take 1.4 times as long (BenchmarkEncode, BenchmarkRender).
func Encode(o Object) []byte { return AppendObject(make([]byte, 0, 1024), o) }

// AppendObject appends the JSON of an object; null for a nil one.
func AppendObject(b []byte, o Object) []byte {
	if o == nil {
		return append(b, "null"...)
	}
	return append(AppendMembers(append(b, '{'), o), '}')
}

// AppendMembers appends the members of an object without the braces.
func AppendMembers(b []byte, o Object) []byte {
	var few [40]string // on the stack: most bodies have fewer names
	names := slices.AppendSeq(few[:0], maps.Keys(o))
	slices.Sort(names)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendString(b, name), ':')
		b = appendValue(b, o[name])
	}
	return b
}

func appendValue(b []byte, v any) []byte {
	switch x := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return AppendString(b, x)
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
		return appendAll(b, x, AppendString)
	case []any:
		return appendAll(b, x, appendValue)
	case json.Number:
		return append(b, x...)
	}
	var other bytes.Buffer
	e := json.NewEncoder(&other)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // the service built a body that JSON cannot express
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

// AppendString appends a JSON string (RFC 8259, §7). It replaces bytes that are
// not UTF-8 by U+FFFD.
func AppendString(b []byte, s string) []byte {
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

// Normalize converts a value to the types that decoding its JSON gives: Object,
// []any, string, json.Number, bool and nil. The result shares no memory with the
// value.
func Normalize(v any) any {
	switch x := v.(type) {
	case nil, string, bool, json.Number:
		return v
	case int, int64, float64:
		return json.Number(appendValue(nil, x))
	case Object:
		if x == nil {
			return nil
		}
		return NormalizeObject(x)
	case []any:
		return normalizeAll(x)
	case []Object:
		return normalizeAll(x)
	case []string:
		return normalizeAll(x)
	case Document:
		o := make(Object, len(x.Fields))
		for _, f := range x.Fields {
			o[f.Name] = Normalize(f.Value)
		}
		return o
	}
	return Decode(Encode(Object{"x": v}))["x"]
}

func normalizeAll[T any](all []T) any {
	if all == nil {
		return nil
	}
	return Map(all, func(v T) any { return Normalize(v) })
}

// NormalizeObject applies Normalize to the properties of a body.
func NormalizeObject(o Object) Object {
	is := make(Object, len(o))
	for name, v := range o {
		is[name] = Normalize(v)
	}
	return is
}

// Decode decodes a body that the service itself encoded. It panics on any other.
func Decode(body []byte) Object {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // keep numbers as they were written
	var o Object
	if err := d.Decode(&o); err != nil {
		panic(err) // the service built a body that is not an object
	}
	return o
}
