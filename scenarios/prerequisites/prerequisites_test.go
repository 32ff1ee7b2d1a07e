package prerequisites

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/scenarios/patience"
)

// recorder records the call by which Need ends a test.
type recorder struct {
	testing.TB
	did string
}

func (*recorder) Helper()        {}
func (r *recorder) Skip(...any)  { r.did = "skip" }
func (r *recorder) Fatal(...any) { r.did = "fail" }

func TestNeedSkipsUnlessPrerequisitesAreRequired(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ipmitool"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv(BootPackagesEnv, dir)
	for _, tt := range []struct{ required, name, want string }{
		{"", "ipmitool", ""},
		{"1", "ipmitool", ""},
		{"", "ipmiconsole", "skip"},
		{"", "FreeIPMI", "skip"},
		{"1", "ipmiconsole", "fail"},
		{"", "packages of an agent's image", "skip"},
		{"1", "packages of an agent's image", "fail"},
		{"", "mutt", "fail"}, // it is not in the table
	} {
		t.Setenv(NeedEnv, tt.required)
		r := &recorder{}
		if path := Need(r, tt.name); r.did != tt.want || (path == "") == (tt.want == "") {
			t.Errorf("Need(%s) with %s=%q does %q and returns %q, want %q", tt.name, NeedEnv, tt.required, r.did, path, tt.want)
		}
	}
	_, err := Find("ipmiconsole")
	if err == nil || !strings.Contains(err.Error(), "ipmiconsole is missing (Debian: freeipmi-tools)") {
		t.Errorf("Find(ipmiconsole) = %v", err)
	}
	names := func(all []Prerequisite) (out []string) {
		for _, p := range all {
			out = append(out, p.Name)
		}
		return out
	}
	if got := names(Missing()); slices.Contains(got, "ipmitool") || !slices.Contains(got, "FreeIPMI") {
		t.Errorf("Missing() = %q", got)
	}
}

func TestUsesListsTestsScenariosAndDocuments(t *testing.T) {
	got, err := Uses(fstest.MapFS{
		"a/a_test.go": {Data: []byte(`package a

import "github.com/metalab-dev/metalab/scenarios/prerequisites"

func TestPower(t *testing.T)   { run(t) }
func TestBoot(t *testing.T)    { start(t, "ipmi-sel") }
func TestNothing(t *testing.T) { print("x") }
func run(t *testing.T)         { start(t, "ipmitool") }
func start(t *testing.T, name string) { prerequisites.Need(t, name) }
`)},
		"b/b_test.go": {Data: []byte("package b\n\nfunc TestWord(t *testing.T) { print(\"curl\") }\n")},
		"c.feature": {Data: []byte("Feature: C\n  Scenario: Off\n    When the client runs `ipmitool power off`\n  Scenario Outline: Read <what>\n" +
			"    When the client runs `<what>`\n    Examples:\n      | what |\n      | ipmi-fru -v |\n      | ipmitool sel |\n")},
		"README.md": {Data: []byte("Text.\n\n   ```sh run with curl\n   curl x\n   ```\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"ipmitool": {"a: TestPower", "c.feature: Off", "c.feature: Read <what>"},
		"FreeIPMI": {"a: TestBoot", "c.feature: Read <what>"},
		"curl":     {"README.md: commands that run curl"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Uses (-want +got):\n%s", diff)
	}
}

func TestEveryPrerequisiteIsUsed(t *testing.T) {
	uses, err := Uses(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Table {
		if len(uses[p.Name]) == 0 {
			t.Errorf("no test needs %s", p.Name)
		}
	}
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// present are programs that tests may run without asking: the go command runs the test, and
// every Linux has the others.
var present = []string{"go", "sh", "modprobe"}

// TestTestsLookForProgramsInTheTable fails when a test looks for a program itself: a skip of
// its own is said by nobody.
func TestTestsLookForProgramsInTheTable(t *testing.T) {
	dir := root(t)
	tree := os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name == "bin" || len(name) > 1 && d.Name()[0] == '.'):
			return fs.SkipDir
		case path.Dir(name) == "scenarios/prerequisites" || !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "features/rack/steps/"):
			return nil
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			callee, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch of, _ := callee.X.(*ast.Ident); {
			case of == nil || of.Name != "exec":
			case callee.Sel.Name == "LookPath":
				t.Errorf("%s: a test that needs a program calls prerequisites.Need", files.Position(call.Pos()))
			case strings.HasPrefix(callee.Sel.Name, "Command"):
				at := strings.Count(callee.Sel.Name, "Context")
				lit, ok := call.Args[at].(*ast.BasicLit)
				if !ok {
					break
				}
				program, err := strconv.Unquote(lit.Value)
				if _, known := Lookup(program); err != nil || !known && !slices.Contains(present, program) && !strings.Contains(program, "/") {
					t.Errorf("%s: %s is not in the table of prerequisites", files.Position(call.Pos()), program)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// essential are packages that every Debian has.
var essential = []string{"util-linux", "bsdutils", "mount", "dpkg"}

var debian = regexp.MustCompile(`^Debian: ([a-z0-9-]+)(?:;|$)`)

func TestCIInstallsEveryPackageOfTheTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Table {
		if m := debian.FindStringSubmatch(p.Get); m != nil && !slices.Contains(essential, m[1]) && !slices.Contains(strings.Fields(string(text)), m[1]) {
			t.Errorf(".ci/run does not install %s, which has %s", m[1], p.Name)
		}
	}
}

// engine serves a container engine at a socket that DOCKER_HOST names.
func engine(t *testing.T, h http.HandlerFunc) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "engine.sock")
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	srv.Start()
	t.Cleanup(srv.Close)
	t.Setenv(DockerEnv, "unix://"+name)
}

func TestContainerEngineMustAnswer(t *testing.T) {
	engine(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/_ping" && r.URL.Path != "/images/metalab:latest/json" {
			http.NotFound(w, r)
		}
	})
	t.Setenv(ImageEnv, "")
	if _, err := Find("container engine"); err != nil {
		t.Errorf("Find(container engine) = %v", err)
	}
	if got, err := Find("container image"); err != nil || got != "metalab:latest" {
		t.Errorf("Find(container image) = %q, %v", got, err)
	}
	t.Setenv(ImageEnv, "other")
	if _, err := Find("container image"); err == nil || !strings.Contains(err.Error(), "other: the engine answers 404 Not Found") {
		t.Errorf("Find(container image) = %v, want 404", err)
	}
}

// An engine that accepts connections and is too slow is not called missing without a word of
// what was seen.
func TestSilentContainerEngineReportsWhatWasSeen(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	engine(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(patience.ErrLimit)
		<-r.Context().Done()
	})
	_, err := getFromEngine(ctx, "/_ping")
	if want := "the engine does not answer: patience has run out (last: a connection, and no response to GET /_ping)"; err == nil || err.Error() != want {
		t.Errorf("getFromEngine() = %v, want %s", err, want)
	}
}

func TestContainerEngineThatDoesNotRunIsMissingAtOnce(t *testing.T) {
	t.Setenv(DockerEnv, "unix://"+filepath.Join(t.TempDir(), "none.sock"))
	_, err := Find("container engine")
	if err == nil || strings.Contains(err.Error(), "last: ") {
		t.Errorf("Find(container engine) = %v, want a refused connection", err)
	}
}
