// Package yamlfile reads the YAML files that users write, strictly, and writes
// them. Rack, fault, profile, registry and dialect files all go through it: a
// mistake is an Error that names the file, the line, the field and what is
// allowed there. It knows the Go types that it decodes into and nothing about
// their meaning.
//
// A file is decoded by its YAML nodes (go.yaml.in/yaml/v3), which keep their
// lines. github.com/goccy/go-yaml 1.18 was tried: it stops at the first mistake
// and names the outermost Go field instead of the path in the file.
package yamlfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxBytes is the size of the largest file that is read.
const maxBytes = 16 << 20

// File is a YAML file that has been read. It holds one document.
type File struct {
	name    string
	top     *yaml.Node // never a document or an alias
	taken   []string   // top-level keys that Take has decoded
	renamed map[string]map[string]string
}

// Read parses data as one YAML document. The name stands in error messages.
// begin is what the file should begin with, for the message about an empty one.
func Read(name string, data []byte, begin string) (*File, error) {
	wrong := func(line int, text string) error { return &Error{File: name, Line: line, Text: text} }
	if len(data) > maxBytes {
		return nil, wrong(0, fmt.Sprintf("has %d bytes: must have at most %d", len(data), maxBytes))
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, wrong(0, "is empty: begin with "+begin)
	case err != nil:
		return nil, syntaxError(name, err)
	}
	switch err := dec.Decode(new(yaml.Node)); {
	case err == nil:
		return nil, wrong(0, "holds more than one document: keep one, without ---")
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(name, err)
	}
	return &File{name: name, top: target(&doc)}, nil
}

// Renamed tells the file which keys have been renamed, by their Go struct type
// ("dialect.Record"): a file with an old key is refused, and the message names the new
// one.
func (f *File) Renamed(keys map[string]map[string]string) { f.renamed = keys }

// Decode decodes the file into *v, except for what Take has taken. What the file
// does not name keeps the value that *v has. The error joins an Error for each
// mistake, up to fifty, and says how many more there are.
func (f *File) Decode(v any) error {
	d := &decoder{file: f}
	d.pointer(f.top, v, "")
	return d.err()
}

// Take decodes the value of one top-level key into *v, and hides the key from
// Decode. A key that is absent leaves *v as it is.
func (f *File) Take(key string, v any) error {
	f.taken = append(f.taken, key)
	n := entry(f.top, key)
	if n == nil {
		return nil
	}
	d := &decoder{file: f}
	d.pointer(n, v, key)
	return d.err()
}

// Has reports whether the file has a value for a field: "hosts[1].count".
func (f *File) Has(field string) bool {
	_, found := f.line(field)
	return found
}

// Locate sets the file and the line of each Error in err that has none, by its
// Field, and returns err. The line of a field that the file does not have is the
// line of the closest field around it.
func (f *File) Locate(err error) error {
	switch e := err.(type) { //nolint:errorlint // it visits every wrapped error itself
	case nil:
	case *Error:
		if e.File == "" {
			e.File = f.name
			e.Line, _ = f.line(e.Field)
		}
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			_ = f.Locate(each)
		}
	default:
		_ = f.Locate(errors.Unwrap(err))
	}
	return err
}

