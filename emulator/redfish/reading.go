package redfish

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// reading is a dialect.Reading, ready for use.
type reading struct {
	dialect.InputAlias
	at pattern
}

// concerns says whether it is about what a request is about.
func (r *reading) concerns(x *exchange) bool {
	of := rule{dialect.RejectRule{ResourceType: r.ResourceType, Method: r.Method}, r.at}
	return of.concerns(x)
}

// understood is what was sent as this vendor's service reads it.
func (x *exchange) understood(in document, at *snapshot) document {
	f := faceOf(at.d)
	if f == nil {
		return in
	}
	for i := range f.readings {
		if r := &f.readings[i]; r.concerns(x) {
			in = r.read(in)
		}
	}
	return in
}

func (r *reading) read(in document) document {
	v, sent := in.inside(r.Path)
	switch {
	case sent:
		if word, ok := r.Values[fmt.Sprint(v)]; ok {
			v = sending(word)
		}
	case r.Default != nil && (len(r.DefaultWith) == 0 || slices.ContainsFunc(r.DefaultWith, func(p string) bool { _, ok := in.inside(p); return ok })):
		v = sending(r.Default)
	default:
		return in
	}
	to := r.To
	if to == "" {
		to = r.Path
	}
	if to != r.Path {
		in = in.less(r.Path)
	}
	if to == dialect.Discard {
		return in
	}
	return in.more(to, v)
}

// sending is a value of a record as a client would have sent it.
func sending(v any) any {
	in, err := parse(encode(object{"": v}))
	if err != nil {
		return v // not reached: it is data
	}
	sent, _ := in.get("")
	return sent
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
