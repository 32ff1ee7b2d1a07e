package rack_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// checkPrivate checks that only this user can read a directory and its files, except the
// certificate of the rack's authority, which clients need, and returns the files.
func checkPrivate(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err != nil || e.Type()&fs.ModeSymlink != 0 {
			return err
		}
		if st.Mode().Perm()&0o077 != 0 && (e.Name() != network.CACertFile || st.Mode().Perm() != 0o644) {
			t.Errorf("%s has mode %v: others can use it", path, st.Mode().Perm())
		}
		names = append(names, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A lab's directory and its snapshots hold secrets in clear: passwords, keys, the URLs of
// media with their tokens. No other user can read them.
func TestFilesOfALabArePrivate(t *testing.T) {
	root := t.TempDir()
	images, _, _ := racktest.ServeImages(t)
	dir := filepath.Join(root, "lab")
	l := racktest.Start(t, rack.Config{Dir: dir})
	h := l.First()
	const secret = "t0ken-of-a-medium"
	if _, err := h.ApplyBMC(t.Context(), bmc.InsertMedia{Slot: h.BMC().Slots[0].ID, Image: images + "/a.iso?token=" + secret}); err != nil {
		t.Fatal(err)
	}
	power(t, h, machine.ResetOn)
	mark(t, h, "Disk.0", "bytes")
	tar, copied := filepath.Join(root, "saved.tar"), filepath.Join(root, "saved")
	for _, to := range []string{tar, copied} {
		if _, err := l.SaveSnapshot(t.Context(), to, nil); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := os.Stat(tar); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%s has mode %v, %v, want 0600", tar, st.Mode(), err)
	}
	files := checkPrivate(t, dir)
	readable := 0
	for _, name := range files { // else there would be nothing to protect, and the documentation wrong
		if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() || st.Size() > 64<<20 { // disks are sparse
			continue
		}
		if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), secret) {
			readable++
		}
	}
	if readable == 0 {
		t.Errorf("no file of %d has the token of the medium", len(files))
	}
	checkPrivate(t, copied)
	l.Stop()
	for _, from := range []string{tar, copied} {
		to := filepath.Join(root, "restored from "+filepath.Base(from))
		if _, err := rack.RestoreSnapshot(t.Context(), to, from, nil); err != nil {
			t.Fatal(err)
		}
		if n := len(checkPrivate(t, to)); n < 4 {
			t.Errorf("%d files were restored", n)
		}
	}
}
