package resource

import (
	"slices"
	"strings"
)

// Document is a JSON object that a client sent.
type Document struct {
	Fields []Field        // in order, each name once
	index  map[string]int // index of each field by name, in documents with many fields
}

// Field is a property of a Document.
type Field struct {
	Name      string
	Value     any  // the last that was sent
	Duplicate bool // it was sent more than once
}

// indexThreshold is the number of fields above which a Document keeps an index.
// Fewer fields are found faster without one.
const indexThreshold = 16

// Index returns the index of the field with a name; -1 when there is none.
func (in *Document) Index(name string) int {
	if in.index != nil {
		if i, ok := in.index[name]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(in.Fields, func(f Field) bool { return f.Name == name })
}

// Get returns the value of a field, and whether it was sent.
func (in *Document) Get(name string) (value any, sent bool) {
	i := in.Index(name)
	if i < 0 {
		return nil, false
	}
	return in.Fields[i].Value, true
}

// Put sets a field. Putting a name a second time marks the field as a duplicate.
func (in *Document) Put(name string, value any) {
	if i := in.Index(name); i >= 0 {
		in.Fields[i].Value, in.Fields[i].Duplicate = value, true
		return
	}
	in.Fields = append(in.Fields, Field{Name: name, Value: value})
	switch n := len(in.Fields); {
	case in.index != nil:
		in.index[name] = n - 1
	case n > indexThreshold:
		in.index = map[string]int{}
		for i := range in.Fields {
			in.index[in.Fields[i].Name] = i
		}
	}
}

// DeleteFunc returns a copy of the document without the fields that match.
func (in *Document) DeleteFunc(some func(f Field) bool) Document {
	return Document{Fields: slices.DeleteFunc(slices.Clone(in.Fields), some)}
}

// Redacted returns the document as JSON without secrets, as a task stores it,
// and whether it removed any.
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
	less := in.redactSecrets(inputs, &hidden)
	return string(Encode(less)), hidden
}

// redactSecrets returns the document as an object without secret inputs and
// without properties that no input accepts. It sets *hidden when it removes a
// secret.
func (in Document) redactSecrets(inputs []Input, hidden *bool) Object {
	o := Object{}
	for _, f := range in.Fields {
		i := InputOf(inputs, f.Name)
		switch {
		case i < 0:
		case inputs[i].Secret:
			*hidden = true
		default:
			o[f.Name] = inputs[i].redact(f.Value, hidden)
		}
	}
	return o
}

// redact returns a value without secrets, as a task stores it.
func (i *Input) redact(value any, hidden *bool) any {
	switch x := value.(type) {
	case Document:
		if i.Kind == Link {
			uri, _ := x.Get("@odata.id")
			return Object{"@odata.id": uri}
		}
		if i.Kind == StringMap || i.Kind == ScalarMap || i.Kind == AnyObject {
			o := Object{}
			for _, f := range x.Fields {
				o[f.Name] = Echo(f.Value)
			}
			return o
		}
		return x.redactSecrets(i.Of, hidden)
	case []any:
		if i.Kind == AnyArray {
			return Echo(x)
		}
		all := []any{}
		for _, y := range x {
			if len(i.Of) == 1 {
				all = append(all, i.Of[0].redact(y, hidden))
			}
		}
		return all
	case string:
		less := RedactURI(x)
		*hidden = *hidden || less != x
		return HideURISecrets(less)
	}
	return value
}

// Lookup returns the value at a path ("A/B"), and whether it was sent.
func (in Document) Lookup(path string) (any, bool) {
	name, rest, deeper := strings.Cut(path, "/")
	v, ok := in.Get(name)
	if !deeper || !ok {
		return v, ok
	}
	below, ok := v.(Document)
	if !ok {
		return nil, false
	}
	return below.Lookup(rest)
}

// WithValue returns a copy of the document with a value at a path.
func (in Document) WithValue(path string, v any) Document {
	name, rest, deeper := strings.Cut(path, "/")
	if deeper {
		below, _ := in.Get(name)
		d, _ := below.(Document)
		v = d.WithValue(rest, v)
	}
	out := Document{Fields: make([]Field, 0, len(in.Fields)+1)}
	done := false
	for _, f := range in.Fields {
		if f.Name == name {
			f.Value, done = v, true
		}
		out.Put(f.Name, f.Value)
		out.Fields[len(out.Fields)-1].Duplicate = f.Duplicate
	}
	if !done {
		out.Put(name, v)
	}
	return out
}

// WithoutValue returns a copy of the document without the value at a path, and
// without the objects that this leaves empty.
func (in Document) WithoutValue(path string) Document {
	name, rest, deeper := strings.Cut(path, "/")
	if !deeper {
		return in.DeleteFunc(func(f Field) bool { return f.Name == name })
	}
	below, _ := in.Get(name)
	d, ok := below.(Document)
	if !ok {
		return in
	}
	if d = d.WithoutValue(rest); len(d.Fields) == 0 {
		return in.WithoutValue(name)
	}
	return in.WithValue(name, d)
}
