// Package hosttest has the tests that every operating system which agents configure
// passes: this machine's, and those of the lab's servers. It knows neither.
package hosttest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/sys"
)

// Host is the part of an operating system that the tests use.
type Host interface {
	ReadFile(name string) ([]byte, error)
	ReadDir(name string) ([]string, error)
	Stat(name string) (sys.FileInfo, error)
	Readlink(name string) (string, error)
	Put(files ...sys.File) error
	Remove(names ...string) error
	Path(name string) string
	Exec(ctx context.Context, c sys.Command) (int, error)
}

// Files tests the files of a system; dir is a directory that only the test uses.
func Files(t *testing.T, h Host, dir string) {
	name := func(names ...string) string { return path.Join(append([]string{dir}, names...)...) }
	check := func(file, want string) {
		t.Helper()
		if got, err := h.ReadFile(name(file)); err != nil || string(got) != want {
			t.Errorf("ReadFile(%s) = %q, %v, want %q", file, got, err, want)
		}
	}
	put := func(files ...sys.File) {
		t.Helper()
		if err := h.Put(files...); err != nil {
			t.Errorf("Put(%v) error = %v", files, err)
		}
	}
	put(
		sys.File{Name: name("deep/er/a"), Mode: 0o640, Content: []byte("one")},
		sys.File{Name: name("link"), Mode: fs.ModeSymlink | 0o777, Link: "deep/er/a"},
		sys.File{Name: name("empty"), Mode: fs.ModeDir | 0o700},
	)
	check("deep/er/a", "one")
	check("link", "one")
	put(sys.File{Name: name("deep/er/a"), Mode: 0o600, Content: []byte("two")})
	check("link", "two")
	for _, tt := range []struct {
		file string
		mode fs.FileMode
	}{{"deep/er/a", 0o600}, {"link", 0o600}, {"empty", fs.ModeDir | 0o700}} {
		if got, err := h.Stat(name(tt.file)); err != nil || got.Mode != tt.mode {
			t.Errorf("Stat(%s) = %v, %v, want %v", tt.file, got.Mode, err, tt.mode)
		}
	}
	if got, err := h.Readlink(name("link")); err != nil || got != "deep/er/a" {
		t.Errorf("Readlink(link) = %q, %v, want deep/er/a", got, err)
	}
	for _, file := range []string{"deep/er/a", "never"} {
		if got, err := h.Readlink(name(file)); err == nil {
			t.Errorf("Readlink(%s) = %q, want an error: it is no link", file, got)
		}
	}
	if _, err := h.Stat(name("never")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat(never) error = %v, want fs.ErrNotExist", err)
	}
	put(sys.File{Name: name("deep/er/b"), Mode: 0o600})
	check("deep/er/b", "")
	if got, err := h.ReadDir(name("deep/er")); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("ReadDir = %q, %v, want a and b and nothing temporary", got, err)
	}
	if err := h.Put(sys.File{Name: name("deep"), Mode: 0o600}); err == nil {
		t.Error("Put replaced a directory by a file")
	}
	if err := h.Put(sys.File{Name: name("deep/er/a/x"), Mode: 0o600}); err == nil {
		t.Error("Put wrote a file below a file")
	}
	if err := h.Put(sys.File{Name: "relative", Mode: 0o600}); err == nil {
		t.Error("Put took a relative path")
	}
	if err := h.Remove(name("deep"), name("link"), name("never")); err != nil {
		t.Errorf("Remove error = %v", err)
	}
	for _, gone := range []string{"deep/er/a", "link", "never"} {
		if _, err := h.ReadFile(name(gone)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("ReadFile(%s) error = %v, want fs.ErrNotExist", gone, err)
		}
	}
	if _, err := h.ReadDir(name("deep")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadDir(deep) error = %v, want fs.ErrNotExist", err)
	}
}

