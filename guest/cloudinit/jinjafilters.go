package cloudinit

import (
	"html"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// arguments are those of a filter, a test or a call, by place and by name.
type arguments struct {
	x     *execution
	what  string
	args  []any
	named dict
	taken int
}

func (x *execution) arguments(what string, args []*expr, named map[string]*expr) *arguments {
	a := &arguments{x: x, what: what, named: dict{}}
	for _, e := range args {
		a.args = append(a.args, x.eval(e))
	}
	for name, e := range named {
		a.named[name] = x.eval(e)
	}
	return a
}

// next returns the next argument: that of its place, else that of its name, else otherwise.
func (a *arguments) next(name string, otherwise any) any {
	if a.taken < len(a.args) {
		a.taken++
		return a.args[a.taken-1]
	}
	a.taken++
	if v, has := a.named[name]; has {
		delete(a.named, name)
		return v
	}
	return otherwise
}

func (a *arguments) whole(name string, otherwise int64) int64 {
	n, ok := a.next(name, otherwise).(int64)
	if !ok {
		a.x.fail("%s: %s is no whole number", a.what, name)
	}
	return n
}

func (a *arguments) string(name, otherwise string) string {
	return a.x.text(a.next(name, otherwise))
}

// done fails where arguments are left.
func (a *arguments) done() {
	for name := range a.named {
		a.x.fail("%s: the argument %s is not supported", a.what, name)
	}
	if a.taken < len(a.args) {
		a.x.fail("%s: it has more arguments than are supported", a.what)
	}
}

// filters are the filters of templates by their names; map is another.
var filters = map[string]func(x *execution, v any, a *arguments) any{
	"default": func(x *execution, v any, a *arguments) any {
		other, boolean := a.next("default_value", ""), a.next("boolean", false)
		if _, is := v.(undefined); is || x.truth(boolean) && !x.truth(v) {
			return other
		}
		return v
	},
	"upper":      ofText(strings.ToUpper),
	"lower":      ofText(strings.ToLower),
	"capitalize": ofText(capital),
	"title":      ofText(title),
	"escape":     ofText(html.EscapeString),
	"urlencode": ofText(func(s string) string {
		return strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(s), "+", "%20"), "%2F", "/")
	}),
	"string": ofText(func(s string) string { return s }),
	"safe":   ofText(func(s string) string { return s }),
	"trim": func(x *execution, v any, a *arguments) any {
		if chars := a.next("chars", nil); chars != nil {
			return strings.Trim(x.text(v), x.text(chars))
		}
		return strings.TrimSpace(x.text(v))
	},
	"replace": func(x *execution, v any, a *arguments) any {
		old, by, n := a.string("old", ""), a.string("new", ""), a.next("count", nil)
		s, count := x.text(v), -1
		if n, ok := n.(int64); ok {
			count = int(min(max(n, -1), maxWork))
		}
		x.spend(product(strings.Count(s, old), int64(len(by))))
		return strings.Replace(s, old, by, count)
	},
	"length": func(x *execution, v any, _ *arguments) any { return int64(len(x.items(v))) },
	"first": func(x *execution, v any, _ *arguments) any {
		if l := x.items(v); len(l) > 0 {
			return l[0]
		}
		return nameless
	},
	"last": func(x *execution, v any, _ *arguments) any {
		if l := x.items(v); len(l) > 0 {
			return l[len(l)-1]
		}
		return nameless
	},
	"join": func(x *execution, v any, a *arguments) any {
		sep, name := a.string("d", ""), a.next("attribute", nil)
		l := x.items(v)
		if name != nil {
			l = x.each(l, func(v any) any { return x.path(v, name) })
		}
		return x.join(l, sep)
	},
	"int":    toInt,
	"float":  toFloat,
	"abs":    func(x *execution, v any, _ *arguments) any { return x.abs(v) },
	"list":   func(x *execution, v any, _ *arguments) any { return slices.Clone(x.items(v)) },
	"sort":   sorted,
	"unique": unique,
	"reverse": func(x *execution, v any, _ *arguments) any {
		l := slices.Clone(x.items(v))
		slices.Reverse(l)
		if isString(v) {
			return x.join(l, "")
		}
		return l
	},
	"sum": func(x *execution, v any, _ *arguments) any {
		var sum any = int64(0)
		for _, n := range x.items(v) {
			sum = x.arithmetic("+", sum, n)
		}
		return sum
	},
	"min": func(x *execution, v any, _ *arguments) any {
		return x.extreme(v, func(a, b any) bool { return x.less(a, b, 0) })
	},
	"max": func(x *execution, v any, _ *arguments) any {
		return x.extreme(v, func(a, b any) bool { return x.less(b, a, 0) })
	},
	"dictsort": func(x *execution, v any, _ *arguments) any { return x.pairs(v) },
	"items":    func(x *execution, v any, _ *arguments) any { return x.pairs(v) },
	"indent":   indented,
	"tojson": func(x *execution, v any, a *arguments) any {
		indent := -1
		if n, ok := a.next("indent", nil).(int64); ok {
			indent = int(min(max(n, 0), maxWork))
		}
		var b strings.Builder
		x.json(&b, v, indent, 0)
		return b.String()
	},
}

