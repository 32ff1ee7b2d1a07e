package statedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var owned = Owned{"settings.json", "state.db", "lab.log", "crash-*.txt", "control.sock", "disks/*/*.img", "kube/lock", "kube/etcd/...", "images/demo.img", "memory/*.json", "memory/*/*.key", "charts/"}

// ofLab are the files of a lab: each pattern of owned has one.
var ofLab = []string{"settings.json", "state.db", "lab.log", "crash-1.txt", "disks/node-0/a.img", "kube/lock", "kube/etcd/member/wal/0.wal", "images/demo.img", "memory/node-0.json", "memory/node-0.json.new", "memory/node-0/7.key", "settings.json.new", "lab.log.part"}

// makeLab returns a new state directory with the files of a lab.
func makeLab(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a[1]*") // means something in a pattern
	for _, name := range ofLab {
		put(t, filepath.Join(dir, name))
	}
	must(t, os.Mkdir(filepath.Join(dir, "charts"), 0o700))
	must(t, os.Symlink("/nowhere/lab.sock", filepath.Join(dir, "control.sock")))
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes a file, with the directories on the way to it.
func put(t *testing.T, name string) {
	t.Helper()
	must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("content"), 0o600)))
}

// namesIn returns the names of all files and empty directories below a directory, sorted.
func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	must(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if all, err := os.ReadDir(name); err != nil || len(all) > 0 {
				return err
			}
		}
		rel, err := filepath.Rel(dir, name)
		names = append(names, filepath.ToSlash(rel))
		return err
	}))
	return names
}

func TestRemoveOfALabAloneRemovesItsDirectory(t *testing.T) {
	dir := makeLab(t)
	left, err := owned.Remove(dir, "settings.json", "state.db")
	if _, gone := os.Lstat(dir); err != nil || !errors.Is(gone, fs.ErrNotExist) || !cmp.Equal(left, Leftovers{}) {
		t.Errorf("Remove() = %+v, %v, and the directory has %q, want nothing left", left, err, namesIn(t, dir))
	}
}

// What users have put beside a lab and into its directories stays, byte by byte.
func TestRemoveLeavesWhatTheLabHasNotMade(t *testing.T) {
	elsewhere := t.TempDir()
	put(t, filepath.Join(elsewhere, "precious"))
	for _, tt := range []struct {
		name  string
		files []string
		link  string // to elsewhere; "" for none
		want  []string
	}{
		{name: "a file", files: []string{"notes.txt"}, want: []string{"notes.txt"}},
		{name: "a hidden file", files: []string{".envrc"}, want: []string{".envrc"}},
		{name: "a repository", files: []string{".git/HEAD", ".git/objects/ab/cd"}, want: []string{".git"}},
		{name: "a link", link: "mine", want: []string{"mine"}},
		{name: "charts and images", files: []string{"charts/my.tgz", "images/my.qcow2"}, want: []string{"charts/my.tgz", "images/my.qcow2"}},
		{name: "a directory in the lab's", files: []string{"disks/node-0/sub/a.img", "kube/etcd.old/a"}, want: []string{"disks/node-0/sub", "kube/etcd.old"}},
		{name: "a name like the lab's", files: []string{"my.log", "crash.txt", "disks/a.img", "settings.json.old", "notes.part"}, want: []string{"crash.txt", "disks/a.img", "my.log", "notes.part", "settings.json.old"}},
		{name: "a directory with the name of a file", files: []string{"crash-mine.txt/a"}, want: []string{"crash-mine.txt"}},
		{name: "several", files: []string{"b", "a/b"}, link: "c", want: []string{"a", "b", "c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := makeLab(t)
			for _, name := range tt.files {
				put(t, filepath.Join(dir, name))
			}
			want := slices.Clone(tt.files)
			if tt.link != "" {
				must(t, os.Symlink(elsewhere, filepath.Join(dir, tt.link)))
				want = append(want, tt.link)
			}
			slices.Sort(want)
			names, err := owned.Foreign(dir)
			if diff := cmp.Diff(tt.want, names); err != nil || diff != "" {
				t.Errorf("Foreign() error %v (-want +got):\n%s", err, diff)
			}
			left, err := owned.Remove(dir, "settings.json", "state.db")
			for i, name := range names {
				names[i] = filepath.Join(dir, name)
			}
			if diff := cmp.Diff(Leftovers{Foreign: names}, left); err != nil || diff != "" {
				t.Errorf("Remove() error %v (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff(want, namesIn(t, dir)); diff != "" {
				t.Errorf("the directory after Remove() (-want +got):\n%s", diff)
			}
			for _, name := range tt.files {
				if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != "content" {
					t.Errorf("%s = %q, %v after Remove()", name, b, err)
				}
			}
			if got := namesIn(t, elsewhere); !slices.Equal(got, []string{"precious"}) {
				t.Errorf("the directory that the link leads to has %q after Remove()", got)
			}
		})
	}
}

// A user may have moved a directory of the lab to a larger disk, and left a link. The link is
// removed, what it leads to is not, and Remove says where that is.
func TestRemoveFollowsNoLinks(t *testing.T) {
	for _, name := range []string{"disks", "disks/node-0", "kube/etcd", "kube", "lab.log", "charts"} {
		t.Run(name, func(t *testing.T) {
			dir, elsewhere := makeLab(t), t.TempDir()
			at := filepath.Join(dir, name)
			must(t, os.RemoveAll(at))
			for _, f := range []string{"node-0/a.img", "a.img", "lock", "member/a", "a.tgz"} {
				put(t, filepath.Join(elsewhere, f))
			}
			before := namesIn(t, elsewhere)
			must(t, os.Symlink(elsewhere, at))
			var want Leftovers
			if name != "lab.log" {
				want.Targets = []string{elsewhere}
			}
			left, err := owned.Remove(dir)
			if diff := cmp.Diff(want, left); err != nil || diff != "" {
				t.Errorf("Remove() error %v (-want +got):\n%s", err, diff)
			}
			if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the directory has %q after Remove()", namesIn(t, dir))
			}
			if diff := cmp.Diff(before, namesIn(t, elsewhere)); diff != "" {
				t.Errorf("what the link leads to, after Remove() (-want +got):\n%s", diff)
			}
		})
	}
}

