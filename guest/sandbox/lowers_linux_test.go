package sandbox_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/metalab-dev/metalab/guest/sandbox"
)

// copiesOf returns the paths of a file below a directory, one of each copy of a base.
func copiesOf(t *testing.T, dir, file string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", file))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Systems with one base have one copy of it on disk, whatever their commands do to it.
func TestSystemsShareTheirBase(t *testing.T) {
	needNamespaces(t)
	dir := filepath.Join(t.TempDir(), "lowers")
	own, files := sandbox.NewLowers(dir), base()
	shared := func(c *sandbox.Config) { c.Lowers, c.Base = own, files }
	a, _ := booted(t, shared)
	b, _ := booted(t, shared)
	var group sync.WaitGroup
	for i, s := range []*sandbox.System{a, b} {
		group.Go(func() {
			run(t, s, fmt.Sprintf("echo %d > /etc/motd; chmod 600 /etc/group; rm -r /etc/dir; touch -d 2001-01-01 /etc/passwd; systemctl is-active x; sleep 600 > /dev/null 2>&1 &", i))
		})
	}
	group.Wait()
	checkFile(t, a, "etc/motd", "0\n")
	checkFile(t, b, "etc/motd", "1\n")
	checkNoFile(t, b, "etc/dir/a")
	copies := copiesOf(t, dir, "etc/motd")
	if len(copies) != 1 {
		t.Fatalf("the base is at %v, want one copy", copies)
	}
	if content, err := os.ReadFile(copies[0]); err != nil || string(content) != "of the base\n" {
		t.Errorf("the copy of the base has %q, %v", content, err)
	}
	c, _ := booted(t, shared)
	if got, _ := run(t, c, "cat /etc/motd /etc/dir/a; stat -c %a /etc/group; stat -c %y /etc/passwd | grep -c 2001; command -v systemctl"); got != "of the base\na644\n0\n/usr/bin/systemctl\n" {
		t.Errorf("a third system sees %q", got)
	}
	for _, s := range []*sandbox.System{a, b, c} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := own.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}

// Commands see the files of their system alone, below directories with the attributes of the base.
func TestCommandsSeeTheFilesOfTheirSystem(t *testing.T) {
	needNamespaces(t)
	own, files := sandbox.NewLowers(filepath.Join(t.TempDir(), "lowers")), base()
	files["var/lib/dbus"] = sandbox.Node{Mode: fs.ModeDir | 0o750}
	for _, id := range []string{"1", "2"} {
		s, _ := booted(t, func(c *sandbox.Config) {
			c.Lowers, c.Base = own, files
			c.Own = sandbox.Tree{
				"etc/machine-id":          sandbox.File(0o444, id+"\n"),
				"var/lib/dbus/machine-id": {Mode: fs.ModeSymlink | 0o777, Link: "/etc/machine-id"},
			}
		})
		const look = "stat -c '%a %n' /var/lib/dbus /etc/machine-id; cat /etc/motd /var/lib/dbus/machine-id"
		want := "750 /var/lib/dbus\n444 /etc/machine-id\nof the base\n" + id + "\n"
		if got, _ := run(t, s, look+"; rm /etc/machine-id"); got != want {
			t.Errorf("a command sees %q, want %q", got, want)
		}
		if got, code := run(t, s, "cat /etc/machine-id"); code == 0 {
			t.Errorf("the next command sees what was removed: %q", got)
		}
		checkNoFile(t, s, "etc/machine-id")
	}
}

// Of the bases that no system uses any more the last few stay, and those of a process that was
// killed do not.
func TestUnusedBasesAreRemoved(t *testing.T) {
	needNamespaces(t)
	dir := filepath.Join(t.TempDir(), "lowers")
	if err := os.MkdirAll(filepath.Join(dir, "1", "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "1", "etc", "stale"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	own := sandbox.NewLowers(dir)
	for i := range 7 {
		s, _ := booted(t, func(c *sandbox.Config) {
			c.Lowers, c.Base = own, sandbox.Tree{fmt.Sprintf("etc/%d", i): sandbox.File(0o644, "")}
		})
		if out, _ := run(t, s, "ls /etc"); out != fmt.Sprintln(i) {
			t.Errorf("base %d has the files %q", i, out)
		}
	}
	var left []string
	for _, name := range copiesOf(t, dir, "etc/?") {
		left = append(left, filepath.Base(name))
	}
	slices.Sort(left)
	if len(left) == 0 || len(left) > 4 || !slices.Contains(left, "6") {
		t.Errorf("the bases %v are left, want the last few of 7", left)
	}
}

// A base that could not be written is written for the next command.
func TestBaseIsWrittenAgainAfterAnError(t *testing.T) {
	needNamespaces(t)
	dir := filepath.Join(t.TempDir(), "lowers")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // no directory
		t.Fatal(err)
	}
	s, _ := booted(t, func(c *sandbox.Config) { c.Lowers = sandbox.NewLowers(filepath.Join(dir, "below")) })
	if code, err := s.Exec(t.Context(), sandbox.Command{Args: []string{"true"}}); err == nil {
		t.Errorf("a command without its base = code %d, want an error", code)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if out, code := run(t, s, "cat /etc/motd"); code != 0 || out != "of the base\n" {
		t.Errorf("the next command = code %d, %q", code, out)
	}
}

// Values under /proc/sys are the server's: its name is not the machine's, each UUID is another, and
// what a command has set is there for the next.
func TestValuesOfTheKernelAreTheServers(t *testing.T) {
	needNamespaces(t)
	own := sandbox.NewLowers(filepath.Join(t.TempDir(), "lowers"))
	shared := func(c *sandbox.Config) { c.Lowers = own }
	s, _ := booted(t, shared)
	const look = "cd /proc/sys; cat kernel/hostname vm/swappiness net/ipv4/ip_forward; [ $(cat kernel/random/uuid) != $(cat kernel/random/uuid) ] && echo differ"
	before, _ := run(t, s, look+"; echo 9 > vm/swappiness; echo 1 > net/ipv4/ip_forward")
	if got, _ := run(t, s, look); got != "node\n9\n1\ndiffer\n" {
		t.Errorf("the next command sees %q", got)
	}
	other, _ := booted(t, shared)
	if got, _ := run(t, other, look); got != before || got == "node\n9\n1\ndiffer\n" {
		t.Errorf("another server sees %q, want %q", got, before)
	}
}
