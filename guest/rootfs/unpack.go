package rootfs

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Limits bound what Unpack writes. A field that is 0 has its default.
type Limits struct {
	Bytes int64 // of files, without holes; 16 GiB
	Files int64 // names; 2 million
}

const (
	defaultBytes = 16 << 30
	defaultFiles = 2_000_000
	deepest      = 128      // directories in each other; each takes a descriptor
	spare        = 64 << 20 // bytes that stay free
	diskBlock    = 4096     // bytes that files are charged in
	linkName     = 32       // bytes of memory for the names of files with several, for each file that there may be
	maxOwner     = 65536    // users and groups that a usual user namespace has
)

// LimitError means that a root file system has more than Unpack writes.
type LimitError struct {
	What  string
	Limit int64
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("rootfs: the root file system has more than %d %s", e.Limit, e.What)
}

// SpaceError means that a file system of this machine has no room. It is syscall.ENOSPC.
type SpaceError struct {
	Dir        string
	Free, Need int64 // bytes
}

// Error implements error.
func (e *SpaceError) Error() string {
	return fmt.Sprintf("no space left on the file system of %s to unpack an image's root: %d MB are free, %d MB are needed", e.Dir, e.Free>>20, e.Need>>20)
}

// Is makes errors.Is find syscall.ENOSPC.
func (*SpaceError) Is(target error) bool { return target == syscall.ENOSPC }

// Unpack writes a root file system into a directory, which it makes, as a lower layer of an
// overlay. If it fails, or ctx ends, the directory is gone again.
//
// What could act on this machine stays out of the tree: devices and sockets are left out,
// as are all extended attributes, so that no file is a whiteout, a redirect or privileged.
// Set-user-ID and set-group-ID bits and security.capability are in the manifest, as are
// owners where this process is not root or whose numbers are from 65536 on.
func Unpack(ctx context.Context, from *FileSystem, dir string, limits Limits) (*Root, error) {
	limits.Bytes, limits.Files = cmp.Or(limits.Bytes, defaultBytes), cmp.Or(limits.Files, defaultFiles)
	if err := requireSpace(filepath.Dir(dir), from.Used+spare); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("rootfs: %w", err)
	}
	w := &unpacking{
		ctx: ctx, from: from.Reader, limits: limits, root: os.Geteuid() == 0, dir: dir,
		links: map[uint64]linked{}, dirs: map[uint64]bool{},
	}
	root, err := w.into(dir, from)
	if err != nil {
		return nil, errors.Join(err, removeAll(dir))
	}
	return root, nil
}

// requireSpace returns a *SpaceError unless need bytes are free.
func requireSpace(dir string, need int64) error {
	n, err := freeSpace(dir)
	if err != nil || n >= need { // a file system that does not tell may have them
		return nil
	}
	return &SpaceError{Dir: dir, Free: n, Need: need}
}

// linked is the first name of a file that has several.
type linked struct {
	name  string
	given bool // it has its owner on the disk
}

// unpacking is one run of Unpack.
type unpacking struct {
	ctx      context.Context
	from     Reader
	limits   Limits
	root     bool // this process may give files away
	dir      string
	tree     int // the descriptor of the tree
	manifest *json.Encoder

	links       map[uint64]linked // files that have several names
	dirs        map[uint64]bool   // that were written
	files       int64
	data, bytes int64 // written; that files take
	linkNames   int64 // bytes in links
	looked      int64 // how much was written when the free space was looked at
}

func (w *unpacking) into(dir string, from *FileSystem) (*Root, error) {
	f, err := os.OpenFile(filepath.Join(dir, manifestName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("rootfs: %w", err)
	}
	defer f.Close()
	lines := bufio.NewWriter(f)
	w.manifest = json.NewEncoder(lines)
	in, err := w.from.Root()
	if err != nil {
		return nil, err
	}
	above, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("rootfs: %w", err)
	}
	defer above.Close()
	if err := w.directory(int(above.Fd()), treeName, "", in, 0); err != nil {
		return nil, err
	}
	if err := errors.Join(lines.Flush(), f.Close()); err != nil {
		return nil, fmt.Errorf("rootfs: %w", err)
	}
	b, err := json.Marshal(about{Architecture: from.Architecture, OSRelease: from.OSRelease, Files: w.files, Bytes: w.bytes})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, aboutName), b, 0o600); err != nil {
		return nil, fmt.Errorf("rootfs: %w", err)
	}
	return OpenRoot(dir)
}

