package sandbox

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/sys"
)

// Files of a system's own lie over the base, which others share, and over the image that was
// deployed. Its user may replace and remove them.
func TestOwnFilesLieOverTheBaseAndBelowTheLayer(t *testing.T) {
	base := Tree{"etc/machine-id": File(0o444, ""), "etc/hosts": File(0o644, "base\n")}
	var stores [2]diskOf
	own := func(i int) Tree {
		return Tree{"etc/machine-id": File(0o444, []string{"one\n", "two\n"}[i]), "etc/own/only": File(0o644, "o")}
	}
	boot := func(i int, id string) *System {
		return New(Config{Base: base, Own: own(i), Store: &stores[i], Boot: sys.Boot{ID: id}})
	}
	one, two := boot(0, "1"), boot(1, "1")
	names := []string{"etc/machine-id", "etc/hosts", "etc/own/only"}
	check := func(s *System, want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, contents(t, s, names...)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
	check(one, map[string]string{"etc/machine-id": "one\n", "etc/hosts": "base\n", "etc/own/only": "o"})
	check(two, map[string]string{"etc/machine-id": "two\n", "etc/hosts": "base\n", "etc/own/only": "o"})
	if stores[0].b != nil {
		t.Error("files of its own are stored before something is written")
	}
	entries, err := one.ReadDir("etc")
	var listed []string
	for _, e := range entries {
		listed = append(listed, e.Name)
	}
	if want := []string{"hosts", "machine-id", "own"}; err != nil || !slices.Equal(listed, want) {
		t.Errorf("ReadDir(etc) = %q, %v, want %q", listed, err, want)
	}
	must(t, one.Put(Tree{"etc/machine-id": File(0o444, "replaced\n")}))
	must(t, one.Remove("etc/own"))
	check(one, map[string]string{"etc/machine-id": "replaced\n", "etc/hosts": "base\n", "etc/own/only": "-"})
	changes, err := one.Changes()
	if diff := cmp.Diff([]Change{{"etc/machine-id", "changed"}, {"etc/own", "removed"}}, changes); diff != "" || err != nil {
		t.Errorf("Changes (-want +got): %v\n%s", err, diff)
	}
	if _, err := one.Stat("etc/own"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that was removed: %v", err)
	}

	must(t, two.Stage(Deployment{Image: "r/i@sha256:1"}, Tree{"etc/machine-id": File(0o444, "of the image\n")}, nil))
	check(boot(1, "2"), map[string]string{"etc/machine-id": "two\n", "etc/hosts": "-", "etc/own/only": "o"})
}

// TestSortedTreeIsThePlainOne compares a tree with sorted names with the plain way.
func TestSortedTreeIsThePlainOne(t *testing.T) {
	plain := Tree{}
	for _, name := range []string{"a", "a/b", "a/b/c", "a-/x", "a.b/c", "a/b.c", "a/b-/d", "aa", "b/only/below", "z"} {
		plain[name] = File(0o644, name)
	}
	fast := sortedNames(plain)
	for _, dir := range []string{".", "a", "a/b", "a-", "a.b", "a/b-", "aa", "b", "b/only", "b/on", "z", "none", ""} {
		want, got := slices.Sorted(plain.below(dir)), slices.Collect(fast.below(dir))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("below(%q) (-plain +sorted):\n%s", dir, diff)
		}
		for name := range fast.below(dir) { // it may end early
			_ = name
			break
		}
	}
	if again := sortedNames(plain); &again.names[0] != &fast.names[0] {
		t.Error("a tree is sorted again for the next system")
	}
	other := Tree{"x": File(0o644, "")}
	for range 20 {
		sortedNames(Tree{"y": File(0o644, "")})
	}
	if got := sortedNames(other).names; !slices.Equal(got, []string{"x"}) || len(sortedTrees.last) > 8 {
		t.Errorf("names %q, of %d trees", got, len(sortedTrees.last))
	}
}
