package rack

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// TestEveryEventHasAJournalName compares the types that describe knows with those
// of the machine and of the BMC that implement event.Event.
func TestEveryEventHasAJournalName(t *testing.T) {
	known := map[string]bool{}
	for _, f := range parseFolder(t, ".") {
		ast.Inspect(f, func(n ast.Node) bool {
			d, ok := n.(*ast.FuncDecl)
			if !ok || d.Name.Name != "describe" {
				return true
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if c, ok := n.(*ast.CaseClause); ok {
					for _, x := range c.List {
						if s, ok := x.(*ast.SelectorExpr); ok {
							known[s.X.(*ast.Ident).Name+"."+s.Sel.Name] = true
						}
					}
				}
				return true
			})
			return false
		})
	}
	n := 0
	for _, folder := range []string{"../bmc", "../machine", "../machine/event", "../machine/firmware", "../machine/storage", "../machine/thermal"} {
		for _, f := range parseFolder(t, folder) {
			for name := range eventTypes(f) {
				if f.Name.Name == "bmc" && name == "Entry" {
					continue // Logged reports it
				}
				n++
				if !known[f.Name.Name+"."+name] {
					t.Errorf("describe has no case for %s.%s", f.Name.Name, name)
				}
			}
		}
	}
	if n < 35 {
		t.Errorf("found %d types of events, want at least 35", n)
	}
}

// parseFolder parses the Go files of a folder, without its tests.
func parseFolder(t *testing.T, folder string) []*ast.File {
	t.Helper()
	names, err := fs.Glob(os.DirFS(folder), "*.go")
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d Go files, %v", folder, len(names), err)
	}
	var all []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

// eventTypes returns the names of the exported types with a method Time() time.Time
// in a file, and of those that embed event.Note, which has it.
func eventTypes(f *ast.File) map[string]bool {
	out := map[string]bool{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || d.Name.Name != "Time" || d.Type.Params.NumFields() != 0 {
				continue
			}
			if of, ok := d.Recv.List[0].Type.(*ast.Ident); ok && of.IsExported() {
				out[of.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				is, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if s, ok := is.Type.(*ast.StructType); ok && embedsNote(s) {
					out[is.Name.Name] = true
				}
			}
		}
	}
	return out
}

func embedsNote(s *ast.StructType) bool {
	for _, field := range s.Fields.List {
		if len(field.Names) > 0 {
			continue
		}
		switch of := field.Type.(type) {
		case *ast.Ident:
			if of.Name == "Note" {
				return true
			}
		case *ast.SelectorExpr:
			if of.Sel.Name == "Note" {
				return true
			}
		}
	}
	return false
}

// The journal names what a server tries to boot, with the device where there is one.
func TestJournalNamesWhatBoots(t *testing.T) {
	cd, disk := machine.Source{Kind: machine.Cd}, machine.Source{Kind: machine.Hdd, Device: "Disk.0"}
	for _, tt := range []struct {
		event      event.Event
		what, text string
	}{
		{machine.BootAttempted{Source: cd}, "boot.tried", "Cd"},
		{machine.BootAttempted{Source: disk}, "boot.tried", "Hdd Disk.0"},
		{machine.SystemStarted{OS: machine.OS{Name: "Debian", Source: disk}}, "os.started", "Debian from Hdd Disk.0"},
		{machine.SystemStarted{OS: machine.OS{Name: "live", Source: cd}}, "os.started", "live from Cd"},
	} {
		if what, text := describe(tt.event); what != tt.what || text != tt.text {
			t.Errorf("describe(%+v) = %q, %q, want %q, %q", tt.event, what, text, tt.what, tt.text)
		}
	}
}