// Commands tests the commands of a system; dir is a directory that only the test uses.
func Commands(t *testing.T, h Host, dir string) {
	script := path.Join(dir, "script")
	err := h.Put(
		sys.File{Name: script, Mode: 0o755, Content: []byte("#!/bin/sh\necho \"$1 $A $(pwd)\"; cat; echo no >&2; exit 3\n")},
		sys.File{Name: path.Join(dir, "secret"), Mode: 0o600, Content: []byte("s")},
	)
	if err != nil {
		t.Fatal(err)
	}
	run := func(c sys.Command) (code int, out, errOut string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		c.Stdout, c.Stderr = &stdout, &stderr
		code, err := h.Exec(t.Context(), c)
		if err != nil {
			t.Errorf("Exec(%q) error = %v", c.Args, err)
		}
		return code, stdout.String(), stderr.String()
	}
	code, out, errOut := run(sys.Command{Args: []string{h.Path(script), "x y"}, Env: []string{"A=b c"}, Dir: dir, Stdin: strings.NewReader("in\n")})
	if want := "x y b c " + h.Path(dir) + "\nin\n"; code != 3 || out != want || errOut != "no\n" {
		t.Errorf("a script ended with %d, %q, %q, want 3, %q and no", code, out, errOut, want)
	}
	for _, tt := range []struct {
		args []string
		code int
		out  string
	}{
		{[]string{"sh", "-c", "echo found"}, 0, "found\n"},
		{[]string{"/no/such/program"}, sys.CodeNotFound, ""},
		{[]string{"no-such-program"}, sys.CodeNotFound, ""},
		{[]string{"sh", "-c", "kill -9 $$"}, sys.CodeSignal + 9, ""},
		{[]string{"cat"}, 0, ""}, // without Stdin there is no input to wait for
		{[]string{"stat", "-c", "%a", h.Path(path.Join(dir, "secret"))}, 0, "600\n"},
		{[]string{"sh", "-c", "sleep 5 & echo begun"}, 0, "begun\n"}, // a process that has the output
	} {
		if code, out, _ := run(sys.Command{Args: tt.args}); code != tt.code || out != tt.out {
			t.Errorf("%q ended with %d and %q, want %d and %q", tt.args, code, out, tt.code, tt.out)
		}
	}
}

// ContextEndsCommand tests that a context ends a command with all processes that it has
// started, those in a session of their own included.
func ContextEndsCommand(t *testing.T, h Host, dir string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const begin = "(setsid sh -c 'while :; do sleep 1; done' </dev/null >/dev/null 2>&1 &); sh -c 'while :; do sleep 1; done' & echo begun; wait"
	out := writer(func(p []byte) {
		if bytes.Contains(p, []byte("begun")) {
			cancel()
		}
	})
	code, err := h.Exec(ctx, sys.Command{Args: []string{"sh", "-c", begin}, Env: []string{"METALAB_TEST=" + dir}, Stdout: out})
	if code == 0 && err == nil {
		t.Error("a command that its context has ended succeeded")
	}
	var left bytes.Buffer
	// What it began has its environment. The last word keeps grep from finding itself.
	find := "for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/environ 2>/dev/null | grep -qx METALAB_TEST=$1 && cat $p/comm; done; :"
	if diffCode, err := h.Exec(t.Context(), sys.Command{Args: []string{"sh", "-c", find, "sh", dir}, Stdout: &left}); diffCode != 0 || err != nil {
		t.Fatalf("the search ended with %d, %v", diffCode, err)
	}
	if diff := cmp.Diff("", left.String()); diff != "" {
		t.Errorf("processes that are left (-want +got):\n%s", diff)
	}
}

