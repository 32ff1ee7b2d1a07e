package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// labOf returns the options of a command line of labctl for a lab.
func labOf(state string) *options {
	o := &options{}
	o.root = newRoot()
	o.state = state
	return o
}

func TestHintsNameTheLab(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/home/u/state")
	other := labOf("/srv/a lab")
	for in, want := range map[string]string{
		"no lab is running: start it with labctl up": "no lab is running: start it with labctl --state '/srv/a lab' up",
		"labctl down, and labctl up --with hoc":      "labctl --state '/srv/a lab' down, and labctl --state '/srv/a lab' up --with hoc",
		"\n  labctl kubectl get nodes -o wide\n":     "\n  labctl --state '/srv/a lab' kubectl get nodes -o wide\n",
		"labctl module run x --host a":               "labctl --state '/srv/a lab' module run x --host a",
		// These are of no lab, or name theirs.
		"labctl quirk ls lists them":                     "labctl quirk ls lists them",
		"labctl module build x":                          "labctl module build x",
		"labctl up --from a.gz --state NEW goes on":      "labctl up --from a.gz --state NEW goes on",
		"labctl --state x down":                          "labctl --state x down",
		"because labctl has made neither, labctl-remote": "because labctl has made neither, labctl-remote",
	} {
		if got := other.hints(in); got != want {
			t.Errorf("hints(%q) = %q, want %q", in, got, want)
		}
		if got := other.hints(other.hints(in)); got != want {
			t.Errorf("hints twice of %q = %q, want %q", in, got, want)
		}
		if got := labOf("/home/u/state/metalab").hints(in); got != in {
			t.Errorf("hints(%q) for the default lab = %q", in, got)
		}
	}
	remote := labOf("/tmp/x")
	remote.cluster = clusterFlags{name: "racks", namespace: "mine"}
	if got := remote.hints("labctl hosts lists them"); got != "labctl --cluster=racks --cluster-namespace mine hosts lists them" {
		t.Errorf("hints() of a lab in a cluster = %q", got)
	}
}

// printers are the calls whose texts reach users without passing through options.say or an error.
var printers = []string{"Fprint", "Fprintf", "Fprintln", "WriteString", "Print", "Printf", "Println"}

// A text with a hint is an error or goes through options.say, so that it names the lab; and each
// hint is a command that there is.
func TestHintsAreOfCommandsAndNameTheirLab(t *testing.T) {
	root := newRoot()
	var files []string
	for _, dir := range []string{".", "crash", "../../lab", "../../emulator/rack", "../../emulator/rack/*", "../../scenarios/view", "../../scenarios/shards", "../../scenarios/conformance", "../../features", "../../features/steps"} {
		all, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(all) == 0 {
			t.Fatalf("%s: %v, %v", dir, all, err)
		}
		files = append(files, all...)
	}
	hints := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, isCall := n.(*ast.CallExpr)
			prints := false
			if isCall {
				sel, ok := call.Fun.(*ast.SelectorExpr)
				prints = ok && slices.Contains(printers, sel.Sel.Name)
			}
			if prints && !strings.Contains(name, "/") {
				for _, a := range call.Args {
					if text, ok := literal(a); ok && len(labHints(root, text)) > 0 {
						t.Errorf("%s: a hint is printed without its lab: use options.say: %s", set.Position(a.Pos()), text)
					}
				}
			}
			lit, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := literal(lit)
			if !ok {
				return true
			}
			for _, m := range command.FindAllStringSubmatch(text, -1) {
				hints++
				if c := sub(root, m[1]); c == nil && !slices.Contains(verbs, m[1]) {
					t.Errorf("%s: there is no labctl %s: %q", set.Position(lit.Pos()), m[1], m[0])
				}
			}
			return true
		})
	}
	if hints < 100 {
		t.Errorf("%d hints were found: the sources are elsewhere", hints)
	}
}

// verbs follow labctl where it is a program that does something.
var verbs = []string{"are", "as", "can", "does", "ends", "exits", "has", "is", "keeps", "names", "passes", "provisions", "runs", "serves", "will"}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// labHints returns the hints of a text that are about a lab.
func labHints(root *cobra.Command, text string) (out []string) {
	for _, m := range command.FindAllStringSubmatch(text, -1) {
		if sub(root, m[1]) != nil && !slices.Contains(withoutLab, m[1]) {
			out = append(out, m[0])
		}
	}
	return out
}

func sub(c *cobra.Command, name string) *cobra.Command {
	for _, s := range c.Commands() {
		if s.Name() == name {
			return s
		}
	}
	return nil
}
