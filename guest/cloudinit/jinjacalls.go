package cloudinit

import (
	"math"
	"slices"
	"strings"
)

// tests are the tests of templates ("is defined") by their names.
var tests = map[string]func(x *execution, v any, a *arguments) bool{
	"defined":   func(_ *execution, v any, _ *arguments) bool { return !isUndefined(v) },
	"undefined": func(_ *execution, v any, _ *arguments) bool { return isUndefined(v) },
	"none":      func(_ *execution, v any, _ *arguments) bool { return v == nil },
	"true":      func(_ *execution, v any, _ *arguments) bool { return v == true },
	"false":     func(_ *execution, v any, _ *arguments) bool { return v == false },
	"boolean":   func(_ *execution, v any, _ *arguments) bool { _, is := v.(bool); return is },
	"integer":   func(_ *execution, v any, _ *arguments) bool { _, is := v.(int64); return is },
	"float":     func(_ *execution, v any, _ *arguments) bool { _, is := v.(float64); return is },
	"number":    func(_ *execution, v any, _ *arguments) bool { _, is := numeric(v); return is },
	"string":    func(_ *execution, v any, _ *arguments) bool { return isString(v) },
	"mapping":   func(_ *execution, v any, _ *arguments) bool { _, is := v.(dict); return is },
	"sequence":  func(_ *execution, v any, _ *arguments) bool { return isCollection(v) || isString(v) || isUndefined(v) },
	"iterable":  func(_ *execution, v any, _ *arguments) bool { return isCollection(v) || isString(v) || isUndefined(v) },
	"odd": func(x *execution, v any, _ *arguments) bool {
		return x.equal(x.arithmetic("%", v, int64(2)), int64(1), 0)
	},
	"even": func(x *execution, v any, _ *arguments) bool {
		return x.equal(x.arithmetic("%", v, int64(2)), int64(0), 0)
	},
	"divisibleby": func(x *execution, v any, a *arguments) bool {
		return x.equal(x.arithmetic("%", v, a.next("num", nil)), int64(0), 0)
	},
	"in":      func(x *execution, v any, a *arguments) bool { return x.compare("in", v, a.next("seq", nil)) },
	"equalto": func(x *execution, v any, a *arguments) bool { return x.equal(v, a.next("other", nil), 0) },
	"eq":      func(x *execution, v any, a *arguments) bool { return x.equal(v, a.next("other", nil), 0) },
	"ne":      func(x *execution, v any, a *arguments) bool { return !x.equal(v, a.next("other", nil), 0) },
	"lower": func(x *execution, v any, _ *arguments) bool {
		s := x.text(v)
		return s == strings.ToLower(s) && s != strings.ToUpper(s)
	},
	"upper": func(x *execution, v any, _ *arguments) bool {
		s := x.text(v)
		return s == strings.ToUpper(s) && s != strings.ToLower(s)
	},
}

func isUndefined(v any) bool { _, is := v.(undefined); return is }

func (x *execution) test(e *expr) bool {
	v := x.eval(e.args[0])
	a := x.arguments("the test "+e.name, e.args[1:], e.named)
	x.line = e.line
	do, has := tests[e.name]
	if !has {
		x.fail("the test %s is not supported", e.name)
	}
	out := do(x, v, a)
	a.done()
	return out
}

// call calls range, or a method of a text, a mapping or a loop.
func (x *execution) call(e *expr) any {
	f := e.args[0]
	a := x.arguments("the call of "+f.name, e.args[1:], e.named)
	x.line = e.line
	var out any
	switch {
	case f.op == "dot":
		out = x.method(x.defined(x.eval(f.args[0])), f.name, a)
	case f.op == "name" && f.name == "range" && isUndefined(x.lookup("range")):
		out = x.between(a)
	case f.op == "name" && isUndefined(x.lookup(f.name)):
		x.fail("the function %s is not supported", f.name)
	default:
		x.fail("what is called is no function")
	}
	a.done()
	return out
}

func (x *execution) between(a *arguments) any {
	from, to, by := int64(0), a.whole("stop", 0), int64(1)
	if len(a.args) > 1 {
		from, to = to, a.whole("stop", 0)
		by = a.whole("step", 1)
	}
	if by == 0 {
		x.fail("range: the step is 0")
	}
	out := []any{}
	for n := from; by > 0 && n < to || by < 0 && n > to; n += by {
		x.spend(step)
		out = append(out, n)
		if n > math.MaxInt64-max(by, 0) || n < math.MinInt64-min(by, 0) {
			break
		}
	}
	return out
}

func (x *execution) method(v any, name string, a *arguments) any {
	x.spend(1)
	switch v := v.(type) {
	case string:
		return x.textMethod(v, name, a)
	case dict:
		switch name {
		case "items":
			return x.pairs(v)
		case "keys":
			return x.items(v)
		case "values":
			return x.each(x.items(v), func(k any) any { return v[k.(string)] })
		case "get":
			key, other := a.next("key", nil), a.next("default", nil)
			if out := x.index(v, key); !isUndefined(out) {
				return out
			}
			return other
		case "cycle":
			if n, ok := v["index0"].(int64); ok && len(a.args) > 0 {
				a.taken = len(a.args)
				return a.args[n%int64(len(a.args))]
			}
		}
	}
	x.fail("the method %s of %s is not supported", name, x.short(v))
	return nil
}

// textMethod calls a method of Python's str.
func (x *execution) textMethod(s, name string, a *arguments) any {
	trim := func(left, right bool) string {
		cut, out := a.string("chars", " \t\r\n\v\f"), s
		if left {
			out = strings.TrimLeft(out, cut)
		}
		if right {
			out = strings.TrimRight(out, cut)
		}
		return out
	}
	x.spend(len(s))
	switch name {
	case "upper":
		return strings.ToUpper(s)
	case "lower":
		return strings.ToLower(s)
	case "capitalize":
		return capital(s)
	case "strip":
		return trim(true, true)
	case "lstrip":
		return trim(true, false)
	case "rstrip":
		return trim(false, true)
	case "startswith":
		return strings.HasPrefix(s, a.string("prefix", ""))
	case "endswith":
		return strings.HasSuffix(s, a.string("suffix", ""))
	case "find":
		at := strings.Index(s, a.string("sub", ""))
		return int64(len([]rune(s[:max(at, 0)])) + min(at, 0))
	case "count":
		return int64(strings.Count(s, a.string("sub", "")))
	case "isdigit":
		return s != "" && strings.Trim(s, "0123456789") == ""
	case "replace":
		return filters["replace"](x, s, a)
	case "join":
		return x.join(x.items(a.next("iterable", nil)), s)
	case "split", "rsplit":
		return x.split(s, name == "rsplit", a)
	}
	x.fail("the method %s of texts is not supported", name)
	return nil
}

func (x *execution) split(s string, right bool, a *arguments) any {
	sep, most := a.next("sep", nil), a.whole("maxsplit", -1)
	var parts []string
	switch {
	case sep == nil && most < 0:
		parts = strings.Fields(s)
	case sep == nil || x.text(sep) == "":
		x.fail("split: a separator is needed")
	default:
		by := x.text(sep)
		parts = strings.Split(s, by)
		if n := int(min(most, maxWork)); most >= 0 && len(parts) > n+1 {
			if right {
				at := len(parts) - n
				parts = slices.Concat([]string{strings.Join(parts[:at], by)}, parts[at:])
			} else {
				parts = slices.Concat(parts[:n:n], []string{strings.Join(parts[n:], by)})
			}
		}
	}
	x.spend(len(parts))
	out := []any{}
	for _, p := range parts {
		out = append(out, p)
	}
	return out
}