// All joins the errors of a file in the order of their lines: those of Decode, and those that
// packages have found in the values. A field that could not be decoded has no value: All
// leaves out the findings there, above and below it. Of more than fifty mistakes it lists the
// first, and says how many more there are; the findings count only while Decode has listed all of
// its mistakes.
func (f *File) All(decoded error, found ...error) error {
	all, more := list(nil, decoded)
	undecoded := len(all)
	if more > 0 { // fields that are not listed could not be decoded: findings there would be none
		found = nil
	}
	findings, _ := list(nil, f.Locate(errors.Join(found...)))
	for _, e := range findings {
		if !slices.ContainsFunc(all[:undecoded], func(d *Error) bool {
			return d.Field == "" || e.Field == "" || within(e.Field, d.Field) || within(d.Field, e.Field)
		}) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	var out []error
	for _, e := range all[:min(len(all), maxErrors)] {
		out = append(out, e)
	}
	if more += len(all) - len(out); more > 0 {
		out = append(out, &unlisted{file: f.name, count: more})
	}
	return errors.Join(out...)
}

// within reports whether a field is another one or a part of it.
func within(field, of string) bool {
	rest, ok := strings.CutPrefix(field, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// list appends each Error that err joins, and returns the number of mistakes that it counts
// alone. An error of another type is one of the whole file.
func list(out []*Error, err error) (_ []*Error, more int) {
	switch e := err.(type) { //nolint:errorlint // it visits every wrapped error itself
	case nil:
	case *Error:
		out = append(out, e)
	case *unlisted:
		more = e.count
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			n := 0
			out, n = list(out, each)
			more += n
		}
	default:
		out = append(out, &Error{Text: e.Error()})
	}
	return out, more
}

// Locate is File.Locate for a file that has been read successfully before.
func Locate(name string, data []byte, err error) error {
	f, syntax := Read(name, data, "")
	if err == nil || syntax != nil {
		return err
	}
	return f.Locate(err)
}

// line returns the line of a field, or else the line of the closest field around
// it; 0 for the whole file.
func (f *File) line(field string) (line int, found bool) {
	n := f.top
	for field != "" {
		if list, rest, ok := index(field); ok {
			n = target(n)
			if n == nil || n.Kind != yaml.SequenceNode || list >= len(n.Content) {
				return line, false
			}
			n, field = n.Content[list], rest
			line = n.Line
			continue
		}
		key, value, rest := nextKey(target(n), field)
		if key == nil {
			return line, false
		}
		n, field = value, rest
		line = key.Line
	}
	return line, true
}

// index cuts a list index off the front of a field: "[2].name".
func index(field string) (i int, rest string, ok bool) {
	text, rest, ok := strings.Cut(strings.TrimPrefix(field, "["), "]")
	if !ok || field[0] != '[' {
		return 0, "", false
	}
	i, err := strconv.Atoi(text)
	return i, strings.TrimPrefix(rest, "."), err == nil && i >= 0
}

// nextKey finds the entry of a mapping that a field begins with. Keys may have
// dots themselves: the longest that fits is the one.
func nextKey(n *yaml.Node, field string) (key, value *yaml.Node, rest string) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil, ""
	}
	for _, e := range entries(n) {
		after, ok := strings.CutPrefix(field, e.key.Value)
		if !ok || after != "" && after[0] != '.' && after[0] != '[' || key != nil && len(e.key.Value) <= len(key.Value) {
			continue
		}
		key, value, rest = e.key, e.value, strings.TrimPrefix(after, ".")
	}
	return key, value, rest
}

// pair is one entry of a mapping.
type pair struct{ key, value *yaml.Node }

// entries lists the entries of a mapping in their order, those of a merge key
// (<<) behind those of the mapping itself, which go before them.
func entries(n *yaml.Node) []pair { return appendEntries(nil, n, 0) }

// maxMerges is how deep merged mappings may merge others.
const maxMerges = 8

func appendEntries(out []pair, n *yaml.Node, depth int) []pair {
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := target(n.Content[i]), n.Content[i+1]
		switch {
		case isMerge(k):
			merged = append(merged, target(v))
		case depth == 0 || !slices.ContainsFunc(out, func(p pair) bool { return p.key.Value == k.Value }):
			out = append(out, pair{k, v})
		}
	}
	for _, m := range merged {
		switch {
		case depth == maxMerges:
		case m.Kind == yaml.MappingNode:
			out = appendEntries(out, m, depth+1)
		case m.Kind == yaml.SequenceNode:
			for _, each := range m.Content {
				if each = target(each); each.Kind == yaml.MappingNode {
					out = appendEntries(out, each, depth+1)
				}
			}
		}
	}
	return out
}

func isMerge(key *yaml.Node) bool { return key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" }

func entry(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for _, e := range entries(n) {
		if e.key.Value == key {
			return e.value
		}
	}
	return nil
}

// target returns the node that a document or an alias stands for.
func target(n *yaml.Node) *yaml.Node {
	for n != nil {
		switch {
		case n.Kind == yaml.AliasNode:
			n = n.Alias
		case n.Kind == yaml.DocumentNode && len(n.Content) > 0:
			n = n.Content[0]
		default:
			return n
		}
	}
	return nil
}

var lineOf = regexp.MustCompile(`^line (\d+): (.*)`)

// syntaxError makes an Error of an error of the YAML parser, which has the line
// in its text alone.
func syntaxError(name string, err error) error {
	e := &Error{File: name, Text: "is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := lineOf.FindStringSubmatch(strings.TrimPrefix(err.Error(), "yaml: ")); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Text = "is not YAML: " + m[2]
	}
	return e
}
