package cloudinit

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Values of templates are those of Python: texts of lists are what its repr makes of them, and a number
// too large for 64 bits is an error.

// text returns what Python's str makes of a value.
func (x *execution) text(v any) string {
	switch v := v.(type) {
	case string:
		x.spend(len(v))
		return v
	case undefined:
		if x.spend(len(v.name)); v == noElse {
			return ""
		}
		return missingPrefix + v.name
	}
	var b strings.Builder
	x.repr(&b, v, 0)
	return b.String()
}

// short returns the beginning of a value for a message.
func (x *execution) short(v any) string {
	text := "a list or mapping"
	if !isCollection(v) {
		text = x.text(v)
	}
	return fmt.Sprintf("%.40q", text)
}

// repr writes what Python's repr makes of a value.
func (x *execution) repr(b *strings.Builder, v any, depth int) {
	if x.spend(1); depth > maxDepth {
		x.fail("more than %d lists are within each other", maxDepth)
	}
	switch v := v.(type) {
	case string:
		x.spend(len(v))
		b.WriteString(pyQuote(v))
	case []any:
		b.WriteByte('[')
		for n, e := range v {
			if n > 0 {
				b.WriteString(", ")
			}
			x.repr(b, e, depth+1)
		}
		b.WriteByte(']')
	case dict:
		b.WriteByte('{')
		for n, k := range slices.Sorted(maps.Keys(v)) {
			if n > 0 {
				b.WriteString(", ")
			}
			x.repr(b, k, depth+1)
			b.WriteString(": ")
			x.repr(b, v[k], depth+1)
		}
		b.WriteByte('}')
	case undefined:
		b.WriteString("Undefined")
	case float64:
		b.WriteString(pyFloat(v))
	default:
		b.WriteString(pyText(v))
	}
}

// pyFloat returns what Python's repr makes of a float.
func pyFloat(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	case math.IsNaN(v):
		return "nan"
	case v != 0 && (math.Abs(v) >= 1e16 || math.Abs(v) < 1e-4):
		return strconv.FormatFloat(v, 'e', -1, 64)
	case v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// pyQuote returns what Python's repr makes of a text.
func pyQuote(s string) string {
	q := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	var b strings.Builder
	b.WriteRune(q)
	for _, c := range s {
		switch {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == q || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
	}
	b.WriteRune(q)
	return b.String()
}

// json writes a value as the filter tojson does: ASCII, keys in order, and safe within HTML.
// indent is the width of a level; -1: all is in one line.
func (x *execution) json(b *strings.Builder, v any, indent, depth int) {
	if x.spend(1 + max(indent, 0)*depth); depth > maxDepth {
		x.fail("more than %d lists are within each other", maxDepth)
	}
	each := func(open, end string, length int, item func(int)) {
		b.WriteString(open)
		for n := range length {
			if n > 0 {
				b.WriteString(map[bool]string{true: ", ", false: ","}[indent < 0])
			}
			if indent >= 0 {
				b.WriteString("\n" + strings.Repeat(" ", indent*(depth+1)))
			}
			item(n)
		}
		if indent >= 0 && length > 0 {
			b.WriteString("\n" + strings.Repeat(" ", indent*depth))
		}
		b.WriteString(end)
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case float64:
		b.WriteString(map[string]string{"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[pyFloat(v)])
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			b.WriteString(pyFloat(v))
		}
	case string:
		x.spend(len(v))
		b.WriteString(jsonText(v))
	case []any:
		each("[", "]", len(v), func(n int) { x.json(b, v[n], indent, depth+1) })
	case dict:
		keys := slices.Sorted(maps.Keys(v))
		each("{", "}", len(v), func(n int) {
			b.WriteString(jsonText(keys[n]) + ": ")
			x.json(b, v[keys[n]], indent, depth+1)
		})
	case undefined:
		x.fail("%q is undefined", v.name)
	default:
		b.WriteString(pyText(v))
	}
}

func jsonText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		if short, ok := map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}[c]; ok {
			b.WriteString(short)
			continue
		}
		if c >= ' ' && c <= '~' && !strings.ContainsRune("<>&'", c) {
			b.WriteRune(c)
			continue
		}
		units := []rune{c}
		if high, low := utf16.EncodeRune(c); high != unicode.ReplacementChar {
			units = []rune{high, low}
		}
		for _, u := range units {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// equal reports what Python takes for equal.
func (x *execution) equal(a, b any, depth int) bool {
	if x.spend(1); depth > maxDepth {
		x.fail("more than %d lists are within each other", maxDepth)
	}
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, func(v, w any) bool { return x.equal(v, w, depth+1) })
	case dict:
		b, ok := b.(dict)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, has := b[k]; !has || !x.equal(v, w, depth+1) {
				return false
			}
		}
		return true
	case undefined:
		_, ok := b.(undefined)
		return ok
	}
	return !isCollection(b) && same(a, b)
}

