package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestErrorsBeginWithoutTheirPackage compares the packages whose errors begin with their own
// names with testdata/prefixed.txt. Users read errors, and the names of packages tell them
// nothing. The list holds protocols and older packages: a new package is not added.
func TestErrorsBeginWithoutTheirPackage(t *testing.T) {
	listed, err := os.ReadFile("testdata/prefixed.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = eachGoFile(os.DirFS(root), func(name string, src []byte) error {
		if dir := path.Dir(name); !strings.HasSuffix(name, "_test.go") && !slices.Contains(got, dir) && namesItself(t, name, src) {
			got = append(got, dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if d := cmp.Diff(strings.Fields(string(listed)), got); d != "" {
		t.Errorf("packages whose errors begin with their names (-listed +code):\n%s", d)
	}
}

func TestErrorsThatBeginWithTheirPackage(t *testing.T) {
	for text, want := range map[string]bool{
		`fmt.Errorf("store: %w", err)`: true, `errors.New("store: full")`: true, `fmt.Errorf("disk: %w", err)`: false, `errors.New("full")`: false, `print("store: full")`: false,
	} {
		if got := namesItself(t, "emulator/store/a.go", []byte("package store\n\nvar _ = "+text)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// namesItself reports whether an error that a file makes begins with the name of its package.
func namesItself(t *testing.T, name string, src []byte) bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	own := []string{f.Name.Name + ": ", path.Base(path.Dir(name)) + ": "}
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) == 0 {
			return true
		}
		s, ok := c.Fun.(*ast.SelectorExpr)
		if !ok || s.Sel.Name != "Errorf" && s.Sel.Name != "New" {
			return true
		}
		l, ok := c.Args[0].(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return true
		}
		text, _ := strconv.Unquote(l.Value) // the parser has read it
		found = found || slices.ContainsFunc(own, func(p string) bool { return strings.HasPrefix(text, p) })
		return true
	})
	return found
}
