package layering

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
)

// privateWords are nouns and verbs that a reader who knows Redfish, IPMI and
// Metal3 would not search for. No identifier is one of them or has one as a
// word of its camel case; docs/language.md has the words to use.
var privateWords = map[string]string{
	"anew":      "say what happens: render, reset, again",
	"astray":    "datagramFault",
	"bereft":    "emptyCollections",
	"chronicle": "journal",
	"climb":     "tryVariants",
	"doors":     "endpoints",
	"dress":     "applyTransforms",
	"errand":    "background work",
	"errands":   "background work",
	"face":      "presentation",
	"faced":     "rendered",
	"faces":     "presentations",
	"fleeting":  "volatile",
	"forgo":     "skip, drop",
	"heed":      "invalidate, apply",
	"hurry":     "fastForward, max speed",
	"inscribe":  "append",
	"kept":      "cache, stored, remaining",
	"lessons":   "workarounds",
	"mail":      "packets, IPMI",
	"mailmen":   "IPMI servers",
	"mend":      "repair, remove",
	"mishap":    "fault",
	"mishaps":   "faults",
	"mold":      "template",
	"own":       "OEM, local, self",
	"parcel":    "packet",
	"patiently": "retryBusy",
	"quaint":    "say what it is",
	"realm":     "authenticator",
	"said":      "text, reported, message",
	"saying":    "vendorMessage",
	"sayings":   "vendorMessages",
	"strays":    "datagramFaults",
	"tale":      "faultedEntry",
	"tell":      "notify, report, message",
	"tells":     "messages",
	"told":      "events, notified, reported",
	"trail":     "auditContext",
	"troubles":  "commandFaults",
	"upsets":    "mutations",
	"whole":     "all, complete, entire",
	"wholly":    "render",
}

// Allowed is an identifier that may have a private word.
type Allowed struct {
	In   string // pattern of packages
	Name string // the identifier
	Why  string
}

// allowed are the identifiers that have a private word for good.
var allowed = []Allowed{
	{In: "agent/plugin/disk", Name: "realm", Why: "a parameter of WWW-Authenticate (RFC 9110, section 11.5)"},
}

// Word is an identifier with a private word, where it is declared.
type Word struct {
	Package string
	File    string // from the root of the module
	Line    int
	Name    string // the identifier
	Word    string // the private word in it
}

// String is the finding as compilers print them.
func (w Word) String() string {
	return fmt.Sprintf("%s:%d: %s: %q is a private word: use the field's (%s), see docs/language.md", w.File, w.Line, w.Name, w.Word, privateWords[w.Word])
}

// CheckWords finds the identifiers with private words that the Go files of a
// module declare. It skips what Check skips.
func CheckWords(tree fs.FS) ([]Word, error) {
	var found []Word
	err := eachGoFile(tree, func(name string, src []byte) error {
		in, err := wordsIn(name, src)
		found = append(found, in...)
		return err
	})
	return found, err
}

// wordsIn finds the private words of one file.
func wordsIn(name string, src []byte) ([]Word, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []Word
	declared := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id == nil {
				continue
			}
			for _, part := range parts(id.Name) {
				if _, private := privateWords[part]; private {
					found = append(found, Word{Package: path.Dir(name), File: name, Line: set.Position(id.Pos()).Line, Name: id.Name, Word: part})
					break
				}
			}
		}
	}
	declared(f.Name)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			declared(n.Name)
		case *ast.TypeSpec:
			declared(n.Name)
		case *ast.ValueSpec:
			declared(n.Names...)
		case *ast.Field: // field of a struct, parameter, result, or method of an interface
			declared(n.Names...)
		case *ast.ImportSpec:
			declared(n.Name)
		case *ast.LabeledStmt:
			declared(n.Label)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				declared(idents(n.Lhs)...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				declared(idents([]ast.Expr{n.Key, n.Value})...)
			}
		}
		return true
	})
	return found, nil
}

func idents(exprs []ast.Expr) []*ast.Ident {
	var out []*ast.Ident
	for _, e := range exprs {
		if id, ok := e.(*ast.Ident); ok {
			out = append(out, id)
		}
	}
	return out
}

// parts splits an identifier into the words of its camel case, in small
// letters: ownTLSConfig is own, tls, config.
func parts(name string) []string {
	var out []string
	for _, piece := range strings.FieldsFunc(name, func(r rune) bool { return r == '_' || unicode.IsDigit(r) }) {
		rs := []rune(piece)
		from := 0
		for i := 1; i <= len(rs); i++ {
			if i == len(rs) || unicode.IsUpper(rs[i]) && !unicode.IsUpper(rs[i-1]) || i+1 < len(rs) && unicode.IsUpper(rs[i]) && unicode.IsUpper(rs[i-1]) && unicode.IsLower(rs[i+1]) {
				out = append(out, strings.ToLower(string(rs[from:i])))
				from = i
			}
		}
	}
	return out
}

// Unexcused returns the findings that allowed does not excuse, and the entries of allowed
// that excuse nothing.
func Unexcused(found []Word, allowed []Allowed) (open []Word, unused []string) {
	used := make([]bool, len(allowed))
	for _, w := range found {
		i := slices.IndexFunc(allowed, func(a Allowed) bool { return matches(a.In, w.Package) && a.Name == w.Name })
		if i < 0 {
			open = append(open, w)
			continue
		}
		used[i] = true
	}
	for i, a := range allowed {
		if !used[i] {
			unused = append(unused, a.In+" "+a.Name)
		}
	}
	return open, unused
}