// Units tests the units of a system that runs systemd; dir is a directory that only the test
// uses. reboot boots the system again and returns it.
func Units(t *testing.T, h Host, dir string, reboot func() Host) {
	t.Helper()
	run := func(line string) (int, string) {
		t.Helper()
		var out bytes.Buffer
		code, err := h.Exec(t.Context(), sys.Command{Args: []string{"sh", "-c", line}, Stdout: &out, Stderr: &out})
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return code, out.String()
	}
	check := func(line string, wantCode int, want string) {
		t.Helper()
		if code, out := run(line); code != wantCode || out != want {
			t.Errorf("%s ended with %d and %q, want %d and %q", line, code, out, wantCode, want)
		}
	}
	unit := func(name, service, install string) sys.File {
		return sys.File{Name: "/etc/systemd/system/" + name + ".service", Mode: 0o644, Content: []byte("[Service]\nType=oneshot\n" + service + "\n[Install]\n" + install + "\n")}
	}
	count := path.Join(dir, "count")
	starts := "cat " + count // one line for each start of the units
	put := func(files ...sys.File) {
		t.Helper()
		if err := h.Put(files...); err != nil {
			t.Fatal(err)
		}
		if code, out := run("systemctl daemon-reload"); code != 0 {
			t.Fatalf("systemctl daemon-reload ended with %d, %s", code, out)
		}
	}
	stays := unit("metalab-stays", "RemainAfterExit=yes\nExecStart=/bin/sh -c 'echo started >> "+count+"'\nExecStop=/bin/sh -c 'echo stopped >> "+count+"'", "WantedBy=multi-user.target")
	put(sys.File{Name: dir, Mode: fs.ModeDir | 0o755}, stays, unit("metalab-fails", "ExecStart=/bin/sh -c 'exit 3'", "WantedBy=multi-user.target"))
	check("systemctl is-enabled metalab-stays", 1, "disabled\n")
	check("systemctl is-active metalab-stays", 3, "inactive\n")
	check("systemctl enable --quiet --now metalab-stays", 0, "")
	check("systemctl is-enabled metalab-stays", 0, "enabled\n")
	check("systemctl is-active metalab-stays", 0, "active\n")
	check("systemctl start metalab-stays", 0, "") // it is active
	check(starts, 0, "started\n")
	check("systemctl restart metalab-stays", 0, "")
	check(starts, 0, "started\nstopped\nstarted\n")
	if code, _ := run("systemctl start metalab-fails"); code != 1 {
		t.Errorf("the start of a unit that fails ended with %d, want 1", code)
	}
	check("systemctl is-failed metalab-fails", 0, "failed\n")
	check("systemctl show --property ExecMainStatus --value metalab-fails", 0, "3\n")
	check("systemctl reset-failed metalab-fails", 0, "")
	check("systemctl is-failed metalab-fails", 1, "inactive\n")
	if code, out := run("systemctl start metalab-never"); code != 5 {
		t.Errorf("the start of a unit that does not exist ended with %d, %s, want 5", code, out)
	}
	run("rm " + count)
	h = reboot()
	check("systemctl is-active metalab-stays", 0, "active\n")
	check("grep -c started "+count, 0, "1\n")
	check("systemctl disable --quiet --now metalab-stays", 0, "")
	check("systemctl is-active metalab-stays", 3, "inactive\n")
	run("rm " + count)
	h = reboot()
	check("systemctl is-active metalab-stays", 3, "inactive\n")
	if _, err := h.Stat(count); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a unit that is disabled has started at boot: %v, want fs.ErrNotExist", err)
	}
	if err := h.Remove(stays.Name, "/etc/systemd/system/metalab-fails.service", dir); err != nil {
		t.Error(err)
	}
}

// Rebooter is a Host that tells its boots.
type Rebooter interface {
	Boot() (sys.Boot, error)
	Reboot(ctx context.Context) error
}

// Boots tests that a boot has an identity, which stays until the system is booted again.
// await waits until a reboot that Reboot has begun is over, and returns the system.
func Boots(t *testing.T, h Rebooter, await func() Rebooter) {
	t.Helper()
	boot := func() sys.Boot {
		t.Helper()
		b, err := h.Boot()
		if err != nil || b.ID == "" || b.Time.IsZero() {
			t.Errorf("Boot() = %v, %v, want its ID and time", b, err)
		}
		return b
	}
	before := boot()
	if again := boot(); again != before {
		t.Errorf("Boot() = %v, and %v before: one boot has two identities", again, before)
	}
	if err := h.Reboot(t.Context()); err != nil {
		t.Fatalf("Reboot() error = %v", err)
	}
	h = await()
	if after := boot(); after.ID == before.ID || !after.Time.After(before.Time) {
		t.Errorf("after a reboot Boot() = %v, and %v before, want another ID and a later time", after, before)
	}
}

type writer func([]byte)

// Write implements io.Writer.
func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }
