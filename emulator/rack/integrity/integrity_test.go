package integrity

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rules = []Rule{
	{Pattern: "state.db", Fix: "restore a snapshot"},
	{Pattern: "keys/*", Running: true, Fix: "make new ones"},
	{Pattern: "disks/*/*", SizeOnly: true},
	{Pattern: "hosts.yaml", Unlisted: true},
}

// sealed returns a directory with a list of its files.
func sealed(t *testing.T, running bool) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a[1]*") // means something in a pattern
	for _, name := range []string{"state.db", "keys/a", "keys/b.part", "disks/node-0/x.img", "hosts.yaml", "others"} {
		put(t, dir, name, "content of "+name)
	}
	if err := Seal(dir, rules, running); err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestCheckNamesDamagedFiles(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, dir string)
		want []string // in the error; none when there is no error
	}{
		{"nothing", func(*testing.T, string) {}, nil},
		{"a byte", func(t *testing.T, dir string) { put(t, dir, "state.db", "content of state_db") }, []string{"state.db was changed after the lab stopped", "restore a snapshot", "remove " /* files.json */}},
		{"empty", func(t *testing.T, dir string) { put(t, dir, "keys/a", "") }, []string{"keys/a is empty", "make new ones"}},
		{"shorter", func(t *testing.T, dir string) { put(t, dir, "keys/a", "con") }, []string{"keys/a has 3 bytes and had 17"}},
		{"missing", func(t *testing.T, dir string) { remove(t, dir, "state.db") }, []string{"state.db is missing"}},
		{"a directory", func(t *testing.T, dir string) { remove(t, dir, "state.db"); put(t, dir, "state.db/x", "") }, []string{"state.db is no file"}},
		{"two", func(t *testing.T, dir string) { remove(t, dir, "state.db"); remove(t, dir, "keys/a") }, []string{"state.db is missing", "keys/a is missing"}},
		{"content that users change", func(t *testing.T, dir string) { put(t, dir, "disks/node-0/x.img", "CONTENT OF disks/node-0/x.img") }, nil},
		{"a disk that is cut off", func(t *testing.T, dir string) { put(t, dir, "disks/node-0/x.img", "CON") }, []string{"x.img has 3 bytes"}},
		{"a file that is made anew", func(t *testing.T, dir string) { put(t, dir, "hosts.yaml", "") }, nil},
		{"a directory in its place", func(t *testing.T, dir string) { remove(t, dir, "hosts.yaml"); put(t, dir, "hosts.yaml/x", "") }, []string{"hosts.yaml is a directory: move it away"}},
		{"a file of others", func(t *testing.T, dir string) { remove(t, dir, "others") }, nil},
		{"what a killed process left", func(t *testing.T, dir string) { remove(t, dir, "keys/b.part") }, nil},
		{"a new file", func(t *testing.T, dir string) { put(t, dir, "keys/c", "") }, nil},
		{"the list is damaged", func(t *testing.T, dir string) {
			b, err := os.ReadFile(filepath.Join(dir, File))
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, File, strings.Replace(string(b), "17", "18", 1))
		}, []string{File + " is damaged: its checksum is wrong: remove it"}},
		{"the list is empty", func(t *testing.T, dir string) { put(t, dir, File, "") }, []string{File + " is damaged", "remove it"}},
		{"the list is a directory", func(t *testing.T, dir string) { remove(t, dir, File); put(t, dir, File+"/x", "") }, []string{File + " cannot be read", "remove it"}},
		{"the list is gone", func(t *testing.T, dir string) { remove(t, dir, File); remove(t, dir, "state.db") }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := sealed(t, false)
			tt.do(t, dir)
			err := Check(dir, rules, nil)
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("Check() = %v, want %q", err, tt.want)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Check() = %v, want %q in it", err, want)
				}
			}
			if damage := (*DamageError)(nil); err != nil && !errors.As(err, &damage) {
				t.Errorf("Check() = %T, want a DamageError", err)
			}
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// A kill can leave changes in files that a running lab writes, and in no others.
func TestSealOfARunningLabListsWhatItDoesNotChange(t *testing.T) {
	dir := sealed(t, true)
	put(t, dir, "state.db", "later")
	if err := Check(dir, rules, nil); err != nil {
		t.Error(err)
	}
	remove(t, dir, "keys/a")
	if err := Check(dir, rules, nil); err == nil || !strings.Contains(err.Error(), "keys/a is missing") {
		t.Errorf("Check() = %v", err)
	}
	if err := Check(dir, rules, func(name string) bool { return name == "keys/a" }); err != nil {
		t.Errorf("Check() without keys/a = %v", err)
	}
}

// Seal and Forget with some of the rules leave the other files in the list.
func TestSealAndForgetKeepTheFilesOfOthers(t *testing.T) {
	dir := sealed(t, false)
	if err := Forget(dir, rules[:1]); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "state.db", "later")
	remove(t, dir, "keys/a")
	if err := Check(dir, rules[:1], nil); err != nil {
		t.Error(err)
	}
	if err := Seal(dir, rules[:1], false); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "state.db", "damage")
	if err := Check(dir, rules, nil); err == nil || !strings.Contains(err.Error(), "state.db") || !strings.Contains(err.Error(), "keys/a") {
		t.Errorf("Check() = %v, want both files in it", err)
	}
}
