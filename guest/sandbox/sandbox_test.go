package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// memory is a sandbox.Store.
type memory struct {
	mu    sync.Mutex
	b     []byte
	saved func()
	fails error // refusal of Save
}

// refuse makes Save fail; nil ends that.
func (m *memory) refuse(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = err
}

func (m *memory) bytes() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.b
}

func (m *memory) Load() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.b, nil
}

func (m *memory) Save(b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		return m.fails
	}
	m.b = b
	if m.saved != nil {
		m.saved()
	}
	return nil
}

func base() sandbox.Tree {
	return sandbox.Tree{
		"etc/hostname": sandbox.File(0o644, "node\n"),
		"etc/passwd":   sandbox.File(0o644, "root:x:0:0:root:/root:/bin/bash\n"),
		"etc/group":    sandbox.File(0o644, "root:x:0:\n"),
		"etc/motd":     sandbox.File(0o644, "of the base\n"),
		"etc/dir/a":    sandbox.File(0o644, "a"),
	}
}

// The systems of the tests share their lower layers.
var (
	theBase = base()
	lowers  = sandbox.NewLowers(filepath.Join(os.TempDir(), fmt.Sprintf("lowers-%d", os.Getpid())))
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := lowers.Close(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// booted returns a system that ends with the test, and its store. Its commands fail where the
// kernel does not limit them: a test must not depend on the watcher to leave the machine alive.
func booted(t *testing.T, change ...func(*sandbox.Config)) (*sandbox.System, *memory) {
	t.Helper()
	m := &memory{}
	c := sandbox.Config{Base: theBase, Store: m, Dir: filepath.Join(t.TempDir(), "root"), Lowers: lowers, RequireLimits: true}
	for _, ch := range change {
		ch(&c)
	}
	s := sandbox.New(c)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(c.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory of the mounts is left: %v", err)
		}
	})
	return s, m
}

func put(t *testing.T, s *sandbox.System, nodes sandbox.Tree) {
	t.Helper()
	if err := s.Put(nodes); err != nil {
		t.Fatal(err)
	}
}

func checkFile(t *testing.T, s *sandbox.System, name, want string) {
	t.Helper()
	if b, err := s.ReadFile(name); err != nil || string(b) != want {
		t.Errorf("%s = %q, %v, want %q", name, b, err, want)
	}
}

func checkNoFile(t *testing.T, s *sandbox.System, name string) {
	t.Helper()
	if b, err := s.ReadFile(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s = %q, %v, want %v", name, b, err, fs.ErrNotExist)
	}
}

// run runs a line of a shell.
func run(t *testing.T, s *sandbox.System, line string) (out string, code int) {
	t.Helper()
	ctx := patience.Within(t, time.Minute)
	var b strings.Builder
	code, err := s.Exec(ctx, sandbox.Command{Args: []string{"/bin/sh", "-c", line}, Stdout: &b, Stderr: &b})
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return b.String(), code
}

func names(entries []sandbox.Entry) (out []string) {
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return out
}

// The same files are there whether or not a process runs in the system.
func bothWays(t *testing.T, test func(t *testing.T, s *sandbox.System)) {
	t.Run("no process", func(t *testing.T) {
		s, _ := booted(t)
		test(t, s)
	})
	t.Run("a process runs", func(t *testing.T) {
		needNamespaces(t)
		s, _ := booted(t)
		ctx, cancel := context.WithCancel(t.Context())
		ready, r := make(chan struct{}), &signalWriter{}
		r.ready = sync.OnceFunc(func() { close(ready) })
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = s.Exec(ctx, sandbox.Command{Args: []string{"/bin/sh", "-c", "echo ready; sleep 600"}, Stdout: r})
		}()
		<-ready
		test(t, s)
		cancel()
		<-ended
	})
}

type signalWriter struct{ ready func() }

func (w *signalWriter) Write(p []byte) (int, error) { w.ready(); return len(p), nil }

func TestFilesAreALayerOverTheBase(t *testing.T) {
	bothWays(t, func(t *testing.T, s *sandbox.System) {
		checkFile(t, s, "etc/motd", "of the base\n")
		put(t, s, sandbox.Tree{
			"etc/motd":      sandbox.File(0o600, "changed"),
			"var/lib/x/new": sandbox.File(0o644, "new"),
			"etc/link":      {Mode: fs.ModeSymlink | 0o777, Link: "/etc/motd"},
			"run/volatile":  sandbox.File(0o644, "v"),
		})
		checkFile(t, s, "/etc/link", "changed")
		checkFile(t, s, "var/lib/x/new", "new")
		checkFile(t, s, "run/volatile", "v")
		if n, err := s.Stat("etc/motd"); err != nil || n.Mode != 0o600 {
			t.Errorf("mode %v, %v", n.Mode, err)
		}
		if err := s.Remove("etc/dir", "etc/passwd", "no/such"); err != nil {
			t.Fatal(err)
		}
		checkNoFile(t, s, "etc/dir/a")
		checkNoFile(t, s, "etc/passwd")
		entries, err := s.ReadDir("etc")
		if diff := cmp.Diff([]string{"group", "hostname", "link", "motd"}, names(entries)); diff != "" || err != nil {
			t.Errorf("/etc (-want +got):\n%s%v", diff, err)
		}
		put(t, s, sandbox.Tree{"etc/dir/b": sandbox.File(0o644, "b")})
		checkNoFile(t, s, "etc/dir/a")
		checkFile(t, s, "etc/dir/b", "b")
		if entries, err := s.ReadDir("/tmp"); err != nil || len(entries) > 0 {
			t.Errorf("/tmp = %v, %v", entries, err)
		}
		if root, err := s.ReadDir("/"); err != nil || !slices.Contains(names(root), "home") || !slices.Contains(names(root), "usr") {
			t.Errorf("/ = %v, %v", names(root), err)
		}
		if _, err := s.Stat("usr/bin/env"); err != nil {
			t.Errorf("/usr of the machine: %v", err)
		}
		if _, err := s.ReadFile("../../../../etc/shadow"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the machine's /etc/shadow: %v", err)
		}
		put(t, s, sandbox.Tree{"etc/out": {Mode: fs.ModeSymlink | 0o777, Link: "../../../../etc/machine-id"}})
		checkNoFile(t, s, "etc/out")
	})
}