// less orders numbers, texts and lists as Python does; others have no order.
func (x *execution) less(a, b any, depth int) bool {
	x.spend(1)
	n, isN := numeric(a)
	m, isM := numeric(b)
	s, isS := a.(string)
	t, isT := b.(string)
	l, isL := a.([]any)
	k, isK := b.([]any)
	switch {
	case isN && isM:
		return n < m
	case isS && isT:
		x.spend(min(len(s), len(t)))
		return s < t
	case isL && isK && depth < maxDepth:
		for i := range min(len(l), len(k)) {
			if !x.equal(l[i], k[i], depth+1) {
				return x.less(l[i], k[i], depth+1)
			}
		}
		return len(l) < len(k)
	}
	x.fail("%s and %s have no order", x.short(x.defined(a)), x.short(x.defined(b)))
	return false
}

func (x *execution) compare(op string, a, b any) bool {
	switch op {
	case "==":
		return x.equal(a, b, 0)
	case "!=":
		return !x.equal(a, b, 0)
	case "<":
		return x.less(a, b, 0)
	case ">":
		return x.less(b, a, 0)
	case "<=":
		return !x.less(b, a, 0)
	case ">=":
		return !x.less(a, b, 0)
	case "not in":
		return !x.compare("in", a, b)
	}
	switch b := b.(type) {
	case string:
		s, ok := a.(string)
		if !ok {
			x.fail("in: %s is no text", x.short(x.defined(a)))
		}
		x.spend(len(b))
		return strings.Contains(b, s)
	case dict:
		s, ok := a.(string)
		_, has := b[s]
		return ok && has
	}
	return slices.ContainsFunc(x.items(b), func(v any) bool { return x.equal(a, v, 0) })
}

// arithmetic computes with numbers, and adds and repeats texts and lists.
func (x *execution) arithmetic(op string, a, b any) any {
	if u, is := a.(undefined); is && op == "-" {
		x.fail("%q is undefined: a key with - is read as name_with_underscores", u.name)
	}
	x.defined(a)
	x.defined(b)
	switch v := a.(type) {
	case string:
		if w, ok := b.(string); ok && op == "+" {
			x.spend(len(v) + len(w))
			return v + w
		}
		if n, ok := b.(int64); ok && op == "*" {
			x.spend(product(len(v), n))
			return strings.Repeat(v, int(max(n, 0)))
		}
	case []any:
		if w, ok := b.([]any); ok && op == "+" {
			x.spend(len(v) + len(w))
			return slices.Concat(v, w)
		}
		if n, ok := b.(int64); ok && op == "*" {
			x.spend(product(len(v), n))
			return slices.Repeat(v, int(max(n, 0)))
		}
	}
	if n, ok := a.(int64); ok && op == "*" && (isList(b) || !isCollection(b) && isString(b)) {
		return x.arithmetic(op, b, n)
	}
	n, isN := numeric(a)
	m, isM := numeric(b)
	if !isN || !isM {
		x.fail("%s is not computed of %s and %s", op, x.short(a), x.short(b))
	}
	if (op == "/" || op == "//" || op == "%") && m == 0 {
		x.fail("division by zero")
	}
	_, floatA := a.(float64)
	_, floatB := b.(float64)
	if op == "/" {
		return n / m
	}
	if op == "**" {
		n = math.Pow(n, m)
	} else {
		n = map[string]func() float64{
			"+": func() float64 { return n + m }, "-": func() float64 { return n - m }, "*": func() float64 { return n * m },
			"//": func() float64 { return math.Floor(n / m) }, "%": func() float64 { return n - m*math.Floor(n/m) },
		}[op]()
	}
	if floatA || floatB || op == "**" && m < 0 {
		return n
	}
	if math.Abs(n) > 1<<53 || math.IsNaN(n) {
		x.fail("the number %s is too large", pyFloat(n))
	}
	return int64(n)
}

func isString(v any) bool { _, is := v.(string); return is }

// product returns the size of a value that is repeated, or more than any value may have.
func product(size int, n int64) int {
	if size > 0 && n > int64(maxWork/size) {
		return maxWork + 1
	}
	return size * int(max(n, 0))
}
