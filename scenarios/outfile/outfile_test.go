package outfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, name, text string) {
	t.Helper()
	if b, err := os.ReadFile(name); err != nil || string(b) != text {
		t.Errorf("%s = %q, %v, want %q", name, b, err, text)
	}
}

// alone returns an error when a directory has other names than those.
func alone(t *testing.T, dir string, names ...string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range all {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s has %q, want %q", dir, got, names)
	}
}

func TestWriteReplacesOwnFilesAlone(t *testing.T) {
	ours := func(path string) bool {
		b, err := os.ReadFile(path)
		return err == nil && strings.HasPrefix(string(b), "ours")
	}
	for name, tt := range map[string]struct {
		was   string
		force bool
		err   string
	}{
		"own":     {was: "ours 1"},
		"empty":   {was: ""},
		"foreign": {was: "a diary", err: "foreign is there already, and not labctl's: name another file, or replace it with --force"},
		"forced":  {was: "a diary", force: true},
	} {
		at := filepath.Join(t.TempDir(), name)
		put(t, at, tt.was)
		err := File{Path: at, Made: ours, Force: tt.force}.Write(0o644, Bytes([]byte("ours 2")))
		if tt.err != "" {
			if err == nil || !strings.HasSuffix(err.Error(), tt.err) {
				t.Errorf("%s: Write() = %v, want %s", name, err, tt.err)
			}
			want(t, at, tt.was)
		} else {
			if err != nil {
				t.Errorf("%s: Write() = %v", name, err)
			}
			want(t, at, "ours 2")
		}
		alone(t, filepath.Dir(at), name)
	}
}

func TestWriteThatFailsLeavesWhatWasThere(t *testing.T) {
	dir, failed := t.TempDir(), errors.New("no more")
	at := filepath.Join(dir, "a")
	put(t, at, "before")
	err := File{Path: at, Force: true}.Write(0o644, func(f *os.File) error {
		_, err := f.WriteString("half")
		return errors.Join(err, failed)
	})
	if !errors.Is(err, failed) {
		t.Errorf("Write() = %v, want %v", err, failed)
	}
	want(t, at, "before")
	alone(t, dir, "a")
}

// A link to a file stays a link, one to nothing is refused, and a device is written to.
func TestWriteThroughLinksAndToDevices(t *testing.T) {
	dir := t.TempDir()
	at, link, dangling, null := filepath.Join(dir, "a"), filepath.Join(dir, "link"), filepath.Join(dir, "dangling"), filepath.Join(dir, "null")
	put(t, at, "before")
	for name, to := range map[string]string{link: at, dangling: filepath.Join(dir, "gone"), null: os.DevNull} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := (File{Path: link, Force: true}).Write(0o600, Bytes([]byte("after"))); err != nil {
		t.Fatal(err)
	}
	want(t, at, "after")
	if st, err := os.Lstat(link); err != nil || st.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link is %v, %v", st.Mode(), err)
	}
	if err := (File{Path: dangling, Force: true}).Write(0o600, Bytes(nil)); err == nil || !strings.Contains(err.Error(), "remove the link") {
		t.Errorf("Write() to a link to nothing = %v", err)
	}
	if err := (File{Path: null}).Write(0o600, Bytes([]byte("x"))); err != nil {
		t.Error(err)
	}
	if st, err := os.Stat(os.DevNull); err != nil || st.Mode()&fs.ModeCharDevice == 0 {
		t.Errorf("%s has become %v, %v", os.DevNull, st.Mode(), err)
	}
	if err := (File{Path: dir, Force: true}).Check(); err == nil || !strings.Contains(err.Error(), "name a file") {
		t.Errorf("Check() of a directory = %v", err)
	}
	if err := (File{Path: filepath.Join(dir, "no", "file")}).Check(); err == nil || strings.Contains(err.Error(), ".part") || !strings.Contains(err.Error(), filepath.Join(dir, "no")) {
		t.Errorf("Check() in a directory that is not there = %v, want the name that was given", err)
	}
}

func TestTreeIsWrittenWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "new", "model")
	files := map[string][]byte{"a/x.yaml": []byte("1"), "b/x.yaml": []byte("2")}
	if err := (Tree{Dir: at, Files: files}).Write(0o755, 0o644); err != nil {
		t.Fatal(err)
	}
	want(t, filepath.Join(at, "b/x.yaml"), "2")
	err := Tree{Dir: at, Files: map[string][]byte{"a/y.yaml": nil, "b/x.yaml": []byte("3")}}.Write(0o755, 0o644)
	if err == nil || !strings.Contains(err.Error(), filepath.Join(at, "b/x.yaml")+" is there already: ") {
		t.Errorf("Write() over another file = %v", err)
	}
	alone(t, filepath.Join(at, "a"), "x.yaml")

	// The last file has no room: its directory is a file.
	put(t, filepath.Join(at, "c"), "mine")
	err = Tree{Dir: at, Force: true, Files: map[string][]byte{"a/x.yaml": []byte("9"), "d/new": nil, "c/x": nil}}.Write(0o755, 0o644)
	if err == nil {
		t.Error("Write() below a file = nil")
	}
	want(t, filepath.Join(at, "a/x.yaml"), "1")
	alone(t, at, "a", "b", "c")
	alone(t, filepath.Join(at, "a"), "x.yaml")
	if err := (Tree{Dir: filepath.Join(at, "c")}).Check(); err == nil || !strings.Contains(err.Error(), "name a directory") {
		t.Errorf("Check() of a directory that is a file = %v", err)
	}
}

func TestContains(t *testing.T) {
	const text = "a sign"
	for _, before := range []int{0, 1<<16 - 7, 1<<16 - 6, 1<<16 - 1, 1 << 16, 3<<16 - 3} {
		for _, tt := range []struct {
			in   string
			want bool
		}{{text, true}, {text + "x", true}, {"a sig", false}, {"a sigX", false}} {
			path := filepath.Join(t.TempDir(), "a")
			if err := os.WriteFile(path, []byte(strings.Repeat("a", before)+tt.in), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := Contains(path, text); got != tt.want {
				t.Errorf("%q after %d bytes: %v, want %v", tt.in, before, got, tt.want)
			}
		}
	}
	if Contains(filepath.Join(t.TempDir(), "none"), text) {
		t.Error("a file that is not there has the text")
	}
}