func TestChangesComparesWithTheBase(t *testing.T) {
	s, _ := booted(t)
	put(t, s, sandbox.Tree{"etc/motd": sandbox.File(0o644, "x"), "opt/new": sandbox.File(0o644, "x")})
	if err := s.Remove("etc/passwd"); err != nil {
		t.Fatal(err)
	}
	got, err := s.Changes()
	want := []sandbox.Change{{"etc/motd", "changed"}, {"etc/passwd", "removed"}, {"opt/new", "added"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Changes() (-want +got):\n%s%v", diff, err)
	}
}

func TestPutRefusesWhatCannotBe(t *testing.T) {
	s, _ := booted(t)
	for name, want := range map[string]string{
		"/etc/x":     "without the leading slash",
		"etc/../x":   "without the leading slash",
		"etc/motd/x": "not a directory",
		"etc/dir":    "is a directory",
	} {
		if err := s.Put(sandbox.Tree{name: sandbox.File(0o644, "")}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Put(%q) = %v, want %q", name, err, want)
		}
	}
	put(t, s, sandbox.Tree{"etc/l1": {Mode: fs.ModeSymlink, Link: "l2"}, "etc/l2": {Mode: fs.ModeSymlink, Link: "l1"}})
	if _, err := s.ReadFile("etc/l1"); err == nil || !strings.Contains(err.Error(), "too many levels") {
		t.Errorf("a loop of links: %v", err)
	}
}

// What lies in /run and /tmp is dropped at each boot, the rest is stored.
func TestLayerOutlivesABoot(t *testing.T) {
	s, m := booted(t)
	put(t, s, sandbox.Tree{"etc/motd": sandbox.File(0o644, "stored"), "run/x": sandbox.File(0o644, "x"), "tmp/x": sandbox.File(0o644, "x")})
	next := sandbox.New(sandbox.Config{Base: base(), Store: m})
	checkFile(t, next, "etc/motd", "stored")
	checkNoFile(t, next, "run/x")
	checkNoFile(t, next, "tmp/x")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadFile("etc/motd"); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("a file of a system that is down: %v", err)
	}
}

func TestLayerIsAnOCILayer(t *testing.T) {
	in := sandbox.Tree{
		"etc/a":     {Mode: 0o640, UID: 1000, GID: 2000, Content: []byte("a"), Modified: time.Unix(1e9, 0)},
		"etc/gone":  {Removed: true},
		"etc/dir":   {Mode: fs.ModeDir | 0o750, Opaque: true, Modified: time.Unix(1e9, 0)},
		"etc/dir/b": {Mode: fs.ModeSymlink | 0o777, Link: "../a", Modified: time.Unix(1e9, 0)},
		"bin/su":    {Mode: fs.ModeSetuid | 0o755, Content: []byte{}, Modified: time.Unix(1e9, 0)},
	}
	b, err := in.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := sandbox.Decode(b)
	if diff := cmp.Diff(in, got); diff != "" || err != nil {
		t.Errorf("Decode(Encode()) (-want +got):\n%s%v", diff, err)
	}
	again, err := got.Encode()
	if err != nil || string(again) != string(b) {
		t.Errorf("an equal layer has other bytes: %v", err)
	}
	if _, err := sandbox.Decode(b[:len(b)/2]); err == nil {
		t.Error("half a layer is no error")
	}
}

// A stored layer cannot write through a link: it may come from somebody else's snapshot.
func TestFilesBelowALinkAreRefused(t *testing.T) {
	for _, above := range []sandbox.Node{{Mode: fs.ModeSymlink | 0o777, Link: "/tmp"}, sandbox.File(0o644, "x"), {Removed: true}} {
		b, err := sandbox.Tree{"a": above, "a/b/c": sandbox.File(0o644, "x")}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sandbox.Decode(b); err == nil || !strings.Contains(err.Error(), "a/b/c is below a") {
			t.Errorf("Decode below %v = %v", above.Mode, err)
		}
	}
}
