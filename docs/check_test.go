package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/file"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
)

// written lists the pages of people: README.md, CONTRIBUTING.md and docs/.
func written(t *testing.T) []string {
	t.Helper()
	return append([]string{"README.md", "CONTRIBUTING.md"}, pages(t)...)
}

var example = regexp.MustCompile("(?ms)^```yaml( [a-z]+)?\n(.*?)^```$")

// TestExamplesAreRead parses the examples of rack and dialect files, and of CI jobs.
func TestExamplesAreRead(t *testing.T) {
	found := map[string]int{}
	for _, page := range written(t) {
		for _, m := range example.FindAllStringSubmatch(read(t, page), -1) {
			kind := strings.TrimSpace(m[1])
			found[kind]++
			var err error
			switch kind {
			case "rack":
				_, err = rackfile.Parse(page, []byte(m[2]))
			case "ci":
				err = yaml.Unmarshal([]byte(m[2]), &map[string]any{})
			case "dialect":
				_, err = file.Parse(page, []byte(m[2]), builtInDialects())
			default:
				t.Errorf("%s: an example in YAML must be marked as yaml rack, yaml dialect or yaml ci", page)
			}
			if err != nil {
				t.Errorf("%s: an example is not read: %v", page, err)
			}
		}
	}
	if found["rack"] == 0 || found["dialect"] == 0 || found["ci"] == 0 {
		t.Errorf("examples: %v", found)
	}
}

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	anchor = regexp.MustCompile(`<a id="([^"]+)">`)
	title  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	code   = regexp.MustCompile("(?s)```.*?\n *```\n|`[^`\n]*`")
)

// anchors returns the anchors of a page: its own, and those that its headings
// get where it is shown.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range anchor.FindAllStringSubmatch(text, -1) {
		out[m[1]] = true
	}
	for _, m := range title.FindAllStringSubmatch(text, -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		out[slug] = true
	}
	return out
}

// TestLinksLeadSomewhere follows the links within the repository.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range written(t) {
		text := code.ReplaceAllString(read(t, page), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			target := page
			if to != "" {
				target = path.Join(path.Dir(page), to)
			}
			info, err := os.Stat(filepath.Join(root, target))
			switch {
			case err != nil:
				t.Errorf("%s: %s leads nowhere", page, m[1])
			case fragment != "" && !info.IsDir() && !anchors(read(t, target))[fragment]:
				t.Errorf("%s: %s has no anchor %s", page, target, fragment)
			}
		}
	}
}

// TestEveryPageIsReached fails when no other page links to a page.
func TestEveryPageIsReached(t *testing.T) {
	all := ""
	for _, page := range written(t) {
		all += read(t, page)
	}
	for _, page := range pages(t) {
		if !strings.Contains(all, path.Base(page)) {
			t.Errorf("no page links to %s", page)
		}
	}
}

// The constants of annotations: upstream's, where the controllers use them, and ours on a
// BareMetalHost, where they are declared.
var (
	constant = regexp.MustCompile(`metal3\.([A-Za-z]*Annotation(?:Prefix)?)\b`)
	ours     = regexp.MustCompile(`(?m)^(?:const |\t)([A-Z][A-Za-z]*Annotation) += "`)
)

