package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// A link of a root file system leads to no file of this machine, whoever looks a name up.
func TestLinksOfARootFileSystemStayInIt(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "file"), nil, 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "inside"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "inside/file"), nil, 0o600))
	must(t, os.Symlink(outside, filepath.Join(dir, "absolute")))
	must(t, os.Symlink("../"+filepath.Base(outside), filepath.Join(dir, "relative")))
	must(t, os.Symlink("inside", filepath.Join(dir, "link")))
	m, err := (&Root{Dir: dir}).machine()
	must(t, err)
	for name, want := range map[string]bool{"absolute": true, "absolute/file": false, "relative/file": false, "link/file": true, "inside/file": true, "../" + filepath.Base(outside) + "/file": false} {
		if _, ok := m.node(name); ok != want {
			t.Errorf("%s is there: %v", name, ok)
		}
	}
}
