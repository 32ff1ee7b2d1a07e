package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// place makes files in a new directory: a name with a slash at its end is a directory, and one
// with an arrow a link.
func place(t *testing.T, names ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	err := os.Mkdir(dir, 0o700)
	for _, name := range names {
		at := filepath.Join(dir, name)
		if link, to, ok := strings.Cut(name, " -> "); ok {
			err = errors.Join(err, os.Symlink(to, filepath.Join(dir, link)))
		} else if strings.HasSuffix(name, "/") {
			err = errors.Join(err, os.MkdirAll(at, 0o700))
		} else {
			err = errors.Join(err, os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(name), 0o600))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// namesBelow returns all names below a directory.
func namesBelow(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err == nil {
			names = append(names, strings.TrimPrefix(name, dir))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return names
}

func TestClaimRefusesADirectoryOfOthers(t *testing.T) {
	for _, tt := range []struct {
		name, has string // has is in the error
		files     []string
	}{
		{"a file", "it has notes.txt: ", []string{"notes.txt"}},
		{"a repository", "it has .git: ", []string{".git/HEAD"}},
		{"a link", "it has elsewhere: ", []string{"elsewhere -> /nowhere"}},
		{"two", "it has a and b: ", []string{"a", "b/c"}},
		{"many", "it has a, b and 2 more: ", []string{"a", "b", "c", "d"}},
		{"settings of another program", "it has settings.json: ", []string{"settings.json"}},
		{"a database of another program", "it has state.db: ", []string{"state.db"}},
		{"names of a lab's directories", "it has controller, media and 1 more: ", []string{"controller/main.go", "media/a-b.png", "systems/a"}},
		{"an authority", "it has ca.crt and ca.key: ", []string{"ca.crt", "ca.key"}},
		{"beside what a lab has left", "it has notes.txt: ", []string{"lab.log", "lock", "notes.txt"}},
		{"a Kubernetes configuration", "it has kube: ", []string{"kube/kubeconfig"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options{state: place(t, tt.files...)}
			before := namesBelow(t, o.state)
			err := o.claim()
			if err == nil || !strings.HasPrefix(err.Error(), o.state+" holds no lab, ") || !strings.Contains(err.Error(), tt.has) || !strings.Contains(err.Error(), "give --state ") {
				t.Errorf("claim() = %v, want an error with the directory, %q and the fix", err, tt.has)
			}
			if diff := cmp.Diff(before, namesBelow(t, o.state)); diff != "" {
				t.Errorf("the directory has changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestClaimTakesADirectoryForALab(t *testing.T) {
	for name, files := range map[string][]string{
		"an empty one":                 nil,
		"a new file system":            {"lost+found/"},
		"images and charts":            {"images/a.qcow2", "charts/a.tgz"},
		"a lab":                        {"settings.json", "state.db", "lock", "disks/", "hosts.yaml"},
		"a lab of an earlier version":  {"settings.json", "state.db", "since-removed"},
		"a lab with others beside it":  {"settings.json", "state.db", "lock", ".git/HEAD", "notes.txt", "elsewhere -> /nowhere"},
		"a lab without its database":   {"settings.json", "lock", "files.json"},
		"a lab without its settings":   {"state.db", "lock", "ca.crt"},
		"a lab that never came up":     {"lab.log", "lock", "ballast", "models/profiles/a.yaml", "process.json", "crash-20300102T030405Z-7.txt", "state.db.part", "images/a"},
		"a restore that was killed":    {"lock", "restored.part/state.db", "disks/node-0/a.img", "ca.key"},
		"a Kubernetes API alone":       {"kube/lock", "kube/etcd/member/", "notes.txt"},
		"a recording's snapshot":       {"snapshot-17.part"},
		"a directory of a lab's alone": {"models/profiles/"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options{state: place(t, files...)}
			if err := o.claim(); err != nil {
				t.Errorf("claim() = %v", err)
			}
		})
	}
	o := options{state: filepath.Join(t.TempDir(), "none")}
	if err := o.claim(); err != nil {
		t.Errorf("claim() of a directory that does not exist = %v", err)
	}
	o.state = place(t, "ca.crt", "ca.key")
	if err := o.claim(authority...); err != nil {
		t.Errorf("claim() of a shard that did not come up = %v", err)
	}
}

// ofLab are files of a lab: one of each kind that labctl makes.
var ofLab = []string{
	"settings.json", "state.db", "state.log", "state.mark", "lock", "ports.json", "files.json", "hosts.yaml", "lab.log", "process.json", "crash-20300102T030405Z-7.txt",
	"ca.crt", "ca.key", "bmc-rsa.key", "ballast", "view.token", "restore.json", "control.sock -> /nowhere/a.sock", "settings.json.new", "files.json.part",
	"disks/node-0/A%201.img", "media/node-0-Cd", "media/node-0-Cd.7.part", "updates/node-0-BIOS", "models/profiles/a.yaml", "models/dialects/a.yaml", "models/registries/a.yaml",
	"kube/lock", "kube/port", "kube/kubeconfig", "kube/pki/ca.pem", "kube/pki/service-account.key", "kube/etcd/member/wal/0.wal",
	"controller/inband.key", "controller/inband.pem", "memory/node-0.json", "memory/node-0/7.key", "systems/node-0-1/etc/hosts", "charts/",
	"images/metalab-demo.img", "images/metalab-demo.qcow2", "images/.metalab-demo.img-123", "images/metalab-seed-a.iso", "day2/day2-cluster.yaml", "day2/day2-configuration.yaml",
	"registry/passwords.json", "registry/blobs/sha256/abc", "registry/blobs/upload-7", "registry/manifests/abc.json", "elemental-authority/ca.crt",
	"shards/token", "shards/shard-0/state.db", "shards/shard-0/lab.log", "shards/shard-0/control.address", "shards/shard-12/disks/node-7/a.img", "shards/shard-0/control.sock -> /nowhere/b.sock",
	"restored.part/state.db", "snapshot-7.part",
}

func TestDownDeleteRemovesALabWithItsDirectory(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := place(t, ofLab...)
	check(t, dir, outcome{0, "", "The lab in " + dir + " is removed.\n"}, "down", "--delete")
	if names := namesBelow(t, dir); names != nil {
		t.Errorf("there is still %q", names)
	}
	check(t, dir, outcome{0, "", "There is no lab in " + dir + ".\n"}, "down", "--delete")
}

// Of a directory with a lab, labctl down --delete leaves a user's files, and names them.
func TestDownDeleteLeavesWhatIsNotTheLabs(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	elsewhere := place(t, "precious")
	mine := []string{".git/HEAD", "notes.txt", "charts/mine.tgz", "images/mine.iso", "images/seed-1.iso", "images/sysctl-mine.tgz", "controller/main.go", "kube/etcd.old/member", "media/holidays.png", "crash-report.txt", "shards/shard-0/notes.txt"}
	dir := place(t, slices.Concat(ofLab, mine, []string{"link -> " + elsewhere})...)
	want := "The lab in " + dir + " is removed.\nNot the lab's, and still there:\n"
	for _, name := range []string{".git", "charts/mine.tgz", "controller/main.go", "crash-report.txt", "images/mine.iso", "images/seed-1.iso", "images/sysctl-mine.tgz", "kube/etcd.old", "link", "media/holidays.png"} {
		want += "  " + filepath.Join(dir, name) + "\n"
	}
	check(t, dir, outcome{0, "", want + "  and 2 more\n"}, "down", "--delete")
	for _, name := range mine {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != name {
			t.Errorf("%s = %q, %v", name, b, err)
		}
	}
	if diff := cmp.Diff([]string{"", "/precious"}, namesBelow(t, elsewhere)); diff != "" {
		t.Errorf("what the link leads to (-want +got):\n%s", diff)
	}
	files := 0
	for _, name := range namesBelow(t, dir) {
		if st, err := os.Lstat(filepath.Join(dir, name)); err == nil && !st.IsDir() {
			files++
		}
	}
	if files != len(mine)+1 {
		t.Errorf("there are %d files and links, want %d: %q", files, len(mine)+1, namesBelow(t, dir))
	}
}

// A name that a lab shares with other programs does not make a directory a lab's.
func TestDownDeleteOfADirectoryOfOthers(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := place(t, "settings.json", ".git/HEAD")
	check(t, dir, outcome{1, "", "labctl: " + dir + " contains no lab and was not removed\n"}, "down", "--delete")
	if _, err := os.Stat(filepath.Join(dir, "settings.json")); err != nil {
		t.Error(err)
	}
}
