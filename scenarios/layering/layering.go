// Package layering holds the architecture as a table of who may import whom and
// checks Go sources against it. It reads sources and nothing else: it imports
// none of the packages that it judges and does not need them to compile.
package layering

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Module is the path of the module that the table is about.
const Module = "github.com/metalab-dev/metalab"

// Finding is one place where the sources and the table disagree.
type Finding struct {
	File string // from the root of the module
	Line int
	Text string
}

// String is the finding as compilers print them.
func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

// Check compares every Go file of a module with the table. It skips what the go
// command skips: testdata, and names that begin with a dot or an underscore.
func Check(tree fs.FS) ([]Finding, error) {
	var found []Finding
	err := eachGoFile(tree, func(name string, src []byte) error {
		found = append(found, checkFile(name, src)...)
		return nil
	})
	return found, err
}

// eachGoFile calls do with the name and the source of every Go file of a module,
// but for those that the go command skips.
func eachGoFile(tree fs.FS, do func(name string, src []byte) error) error {
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch base := d.Name(); {
		case err != nil:
			return err
		case name != "." && (base[0] == '.' || base[0] == '_' || base == "testdata"):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return do(name, src)
	})
	if err != nil {
		return err
	}
	return nil
}

// file is one Go file that is checked.
type file struct {
	name  string // from the root of the module
	pkg   string // the package that it belongs to, likewise
	test  bool
	set   *token.FileSet
	ast   *ast.File
	found []Finding
}

func checkFile(name string, src []byte) []Finding {
	f := &file{name: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), set: token.NewFileSet()}
	mode := parser.ImportsOnly
	timed := !f.test && matches("emulator/...", f.pkg) && f.pkg != "emulator/clock"
	if timed || f.test {
		mode = 0
	}
	var err error
	if f.ast, err = parser.ParseFile(f.set, name, src, mode|parser.SkipObjectResolution); err != nil {
		f.report(token.NoPos, "does not parse: %v", err)
		return f.found
	}
	f.checkName()
	row := RowOf(f.pkg)
	if row == nil {
		f.report(f.ast.Package, "package %s has no row in scenarios/layering", f.pkg)
	}
	for _, spec := range f.ast.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			f.report(spec.Pos(), "import %s: %v", spec.Path.Value, err)
			continue
		}
		f.checkImport(row, spec.Pos(), imported)
	}
	switch {
	case timed:
		f.checkTime(realTime, "under emulator/ only emulator/clock reads the real clock")
	case f.test && !slices.ContainsFunc(f.ast.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` }):
		f.checkTime([]string{"Sleep"}, "a test waits for a condition, or sleeps in a bubble of testing/synctest")
	}
	return f.found
}

func (f *file) report(at token.Pos, format string, args ...any) {
	f.found = append(f.found, Finding{f.name, f.set.Position(at).Line, fmt.Sprintf(format, args...)})
}

func (f *file) checkName() {
	names := append(strings.Split(f.pkg, "/"), strings.TrimSuffix(f.ast.Name.Name, "_test"))
	for _, bad := range badNames {
		if slices.Contains(names, bad) {
			f.report(f.ast.Package, "a package named %s says nothing of what it owns", bad)
		}
	}
}

func (f *file) checkImport(row *Row, at token.Pos, imported string) {
	name, ours := strings.CutPrefix(imported, Module+"/")
	if imported == Module {
		name, ours = ".", true
	}
	for _, b := range Borders {
		if matches(b.From, f.pkg) && matches(b.To, name) && !(f.test && b.TestsCross) {
			f.report(at, "%s must not import %s: %s", f.pkg, name, b.Why)
			return
		}
	}
	if ours {
		f.checkHouses(at, name)
	}
	switch {
	case row == nil:
	case !f.test && matchesAny(row.Never, name) && !matchesAny(row.But, name):
		f.report(at, "%s must never import %s", f.pkg, name)
	case ours && !f.mayImport(row, name):
		f.report(at, "%s may not import %s: its row does not list it", f.pkg, name)
	case !ours && !f.test && row.Only != nil && !standard(name) && !matchesAny(row.Only, name):
		f.report(at, "%s may not import %s: its row allows %s only", f.pkg, name, strings.Join(row.Only, ", "))
	}
}

// mayImport tells whether a row lets a file import a package of ours.
func (f *file) mayImport(row *Row, name string) bool {
	if f.test && (name == f.pkg || slices.Contains(kits, name) || matchesAny(row.Tests, name)) {
		return true
	}
	if slices.Contains(kits, name) {
		return slices.Contains(row.May, name)
	}
	return matchesAny(row.May, name)
}

// checkTime reports uses of some functions of package time, under any name that the file
// imports it by. It takes no notice of scopes: a variable that hides the package and has a
// method Now is reported, and better called something else.
func (f *file) checkTime(functions []string, rule string) {
	for _, spec := range f.ast.Imports {
		if spec.Path.Value != `"time"` {
			continue
		}
		local := "time"
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == "." {
			f.report(spec.Pos(), "time must be imported under a name: %s", rule)
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == local && slices.Contains(functions, s.Sel.Name) {
				f.report(s.Pos(), "time.%s: %s", s.Sel.Name, rule)
			}
			return true
		})
	}
}

// RowOf finds the row of a package: one that names it, or else the longest
// pattern.
func RowOf(pkg string) *Row {
	var best *Row
	for i, r := range Table {
		if r.Package == pkg {
			return &Table[i]
		}
		if matches(r.Package, pkg) && (best == nil || len(r.Package) > len(best.Package)) {
			best = &Table[i]
		}
	}
	return best
}

// matches tells whether a pattern means a package.
func matches(pattern, pkg string) bool {
	top, all := strings.CutSuffix(pattern, "/...")
	return pkg == top || all && strings.HasPrefix(pkg, top+"/")
}

func matchesAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

// standard tells whether a package is of the standard library: the first
// element of all other import paths has a dot.
func standard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return !strings.Contains(first, ".")
}