// annotations returns the names of the constants of annotations on a BareMetalHost.
func annotations(t *testing.T) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	err := fs.WalkDir(os.DirFS(root), "controller", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text := read(t, name)
		all := constant.FindAllStringSubmatch(text, -1)
		if strings.HasPrefix(name, "controller/metal3/") {
			all = append(all, ours.FindAllStringSubmatch(text, -1)...)
		}
		for _, m := range all {
			used[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(used) < 6 {
		t.Errorf("the controllers use %v", used)
	}
	return used
}

// TestAnnotationsAreThoseOfTheControllers compares the table of annotations with
// the constants that the controllers use.
func TestAnnotationsAreThoseOfTheControllers(t *testing.T) {
	page := read(t, "docs/how-to/annotation.md")
	used := annotations(t)
	for name := range used {
		if !strings.Contains(page, "| `"+name+"` |") {
			t.Errorf("annotation.md has no row for %s", name)
		}
	}
	for _, m := range regexp.MustCompile("\\| `([A-Za-z]*Annotation[A-Za-z]*)` \\|").FindAllStringSubmatch(page, -1) {
		if !used[m[1]] {
			t.Errorf("annotation.md has a row for %s, which no controller uses", m[1])
		}
	}
}

// declared are the identifiers of the module: by themselves ("Decide"), and
// with their package ("phase.Decide") or type ("Reconciler.observe").
type declared map[string]bool

// declarations reads all Go files of the module.
func declarations(t *testing.T) declared {
	t.Helper()
	out := declared{}
	set := token.NewFileSet()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name != "." && strings.ContainsAny(d.Name()[:1], "._")):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		f, err := parser.ParseFile(set, filepath.Join(root, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		out.add(f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (d declared) add(f *ast.File) {
	pkg := strings.TrimSuffix(f.Name.Name, "_test")
	d[pkg] = true
	top := func(name string) { d[name], d[pkg+"."+name] = true, true }
	member := func(of, name string) { d[name], d[of+"."+name], d[pkg+"."+of+"."+name] = true, true, true }
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				top(decl.Name.Name)
				continue
			}
			member(receiver(decl.Recv.List[0].Type), decl.Name.Name)
		case *ast.GenDecl:
			for _, s := range decl.Specs {
				switch s := s.(type) {
				case *ast.ImportSpec:
					if s.Name != nil {
						d[s.Name.Name] = true
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						top(n.Name)
					}
				case *ast.TypeSpec:
					top(s.Name.Name)
					ast.Inspect(s.Type, func(n ast.Node) bool {
						if field, ok := n.(*ast.Field); ok {
							for _, id := range field.Names {
								member(s.Name.Name, id.Name)
							}
						}
						return true
					})
				}
			}
		}
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

var (
	inline     = regexp.MustCompile("`([^`\n]+)`")
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}$`)
	location   = regexp.MustCompile(`^[a-z][A-Za-z0-9_./-]*$`)
)

// notCode are the words between backticks of the checked pages that name no
// identifier of the module: methods, keys, commands, constants of others.
var notCode = []string{
	"PATCH", "POST", "GET", "DELETE", "curl", "go", "labctl",
	"end", "begin", "run", "prefix", "set", "from", "map", "store", "requests", "reject", "task", "basedOn", "storedAs", "dialects",
	"disabled", "Actions", "inspect.metal3.io", "reboot.metal3.io", "metal3.io", "lo", "ReaderAt", "WriterAt",
}

// TestPagesNameWhatThereIs checks what stands between backticks in the pages
// that lead through the code: identifiers are declared, paths are there.
func TestPagesNameWhatThereIs(t *testing.T) {
	known := declarations(t)
	for name := range annotations(t) { // of which upstream declares most
		known[name] = true
	}
	checked := 0
	for _, page := range written(t) {
		if page != "docs/architecture.md" && !strings.HasPrefix(page, "docs/how-to/") {
			continue
		}
		text := part.ReplaceAllString(read(t, page), "")
		text = regexp.MustCompile("(?s)```.*?\n *```\n").ReplaceAllString(text, "")
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			name := strings.TrimSuffix(m[1], "()")
			switch {
			case slices.Contains(notCode, name), strings.HasPrefix(name, "@"):
			case identifier.MatchString(name) && (known[name] || exists(name)):
				checked++
			case identifier.MatchString(name):
				t.Errorf("%s: `%s` is not declared in the module", page, name)
			case location.MatchString(name) && strings.Contains(name, "/") && !strings.Contains(name, ".io/") && !strings.Contains(name, ".com/") && !strings.HasPrefix(name, "metalab.dev/"):
				checked++
				if !exists(name) {
					t.Errorf("%s: there is no %s", page, name)
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d names were checked", checked)
	}
}

// exists says whether a path is there, from the root of the module or from one of
// its top folders.
func exists(name string) bool {
	_, err := os.Stat(filepath.Join(root, name))
	return err == nil
}

func TestDeclarationsAreFound(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\ntype T[K any] struct{ Field struct{ Inner int } }\nfunc (t *T[K]) method() {}\nfunc F() {}\nvar v = 1\ntype I interface{ M() }\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	d := declared{}
	d.add(f)
	for _, name := range []string{"a", "T", "a.T", "T.Field", "T.Inner", "T.method", "a.T.method", "a.F", "v", "I.M"} {
		if !d[name] {
			t.Errorf("%s was not found", name)
		}
	}
	if d["b.F"] || d["F.T"] || d["method.T"] {
		t.Error("something was found that there is not")
	}
}

// builtInDialects has the dialects that a dialect file may begin with.
func builtInDialects() map[string]*dialect.Record {
	all := map[string]*dialect.Record{}
	for _, name := range rack.Dialects() {
		all[name] = rack.Dialect(name)
	}
	return all
}

var scenarioTitle = regexp.MustCompile(`(?m)^ *Scenario(?: Outline)?: (.*)$`)

var scenarioCommand = regexp.MustCompile(`go test \./(features\S*) -run '?TestFeatures/([^' ]+)`)

// TestScenariosThatCommandsNameExist looks for the scenarios that commands of the pages select:
// go test runs nothing, and passes, when there is none of that name.
func TestScenariosThatCommandsNameExist(t *testing.T) {
	found := 0
	for _, page := range written(t) {
		for _, m := range scenarioCommand.FindAllStringSubmatch(read(t, page), -1) {
			found++
			name, there := regexp.MustCompile(m[2]), false
			err := filepath.WalkDir(filepath.Join("..", m[1]), func(file string, _ fs.DirEntry, err error) error {
				if err == nil && path.Ext(file) == ".feature" {
					b, rerr := os.ReadFile(file)
					err = rerr
					for _, s := range scenarioTitle.FindAllStringSubmatch(string(b), -1) {
						there = there || name.MatchString(strings.ReplaceAll(s[1], " ", "_"))
					}
				}
				return err
			})
			if err != nil || !there {
				t.Errorf("%s: there is no scenario %q in %s, %v", page, name, m[1], err)
			}
		}
	}
	if found == 0 {
		t.Error("no page has such a command")
	}
}
