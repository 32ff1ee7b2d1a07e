package cloudinit

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Bounds of a template, which no user data of a server come near.
const (
	maxTemplate = 1 << 20 // bytes of text
	maxWork     = 4 << 20 // bytes and values that are made, and steps
	step        = 4       // bytes for which a step counts
)

// undefined is a variable or an attribute that there is not. Its text is the one that cloud-init gives it.
type undefined struct{ name string }

// nameless is undefined where Jinja2 has no name for it, such as the first item of an empty list.
var nameless = undefined{"None"}

// noElse is the value of an if without else whose condition is false. Its text is empty.
var noElse = undefined{}

const missingPrefix = "CI_MISSING_JINJA_VAR/"

// render renders the text of a template behind its first line. It returns the names of the variables that
// there are not, which the text has as CI_MISSING_JINJA_VAR/name. work counts what templates have made,
// which is bounded for all of them together.
func render(template string, vars dict, work *int) (text string, missing []string, err error) {
	if len(template) > maxTemplate {
		return "", nil, fmt.Errorf("it has more than %d bytes", maxTemplate)
	}
	head, rest, _ := strings.Cut(template, "\n")
	rest = strings.ReplaceAll(strings.ReplaceAll(rest, "\r\n", "\n"), "\r", "\n")
	kind, isTemplate := strings.CutPrefix(strings.ToLower(strings.TrimSpace(head)), "## template:")
	if !isTemplate || strings.TrimSpace(kind) != "jinja" {
		return "", nil, errors.New("its first line is not ## template: jinja")
	}
	body, err := parseTemplate(strings.TrimSuffix(rest, "\n"), 2)
	if err != nil {
		return "", nil, err
	}
	x := execution{vars: []dict{vars, {}}, out: &strings.Builder{}, work: work}
	defer func() {
		if e := recover(); e != nil {
			failed, ok := e.(templateError) // of fail
			if !ok {
				panic(e)
			}
			text, missing, err = "", nil, failed
		}
	}()
	x.run(body)
	if strings.HasSuffix(rest, "\n") {
		x.out.WriteByte('\n')
	}
	for _, m := range anyMissing.FindAllString(x.out.String(), -1) {
		if name := strings.TrimPrefix(m, missingPrefix); !slices.Contains(missing, name) && len(missing) < 10 {
			missing = append(missing, name)
		}
	}
	return x.out.String(), missing, nil
}

var anyMissing = regexp.MustCompile(regexp.QuoteMeta(missingPrefix) + `[^\s'"]+`)

// execution renders the tree of a template.
type execution struct {
	vars []dict // the scopes; the last is the innermost
	out  *strings.Builder
	work *int
	line int
}

func (x *execution) fail(format string, args ...any) {
	panic(templateError{x.line, fmt.Sprintf(format, args...)})
}

// spend counts work, which is bounded: a short template can make loops and texts without an end.
func (x *execution) spend(n int) {
	if *x.work += max(n, 1); *x.work > maxWork || n < 0 {
		x.fail("templates make more than %d bytes, or a quarter as many steps", maxWork)
	}
}

func (x *execution) set(name string, v any) { x.vars[len(x.vars)-1][name] = v }

func (x *execution) lookup(name string) any {
	for _, scope := range slices.Backward(x.vars) {
		if v, ok := scope[name]; ok {
			return v
		}
	}
	return undefined{name}
}

func (x *execution) run(body []stmt) {
	for _, s := range body {
		x.line = s.line
		x.spend(step)
		switch s.kind {
		case "data":
			x.spend(len(s.text))
			x.out.WriteString(s.text)
		case "print":
			x.out.WriteString(x.text(x.eval(s.value)))
		case "if":
			if x.truth(x.eval(s.value)) {
				x.run(s.body)
			} else {
				x.run(s.orElse)
			}
		case "for":
			x.loop(s)
		case "set":
			x.assign(s)
		}
	}
}

func (x *execution) assign(s stmt) {
	if !s.capture {
		x.unpack(s.names, x.eval(s.value))
		return
	}
	out := x.out
	x.out = &strings.Builder{}
	x.vars = append(x.vars, dict{})
	x.run(s.body)
	x.vars = x.vars[:len(x.vars)-1]
	text := x.out.String()
	x.out = out
	x.set(s.names[0], text)
}

// unpack gives names their values.
func (x *execution) unpack(names []string, v any) {
	if len(names) == 1 {
		x.set(names[0], v)
		return
	}
	list := x.items(v)
	if len(list) != len(names) {
		x.fail("%d values are for %d names", len(list), len(names))
	}
	for n, name := range names {
		x.set(name, list[n])
	}
}