// A relative link leads somewhere from its own directory.
func TestRemoveNamesTheTargetOfARelativeLink(t *testing.T) {
	dir := makeLab(t)
	put(t, filepath.Join(dir, "..", "large", "a"))
	must(t, os.RemoveAll(filepath.Join(dir, "kube", "etcd")))
	must(t, os.Symlink("../../large", filepath.Join(dir, "kube", "etcd")))
	want := Leftovers{Targets: []string{filepath.Join(filepath.Dir(dir), "large")}}
	left, err := owned.Remove(dir)
	if diff := cmp.Diff(want, left); err != nil || diff != "" {
		t.Errorf("Remove() error %v (-want +got):\n%s", err, diff)
	}
}

func TestRemoveOfADirectoryThatIsALinkEmptiesItsTarget(t *testing.T) {
	dir := makeLab(t)
	put(t, filepath.Join(dir, "notes.txt"))
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	left, err := owned.Remove(link)
	if !slices.Equal(left.Foreign, []string{filepath.Join(link, "notes.txt")}) || !errors.Is(left.Dir, ErrLink) || err != nil {
		t.Errorf("Remove() = %+v, %v, want the note and %v", left, err, ErrLink)
	}
	if got := namesIn(t, dir); !slices.Equal(got, []string{"notes.txt"}) {
		t.Errorf("the directory has %q after Remove()", got)
	}
	if to, err := os.Readlink(link); err != nil || to != dir {
		t.Errorf("the link leads to %q, %v after Remove()", to, err)
	}
}

// A directory from which not everything could be removed is still a lab's.
func TestRemoveThatFailsLeavesTheLastNames(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write in any directory")
	}
	dir := makeLab(t)
	locked := filepath.Join(dir, "kube", "etcd", "member", "wal")
	must(t, os.Chmod(locked, 0o500))
	t.Cleanup(func() { must(t, os.Chmod(locked, 0o700)) })
	last := []string{"control.sock", "state.db"} // the first and the last in the order of names
	if _, err := owned.Remove(dir, last...); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Remove() = %v, want %v", err, fs.ErrPermission)
	}
	for _, name := range last {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("after Remove(): %v", err)
		}
	}
}

func TestForeignOfADirectoryWithoutALab(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Join(dir, "none")} {
		if names, err := owned.Foreign(d); err != nil || len(names) > 0 {
			t.Errorf("Foreign(%s) = %q, %v, want none", d, names, err)
		}
	}
	put(t, filepath.Join(dir, "file"))
	if _, err := owned.Foreign(filepath.Join(dir, "file")); err == nil {
		t.Error("Foreign() of a file = nil error")
	}
}

func TestBelow(t *testing.T) {
	all := owned.Below("shards/shard-*")
	for name, want := range map[string]kind{
		"shards": parent, "shards/shard-3": parent, "shards/shard-3/state.db": file, "shards/shard-3/kube/etcd": tree, "shards/token": foreign, "state.db": foreign,
	} {
		if got := all.of(name, want == parent); got != want {
			t.Errorf("of(%q) = %d, want %d", name, got, want)
		}
	}
}
