package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// This file lays out the directories that the mounts of a session consist of.

// realMachineDirs are the directories of this machine that a root shows. On a machine with a
// merged /usr, /bin and the like are links, and the base has these.
func realMachineDirs() (out []string) {
	for _, d := range machineDirs {
		if st, err := os.Lstat("/" + d); err == nil && st.IsDir() {
			out = append(out, d)
		}
	}
	return out
}

// makeDirs makes the directories that the mounts consist of, with the base and the layer
// in them.
func (r *session) makeDirs(s *System, layer Tree) error {
	// A program that commands make set-user-ID is one of this machine, too: no other user of it
	// reaches the directory.
	if err := errors.Join(os.MkdirAll(filepath.Dir(r.dir), 0o700), os.Mkdir(r.dir, 0o700)); err != nil {
		return err
	}
	lowers, err := s.c.Lowers, error(nil)
	if r.base, err = r.lower(lowers.base(s.base, s.root)); err != nil {
		return err
	}
	if r.programs, err = r.lower(lowers.programs(s.c.Programs, s.root)); err != nil {
		return err
	}
	if err := r.setUptime(s.now().Sub(s.c.Boot.Time)); err != nil {
		return err
	}
	if err := r.showModules(s.kernel.ProcModules()); err != nil {
		return err
	}
	own, err := s.ownFiles()
	if err != nil {
		return err
	}
	if err := own.write(func(name string) string { return filepath.Join(r.dir, ownDir, name) }); err != nil {
		return err
	}
	if n, ok := s.own[cmdlineFile]; ok {
		if err := os.WriteFile(filepath.Join(r.dir, cmdlineName), n.Content, 0o444); err != nil {
			return err
		}
	}
	dirs := []string{rootDir, ownDir, privateDir, "run", "tmp", filepath.Join(upperDir, "."), filepath.Join(workDir, ".")}
	for _, d := range r.machine {
		dirs = append(dirs, upperDir+"-"+d, workDir+"-"+d)
	}
	for _, d := range dirs {
		if err := os.MkdirAll(filepath.Join(r.dir, d), 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(filepath.Join(r.dir, "tmp"), 0o777|fs.ModeSticky); err != nil {
		return err
	}
	r.sysctls = lowers.sysctls()
	return layer.write(r.place)
}

// lower keeps the use of a lower layer until the session ends.
func (r *session) lower(dir string, done func() error, err error) (string, error) {
	if err == nil {
		r.lowers = append(r.lowers, done)
	}
	return dir, err
}

// leaveLowers ends the use of lower layers.
func (r *session) leaveLowers() (err error) {
	for _, done := range r.lowers {
		err = errors.Join(err, done())
	}
	r.lowers = nil
	return err
}

// ownFiles returns the files of this system alone, with the directories above them, which have the
// attributes of those that they cover.
func (s *System) ownFiles() (Tree, error) {
	m, err := s.bottom()
	out, v := Tree{}, view{Tree{}, s.lower, m}
	for name, n := range s.own {
		if name == cmdlineFile {
			continue
		}
		out[name] = n
	}
	out.addParents(v)
	return out, err
}

// setUptime writes what /proc/uptime shows: seconds since the boot, and seconds that the
// processors were idle (proc_uptime(5)).
func (r *session) setUptime(d time.Duration) error {
	text := fmt.Sprintf("%.2f %.2f\n", d.Seconds(), d.Seconds())
	return os.WriteFile(filepath.Join(r.dir, uptimeFile), []byte(text), 0o644)
}

// showModules writes what /proc/modules shows.
func (r *session) showModules(text string) error {
	return os.WriteFile(filepath.Join(r.dir, modulesName), []byte(text), 0o644)
}

// place returns where a file of the layer lies.
func (r *session) place(name string) string {
	first, rest := split(name)
	switch {
	case volatile(name):
		return filepath.Join(r.dir, name)
	case slices.Contains(r.machine, first):
		return filepath.Join(r.dir, upperDir+"-"+first, rest)
	}
	return filepath.Join(r.dir, upperDir, name)
}

// size returns how many bytes the files have that differ from the base, with a block for
// each.
func (r *session) size() (sum int64, err error) {
	for _, dir := range r.places() {
		err := walk(filepath.Join(r.dir, dir), func(_ *os.File, _, _ string, st *unix.Stat_t) error {
			sum += block
			if st.Mode&unix.S_IFMT == unix.S_IFREG { // a directory's size is this machine's
				sum += st.Size
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return sum, nil
}

// sizeOf returns the bytes that a file of the layer counts; 0 for one that the layer lacks.
func (r *session) sizeOf(name string) int64 {
	st, err := os.Lstat(r.place(name))
	switch {
	case err != nil:
		return 0
	case !st.Mode().IsRegular():
		return block
	}
	return st.Size() + block
}

// places returns the directories with files that differ from the base, by where they are
// in the root.
func (r *session) places() map[string]string {
	out := map[string]string{"": upperDir, "run": "run", "tmp": "tmp"}
	for _, d := range r.machine {
		out[d] = upperDir + "-" + d
	}
	return out
}

// layer reads the files that differ from the base.
func (r *session) layer() (Tree, error) {
	out := Tree{}
	for at, dir := range r.places() {
		if err := out.read(at, filepath.Join(r.dir, dir)); err != nil {
			return nil, err
		}
	}
	delete(out, "run/systemd/system") // the first process has made it, and the socket is of no layer
	delete(out, "run/systemd")
	return out, nil
}
