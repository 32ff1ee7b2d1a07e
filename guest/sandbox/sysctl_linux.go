package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// This file has /proc/sys. Several of its values are the machine's, not a namespace's: the root has
// a private copy, an overlay over files that all systems share.

// Bounds of the values under /proc/sys: of one, and of all that commands have changed.
const (
	maxSysctl  = 64 << 10
	maxSysctls = 16 << 20
)

// randomUUID has another value each time that it is read (random(4)): the kernel's own is shown.
const randomUUID = "kernel/random/uuid"

// mountSysctl covers the kernel's /proc/sys. The area is a directory that no command sees.
func (p *first) mountSysctl(dir, area string) error {
	lower := p.setup.Sysctls
	if !fileExists(lower) {
		if err := copySysctl(dir, lower); err != nil {
			return fmt.Errorf("/proc/sys: %w", err)
		}
	}
	random, err := unix.Open(filepath.Join(dir, randomUUID), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/proc/sys/%s: %w", randomUUID, err)
	}
	defer unix.Close(random)
	upper, work := filepath.Join(area, upperDir), filepath.Join(area, workDir)
	if err := errors.Join(os.Mkdir(upper, 0o555), os.Mkdir(work, 0o755)); err != nil {
		return err
	}
	p.sysctl = map[string]string{"kernel/hostname": p.setup.Hostname + "\n"}
	if p.setup.BootID != "" {
		p.sysctl["kernel/random/boot_id"] = p.setup.BootID + "\n"
	}
	values := maps.Clone(p.sysctl)
	maps.Copy(values, p.setup.Sysctl)
	if err := writeSysctls(upper, values); err != nil {
		return err
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr", escape(lower), escape(upper), escape(work))
	if err := unix.Mount("overlay", dir, "overlay", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options); err != nil {
		return fmt.Errorf("overlay of /proc/sys: %w", err)
	}
	if err := bind(fmt.Sprintf("/proc/self/fd/%d", random), filepath.Join(dir, randomUUID), unix.MS_RDONLY); err != nil {
		return err
	}
	p.sysctls, err = os.Open(upper)
	return err
}

// copySysctl writes the values of a new namespace to a directory, which other systems may be
// writing, too.
func copySysctl(from, to string) error {
	dir, err := os.MkdirTemp(filepath.Dir(to), "sysctl-*")
	if err != nil {
		return err
	}
	values := map[string]string{}
	_ = filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // an unreadable value is not shown
		}
		if b, err := os.ReadFile(name); err == nil {
			values[strings.TrimPrefix(name, from+"/")] = string(b)
		}
		return nil
	})
	if err := writeSysctls(dir, values); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // an ordinary user removes it again
		return err
	}
	if err := os.Rename(dir, to); errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTEMPTY) {
		return os.RemoveAll(dir) // another was first
	} else if err != nil {
		return err
	}
	return nil
}

func writeSysctls(dir string, values map[string]string) error {
	for name, value := range values {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// reportSysctl reports which values commands have changed. A command may have put anything below
// /proc/sys: what is no regular file or exceeds a bound is not kept.
func (p *first) reportSysctl() {
	top, _, err := openIn(p.sysctls, ".", unix.O_DIRECTORY)
	if err != nil {
		return // there are no more descriptors: the next command reports
	}
	defer top.Close()
	found, size := map[string]string{}, 0
	_ = walkIn(top, "", maxDepth, func(in *os.File, name, below string, st *unix.Stat_t) error {
		if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxSysctl {
			return nil
		}
		f, restore, err := openIn(in, name, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		defer restore()
		b, err := readBounded(f, name, maxSysctl)
		if err != nil {
			return nil
		}
		if size += len(below) + len(b); size > maxSysctls {
			return fs.SkipAll
		}
		if p.sysctl[below] != string(b) {
			found[below] = string(b)
		}
		return nil
	})
	if len(found) > 0 {
		_ = p.send(response{Sysctl: found}) // else the system has ended
	}
}
