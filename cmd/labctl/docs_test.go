package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// fence is a block of commands in a document.
type fence struct {
	page, text, mark string
	line             int // line of its first command
}

// Marks of blocks of commands, after ```sh.
const (
	runBlock   = "run"       // in the lab that the blocks marked first start
	runFirst   = "run first" // before all others: they start the lab
	runLast    = "run last"  // after all others: they end it
	runWith    = "run with " // and a program; skipped where that is missing
	notRun     = "not run: " // and the reason
	shellFence = "```sh"
)

var fenceLine = regexp.MustCompile("^( *)```(.*)$")

// fences returns the blocks of commands of a page.
func fences(page, text string) (out []fence, problems []string) {
	indent, inside := "", ""
	var block *fence
	for i, line := range strings.Split(text, "\n") {
		m := fenceLine.FindStringSubmatch(line)
		switch {
		case inside == "" && m != nil:
			indent, inside = m[1], "```"+m[2]
			language, mark, _ := strings.Cut(m[2], " ")
			switch language {
			case "sh":
				block = &fence{page: page, mark: mark, line: i + 2}
			case "bash", "shell", "console", "":
				problems = append(problems, fmt.Sprintf("%s:%d: a block of commands begins with %s and one of its marks, any other with its language", page, i+1, shellFence))
			}
		case m != nil && m[2] == "" && m[1] == indent:
			if block != nil {
				out = append(out, *block)
			}
			block, inside = nil, ""
		case block != nil:
			block.text += strings.TrimPrefix(line, indent) + "\n"
		case inside == "" && (strings.HasPrefix(line, "    bin/") || strings.HasPrefix(line, "    make ")):
			problems = append(problems, fmt.Sprintf("%s:%d: commands stand in a block that begins with %s", page, i+1, shellFence))
		}
	}
	if inside != "" {
		problems = append(problems, fmt.Sprintf("%s: a block has no end: %s", page, inside))
	}
	return out, problems
}

// documents returns the blocks of all documents, in the order in which they run.
func documents(t *testing.T) []fence {
	t.Helper()
	const root = "../.."
	pages := []string{"README.md", "CONTRIBUTING.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	order := map[string][]fence{}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		blocks, problems := fences(page, string(text))
		for _, p := range problems {
			t.Error(p)
		}
		for _, b := range blocks {
			switch {
			case b.mark == runFirst, b.mark == runLast:
				order[b.mark] = append(order[b.mark], b)
			case b.mark == runBlock, strings.HasPrefix(b.mark, runWith):
				order[runBlock] = append(order[runBlock], b)
			case !strings.HasPrefix(b.mark, notRun) || len(b.mark) < len(notRun)+8:
				t.Errorf("%s:%d: %q: must be %q, %q, %q, %q with a program, or %q with the reason", b.page, b.line, b.mark, runBlock, runFirst, runLast, runWith, notRun)
			}
		}
	}
	return append(append(order[runFirst], order[runBlock]...), order[runLast]...)
}