// directory writes a directory and all below it. A name is made, never taken over: what is
// below it is in a directory of ours.
func (w *unpacking) directory(above int, base, name string, in Inode, depth int) error {
	if w.dirs[in.Number] {
		return fmt.Errorf("rootfs: the directory /%s is in the tree twice", name)
	}
	w.dirs[in.Number] = true
	if depth > deepest {
		return &LimitError{What: "directories in each other", Limit: deepest}
	}
	if err := unix.Mkdirat(above, base, 0o700); err != nil {
		return &os.PathError{Op: "mkdir", Path: name, Err: err}
	}
	fd, err := openat(above, base, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	if depth == 0 {
		w.tree = fd
	}
	err = w.from.List(in, func(e Entry) error {
		next, err := w.from.Inode(e)
		if err == nil {
			err = w.file(fd, e.Name, filepath.Join(name, e.Name), next, depth+1)
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = w.finish(above, base, name, in)
	return err
}

// file writes a file of any type.
func (w *unpacking) file(dir int, base, name string, in Inode, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return fmt.Errorf("rootfs: %w", err)
	}
	if w.files++; w.files > w.limits.Files {
		return &LimitError{What: "files", Limit: w.limits.Files}
	}
	if in.Mode.IsDir() {
		w.bytes += diskBlock
		return w.directory(dir, base, name, in, depth)
	}
	if first, ok := w.links[in.Number]; ok && in.Links > 1 {
		if err := unix.Linkat(w.tree, first.name, dir, base, 0); err != nil {
			return &os.PathError{Op: "link", Path: name, Err: err}
		}
		return w.describe(name, in, first.given)
	}
	var err error
	switch in.Mode.Type() {
	case 0:
		err = w.regular(dir, base, in)
	case fs.ModeSymlink:
		var to string
		if to, err = w.from.Link(in); err == nil {
			err = errors.Join(w.wrote(len(to)), unix.Symlinkat(to, dir, base))
		}
	case fs.ModeNamedPipe:
		if err = mkfifo(dir, base); errors.Is(err, errors.ErrUnsupported) {
			return nil
		}
	default: // a device or socket
		return nil
	}
	if err != nil {
		return fmt.Errorf("rootfs: /%s: %w", name, err)
	}
	given, err := w.finish(dir, base, name, in)
	if in.Links > 1 {
		if w.linkNames += int64(len(name)); w.linkNames > linkName*w.limits.Files {
			return &LimitError{What: "bytes in the names of hard links", Limit: linkName * w.limits.Files}
		}
		w.links[in.Number] = linked{name, given}
	}
	return err
}

// wrote counts bytes that were written.
func (w *unpacking) wrote(n int) error {
	if w.data += int64(n); w.data > w.limits.Bytes {
		return &LimitError{What: "bytes", Limit: w.limits.Bytes}
	}
	if w.data-w.looked > spare/2 { // not every file system knows how much it has
		w.looked = w.data
		return requireSpace(w.dir, spare)
	}
	return nil
}

func (w *unpacking) regular(dir int, base string, in Inode) error {
	fd, err := openat(dir, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), base)
	end := int64(0)
	err = w.from.Data(in, func(off int64, b []byte) error {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if err := w.wrote(len(b)); err != nil {
			return err
		}
		w.bytes += (int64(len(b)) + diskBlock - 1) / diskBlock * diskBlock
		end = off + int64(len(b))
		_, err := f.WriteAt(b, off)
		return err
	})
	if err == nil && end < in.Size {
		err = f.Truncate(in.Size)
	}
	return errors.Join(err, f.Close())
}

// finish gives a file its owner, mode and time, and describes it where those are others
// than the image's. It reports whether the owner is on the disk.
func (w *unpacking) finish(dir int, base, name string, in Inode) (bool, error) {
	given := in.UID == 0 && in.GID == 0
	if w.root && !given && in.UID < maxOwner && in.GID < maxOwner {
		err := unix.Fchownat(dir, base, in.UID, in.GID, unix.AT_SYMLINK_NOFOLLOW)
		// In a user namespace there are not all owners.
		if given = err == nil; err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EINVAL) {
			return false, &os.PathError{Op: "chown", Path: name, Err: err}
		}
	}
	if in.Mode&fs.ModeSymlink == 0 {
		mode := uint32(in.Mode.Perm())
		if in.Mode&fs.ModeSticky != 0 && in.Mode.IsDir() {
			mode |= unix.S_ISVTX
		}
		if err := unix.Fchmodat(dir, base, mode, 0); err != nil {
			return false, &os.PathError{Op: "chmod", Path: name, Err: err}
		}
	}
	at, err := unix.TimeToTimespec(in.Modified)
	if err == nil {
		err = unix.UtimesNanoAt(dir, base, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return false, &os.PathError{Op: "utimes", Path: name, Err: err}
	}
	return given, w.describe(name, in, given)
}

// describe adds a file to the manifest, unless the disk has all of it.
func (w *unpacking) describe(name string, in Inode, given bool) error {
	var capability []byte
	if in.Mode.IsRegular() {
		all, err := w.from.Attributes(in)
		if err != nil {
			return fmt.Errorf("rootfs: /%s: %w", name, err)
		}
		capability = capabilityOf(all)
	}
	if given && capability == nil && in.Mode&(fs.ModeSetuid|fs.ModeSetgid) == 0 {
		return nil
	}
	if err := w.wrote(len(name)); err != nil { // it may be in thousands of lines
		return err
	}
	return w.manifest.Encode(line(name, in, capability))
}

// maxCapability is sizeof(struct vfs_ns_cap_data) of linux/capability.h: to the kernel a longer
// attribute is none.
const maxCapability = 24

func capabilityOf(attributes map[string][]byte) []byte {
	if c := attributes["security.capability"]; len(c) <= maxCapability {
		return c
	}
	return nil
}

// openat opens a file in a directory, and no link.
func openat(dir int, base string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, base, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// removeAll removes a directory whose directories may be closed to their owner.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
