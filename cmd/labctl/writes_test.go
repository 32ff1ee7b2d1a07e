package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ownWrites are the calls that make, replace or remove files without package outfile, by function,
// and why they touch nothing that a user has made.
var ownWrites = map[string]string{
	"cmd/lab-agent/elemental.go lock":                     "a lock, which is opened",
	"cmd/labctl/agentimage.go newAgentImage":              "a temporary directory",
	"cmd/labctl/clusterfleet.go enter":                    "a temporary directory",
	"cmd/labctl/conformancerun.go openResults":            "results.jsonl of a run: report.CheckFolder has looked at its folder",
	"cmd/labctl/copytree.go fetch":                        "a new name",
	"cmd/labctl/copytree.go replaceLink":                  "treeCopy.differing has refused other links",
	"cmd/labctl/crash/crash.go Begin":                     "the state directory",
	"cmd/labctl/crash/crash.go End":                       "the state directory",
	"cmd/labctl/crash/crash.go reportOf":                  "the state directory",
	"cmd/labctl/crash/crash.go prune":                     "the state directory",
	"cmd/labctl/day2.go apply":                            "the state directory",
	"cmd/labctl/detach.go launch":                         "the state directory",
	"cmd/labctl/labs.go rememberLab":                      "the list of labs",
	"cmd/labctl/labs.go forgetLab":                        "the list of labs",
	"cmd/labctl/shard.go newShardSecret":                  "a temporary directory",
	"features/run.go Run":                                 "a temporary file",
	"features/steps/recording.go startRecording":          "a temporary directory",
	"features/steps/recording.go endRecording":            "a temporary directory",
	"features/steps/recording.go writePage":               "a name beside a new zip file: storeRecording has looked for it",
	"features/steps/recording.go storeRecording":          "a new name",
	"scenarios/conformance/journal.go OpenJournal":        "a journal, which is read and appended to",
	"scenarios/record/render.go render":                   "a temporary directory",
	"scenarios/conformance/lock.go Lock":                  "a lock, which is opened",
	"scenarios/conformance/ipmiprogram.go freeIPMIConfig": "a temporary directory",
}

// Commands write files of users by package outfile alone, which replaces nothing that is not
// labctl's, or are listed above with a reason.
func TestCommandsReplaceNoFilesOfUsers(t *testing.T) {
	writes := []string{"Create", "OpenFile", "Remove", "RemoveAll", "Rename", "Truncate", "WriteFile"}
	seen := map[string][]string{}
	for _, glob := range []string{
		"cmd/labctl/*.go", "cmd/labctl/crash/*.go", "cmd/lab-agent/*.go", "cmd/lab-controller/*.go", "features/*.go", "features/steps/recording.go",
		"scenarios/record/*.go", "scenarios/conformance/*.go", "scenarios/conformance/report/*.go",
	} {
		files, err := filepath.Glob(filepath.Join("../..", glob))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", glob, files, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			short := strings.TrimPrefix(filepath.ToSlash(name), "../../")
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				ast.Inspect(fn, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if !ok {
						return true
					}
					if sel, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(writes, sel.Sel.Name) {
						if of, ok := sel.X.(*ast.Ident); ok && (of.Name == "os" || of.Name == "root") {
							at := fmt.Sprintf("%s %s", short, fn.Name.Name)
							seen[at] = append(seen[at], of.Name+"."+sel.Sel.Name)
						}
					}
					return true
				})
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(seen)) {
		if ownWrites[at] == "" {
			t.Errorf("%s calls %s: write what a user names with outfile.File or outfile.Tree, or list the function with a reason", at, strings.Join(seen[at], ", "))
		}
	}
	for at := range ownWrites {
		if seen[at] == nil {
			t.Errorf("%s is listed, and writes nothing", at)
		}
	}
}
