package sys

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Host is the Linux system that this process runs on, as an agent configures it: files,
// commands and reboots. Below a scratch root its files are those of a directory, and no
// link leads out of it; its commands run in this machine's system, with working directories
// below the root, so that the agent can be tried without a change of the machine. It is
// safe for concurrent use.
type Host struct {
	root  string // "/", or an absolute path
	files fileSystem
}

// fileSystem has the methods of os.Root that Host uses. Names are relative to the root.
type fileSystem interface {
	ReadFile(name string) ([]byte, error)
	Open(name string) (*os.File, error)
	OpenFile(name string, flag int, mode fs.FileMode) (*os.File, error)
	MkdirAll(name string, mode fs.FileMode) error
	Lstat(name string) (fs.FileInfo, error)
	Stat(name string) (fs.FileInfo, error)
	Rename(from, to string) error
	Remove(name string) error
	RemoveAll(name string) error
	Symlink(to, name string) error
	Readlink(name string) (string, error)
	Chmod(name string, mode fs.FileMode) error
}

// OpenHost returns this machine's system; root is "/", or the directory of a scratch root,
// which must exist.
func OpenHost(root string) (*Host, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("sys: %w", err)
	}
	if root == "/" {
		return &Host{root, machineFiles{}}, nil
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("sys: %w", err)
	}
	return &Host{root, r}, nil
}

// machineFiles are all files of the machine. An os.Root of / refuses absolute links, such
// as /var/run.
type machineFiles struct{}

func (machineFiles) ReadFile(name string) ([]byte, error) { return os.ReadFile("/" + name) }
func (machineFiles) Open(name string) (*os.File, error)   { return os.Open("/" + name) }
func (machineFiles) OpenFile(name string, flag int, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile("/"+name, flag, mode)
}
func (machineFiles) MkdirAll(name string, mode fs.FileMode) error { return os.MkdirAll("/"+name, mode) }
func (machineFiles) Lstat(name string) (fs.FileInfo, error)       { return os.Lstat("/" + name) }
func (machineFiles) Stat(name string) (fs.FileInfo, error)        { return os.Stat("/" + name) }
func (machineFiles) Rename(from, to string) error                 { return os.Rename("/"+from, "/"+to) }
func (machineFiles) Remove(name string) error                     { return os.Remove("/" + name) }
func (machineFiles) RemoveAll(name string) error                  { return os.RemoveAll("/" + name) }
func (machineFiles) Symlink(to, name string) error                { return os.Symlink(to, "/"+name) }
func (machineFiles) Readlink(name string) (string, error)         { return os.Readlink("/" + name) }
func (machineFiles) Chmod(name string, mode fs.FileMode) error    { return os.Chmod("/"+name, mode) }

// relative returns an absolute path relative to the root.
func relative(name string) (string, error) {
	if !path.IsAbs(name) || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("sys: %q: give an absolute path", name)
	}
	if name = path.Clean(name)[1:]; name == "" {
		name = "."
	}
	return name, nil
}

// Path returns the path by which commands see a file.
func (h *Host) Path(name string) string { return filepath.Join(h.root, name) }

// ReadFile returns the content of a file, following links.
func (h *Host) ReadFile(name string) ([]byte, error) {
	at, err := relative(name)
	if err != nil {
		return nil, err
	}
	return h.files.ReadFile(at)
}

// Readlink returns the target of a symbolic link.
func (h *Host) Readlink(name string) (string, error) {
	at, err := relative(name)
	if err != nil {
		return "", err
	}
	return h.files.Readlink(at)
}

// ReadDir returns the names in a directory, sorted.
func (h *Host) ReadDir(name string) ([]string, error) {
	at, err := relative(name)
	if err != nil {
		return nil, err
	}
	d, err := h.files.Open(at)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, d.Close())
}

