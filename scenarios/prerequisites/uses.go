package prerequisites

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Uses returns the uses of each prerequisite, by its name, from the sources of the
// repository: tests ("emulator/rack: TestRedfishtool"), scenarios
// ("features/rack/ipmi.feature: Smaller commands: <what>") and commands of documents.
func Uses(tree fs.FS) (map[string][]string, error) {
	out := map[string][]string{}
	packages := map[string][]*ast.File{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name == "bin" || len(name) > 1 && d.Name()[0] == '.'):
			return fs.SkipDir
		case strings.HasSuffix(name, "_test.go"):
			src, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
			packages[path.Dir(name)] = append(packages[path.Dir(name)], f)
			return err
		case strings.HasSuffix(name, ".feature"):
			text, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			scenarioUses(name, string(text), out)
		case strings.HasSuffix(name, ".md"):
			text, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			for _, m := range runWith.FindAllStringSubmatch(string(text), -1) {
				if p, ok := Lookup(m[1]); ok {
					out[p.Name] = append(out[p.Name], name+": commands that run "+m[1])
				}
			}
		}
		return nil
	})
	for dir, files := range packages { // in any order: out is sorted below
		testUses(dir, files, out)
	}
	for name := range out {
		slices.Sort(out[name])
	}
	return out, err
}

// thisPackage is how this package is imported.
const thisPackage = `"github.com/metalab-dev/metalab/scenarios/prerequisites"`

// scenarioTitle matches the title of a scenario, runs a program that a step or an example of
// it runs, and runWith the program that a document's block of commands runs.
var (
	machineHas    = regexp.MustCompile(`this machine has "([^"]+)"`)
	scenarioTitle = regexp.MustCompile(`^\s*Scenario(?: Outline)?: (.+)$`)
	runWith       = regexp.MustCompile("(?m)^ *```sh run with ([a-z-]+)$")
	runs          = regexp.MustCompile("(?:`|\\| +)([a-z][a-z-]+)(?: |`|$)")
)

// scenarioUses adds the scenarios of a feature file that run programs of the table.
func scenarioUses(file, text string, out map[string][]string) {
	title := ""
	for line := range strings.Lines(text) {
		if m := scenarioTitle.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			title = m[1]
			continue
		}
		if m := machineHas.FindStringSubmatch(line); m != nil && title != "" {
			out[m[1]] = append(out[m[1]], file+": "+title)
			continue
		}
		if !strings.Contains(line, "client runs `") && !strings.HasPrefix(strings.TrimSpace(line), "|") {
			continue
		}
		for _, m := range runs.FindAllStringSubmatch(line, -1) {
			p, ok := Lookup(m[1])
			if use := file + ": " + title; ok && title != "" && !slices.Contains(out[p.Name], use) {
				out[p.Name] = append(out[p.Name], use)
			}
		}
	}
}

// testUses adds the tests of a package that name a prerequisite as a string, or call a
// function of the package's tests that does. Only packages that import this one have such.
func testUses(dir string, files []*ast.File, out map[string][]string) {
	if !slices.ContainsFunc(files, func(f *ast.File) bool {
		return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == thisPackage })
	}) {
		return
	}
	asks, calls := map[string][]string{}, map[string][]string{} // by function: prerequisites, functions
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if callee, ok := n.Fun.(*ast.Ident); ok {
						calls[fn.Name.Name] = append(calls[fn.Name.Name], callee.Name)
					} else if callee, ok := n.Fun.(*ast.SelectorExpr); ok {
						calls[fn.Name.Name] = append(calls[fn.Name.Name], callee.Sel.Name)
					}
				case *ast.BasicLit:
					if name, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
						if p, ok := Lookup(name); ok {
							asks[fn.Name.Name] = append(asks[fn.Name.Name], p.Name)
						}
					}
				}
				return true
			})
		}
	}
	for changed := true; changed; {
		changed = false
		for _, caller := range slices.Sorted(maps.Keys(calls)) {
			for _, callee := range calls[caller] {
				for _, name := range asks[callee] {
					if !slices.Contains(asks[caller], name) {
						asks[caller], changed = append(asks[caller], name), true
					}
				}
			}
		}
	}
	for _, fn := range slices.Sorted(maps.Keys(asks)) {
		for _, name := range asks[fn] {
			if use := fmt.Sprintf("%s: %s", dir, fn); strings.HasPrefix(fn, "Test") && !slices.Contains(out[name], use) {
				out[name] = append(out[name], use)
			}
		}
	}
}
