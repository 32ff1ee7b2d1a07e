package redfish

import (
	"slices"
	"strings"
)

// document is a JSON object that a client sent.
type document struct {
	fields []field        // in order, each name once
	index  map[string]int // of many fields: where each is
}

// field is a property of a document.
type field struct {
	name  string
	value any  // the last that was sent
	twice bool // it was sent more than once
}

// few fields are found faster without an index.
const few = 16

// at is where the field of a name is; -1 when there is none.
func (in *document) at(name string) int {
	if in.index != nil {
		if i, ok := in.index[name]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(in.fields, func(f field) bool { return f.name == name })
}

// get is the value of a name.
func (in *document) get(name string) (value any, sent bool) {
	i := in.at(name)
	if i < 0 {
		return nil, false
	}
	return in.fields[i].value, true
}

// put adds a field.
func (in *document) put(name string, value any) {
	if i := in.at(name); i >= 0 {
		in.fields[i].value, in.fields[i].twice = value, true
		return
	}
	in.fields = append(in.fields, field{name: name, value: value})
	switch n := len(in.fields); {
	case in.index != nil:
		in.index[name] = n - 1
	case n > few:
		in.index = map[string]int{}
		for i := range in.fields {
			in.index[in.fields[i].name] = i
		}
	}
}

// but is the document without some fields.
func (in *document) but(some func(f field) bool) document {
	return document{fields: slices.DeleteFunc(slices.Clone(in.fields), some)}
}

// redacted is the document as a job remembers it, and whether something secret
// was taken out.
func (in document) redacted(m *match) (body string, hidden bool) {
	var inputs []input
	switch {
	case m.action != nil:
		inputs = m.action.inputs
	case m.patch != nil:
		inputs = m.patch.inputs
	case m.create != nil:
		inputs = m.create.inputs
	case m.upload != nil:
		inputs = m.upload.inputs
	}
	if len(in.fields) == 0 {
		return "", false
	}
	less := in.without(inputs, &hidden)
	return string(encode(less)), hidden
}

// without is the document but for the inputs that are secret, and for what no
// input takes.
func (in document) without(inputs []input, hidden *bool) object {
	o := object{}
	for _, f := range in.fields {
		i := inputOf(inputs, f.name)
		switch {
		case i < 0:
		case inputs[i].secret:
			*hidden = true
		default:
			o[f.name] = inputs[i].told(f.value, hidden)
		}
	}
	return o
}

// told is a value as a job remembers it.
func (i *input) told(value any, hidden *bool) any {
	switch x := value.(type) {
	case document:
		if i.kind == link {
			uri, _ := x.get("@odata.id")
			return object{"@odata.id": uri}
		}
		if i.kind == named || i.kind == free || i.kind == anyObject {
			o := object{}
			for _, f := range x.fields {
				o[f.name] = echo(f.value)
			}
			return o
		}
		return x.without(i.of, hidden)
	case []any:
		if i.kind == anyArray {
			return echo(x)
		}
		all := []any{}
		for _, y := range x {
			if len(i.of) == 1 {
				all = append(all, i.of[0].told(y, hidden))
			}
		}
		return all
	case string:
		less := withoutPassword(x)
		*hidden = *hidden || less != x
		return less
	}
	return value
}

// inside is what was sent at a path.
func (in document) inside(path string) (any, bool) {
	name, rest, deeper := strings.Cut(path, "/")
	v, ok := in.get(name)
	if !deeper || !ok {
		return v, ok
	}
	below, ok := v.(document)
	if !ok {
		return nil, false
	}
	return below.inside(rest)
}

// more is the document with a value at a path.
func (in document) more(path string, v any) document {
	name, rest, deeper := strings.Cut(path, "/")
	if deeper {
		below, _ := in.get(name)
		d, _ := below.(document)
		v = d.more(rest, v)
	}
	out := document{fields: make([]field, 0, len(in.fields)+1)}
	done := false
	for _, f := range in.fields {
		if f.name == name {
			f.value, done = v, true
		}
		out.put(f.name, f.value)
		out.fields[len(out.fields)-1].twice = f.twice
	}
	if !done {
		out.put(name, v)
	}
	return out
}

// less is the document without what is at a path, and without what that leaves
// empty.
func (in document) less(path string) document {
	name, rest, deeper := strings.Cut(path, "/")
	if !deeper {
		return in.but(func(f field) bool { return f.name == name })
	}
	below, _ := in.get(name)
	d, ok := below.(document)
	if !ok {
		return in
	}
	if d = d.less(rest); len(d.fields) == 0 {
		return in.less(name)
	}
	return in.more(name, d)
}
