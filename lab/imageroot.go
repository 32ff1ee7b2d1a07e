package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/guest/cloudinit"
	"github.com/metalab-dev/metalab/guest/debian"
	"github.com/metalab-dev/metalab/guest/rootfs"
	"github.com/metalab-dev/metalab/guest/sandbox"
)

// This file boots the root file system of a user's image: unpacked once for all servers of all labs
// of this machine, below the layer of each.

// RootCache returns the directory of this machine with the root file systems of images.
func RootCache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("the cache of images: %w: set HOME or XDG_CACHE_HOME", err)
	}
	return filepath.Join(dir, "metalab", "roots"), nil
}

// imageRoot is the root file system of an image, which servers share.
type imageRoot struct {
	*base // for cloud-init: without files
	root  *sandbox.Root
	done  func()
}

// imageRoots are the root file systems that servers of a lab have booted, by their digests. They stay
// until the lab ends: it has few images.
type imageRoots struct {
	mu sync.Mutex
	by map[string]*imageRoot
}

// close lets others remove the files.
func (r *imageRoots) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range r.by {
		i.done()
	}
	r.by = nil
}

// use returns the root file system of a digest, and unpacks it from a disk if this machine does not
// have it.
func (r *imageRoots) use(ctx context.Context, key string, disk *rack.Disk) (*imageRoot, error) {
	r.mu.Lock()
	i := r.by[key]
	r.mu.Unlock()
	if i != nil {
		return i, nil
	}
	dir, err := RootCache()
	if err != nil {
		return nil, err
	}
	cache := rootfs.Cache{Dir: dir}
	from, done, err := cache.Use(ctx, key, func() (io.ReaderAt, int64, error) { return disk, disk.Size(), nil })
	if err != nil {
		return nil, err
	}
	files, err := firstBootFiles(from)
	if err != nil {
		done()
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if first := r.by[key]; first != nil {
		done()
		return first, nil
	}
	i = &imageRoot{base: &base{root: files}, root: &sandbox.Root{Dir: from.Dir, Attributes: from.Attributes}, done: done}
	if r.by == nil {
		r.by = map[string]*imageRoot{}
	}
	r.by[key] = i
	return i, nil
}

// systemRoot is the root file system of a boot. The first use of its files finds it.
type systemRoot struct {
	find func() *imageRoot // nil result: the lab's files
	what atomic.Pointer[string]
}

// describe sets the text that tells people where the files of the system come from.
func (r *systemRoot) describe(text string) { r.what.Store(&text) }

// describe describes the system that a host runs.
func (y *systems) describe(h *rack.Host) control.System {
	os := h.Machine().OS
	y.mu.Lock()
	x := y.running[h.Name()]
	y.mu.Unlock()
	if x == nil || os == nil || x.os.Boot != os.Boot {
		return control.System{}
	}
	return control.System{Files: *x.files.what.Load(), CPU: x.CPUTime().Seconds()}
}

// rootOfImage returns how the root of a system that has booted a user's image is found. console gets
// a line that says what its files are.
func (y *systems) rootOfImage(x *system, store *diskStore, fallback *base, console io.Writer) {
	x.files.find = sync.OnceValue(func() *imageRoot {
		i, what, err := y.findRootWhenThereIsRoom(x.ctx, store, console)
		switch {
		case err == nil:
			x.base = i.base
			x.files.describe("of the image: " + what)
			_, _ = fmt.Fprintf(console, "The files of this server are those of its image: %s.\n", what) // the console drops what comes late
			return i
		case errors.Is(err, context.Canceled), errors.Is(err, rack.ErrDown):
			return nil
		}
		release := debian.PrettyName(debian.Fields(string(fallback.root["etc/os-release"].Content)))
		x.files.describe(fmt.Sprintf("the lab's, with the os-release of %s: %v", release, err))
		_, _ = fmt.Fprintf(console, "The files of this image are not read: %v. The lab's files stand for them, with the os-release of %s.\n", err, release) // as above
		return nil
	})
}

// findRootWhenThereIsRoom unpacks a root file system. While the disk of this machine is full it waits:
// a first boot over the lab's files would lie over the image's from the next boot on.
func (y *systems) findRootWhenThereIsRoom(ctx context.Context, store *diskStore, console io.Writer) (*imageRoot, string, error) {
	i, what, err := y.findRoot(ctx, store)
	if errors.Is(err, syscall.ENOSPC) {
		_, _ = fmt.Fprintf(console, "waiting for room: %v\n", err) // the console drops what comes late
	}
	for errors.Is(err, syscall.ENOSPC) {
		select {
		case <-ctx.Done():
			return nil, "", ctx.Err()
		case <-time.After(fullDisk):
		}
		i, what, err = y.findRoot(ctx, store)
	}
	return i, what, err
}

// findRoot returns the root file system on a disk, and its description.
func (y *systems) findRoot(ctx context.Context, store *diskStore) (i *imageRoot, what string, err error) {
	from, err := rootfs.Find(store.Disk, store.Size())
	if err != nil {
		return nil, "", err
	}
	what = fmt.Sprintf("%s, %s", debian.PrettyName(debian.Fields(from.OSRelease)), from.Type)
	if from.Partition > 0 {
		what += fmt.Sprintf(" of partition %d", from.Partition)
	}
	if from.NeedsRecovery {
		what += ", whose journal is not replayed"
	}
	if from.Architecture != runtime.GOARCH {
		return nil, "", fmt.Errorf("%s has programs for another processor (%s, this machine is %s)", what, orUnknown(from.Architecture), runtime.GOARCH)
	}
	key := store.rootKey(from)
	if key == "" {
		if key, err = rootfs.Digest(ctx, from, rootfs.Limits{}); err != nil {
			return nil, "", err
		}
		store.setRootKey(from, key)
	}
	i, err = y.roots.use(ctx, key, store.Disk)
	return i, what, err
}

func orUnknown(arch string) string {
	if arch == "" {
		return "unknown"
	}
	return arch
}

// checkOf identifies a file system on a disk whose first sector was not written since its digest was
// stored: mkfs(8) gives it another UUID.
func checkOf(from *rootfs.FileSystem) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s %q %d", from.Type, from.Partition, from.UUID, from.Label, from.Used))
	return hex.EncodeToString(sum[:])
}

// What cloud-init reads and changes of an image: its settings, accounts and homes.
var firstBootDirs = []string{"etc", "root", "home", "opt", "srv", "boot/grub", "usr/local", "var/lib/cloud"}

// Bounds of the files that cloud-init sees of an image. Others can be replaced, but not appended to.
const (
	maxFirstBootFile  = 1 << 20  // bytes
	maxFirstBootFiles = 32 << 20 // bytes in all
)

// firstBootFiles returns the files of an image that a first boot may change.
func firstBootFiles(r *rootfs.Root) (cloudinit.Root, error) {
	d, err := os.OpenRoot(r.Dir) // a link of the image leads to no file of this machine
	if err != nil {
		return nil, err
	}
	defer d.Close()
	t, size := sandbox.Tree{}, int64(0)
	add := func(name string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !e.IsDir() && !e.Type().IsRegular() {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		n := sandbox.Node{Mode: info.Mode()}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Getuid() == 0 {
			n.UID, n.GID = int(st.Uid), int(st.Gid)
		}
		if mode, uid, gid, ok := r.Attributes(name); ok {
			n.Mode, n.UID, n.GID = mode, uid, gid
		}
		if info.Mode().IsRegular() {
			if size += info.Size(); info.Size() > maxFirstBootFile || size > maxFirstBootFiles {
				return nil
			}
			if n.Content, err = d.ReadFile(name); err != nil {
				return err
			}
		}
		t[name] = n
		return nil
	}
	for _, dir := range firstBootDirs {
		if err := fs.WalkDir(d.FS(), dir, add); err != nil {
			return nil, fmt.Errorf("the files of an image: %w", err)
		}
	}
	root := rootOf(t)
	if _, ok := root["etc/os-release"]; !ok { // a link
		root["etc/os-release"] = cloudinit.File{Content: []byte(r.OSRelease), Mode: 0o644, Owner: "root", Group: "root"}
	}
	return root, nil
}

// rootMark begins a stored layer that has the digest of the image's root file system before it: the
// check of the file system and its digest, each with 64 digits and a newline.
const rootMark = "labimage"

// diskStore stores the layer of a system with the disk that it has booted from, and the digest of the
// root file system below, which takes seconds to compute. Both are lost when the first sector is
// written.
type diskStore struct {
	*rack.Disk

	mu   sync.Mutex
	head string // as stored; "": none
}

const headLength = len(rootMark) + 2*(2*sha256.Size+1)

// Load implements sandbox.Store.
func (s *diskStore) Load() ([]byte, error) {
	b, err := s.SystemFiles()
	if err != nil || !strings.HasPrefix(string(b[:min(len(b), len(rootMark))]), rootMark) {
		return b, err
	}
	if len(b) < headLength {
		return nil, errors.New("the files of a system are cut off")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head = string(b[:headLength])
	if len(b) == headLength {
		return nil, nil
	}
	return b[headLength:], nil
}

// Save implements sandbox.Store.
func (s *diskStore) Save(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.PutSystemFiles(append([]byte(s.head), b...))
}

// rootKey returns the stored digest of a root file system; "": none is stored.
func (s *diskStore) rootKey(from *rootfs.FileSystem) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := strings.Split(strings.TrimPrefix(s.head, rootMark), "\n")
	if len(f) != 3 || f[0] != checkOf(from) {
		return ""
	}
	return f[1]
}

// setRootKey stores a digest with the next layer.
func (s *diskStore) setRootKey(from *rootfs.FileSystem, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head = rootMark + checkOf(from) + "\n" + key + "\n"
}
