package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that replaces a file between two looks of the reader shows it no file of this
// machine, and does not make it wait.
func TestReplacedFilesAreNotRead(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		replace func(file string) error
	}{
		{"a link", func(file string) error { return os.Symlink(secret, file) }},
		{"a pipe", func(file string) error { return unix.Mkfifo(file, 0o600) }},
		{"nothing", func(string) error { return nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			in, err := os.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			file := filepath.Join(dir, "f")
			if err := os.WriteFile(file, []byte("own"), 0o600); err != nil {
				t.Fatal(err)
			}
			var st unix.Stat_t
			if err := unix.Fstatat(int(in.Fd()), "f", &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				t.Fatal(err)
			}
			if n, ok, err := nodeOf(in, "f", &st); !ok || err != nil || string(n.Content) != "own" {
				t.Fatalf("before: %q, %t, %v", n.Content, ok, err)
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := tt.replace(file); err != nil {
				t.Fatal(err)
			}
			if n, ok, err := nodeOf(in, "f", &st); ok || len(n.Content) > 0 || err != nil && !changed(err) {
				t.Errorf("after: %q, %t, %v", n.Content, ok, err)
			}
		})
	}
}

// A directory that was replaced by a link out of the root is not entered.
func TestReplacedDirectoriesAreNotEntered(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	err := walk(dir, func(_ *os.File, _, below string, _ *unix.Stat_t) error {
		if seen[below] = true; below != "a" {
			return nil
		}
		if err := os.Remove(filepath.Join(dir, "a")); err != nil {
			return err
		}
		return os.Symlink(outside, filepath.Join(dir, "a"))
	})
	if err != nil || len(seen) != 1 || !seen["a"] {
		t.Errorf("walk has seen %v, %v, want a alone", seen, err)
	}
}
