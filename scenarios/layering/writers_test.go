package layering

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
)

// TestStatusFieldsHaveOneWriter compares the fields of statuses that code assigns with Writers.
func TestStatusFieldsHaveOneWriter(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
		Dir:  root,
	}, "./controller/mosk/...", "./agent/lcm")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]bool{} // packages, by KindStatus.Field
	for _, p := range loaded {
		for _, e := range p.Errors {
			t.Fatal(e)
		}
		for field := range assigned(p) {
			if found[field] == nil {
				found[field] = map[string]bool{}
			}
			found[field][strings.TrimPrefix(p.PkgPath, Module+"/")] = true
		}
	}
	got, want := map[string]string{}, map[string]string{}
	for field, by := range found {
		if names := slices.Sorted(maps.Keys(by)); len(names) > 1 || several[strings.Split(field, ".")[0]] {
			got[field] = strings.Join(names, ", ")
		}
	}
	for _, w := range Writers {
		for _, f := range w.Fields {
			want[w.Status+"."+f] = w.Package
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("writers of status fields (-table +code):\n%s", d)
	}
}

// assigned returns the fields of statuses that a package assigns.
func assigned(p *packages.Package) map[string]bool {
	out := map[string]bool{}
	field := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.IndexExpr: // an entry of a map or list
				e = x.X
			case *ast.ParenExpr:
				e = x.X
			case *ast.StarExpr:
				e = x.X
			case *ast.SelectorExpr:
				if name := statusOf(p.TypesInfo.TypeOf(x.X)); name != "" {
					out[name+"."+x.Sel.Name] = true
					return
				}
				e = x.X
			default:
				return
			}
		}
	}
	for _, f := range p.Syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, l := range n.Lhs {
					field(l)
				}
			case *ast.IncDecStmt:
				field(n.X)
			}
			return true
		})
	}
	return out
}

// statusOf returns the name of a type of controller/api that is an object's status; "" for others.
func statusOf(t types.Type) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := t.(*types.Named)
	if !ok || n.Obj().Pkg() == nil || !strings.HasPrefix(n.Obj().Pkg().Path(), Module+"/controller/api/") {
		return ""
	}
	name := n.Obj().Name()
	kind, ok := strings.CutSuffix(name, "Status")
	if !ok || n.Obj().Pkg().Scope().Lookup(kind) == nil && !strings.HasSuffix(kind, "Provider") {
		return "" // a part of a status
	}
	return name
}
