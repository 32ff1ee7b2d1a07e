package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wholeFile matches a file of Go that a page shows whole, and goMod a go.mod.
var (
	wholeFile = regexp.MustCompile("(?ms)^```go\n(package .*?)^```$")
	goMod     = regexp.MustCompile("(?ms)^```text\n(module .*?)^```$")
)

// TestModuleOfOnesOwnRunsItsTest makes the module of go-tests.md beside a checkout, which is this
// one, and runs its test. The modules that it needs are in the cache: the emulator needs them here.
func TestModuleOfOnesOwnRunsItsTest(t *testing.T) {
	page := read(t, "docs/go-tests.md")
	test, mod := wholeFile.FindStringSubmatch(page), goMod.FindStringSubmatch(page)
	if test == nil || mod == nil {
		t.Fatal("docs/go-tests.md shows no whole test, or no go.mod")
	}
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"power_test.go": test[1],
		"go.mod":        strings.Replace(mod[1], "=> ../metalab", "=> "+checkout, 1),
		"go.sum":        read(t, "go.sum"), // go mod tidy asks the network for it
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir = dir
		// The flags of this run stay, such as -trimpath: packages are compiled already.
		c.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -mod=mod"), "GOPROXY=off", "GOWORK=off")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if out := run("test", "-v", "./..."); !strings.Contains(out, "--- PASS: TestServerBootsItsDisk") {
		t.Errorf("go test -v ./...:\n%s", out)
	}
	ours, modules := 0, map[string]bool{}
	for line := range strings.Lines(run("list", "-deps", "-test", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")) {
		switch m := strings.TrimSpace(line); m {
		case "", "example.com/provisioner":
		case "github.com/metalab-dev/metalab":
			ours++
		default:
			modules[m] = true
		}
	}
	if len(modules) != 4 || ours < 50 || ours > 70 {
		t.Errorf("the test compiles %d packages of this module, and those of %v: docs/go-tests.md says some 60, and four modules", ours, modules)
	}
}
