package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// Mutation is one change of one Go file.
type Mutation struct {
	File   string // from the root of the module
	Line   int
	Column int
	Change string // the old and the new text, on one line
	edits  []edit
}

// edit replaces the bytes of the file from an offset until another by text. It inserts where until is 0.
type edit struct {
	at    int
	until int
	text  string
}

// String is the mutation as compilers print places.
func (m Mutation) String() string { return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Change) }

// Apply returns the mutated source. Lines keep their numbers.
func (m Mutation) Apply(src []byte) []byte {
	var out []byte
	from := 0
	for _, e := range m.edits {
		out = append(append(out, src[from:e.at]...), e.text...)
		from = max(e.at, e.until)
	}
	return append(out, src[from:]...)
}

// is reports whether a mutation is at a place: FILE, FILE:LINE, or "" for any.
func (m Mutation) is(at string) bool {
	return at == "" || at == m.File || at == fmt.Sprintf("%s:%d", m.File, m.Line)
}

// Find lists the mutations of a file in the order of their places: the negation
// of each condition (of if, for, and the cases of a switch without a tag) and of
// each operand of && and ||, and each call and assignment left out. It skips
// places that are not covered, generated files, methods String, and calls that only
// log.
func Find(name string, src []byte, covered func(line, column int) bool) ([]Mutation, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	f := &finder{name: name, src: src, set: set, covered: covered, negated: map[ast.Expr]bool{}}
	ast.Inspect(file, f.visit)
	slices.SortStableFunc(f.found, func(a, b Mutation) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return f.found, nil
}

type finder struct {
	name    string
	src     []byte
	set     *token.FileSet
	covered func(line, column int) bool
	negated map[ast.Expr]bool // the conditions that have their mutation
	found   []Mutation
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Recv == nil || n.Name.Name != "String"
	case *ast.IfStmt:
		if logsOnly(n) {
			return false
		}
		f.negate("if", n.Cond)
	case *ast.ForStmt:
		f.negate("for", n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			f.negateCases(n)
		}
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			f.negate(n.Op.String(), n.X)
			f.negate(n.Op.String(), n.Y)
		}
	case *ast.BlockStmt:
		f.dropEach(n.List)
	case *ast.CaseClause:
		f.dropEach(n.Body)
	case *ast.CommClause:
		f.dropEach(n.Body)
	case *ast.ExprStmt:
		return !logs(n)
	}
	return true
}

func (f *finder) negateCases(n *ast.SwitchStmt) {
	for _, clause := range n.Body.List {
		if c, ok := clause.(*ast.CaseClause); ok && !allLog(c.Body) {
			for _, cond := range c.List {
				f.negate("case", cond)
			}
		}
	}
}

// negate adds the negation of a condition; where names the place of it.
func (f *finder) negate(where string, cond ast.Expr) {
	if cond == nil || f.negated[cond] {
		return
	}
	f.negated[cond] = true
	text := f.text(cond)
	f.add(cond, fmt.Sprintf("%s %s becomes !(%s)", where, text, text), "!(", ")")
}

func (f *finder) dropEach(list []ast.Stmt) {
	for _, stmt := range list {
		switch s := stmt.(type) {
		case *ast.ExprStmt:
			if _, call := s.X.(*ast.CallExpr); !call || logs(s) || panics(s) {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || blank(s.Lhs) {
				continue
			}
		case *ast.IncDecStmt:
		default:
			continue
		}
		// The variables of the statement stay used, so that the file compiles.
		f.add(stmt, fmt.Sprintf("%s is left out", f.text(stmt)), "if false { ", " }")
	}
}

func (f *finder) add(n ast.Node, change, before, after string) {
	at := f.set.Position(n.Pos())
	if !f.covered(at.Line, at.Column) {
		return
	}
	f.found = append(f.found, Mutation{
		File: f.name, Line: at.Line, Column: at.Column, Change: change,
		edits: []edit{{at: at.Offset, text: before}, {at: f.set.Position(n.End()).Offset, text: after}},
	})
}

// maxText is the most of a source text that a change shows, in bytes.
const maxText = 90

// text is the source of a node on one line.
func (f *finder) text(n ast.Node) string {
	src := f.src[f.set.Position(n.Pos()).Offset:f.set.Position(n.End()).Offset]
	return shorten(string(bytes.Join(bytes.Fields(src), []byte(" "))))
}

func shorten(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

// logger matches the receivers and packages that log: slog, log, h.lab.log,
// ctrl.LoggerFrom(ctx). logging matches their functions. A Log of another kind,
// such as the System Event Log, has none of these.
var (
	logger  = regexp.MustCompile(`(?i)\bs?log(ger)?\b|LoggerFrom\(`)
	logging = regexp.MustCompile(`^(Debug|Info|Warn|Error|Log|Print)(Context|Attrs|f|ln)?$`)
)

// logs tells whether a statement is a call of a logger.
func logs(stmt ast.Stmt) bool {
	s, ok := stmt.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	fun, ok := call.Fun.(*ast.SelectorExpr)
	return ok && logging.MatchString(fun.Sel.Name) && logger.MatchString(types.ExprString(fun.X))
}

// allLog tells whether there is a statement, and each is a call of a logger.
func allLog(list []ast.Stmt) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(s ast.Stmt) bool { return !logs(s) })
}

func logsOnly(n *ast.IfStmt) bool { return n.Else == nil && allLog(n.Body.List) }

// panics tells whether a statement is a call of panic, which a function may end
// with instead of a return.
func panics(s *ast.ExprStmt) bool {
	call, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	fun, ok := call.Fun.(*ast.Ident)
	return ok && fun.Name == "panic"
}

func blank(left []ast.Expr) bool {
	return !slices.ContainsFunc(left, func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return !ok || id.Name != "_"
	})
}
