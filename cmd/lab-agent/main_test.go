//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/version"
)

func TestMediaPath(t *testing.T) {
	for _, tt := range []struct{ flag, env, cmdline, want string }{
		{flag: "/flag", env: "/env", cmdline: "metalab.config=/cmdline", want: "/flag"},
		{env: "/env", cmdline: "metalab.config=/cmdline", want: "/env"},
		{cmdline: "ro metalab.config=/a quiet metalab.config=/b\n", want: "/b"},
		{cmdline: `metalab.config="/a"`, want: "/a"},
		{cmdline: "ro xmetalab.config=/a metalab.config", want: ""},
	} {
		if got := mediaPath(tt.flag, tt.env, tt.cmdline); got != tt.want {
			t.Errorf("mediaPath(%q, %q, %q) = %q, want %q", tt.flag, tt.env, tt.cmdline, got, tt.want)
		}
	}
}

func TestLoadMedia(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, "agent.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	got, err := loadMedia(file(`{"server":"https://192.0.2.1:6443","ca":"PEM","token":"t","boot":"b"}`))
	want := job.Media{Server: "https://192.0.2.1:6443", CA: "PEM", Token: "t", Boot: "b"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("loadMedia = %v (-want +got):\n%s", err, diff)
	}
	for _, path := range []string{"", filepath.Join(dir, "none"), file("{")} {
		if m, err := loadMedia(path); err == nil {
			t.Errorf("loadMedia(%q) = %+v, want an error", path, m)
		}
	}
}

func TestCommands(t *testing.T) {
	t.Setenv(mediaEnv, "")
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		c := command()
		c.SetArgs(args)
		c.SetOut(&out)
		c.SetErr(&out)
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := run("inventory")
	var h job.Hardware
	if err != nil || json.Unmarshal([]byte(out), &h) != nil || h.CPU.Count == 0 {
		t.Errorf("lab-agent inventory = %v, %.200s; want the machine's inventory", err, out)
	}
	media := filepath.Join(t.TempDir(), "agent.json")
	if err := os.WriteFile(media, []byte(`{"server":"http://192.0.2.1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run("--media", media, "--key", filepath.Join(t.TempDir(), "agent.key")); err == nil || !strings.Contains(err.Error(), "is no https URL") {
		t.Errorf("lab-agent --media = %v, want the server refused", err)
	}
	for _, arg := range []string{"version", "--version"} {
		if out, err := run(arg); err != nil || out != "lab-agent "+version.Read().String()+"\n" {
			t.Errorf("lab-agent %s prints %q, %v; want the version, the commit and the toolchain", arg, out, err)
		}
	}
	for _, args := range [][]string{{"write"}, {"inventory", "x"}, {"--media", filepath.Join(t.TempDir(), "none")}} {
		if _, err := run(args...); err == nil {
			t.Errorf("lab-agent %v succeeded", args)
		}
	}
}

// lab-agent refuses a wrong command line as labctl does, and suggests the nearest name.
func TestWrongCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"inventroy":             `lab-agent has no command "inventroy". Did you mean inventory?`,
		"elemental rnu":         `lab-agent elemental has no command "rnu". Did you mean run?`,
		"elemental run x":       `lab-agent elemental run takes no argument "x"`,
		"lcm x":                 `lab-agent lcm takes no argument "x"`,
		"mcd --print-unti":      "unknown flag: --print-unti. Did you mean --print-unit?",
		"inventory --listen 5x": `--listen "5x" is not a duration, such as 30s or 5m`,
	} {
		c := command()
		c.SetArgs(strings.Fields(line))
		c.SetOut(io.Discard)
		if err := c.ExecuteContext(t.Context()); !usage.Is(err) || err.Error() != want+" (see --help)" {
			t.Errorf("lab-agent %s: %v, want %q", line, err, want)
		}
	}
}
