package resource

import (
	"encoding/json"
	"errors"
)

// maxDepth is how many levels of objects and arrays a request body may nest.
const maxDepth = 32

// The errors of Parse.
var (
	ErrMalformed    = errors.New("redfish: body is not JSON")
	errUnrecognized = errors.New("redfish: body is not an object")
)

// Parse returns the JSON object of a request body. Numbers become json.Number, objects
// become Document. It returns ErrMalformed when the body is not JSON. json.Valid judges the
// syntax; reading valid JSON here costs a third of encoding/json's decoder.
func Parse(body []byte) (Document, error) {
	if !json.Valid(body) {
		return Document{}, ErrMalformed
	}
	r := jsonReader{b: body}
	if len(body) <= shortBody {
		r.shared = string(body)
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

// shortBody is the largest body, in bytes, whose strings share the memory of the body. A
// string that is stored keeps the memory of the body it shares.
const shortBody = 1 << 10

// jsonReader reads JSON that json.Valid has accepted.
type jsonReader struct {
	b      []byte
	i      int
	shared string // the body as a string; "" for a body longer than shortBody
}

// peek returns the next byte that is not white space.
func (r *jsonReader) peek() byte {
	for {
		switch c := r.b[r.i]; c {
		case ' ', '\t', '\r', '\n':
			r.i++
		default:
			return c
		}
	}
}

// more reports whether an array or object has another element. It consumes the comma or the
// closing bracket.
func (r *jsonReader) more(end byte) bool {
	switch r.peek() {
	case end:
		r.i++
		return false
	case ',':
		r.i++
	}
	return true
}

func (r *jsonReader) value(depth int) (any, error) {
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
		return r.string(), nil
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

func (r *jsonReader) object(depth int) (any, error) {
	var in Document
	for r.more('}') {
		if in.Fields == nil {
			in.Fields = make([]Field, 0, 4)
		}
		r.peek()
		name := r.string()
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

// string reads a string.
func (r *jsonReader) string() string {
	from := r.i
	plain := true
	for r.i++; r.b[r.i] != '"'; r.i++ {
		if c := r.b[r.i]; c == '\\' {
			plain = false
			r.i++
		} else if c >= 0x80 {
			plain = false // it may be invalid UTF-8
		}
	}
	r.i++
	if plain && r.shared != "" {
		return r.shared[from+1 : r.i-1]
	}
	if plain {
		return string(r.b[from+1 : r.i-1])
	}
	var s string
	if err := json.Unmarshal(r.b[from:r.i], &s); err != nil {
		panic(err) // json.Valid accepted it
	}
	return s
}
