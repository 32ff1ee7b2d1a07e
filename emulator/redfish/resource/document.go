package resource

import (
	"slices"
	"strings"
)

// Document is a JSON object that a client sent.
type Document struct {
	Fields []Field        // in order, each name once
	index  map[string]int // of many fields: where each is
}

// Field is a property of a document.
type Field struct {
	Name  string
	Value any  // the last that was sent
	Twice bool // it was sent more than once
}

// Few fields are found faster without an index.
const Few = 16

// At is where the field of a name is; -1 when there is none.
func (in *Document) At(name string) int {
	if in.index != nil {
		if i, ok := in.index[name]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(in.Fields, func(f Field) bool { return f.Name == name })
}

// Get is the value of a name.
func (in *Document) Get(name string) (value any, sent bool) {
	i := in.At(name)
	if i < 0 {
		return nil, false
	}
	return in.Fields[i].Value, true
}

// Put adds a field.
func (in *Document) Put(name string, value any) {
	if i := in.At(name); i >= 0 {
		in.Fields[i].Value, in.Fields[i].Twice = value, true
		return
	}
	in.Fields = append(in.Fields, Field{Name: name, Value: value})
	switch n := len(in.Fields); {
	case in.index != nil:
		in.index[name] = n - 1
	case n > Few:
		in.index = map[string]int{}
		for i := range in.Fields {
			in.index[in.Fields[i].Name] = i
		}
	}
}

// But is the document without some fields.
func (in *Document) But(some func(f Field) bool) Document {
	return Document{Fields: slices.DeleteFunc(slices.Clone(in.Fields), some)}
}

// Redacted is the document as a job remembers it, and whether something secret
// was taken out.
func (in Document) Redacted(m *Match) (body string, hidden bool) {
	var inputs []Input
	switch {
	case m.Action != nil:
		inputs = m.Action.Inputs
	case m.Patch != nil:
		inputs = m.Patch.Inputs
	case m.Create != nil:
		inputs = m.Create.Inputs
	case m.Upload != nil:
		inputs = m.Upload.inputs
	}
	if len(in.Fields) == 0 {
		return "", false
	}
	less := in.Without(inputs, &hidden)
	return string(Encode(less)), hidden
}

// Without is the document but for the inputs that are secret, and for what no
// input takes.
func (in Document) Without(inputs []Input, hidden *bool) Object {
	o := Object{}
	for _, f := range in.Fields {
		i := InputOf(inputs, f.Name)
		switch {
		case i < 0:
		case inputs[i].Secret:
			*hidden = true
		default:
			o[f.Name] = inputs[i].told(f.Value, hidden)
		}
	}
	return o
}

// told is a value as a job remembers it.
func (i *Input) told(value any, hidden *bool) any {
	switch x := value.(type) {
	case Document:
		if i.Kind == Link {
			uri, _ := x.Get("@odata.id")
			return Object{"@odata.id": uri}
		}
		if i.Kind == Named || i.Kind == Free || i.Kind == AnyObject {
			o := Object{}
			for _, f := range x.Fields {
				o[f.Name] = Echo(f.Value)
			}
			return o
		}
		return x.Without(i.Of, hidden)
	case []any:
		if i.Kind == AnyArray {
			return Echo(x)
		}
		all := []any{}
		for _, y := range x {
			if len(i.Of) == 1 {
				all = append(all, i.Of[0].told(y, hidden))
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

// Inside is what was sent at a path.
func (in Document) Inside(path string) (any, bool) {
	name, rest, deeper := strings.Cut(path, "/")
	v, ok := in.Get(name)
	if !deeper || !ok {
		return v, ok
	}
	below, ok := v.(Document)
	if !ok {
		return nil, false
	}
	return below.Inside(rest)
}

// More is the document with a value at a path.
func (in Document) More(path string, v any) Document {
	name, rest, deeper := strings.Cut(path, "/")
	if deeper {
		below, _ := in.Get(name)
		d, _ := below.(Document)
		v = d.More(rest, v)
	}
	out := Document{Fields: make([]Field, 0, len(in.Fields)+1)}
	done := false
	for _, f := range in.Fields {
		if f.Name == name {
			f.Value, done = v, true
		}
		out.Put(f.Name, f.Value)
		out.Fields[len(out.Fields)-1].Twice = f.Twice
	}
	if !done {
		out.Put(name, v)
	}
	return out
}

// Less is the document without what is at a path, and without what that leaves
// empty.
func (in Document) Less(path string) Document {
	name, rest, deeper := strings.Cut(path, "/")
	if !deeper {
		return in.But(func(f Field) bool { return f.Name == name })
	}
	below, _ := in.Get(name)
	d, ok := below.(Document)
	if !ok {
		return in
	}
	if d = d.Less(rest); len(d.Fields) == 0 {
		return in.Less(name)
	}
	return in.More(name, d)
}