// TestCommandsOfTheDocuments runs what make demo runs, then the commands of README.md,
// CONTRIBUTING.md and docs/, in one lab and in the order of each page, as the user that reads
// them would: bin/labctl in the current directory, the lab in the user's home. PASSWORD stands for the
// administrator's, and addresses of BMCs get the ports that they have here.
func TestCommandsOfTheDocuments(t *testing.T) {
	blocks := documents(t)
	if len(blocks) < 10 {
		t.Errorf("%d blocks of commands are run", len(blocks))
	}
	work := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(work, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	// A link of its own name: a symbolic one would start the test again.
	if err := os.Link(self, filepath.Join(work, "bin", "labctl")); err != nil {
		binary, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(work, "bin", "labctl"), binary, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	environ := append(os.Environ(), "HOME="+work, "XDG_STATE_HOME=", "XDG_RUNTIME_DIR=", "METALAB_STATE=", "METALAB_LISTEN=", "KUBECONFIG=")
	t.Cleanup(func() { // a block that fails leaves its lab up
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		entries, err := filepath.Glob(filepath.Join(work, ".local", "state", "metalab-labs", "*"))
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			state, err := os.ReadFile(e)
			if err == nil {
				err = control.NewClient(strings.TrimSpace(string(state))).Down(ctx)
			}
			if err != nil {
				t.Logf("%s: %v", state, err)
			}
		}
	})
	sh := func(t *testing.T, commands string, more ...string) string {
		t.Helper()
		ctx := patience.Within(t, 5*time.Minute)
		cmd := exec.CommandContext(ctx, "sh", "-e", "-x", "-c", commands)
		cmd.Dir, cmd.Env = work, slices.Concat(environ, more)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	var fill *strings.Replacer
	port := racktest.Ports(t)
	// A reader has run make demo, as the README says first: its server is provisioned.
	sh(t, demoOfMake(t), fmt.Sprintf("METALAB_LISTEN=loopback:%d", port))
	for _, b := range blocks {
		name := fmt.Sprintf("%s:%d", b.page, b.line)
		ok := t.Run(name, func(t *testing.T) {
			if program, with := strings.CutPrefix(b.mark, runWith); with {
				prerequisites.Need(t, program)
			}
			commands := b.text
			if fill != nil {
				commands = fill.Replace(commands)
			}
			if b.mark == runFirst { // whose lab is stopped and started again, among the labs of other tests
				sh(t, commands, fmt.Sprintf("METALAB_LISTEN=loopback:%d", port))
				return
			}
			if strings.Contains(commands, "--shards") { // whose shards are stopped and started again
				sh(t, commands, fmt.Sprintf("METALAB_LISTEN=loopback:%d", racktest.Ports(t)))
				return
			}
			sh(t, commands)
		})
		if !ok && b.mark == runFirst {
			return
		}
		if b.mark == runFirst {
			fill = addresses(t, work, environ)
		}
	}
}

// demoOfMake returns the command with which make demo ends.
func demoOfMake(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(b), "\ndemo: build\n\t")
	line, _, _ := strings.Cut(recipe, "\n")
	line = strings.NewReplacer("$(BIN)", "bin", " $(flags)", "").Replace(line)
	if !strings.HasPrefix(line, "bin/labctl demo") {
		t.Fatalf("make demo runs %q, want labctl demo", line)
	}
	return line
}

// addresses replaces what documents stand for by what the lab has: the password
// and the ports.
func addresses(t *testing.T, work string, environ []string) *strings.Replacer {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bin/labctl", "hosts", "-o", "json")
	cmd.Dir, cmd.Env = work, environ
	cmd.Path = filepath.Join(work, "bin", "labctl")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var hosts []struct{ Redfish, IPMI, Password string }
	if err := json.Unmarshal(out, &hosts); err != nil || len(hosts) == 0 {
		t.Fatalf("labctl hosts printed %s: %v", out, err)
	}
	at, err := url.Parse(hosts[0].Redfish)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(hosts[0].IPMI, ":")
	return strings.NewReplacer("PASSWORD", hosts[0].Password, ":8443/", ":"+at.Port()+"/", "-p 6230 ", "-p "+port+" ")
}

func TestFencesAreFound(t *testing.T) {
	text := "# A\n\n```sh run\na b\n```\n\n1. In a list:\n\n   ```sh not run: needs a BMC\n   c\n   ```\n\n```go\nnot()\n```\n\n    make it\n\n```\nd\n```\n"
	got, problems := fences("a.md", text)
	if len(got) != 2 || got[0] != (fence{page: "a.md", text: "a b\n", mark: "run", line: 4}) || got[1] != (fence{page: "a.md", text: "c\n", mark: "not run: needs a BMC", line: 10}) {
		t.Errorf("fences = %+v", got)
	}
	if len(problems) != 2 || !strings.HasPrefix(problems[0], "a.md:17: ") || !strings.HasPrefix(problems[1], "a.md:19: ") {
		t.Errorf("problems = %q", problems)
	}
}
