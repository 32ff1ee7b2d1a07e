package fault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Rewrites reports whether Rewrite changes anything.
func (d *Decision) Rewrites() bool { return len(d.rewrites) > 0 }

// Rewrite returns the content type and the body to send instead of the given
// ones, which it does not change.
func (d *Decision) Rewrite(contentType string, body []byte) (string, []byte) {
	for _, w := range d.rewrites {
		if w.replaced {
			body = []byte(w.body)
			if w.contentType != "" {
				contentType = w.contentType
			}
		}
		if w.patch != nil || len(w.set) > 0 {
			body = w.edit(body)
		}
		if w.invalid {
			body = invalid(body)
		}
		if w.cut.set {
			body = w.cut.of(body)
		}
	}
	return contentType, body
}

// edit changes values of a JSON body. Another body is returned unchanged.
func (w *rewrite) edit(body []byte) []byte {
	doc, err := decode(body)
	if err != nil {
		return body
	}
	if w.patch != nil {
		if p, err := decode(w.patch); err == nil {
			doc = merge(doc, p)
		}
	}
	for _, s := range w.set {
		doc = s.put(doc, s.at)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(doc) != nil {
		return body
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// decode parses JSON and keeps the notation of numbers.
func decode(b []byte) (any, error) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	err := dec.Decode(&v)
	return v, err
}

// merge is MergePatch (RFC 7396, §2).
func merge(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	t, ok := target.(map[string]any)
	if !ok {
		t = map[string]any{}
	}
	for k, v := range p { // keys are independent, so the map's order has no effect
		if v == nil {
			delete(t, k)
		} else {
			t[k] = merge(t[k], v)
		}
	}
	return t
}

// pointed is a value and its JSON pointer (RFC 6901).
type pointed struct {
	at    []string
	value json.RawMessage
}

// parse returns the values sorted by pointer.
func (v Values) parse() ([]pointed, error) {
	var places []string
	for at := range v {
		places = append(places, at)
	}
	slices.Sort(places)
	var out []pointed
	for _, at := range places {
		if at == "" || at[0] != '/' {
			return nil, fmt.Errorf("%q: must be a JSON pointer, such as /Status/Health", at)
		}
		raw, err := json.Marshal(v[at])
		if err != nil {
			return nil, fmt.Errorf("%q: must be a value as JSON has them", at)
		}
		p := pointed{value: raw}
		for part := range strings.SplitSeq(at[1:], "/") {
			p.at = append(p.at, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
		}
		out = append(out, p)
	}
	return out, nil
}

// put sets the value below doc. Missing objects are created; - appends to an
// array; an impossible place is ignored.
func (s *pointed) put(doc any, at []string) any {
	if len(at) == 0 {
		v, err := decode(s.value)
		if err != nil {
			return doc
		}
		return v
	}
	if list, ok := doc.([]any); ok {
		i, err := strconv.Atoi(at[0])
		switch {
		case at[0] == "-", err == nil && i == len(list):
			return append(list, s.put(nil, at[1:]))
		case err == nil && i >= 0 && i < len(list):
			list[i] = s.put(list[i], at[1:])
		}
		return list
	}
	o, ok := doc.(map[string]any)
	if !ok {
		o = map[string]any{}
	}
	o[at[0]] = s.put(o[at[0]], at[1:])
	return o
}

// holds reports whether the document has the value at its place.
func (s *pointed) holds(doc any) bool {
	for _, part := range s.at {
		switch in := doc.(type) {
		case map[string]any:
			v, ok := in[part]
			if !ok {
				return false
			}
			doc = v
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(in) {
				return false
			}
			doc = in[i]
		default:
			return false
		}
	}
	want, err := decode(s.value)
	return err == nil && reflect.DeepEqual(doc, want)
}

// invalid makes JSON invalid with a trailing comma, as some firmware does.
func invalid(body []byte) []byte {
	end := len(bytes.TrimRight(body, " \r\n\t"))
	if end == 0 {
		return []byte("{,}")
	}
	out := append(slices.Clip(body[:end-1]), ',')
	return append(out, body[end-1:]...)
}