// otherNames are second names of filters.
var otherNames = map[string]string{"d": "default", "count": "length", "e": "escape"}

// filter applies a filter. One that there is not is an error, though it is in Jinja2.
func (x *execution) filter(e *expr) any {
	v := x.eval(e.args[0])
	a := x.arguments("the filter "+e.name, e.args[1:], e.named)
	x.line = e.line
	return x.apply(e.name, v, a)
}

func (x *execution) apply(name string, v any, a *arguments) any {
	if other, has := otherNames[name]; has {
		name = other
	}
	do, has := filters[name]
	if name == "map" {
		do, has = mapped, true
	}
	if !has {
		x.fail("the filter %s is not supported", name)
	}
	out := do(x, v, a)
	a.done()
	return out
}

func ofText(do func(string) string) func(*execution, any, *arguments) any {
	return func(x *execution, v any, _ *arguments) any { return do(x.text(v)) }
}

func capital(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:n]) + strings.ToLower(s[n:])
}

// title makes the first letter of each word large. Words begin behind space, hyphens and brackets.
func title(s string) string {
	begins := true
	return strings.Map(func(c rune) rune {
		upper := begins
		begins = unicode.IsSpace(c) || strings.ContainsRune("-({[<", c)
		if upper {
			return unicode.ToUpper(c)
		}
		return unicode.ToLower(c)
	}, s)
}

func toInt(x *execution, v any, a *arguments) any {
	other, base := a.next("default", int64(0)), a.whole("base", 10)
	switch v := v.(type) {
	case string:
		s := strings.ReplaceAll(strings.TrimSpace(v), "_", "")
		if base != 10 && base >= 2 && base <= 36 {
			s = strings.TrimPrefix(strings.ToLower(s), map[int64]string{2: "0b", 8: "0o", 16: "0x"}[base])
		}
		if base < 2 || base > 36 {
			x.fail("int: there is no base %d", base)
		}
		if i, err := strconv.ParseInt(s, int(base), 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<53 {
			return int64(f)
		}
	case bool, int64, float64:
		if f, _ := numeric(v); math.Abs(f) < 1<<53 {
			return int64(f)
		}
	}
	return other
}

func toFloat(_ *execution, v any, a *arguments) any {
	other := a.next("default", 0.0)
	if s, ok := v.(string); ok {
		if f, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return f
		}
	}
	if f, ok := numeric(v); ok {
		return f
	}
	return other
}

func (x *execution) abs(v any) any {
	if f, ok := numeric(x.defined(v)); ok && f < 0 {
		return x.arithmetic("-", int64(0), v)
	} else if !ok {
		x.fail("abs: %s is no number", x.short(v))
	}
	return v
}

// each applies a function to items.
func (x *execution) each(l []any, do func(any) any) (out []any) {
	for _, v := range l {
		out = append(out, do(v))
	}
	return out
}