// loop runs a for. Its variables and what its body sets are in a scope of their own.
func (x *execution) loop(s stmt) {
	all := x.items(x.eval(s.value))
	depth := len(x.vars)
	x.vars = append(x.vars, dict{})
	defer func() { x.vars = x.vars[:depth] }()
	if s.only != nil {
		all = slices.DeleteFunc(slices.Clone(all), func(v any) bool {
			x.unpack(s.names, v)
			return !x.truth(x.eval(s.only))
		})
	}
	if len(all) == 0 {
		x.vars = x.vars[:depth]
		x.run(s.orElse)
		return
	}
	at := func(n int) any {
		if n < 0 || n >= len(all) {
			return nameless
		}
		return all[n]
	}
	for n, v := range all {
		x.vars = append(x.vars[:depth], dict{})
		x.unpack(s.names, v)
		x.set("loop", dict{
			"index": int64(n + 1), "index0": int64(n), "revindex": int64(len(all) - n), "revindex0": int64(len(all) - n - 1),
			"first": n == 0, "last": n == len(all)-1, "length": int64(len(all)), "previtem": at(n - 1), "nextitem": at(n + 1),
			"depth": int64(1), "depth0": int64(0),
		})
		x.run(s.body)
	}
}

// items returns what Python iterates over: items, keys or characters.
func (x *execution) items(v any) []any {
	switch v := v.(type) {
	case []any:
		x.spend(len(v))
		return v
	case dict:
		x.spend(len(v))
		var out []any
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, k)
		}
		return out
	case string:
		x.spend(len(v))
		var out []any
		for _, c := range v {
			out = append(out, string(c))
		}
		return out
	case undefined:
		return nil
	}
	x.fail("%s is no list", x.short(v))
	return nil
}

func (x *execution) truth(v any) bool {
	if _, is := v.(undefined); is {
		return false
	}
	return truthy(v)
}

// defined fails for a variable that there is not.
func (x *execution) defined(v any) any {
	if u, is := v.(undefined); is {
		x.fail("%q is undefined", u.name)
	}
	return v
}

func (x *execution) eval(e *expr) any {
	x.line = e.line
	x.spend(step)
	switch e.op {
	case "literal":
		return e.value
	case "undefined":
		return noElse
	case "name":
		return x.lookup(e.name)
	case "list":
		out := []any{}
		for _, a := range e.args {
			out = append(out, x.eval(a))
		}
		return out
	case "dot":
		return x.attribute(x.eval(e.args[0]), e.name)
	case "index":
		return x.index(x.eval(e.args[0]), x.eval(e.args[1]))
	case "slice":
		return x.slice(x.eval(e.args[0]), x.eval(e.args[1]), x.eval(e.args[2]))
	case "call":
		return x.call(e)
	case "filter":
		return x.filter(e)
	case "test":
		return x.test(e)
	case "not":
		return !x.truth(x.eval(e.args[0]))
	case "if":
		if x.truth(x.eval(e.args[0])) {
			return x.eval(e.args[1])
		}
		return x.eval(e.args[2])
	case "and", "or":
		if left := x.eval(e.args[0]); x.truth(left) == (e.op == "or") {
			return left
		}
		return x.eval(e.args[1])
	case "neg":
		return x.arithmetic("-", int64(0), x.eval(e.args[0]))
	case "pos":
		return x.arithmetic("+", int64(0), x.eval(e.args[0]))
	case "~":
		return x.text(x.eval(e.args[0])) + x.text(x.eval(e.args[1]))
	case "==", "!=", "<", "<=", ">", ">=", "in", "not in":
		return x.compare(e.op, x.eval(e.args[0]), x.eval(e.args[1]))
	}
	left, right := x.eval(e.args[0]), x.eval(e.args[1])
	x.line = e.line
	return x.arithmetic(e.op, left, right)
}

// attribute returns an attribute of a mapping.
func (x *execution) attribute(v any, name string) any {
	if d, ok := x.defined(v).(dict); ok {
		if member, has := d[name]; has {
			return member
		}
	}
	return undefined{name}
}

// index returns an item of a mapping, list or text.
func (x *execution) index(v, at any) any {
	v = x.defined(v)
	if d, ok := v.(dict); ok {
		if key, isText := at.(string); isText {
			return x.attribute(d, key)
		}
		return undefined{pyText(x.defined(at))}
	}
	n, isWhole := at.(int64)
	if _, isText := v.(string); isWhole && isText || isWhole && isList(v) {
		items := x.items(v)
		if n < 0 {
			n += int64(len(items))
		}
		if n >= 0 && n < int64(len(items)) {
			return items[n]
		}
	}
	return undefined{x.text(at)}
}

func isList(v any) bool { _, is := v.([]any); return is }

// slice returns a part of a list or text.
func (x *execution) slice(v, from, to any) any {
	_, isText := x.defined(v).(string)
	if !isText && !isList(v) {
		x.fail("%s is no list or text", x.short(v))
	}
	items := x.items(v)
	bound := func(b any, none int) int {
		switch b := b.(type) {
		case nil:
			return none
		case int64:
			if b < 0 {
				b += int64(len(items))
			}
			return int(min(max(b, 0), int64(len(items))))
		}
		x.fail("%s is no bound of a slice", x.short(b))
		return 0
	}
	a, b := bound(from, 0), bound(to, len(items))
	items = items[a:max(a, b)]
	if isText {
		return x.join(items, "")
	}
	return items
}

func (x *execution) join(items []any, sep string) string {
	var b strings.Builder
	for n, i := range items {
		if n > 0 {
			x.spend(len(sep))
			b.WriteString(sep)
		}
		b.WriteString(x.text(i))
	}
	return b.String()
}
