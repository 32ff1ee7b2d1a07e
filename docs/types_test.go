package docs

import (
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// module is the path of the module that these documents are about.
const module = "github.com/metalab-dev/metalab/"

// root is the module's root directory, from this package.
const root = ".."

// fields writes the fields of a Go type, and of the types of its fields, as a
// file format: a table for each type, with the fields' comments as their text.
type fields struct {
	t        *testing.T
	key      func(reflect.StructField) string // the field's key; "" leaves it out
	packages map[string][]*ast.File
	queue    []reflect.Type
	seen     map[reflect.Type]bool
}

// tables returns the tables for a type and all types below it.
func (f *fields) tables(of reflect.Type) string {
	f.packages, f.seen = map[string][]*ast.File{}, map[reflect.Type]bool{of: true}
	f.queue = []reflect.Type{of}
	var b strings.Builder
	for len(f.queue) > 0 {
		t := f.queue[0]
		f.queue = f.queue[1:]
		f.table(&b, t)
	}
	return b.String()
}

func (f *fields) table(b *strings.Builder, t reflect.Type) {
	spec, doc := f.find(t)
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n", typeName(t), oneLine(doc))
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(fromText) || reflect.PointerTo(t).Implements(fromJSON) {
		f.values(b, t)
		return
	}
	b.WriteString("| key | value | meaning |\n|---|---|---|\n")
	comments := fieldComments(spec)
	for i := range t.NumField() {
		field := t.Field(i)
		key := f.key(field)
		if key == "" {
			continue
		}
		meaning := comments[field.Name]
		if meaning == "" {
			meaning = f.summary(field.Type)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", key, f.value(field.Type), cell(meaning))
	}
}

// summary returns the first sentence of the doc comment of a field's type, for a field
// without a comment; "" for types of other modules.
func (f *fields) summary(t reflect.Type) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t.Name() == "" {
		t = t.Elem()
	}
	if !strings.HasPrefix(t.PkgPath(), strings.TrimSuffix(module, "/")) {
		return ""
	}
	_, doc := f.find(t)
	first, _, _ := strings.Cut(oneLine(doc), ". ")
	return strings.TrimSuffix(first, ".")
}

var (
	fromText = reflect.TypeFor[encoding.TextUnmarshaler]()
	fromJSON = reflect.TypeFor[json.Unmarshaler]()
)

// value says what a value of a type is written as, and queues the types in it.
func (f *fields) value(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration (`90s`)"
	case t == reflect.TypeFor[netip.Addr]():
		return "IP address"
	case t.Kind() == reflect.Pointer:
		return f.value(t.Elem())
	case strings.HasPrefix(t.PkgPath(), strings.TrimSuffix(module, "/")):
		if !f.seen[t] {
			f.seen[t] = true
			f.queue = append(f.queue, t)
		}
		return fmt.Sprintf("[%s](#%s)", typeName(t), strings.ToLower(strings.ReplaceAll(typeName(t), ".", "")))
	case t.Kind() == reflect.Slice:
		return "list of " + f.value(t.Elem())
	case t.Kind() == reflect.Array:
		return fmt.Sprintf("list of %d: %s", t.Len(), f.value(t.Elem()))
	case t.Kind() == reflect.Map:
		return "mapping to " + f.value(t.Elem())
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Interface:
		return "any value"
	case reflect.Float32, reflect.Float64:
		return "number"
	}
	return "whole number"
}

// values lists the constants of a type that is not a struct.
func (f *fields) values(b *strings.Builder, t reflect.Type) {
	plain := map[reflect.Kind]string{reflect.String: "text", reflect.Struct: "text", reflect.Bool: "true or false"}[t.Kind()]
	switch t.Kind() {
	case reflect.Slice:
		plain = "list of " + f.value(t.Elem())
	case reflect.Map:
		plain = "mapping to " + f.value(t.Elem())
	}
	constants := f.constants(t)
	if len(constants) == 0 {
		if plain != "" {
			fmt.Fprintf(b, "Written as: %s.\n", plain)
		}
		return
	}
	b.WriteString("| value | meaning |\n|---|---|\n")
	for _, c := range constants {
		fmt.Fprintf(b, "| %s | %s |\n", c[0], cell(c[1]))
	}
}

// constants returns the constants of a type, each with its comment.
func (f *fields) constants(t reflect.Type) [][2]string {
	var out [][2]string
	for _, file := range f.files(t) {
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, s := range group.Specs {
				v := s.(*ast.ValueSpec)
				if id, ok := v.Type.(*ast.Ident); !ok || id.Name != t.Name() || len(v.Values) != 1 || !v.Names[0].IsExported() {
					continue
				}
				lit, ok := v.Values[0].(*ast.BasicLit)
				if !ok {
					continue
				}
				text := lit.Value
				if s, err := strconv.Unquote(text); err == nil {
					text = "`" + s + "`"
					if s == "" {
						text = "(empty)"
					}
				}
				comment := v.Comment.Text()
				if comment == "" {
					comment = v.Doc.Text()
				}
				out = append(out, [2]string{text, comment})
			}
		}
	}
	return out
}

// files returns the parsed files of a type's package, in the order of their
// names.
func (f *fields) files(t reflect.Type) []*ast.File {
	dir := strings.TrimPrefix(t.PkgPath(), module)
	if f.packages[dir] == nil {
		f.packages[dir] = parsed(f.t, dir, 0)
	}
	return f.packages[dir]
}

// parsed returns the files of a package but for its tests, in the order of their
// names.
func parsed(t *testing.T, dir string, mode parser.Mode) (out []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution|mode)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, file)
	}
	return out
}

// find returns the declaration and the doc comment of a type.
func (f *fields) find(t reflect.Type) (*ast.TypeSpec, string) {
	for _, file := range f.files(t) {
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			for _, s := range group.Specs {
				spec := s.(*ast.TypeSpec)
				if spec.Name.Name != t.Name() {
					continue
				}
				if spec.Doc != nil {
					return spec, spec.Doc.Text()
				}
				return spec, group.Doc.Text()
			}
		}
	}
	f.t.Fatalf("%s is not declared in %s", t.Name(), t.PkgPath())
	return nil, ""
}

// fieldComments returns the comments of a struct's fields by their names.
func fieldComments(spec *ast.TypeSpec) map[string]string {
	out := map[string]string{}
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return out
	}
	for _, field := range s.Fields.List {
		doc := strings.TrimSpace(field.Doc.Text())
		if !strings.Contains(doc, " ") { // the heading of a group of fields
			doc = ""
		}
		text := strings.TrimSpace(doc + "\n" + field.Comment.Text())
		for _, name := range field.Names {
			out[name.Name] = text
		}
		if len(field.Names) == 0 { // embedded
			if id, ok := field.Type.(*ast.Ident); ok {
				out[id.Name] = text
			}
		}
	}
	return out
}

// typeName is a type as headings have it: machine.SourceKind.
func typeName(t reflect.Type) string { return path.Base(t.PkgPath()) + "." + t.Name() }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// cell is a text as a cell of a table.
func cell(s string) string { return strings.ReplaceAll(oneLine(s), "|", "\\|") }

// read returns the text of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
