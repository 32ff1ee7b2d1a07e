package resource

import (
	"encoding/json"
	"errors"
)

// maxDepth bounds how deep a document nests.
const maxDepth = 32

// Errors of a body.
var (
	ErrMalformed    = errors.New("redfish: body is not JSON")
	errUnrecognized = errors.New("redfish: body is not an object")
)

// Parse reads a JSON object. Numbers are json.Number, objects are documents.
// The library judges what is JSON; reading what it found valid is simple, and
// a third of the work of its decoder.
func Parse(body []byte) (Document, error) {
	if !json.Valid(body) {
		return Document{}, ErrMalformed
	}
	r := valid{b: body}
	if len(body) <= shortBody {
		r.all = string(body)
	}
	value, err := r.value(maxDepth)
	if err != nil {
		return Document{}, err
	}
	in, ok := value.(Document)
	if !ok {
		return Document{}, errUnrecognized
	}
	return in, nil
}

// shortBody is how many bytes a body has at most of which strings are cut, rather
// than made: who keeps one of them keeps all.
const shortBody = 1 << 10

// valid reads JSON that is known to be valid.
type valid struct {
	b   []byte
	i   int
	all string // the same; "" of a long one
}

// peek is the next byte that is no space.
func (r *valid) peek() byte {
	for {
		switch c := r.b[r.i]; c {
		case ' ', '\t', '\r', '\n':
			r.i++
		default:
			return c
		}
	}
}

// more says whether a list goes on; it takes the comma, or the end.
func (r *valid) more(end byte) bool {
	switch r.peek() {
	case end:
		r.i++
		return false
	case ',':
		r.i++
	}
	return true
}

func (r *valid) value(depth int) (any, error) {
	switch c := r.peek(); c {
	case '{', '[':
		if depth == 0 {
			return nil, errUnrecognized
		}
		r.i++
		if c == '{' {
			return r.object(depth - 1)
		}
		all := []any{}
		for r.more(']') {
			v, err := r.value(depth - 1)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	case '"':
		return r.text(), nil
	case 't':
		r.i += len("true")
		return true, nil
	case 'f':
		r.i += len("false")
		return false, nil
	case 'n':
		r.i += len("null")
		return nil, nil
	}
	from := r.i
	for r.i < len(r.b) && (r.b[r.i]-'0' < 10 || r.b[r.i] == '-' || r.b[r.i] == '+' || r.b[r.i] == '.' || r.b[r.i]|0x20 == 'e') {
		r.i++
	}
	return json.Number(r.b[from:r.i]), nil
}

func (r *valid) object(depth int) (any, error) {
	var in Document
	for r.more('}') {
		if in.Fields == nil {
			in.Fields = make([]Field, 0, 4)
		}
		r.peek()
		name := r.text()
		r.peek() // the colon
		r.i++
		v, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		in.Put(name, v)
	}
	return in, nil
}

// text reads a string.
func (r *valid) text() string {
	from := r.i
	plain := true
	for r.i++; r.b[r.i] != '"'; r.i++ {
		if c := r.b[r.i]; c == '\\' {
			plain = false
			r.i++
		} else if c >= 0x80 {
			plain = false // perhaps not UTF-8
		}
	}
	r.i++
	if plain && r.all != "" {
		return r.all[from+1 : r.i-1]
	}
	if plain {
		return string(r.b[from+1 : r.i-1])
	}
	var s string
	if err := json.Unmarshal(r.b[from:r.i], &s); err != nil {
		panic(err) // it was found valid
	}
	return s
}