// path returns an attribute, which may be one of an attribute: "a.b".
func (x *execution) path(v, name any) any {
	if n, ok := name.(int64); ok {
		return x.index(v, n)
	}
	for part := range strings.SplitSeq(x.text(name), ".") {
		x.spend(1)
		if n, err := strconv.ParseInt(part, 10, 64); err == nil {
			v = x.index(v, n)
			continue
		}
		v = x.index(v, part)
	}
	return v
}

// folded returns a text in lower case, as filters compare it unless case_sensitive is given.
func folded(v any) any {
	if s, ok := v.(string); ok {
		return strings.ToLower(s)
	}
	return v
}

func sorted(x *execution, v any, a *arguments) any {
	reverse, exact, name := x.truth(a.next("reverse", false)), x.truth(a.next("case_sensitive", false)), a.next("attribute", nil)
	key := func(v any) any {
		if name != nil {
			v = x.path(v, name)
		}
		if !exact {
			v = folded(v)
		}
		return v
	}
	l := slices.Clone(x.items(v))
	slices.SortStableFunc(l, func(a, b any) int {
		k, m := key(a), key(b)
		if reverse {
			k, m = m, k
		}
		switch {
		case x.less(k, m, 0):
			return -1
		case x.less(m, k, 0):
			return 1
		}
		return 0
	})
	return l
}

func unique(x *execution, v any, a *arguments) any {
	exact := x.truth(a.next("case_sensitive", false))
	var out, seen []any
	for _, e := range x.items(v) {
		k := e
		if !exact {
			k = folded(e)
		}
		if !slices.ContainsFunc(seen, func(s any) bool { return x.equal(s, k, 0) }) {
			out, seen = append(out, e), append(seen, k)
		}
	}
	return out
}

func (x *execution) extreme(v any, before func(a, b any) bool) any {
	l := x.items(v)
	if len(l) == 0 {
		return nameless
	}
	out := l[0]
	for _, e := range l[1:] {
		if before(folded(e), folded(out)) {
			out = e
		}
	}
	return out
}

// pairs returns the keys and values of a mapping.
func (x *execution) pairs(v any) []any {
	d, ok := v.(dict)
	if _, is := v.(undefined); !ok && !is {
		x.fail("%s is no mapping", x.short(v))
	}
	out := []any{}
	for _, k := range x.items(d) {
		out = append(out, []any{k, d[k.(string)]})
	}
	return out
}

func indented(x *execution, v any, a *arguments) any {
	width, first, blank := a.next("width", int64(4)), x.truth(a.next("first", false)), x.truth(a.next("blank", false))
	pad, isText := width.(string)
	if n, ok := width.(int64); ok {
		x.spend(product(1, n))
		pad = strings.Repeat(" ", int(max(n, 0)))
	} else if !isText {
		x.fail("indent: width is no number")
	}
	s := x.text(v)
	x.spend(product(strings.Count(s, "\n")+1, int64(len(pad))))
	lines := strings.Split(s, "\n")
	for n := range lines {
		if n == 0 && !first || n > 0 && lines[n] == "" && !blank {
			continue
		}
		lines[n] = pad + lines[n]
	}
	return strings.Join(lines, "\n")
}

// mapped takes an attribute of each item, or applies a filter.
func mapped(x *execution, v any, a *arguments) any {
	if name := a.named["attribute"]; name != nil {
		delete(a.named, "attribute")
		other, has := a.named["default"]
		delete(a.named, "default")
		return x.each(x.items(v), func(v any) any {
			out := x.path(v, name)
			if _, is := out.(undefined); is && has {
				return other
			}
			return out
		})
	}
	name := a.string("filter", "")
	rest := a.args[min(a.taken, len(a.args)):]
	named := a.named
	a.taken, a.named = len(a.args), nil
	return x.each(x.items(v), func(v any) any {
		x.spend(1 + len(named))
		b := arguments{x: x, what: "the filter " + name, args: rest, named: dict{}}
		for k, v := range named {
			b.named[k] = v
		}
		return x.apply(name, v, &b)
	})
}
