package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mount makes the root, and makes it the root of this process. Nothing else of the
// machine can be reached then.
func (p *first) mount() error {
	inRoot := func(name string) string { return filepath.Join(p.setup.Dir, rootDir, name) }
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of a namespace: %w", err)
	}
	lowers := []string{filepath.Join(p.setup.Dir, ownDir), p.setup.Base}
	if p.setup.Root != "" {
		lowers = []string{filepath.Join(p.setup.Dir, ownDir), p.setup.Programs, p.setup.Base, p.setup.Root}
	}
	for i, dir := range lowers {
		lowers[i] = escape(dir)
	}
	if err := p.overlay("", strings.Join(lowers, ":")); err != nil {
		return err
	}
	for _, d := range p.setup.Machine {
		lower := "/" + d
		if d == "usr" {
			lower = escape(filepath.Join(p.setup.Programs, d)) + ":" + lower
		}
		if image := filepath.Join(p.setup.Base, d); hasEntries(image) { // an image's files in /usr
			lower = escape(image) + ":" + lower
		}
		if err := p.overlay(d, lower); err != nil {
			return err
		}
	}
	if err := bind(p.setup.Program, inRoot(programFile), unix.MS_RDONLY); err != nil {
		return err
	}
	for _, d := range []string{"run", "tmp"} { // nosuid, as the overlays are: see special_linux.go
		if err := bind(filepath.Join(p.setup.Dir, d), inRoot(d), unix.MS_NODEV|unix.MS_NOSUID); err != nil {
			return err
		}
	}
	if err := p.mountProc(inRoot("proc")); err != nil {
		return err
	}
	if err := p.mountSys(inRoot("sys")); err != nil {
		return err
	}
	if err := mountDev(inRoot("dev")); err != nil {
		return err
	}
	old := inRoot("mnt")
	if err := unix.PivotRoot(inRoot(""), old); err != nil {
		return fmt.Errorf("root of the system: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Unmount("/mnt", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the machine's root: %w", err)
	}
	return nil
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func hasEntries(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

// overlay mounts an overlay over a directory of the root.
func (p *first) overlay(name, lower string) error {
	suffix := ""
	if name != "" {
		suffix = "-" + name
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr", lower, escape(filepath.Join(p.setup.Dir, upperDir+suffix)), escape(filepath.Join(p.setup.Dir, workDir+suffix)))
	if err := unix.Mount("overlay", filepath.Join(p.setup.Dir, rootDir, name), "overlay", unix.MS_NODEV|unix.MS_NOSUID, options); err != nil {
		return fmt.Errorf("overlay of /%s: %w", name, err)
	}
	return nil
}

func bind(from, to string, flags uintptr) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", from, err)
	}
	if flags == 0 {
		return nil
	}
	// What the original was mounted with must stay (mount_namespaces(7), "locked").
	var st unix.Statfs_t
	if err := unix.Statfs(to, &st); err != nil {
		return fmt.Errorf("bind %s: %w", from, err)
	}
	locked := uintptr(st.Flags) & (unix.MS_NODEV | unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
	if uintptr(st.Flags)&unix.ST_RELATIME != 0 {
		locked |= unix.MS_RELATIME
	}
	if err := unix.Mount("", to, "", unix.MS_REMOUNT|unix.MS_BIND|flags|locked, ""); err != nil {
		return fmt.Errorf("bind %s read-only: %w", from, err)
	}
	return nil
}

func tmpfs(at string, flags uintptr, options string) error {
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|flags, options); err != nil {
		return fmt.Errorf("tmpfs of %s: %w", filepath.Base(at), err)
	}
	return nil
}

// hiddenProc are files of /proc that reach this machine or disclose its state.
var hiddenProc = []string{"kcore", "keys", "latency_stats", "timer_list", "sched_debug", "swaps", "sysrq-trigger", "kallsyms", "kmsg"}

// hiddenProcDirs are directories of that kind.
var hiddenProcDirs = []string{"acpi", "asound", "bus", "driver", "fs", "irq", "scsi"}

// mountProc mounts /proc.
func (p *first) mountProc(proc string) error {
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("proc: %w", err)
	}
	// Another user namespace would give back the capabilities that commands lack.
	if err := os.WriteFile(filepath.Join(proc, "sys/user/max_user_namespaces"), []byte("0"), 0); err != nil {
		return fmt.Errorf("user namespaces: %w", err)
	}
	if err := bind(filepath.Join(p.setup.Dir, uptimeFile), filepath.Join(proc, "uptime"), unix.MS_RDONLY); err != nil {
		return err
	}
	if name := filepath.Join(p.setup.Dir, cmdlineName); fileExists(name) {
		if err := bind(name, filepath.Join(proc, "cmdline"), unix.MS_RDONLY); err != nil {
			return err
		}
	}
	if at := filepath.Join(proc, "modules"); fileExists(at) { // else the machine's kernel has none
		if err := bind(filepath.Join(p.setup.Dir, modulesName), at, unix.MS_RDONLY); err != nil {
			return err
		}
	}
	for _, name := range hiddenProc {
		if err := bind("/dev/null", filepath.Join(proc, name), unix.MS_RDONLY); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range hiddenProcDirs {
		if _, err := os.Stat(filepath.Join(proc, name)); err != nil {
			continue
		}
		if err := tmpfs(filepath.Join(proc, name), unix.MS_RDONLY, "mode=555,size=4k"); err != nil {
			return err
		}
	}
	area := filepath.Join(p.setup.Dir, privateDir)
	if err := tmpfs(area, 0, fmt.Sprintf("mode=700,size=%d,nr_inodes=64k", maxSysctls+maxHardware)); err != nil {
		return err
	}
	if err := p.mountHardwareProc(proc, area); err != nil {
		return err
	}
	return p.mountSysctl(filepath.Join(proc, "sys"), area)
}

// devices are the device files of a container (OCI Runtime Specification, "Default
// Devices").
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// deviceLinks are the links in /dev (OCI Runtime Specification, "Default Devices").
var deviceLinks = map[string]string{
	"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
}

func mountDev(dir string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("dev: %w", err)
	}
	for _, d := range devices {
		to := filepath.Join(dir, d)
		if err := os.WriteFile(to, nil, 0o666); err != nil {
			return err
		}
		// The node is this machine's: read only, its mode, owner and times cannot be changed. A
		// device takes writes all the same.
		if err := bind("/dev/"+d, to, unix.MS_RDONLY); err != nil {
			return err
		}
	}
	for name, target := range deviceLinks {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for _, d := range []string{"pts", "shm"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", filepath.Join(dir, "pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return fmt.Errorf("devpts: %w", err)
	}
	return tmpfs(filepath.Join(dir, "shm"), 0, "mode=1777,size=16m")
}

// escape escapes a path in the options of an overlay (Linux, overlayfs.rst, "Multiple
// lower layers").
func escape(name string) string {
	return strings.NewReplacer(`\`, `\\`, `:`, `\:`, `,`, `\,`).Replace(name)
}