// Put writes files one after the other, and creates the directories above them. A file
// replaces one of its name at once: a reader sees the old or the new content, and a failure
// leaves the old one.
func (h *Host) Put(files ...File) error {
	for _, f := range files {
		at, err := relative(f.Name)
		if err == nil {
			err = h.put(at, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) put(name string, f File) error {
	if dir := path.Dir(name); dir != "." {
		if err := h.files.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if f.Mode.IsDir() {
		if err := h.files.MkdirAll(name, f.Mode.Perm()); err != nil {
			return err
		}
		return h.files.Chmod(name, f.Mode.Perm())
	}
	if old, err := h.files.Lstat(name); err == nil && old.IsDir() {
		return &fs.PathError{Op: "open", Path: f.Name, Err: syscall.EISDIR}
	}
	temporary := path.Join(path.Dir(name), "."+path.Base(name)+".lab-agent-"+strings.ToLower(rand.Text()[:8]))
	err := h.write(temporary, f)
	if err == nil {
		err = h.files.Rename(temporary, name)
	}
	if err != nil {
		_ = h.files.Remove(temporary) // it may not be there
	}
	return err
}

// write creates a file or link.
func (h *Host) write(name string, f File) (err error) {
	if f.Mode&fs.ModeSymlink != 0 {
		return h.files.Symlink(f.Link, name)
	}
	file, err := h.files.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(f.Content); err != nil {
		return err
	}
	if f.UID != 0 || f.GID != 0 {
		if err := file.Chown(f.UID, f.GID); err != nil {
			return err
		}
	}
	return file.Chmod(modeBits(f.Mode)) // regardless of the umask
}

// modeBits returns the permission bits of a mode with the special ones.
func modeBits(m fs.FileMode) fs.FileMode {
	return m.Perm() | m&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)
}

// Stat describes a file, following links.
func (h *Host) Stat(name string) (FileInfo, error) {
	at, err := relative(name)
	if err != nil {
		return FileInfo{}, err
	}
	st, err := h.files.Stat(at)
	if err != nil {
		return FileInfo{}, err
	}
	out := FileInfo{Mode: st.Mode()}
	if owner, ok := st.Sys().(*syscall.Stat_t); ok {
		out.UID, out.GID = int(owner.Uid), int(owner.Gid)
	}
	return out, nil
}

// Remove removes files, and directories recursively. One that is not there is no
// error.
func (h *Host) Remove(names ...string) error {
	var errs []error
	for _, name := range names {
		at, err := relative(name)
		if err == nil && at == "." {
			err = fmt.Errorf("sys: %q: the root cannot be removed", name)
		}
		if err == nil {
			err = h.files.RemoveAll(at)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Boot returns the present boot of the machine.
func (*Host) Boot() (Boot, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Boot{}, fmt.Errorf("sys: %w", err)
	}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Boot{}, fmt.Errorf("sys: %w", err)
	}
	b := Boot{ID: strings.TrimSpace(string(id))}
	for line := range strings.Lines(string(stat)) { // proc_stat(5): seconds since 1970
		if text, ok := strings.CutPrefix(line, "btime "); ok {
			seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			if err != nil {
				return Boot{}, fmt.Errorf("sys: /proc/stat: btime: %w", err)
			}
			b.Time = time.Unix(seconds, 0).UTC()
		}
	}
	return b, nil
}

// Reboot asks the init system to reboot the machine, which ends this process soon after.
func (h *Host) Reboot(ctx context.Context) error { return h.leave(ctx, "reboot", "rebooted") }

// PowerOff asks the init system to switch the machine off, which ends this process soon after.
func (h *Host) PowerOff(ctx context.Context) error { return h.leave(ctx, "poweroff", "switched off") }

func (h *Host) leave(ctx context.Context, verb, done string) error {
	if h.root != "/" {
		return fmt.Errorf("sys: %s is a scratch root: the machine is not %s", h.root, done)
	}
	var out strings.Builder
	code, err := h.Exec(ctx, Command{Args: []string{"systemctl", verb}, Stdout: io.Discard, Stderr: &out})
	if err == nil && code != 0 {
		err = fmt.Errorf("sys: systemctl %s ended with code %d: %s", verb, code, strings.TrimSpace(out.String()))
	}
	return err
}

// Addresses returns the addresses of the network interfaces, by the interface's name.
// Loopback and link-local addresses are left out.
func (h *Host) Addresses() (map[string][]netip.Addr, error) {
	names, err := os.ReadDir("/sys/class/net")
	if err != nil {
		return nil, fmt.Errorf("sys: %w", err)
	}
	out := map[string][]netip.Addr{}
	for _, n := range names {
		for _, text := range (Linux{}).Addresses(n.Name()) {
			if a, err := netip.ParseAddr(text); err == nil && a.IsGlobalUnicast() {
				out[n.Name()] = append(out[n.Name()], a.Unmap())
			}
		}
	}
	return out, nil
}
