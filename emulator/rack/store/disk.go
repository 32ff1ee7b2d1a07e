package store

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

const disksDir = "disks"

// openDisks is how many disk files are open at a time. A rack has more drives than a
// process may have files.
const openDisks = 256

// Disk holds the bytes of one drive in a sparse file, which is created at the first
// write. It implements storage.Medium.
type Disk struct {
	store *Store
	path  string
	key   string // of its diskRecord
	size  int64  // bytes
}

// Disk returns the content of a host's drive. It opens nothing.
func (s *Store) Disk(host, drive string, capacity int64) *Disk {
	return &Disk{store: s, path: s.disk(host, drive), key: diskKey(host, drive), size: capacity}
}

func (s *Store) disk(host, drive string) string {
	return filepath.Join(s.dir, disksDir, url.PathEscape(host), url.PathEscape(drive)+".img")
}

// RemoveDisk removes the content of a drive, after the calls that use it.
func (s *Store) RemoveDisk(host, drive string) error {
	if err := s.Save(s.Last(), Put{Kind: Hosts, Key: diskKey(host, drive), Value: Gone}); err != nil {
		return err
	}
	if err := s.files.remove(s.disk(host, drive)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("disk: %w", err)
	}
	return nil
}

// RemoveDisks removes the content of all drives of a host, after the calls that use
// them.
func (s *Store) RemoveDisks(host string) error {
	keys, err := s.Keys(Hosts, diskKey(host, ""))
	if err != nil {
		return err
	}
	puts := make([]Put, 0, len(keys))
	for _, k := range keys {
		puts = append(puts, Put{Kind: Hosts, Key: k, Value: Gone})
	}
	if err := s.Save(s.Last(), puts...); err != nil {
		return err
	}
	dir := filepath.Join(s.dir, disksDir, url.PathEscape(host))
	files, err := os.ReadDir(dir)
	for _, f := range files {
		err = errors.Join(err, s.files.remove(filepath.Join(dir, f.Name())))
	}
	if err == nil {
		err = os.Remove(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("disks of %s: %w", host, err)
	}
	return nil
}

// ShareDisk gives the content of a drive to another host too. Both are the same file
// until one is removed.
func (s *Store) ShareDisk(from, to, drive string) error {
	at := s.disk(to, drive)
	if err := s.RemoveDisk(to, drive); err != nil {
		return err
	}
	err := os.MkdirAll(filepath.Dir(at), 0o700)
	if err == nil {
		err = os.Link(s.disk(from, drive), at)
	}
	if err == nil && s.fsync {
		err = errors.Join(syncDir(filepath.Dir(at)), syncDir(filepath.Dir(filepath.Dir(at))))
	}
	if errors.Is(err, fs.ErrNotExist) { // the drive was never written
		return nil
	}
	if err == nil {
		var r diskRecord
		var found bool
		if found, err = s.Load(Hosts, diskKey(from, drive), &r); found {
			err = s.Save(s.Last(), Put{Kind: Hosts, Key: diskKey(to, drive), Value: r})
		}
	}
	if err != nil {
		return fmt.Errorf("disk: %w", err)
	}
	return nil
}

// Size returns the drive's capacity in bytes.
func (d *Disk) Size() int64 { return d.size }

// open checks a range and opens the disk's file. It returns nil when there is no
// file and create is false.
func (d *Disk) open(what string, off, n int64, create bool) (*diskFile, error) {
	if off < 0 || n < 0 || off > d.size-n {
		return nil, fmt.Errorf("%s of %d bytes at %d: the drive has %d", what, n, off, d.size)
	}
	f, err := d.store.files.acquire(d.path, d.size, create)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return f, nil
}

// ReadAt implements io.ReaderAt.
func (d *Disk) ReadAt(p []byte, off int64) (int, error) {
	want := p
	if off >= 0 {
		want = p[:max(0, min(int64(len(p)), d.size-off))]
	}
	f, err := d.open("read", min(off, d.size), int64(len(want)), false)
	if err != nil {
		return 0, err
	}
	if f == nil {
		clear(want)
	} else {
		defer d.store.files.release(f)
		if n, err := f.ReadAt(want, off); n < len(want) {
			return n, fmt.Errorf("read: %w", err)
		}
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(p), nil
}

// WriteAt implements io.WriterAt. It refuses to write past the end.
func (d *Disk) WriteAt(p []byte, off int64) (int, error) {
	f, err := d.open("write", off, int64(len(p)), true)
	if err != nil {
		return 0, err
	}
	defer d.store.files.release(f)
	if err := d.store.use(len(p)); err != nil {
		return 0, fmt.Errorf("write: %w", err)
	}
	if !f.recorded.Load() {
		if err := d.record(f, f.hasSystems.Load()); err != nil {
			return 0, fmt.Errorf("write: %w", err)
		}
	}
	if err := d.dropSystems(f, off, int64(len(p))); err != nil {
		return 0, err
	}
	n, err := f.WriteAt(p, off)
	if err != nil {
		return n, fmt.Errorf("write: %w", err)
	}
	return n, nil
}

// NextData returns the offset of the first byte at or after off that is not in a
// hole, or io.EOF when there is none.
func (d *Disk) NextData(off int64) (int64, error) {
	if off >= d.size {
		return 0, io.EOF
	}
	f, err := d.open("search", off, 0, false)
	if err != nil {
		return 0, err
	}
	if f == nil {
		return 0, io.EOF
	}
	defer d.store.files.release(f)
	return d.nextData(f.File, off)
}

func (d *Disk) nextData(f *os.File, off int64) (int64, error) {
	at, err := seekData(f, off)
	if err == nil && at >= d.size {
		return 0, io.EOF
	}
	return at, err
}

// Discard makes n bytes from off a hole, or writes zeros where the file system has
// no holes.
func (d *Disk) Discard(off, n int64) error {
	f, err := d.open("discard", off, n, false)
	if err != nil || f == nil {
		return err
	}
	defer d.store.files.release(f)
	if n == 0 { // the kernel refuses a hole of 0 bytes
		return nil
	}
	if err := d.dropSystems(f, off, n); err != nil {
		return err
	}
	if err := punchHole(f.File, off, n); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return d.zero(f.File, off, off+n)
}

// zero overwrites the data from off to end with zeros.
func (d *Disk) zero(f *os.File, off, end int64) error {
	zeros := make([]byte, 1<<20)
	for {
		at, err := d.nextData(f, off)
		if errors.Is(err, io.EOF) || err == nil && at >= end {
			return nil
		}
		if err != nil {
			return err
		}
		n, err := f.WriteAt(zeros[:min(int64(len(zeros)), end-at)], at)
		if err != nil {
			return fmt.Errorf("discard: %w", err)
		}
		off = at + int64(n)
	}
}

// Sync makes the bytes of the disk as durable as the values that the store saves: with
// Config.Fsync they survive a power cut. Otherwise there is nothing to do, because
// written bytes survive the death of the process.
func (d *Disk) Sync() error {
	if !d.store.fsync {
		return nil
	}
	f, err := d.open("sync", 0, 0, false)
	if err != nil || f == nil {
		return err
	}
	defer d.store.files.release(f)
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

// openFiles keeps recently used disk files open.
type openFiles struct {
	mu     sync.Mutex
	idle   *sync.Cond // signals that a file has no user any more
	most   int
	fsync  bool // new files survive a power cut
	open   map[string]*diskFile
	recent *list.List // elements are *diskFile, the latest in front
	closed bool
}

type diskFile struct {
	*os.File
	path  string
	users int
	at    *list.Element

	systems    sync.Mutex  // guards what follows the last sector
	hasSystems atomic.Bool // something follows it
	anchors    []int64     // where its systems begin; nil: not read yet

	recording sync.Mutex  // guards hasRecord
	recorded  atomic.Bool // hasRecord is stored
	hasRecord diskRecord
}

func newFiles(most int, fsync bool) *openFiles {
	f := &openFiles{most: most, fsync: fsync, open: map[string]*diskFile{}, recent: list.New()}
	f.idle = sync.NewCond(&f.mu)
	return f
}

// acquire opens a file for a disk of size bytes, and keeps it open until release.
// Without create it returns nil when there is no such file.
func (f *openFiles) acquire(path string, size int64, create bool) (*diskFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrClosed)
	}
	if d := f.open[path]; d != nil {
		f.recent.MoveToFront(d.at)
		d.users++
		return d, nil
	}
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) && !create {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if st, err := file.Stat(); err != nil || st.Size() < size { // new, or its process was killed before the Truncate
		if err == nil && st.Size() > 0 {
			err = &DamageError{
				Path: path, Offset: st.Size(), Detail: fmt.Sprintf("it ends there, and the drive has %d bytes", size),
				Fix: diskFix,
			}
		}
		if err == nil {
			err = file.Truncate(size)
		}
		if err == nil && f.fsync {
			err = errors.Join(syncDir(filepath.Dir(path)), syncDir(filepath.Dir(filepath.Dir(path))))
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	for e := f.recent.Back(); e != nil && len(f.open) >= f.most; {
		old := e.Value.(*diskFile)
		e = e.Prev()
		if old.users == 0 {
			err = errors.Join(err, f.drop(old))
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	d := &diskFile{File: file, path: path, users: 1}
	if st, err := file.Stat(); err == nil {
		d.hasSystems.Store(st.Size() > size)
	}
	d.at = f.recent.PushFront(d)
	f.open[path] = d
	return d, nil
}

func (f *openFiles) release(d *diskFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d.users--; d.users == 0 {
		f.idle.Broadcast()
	}
}

// remove removes a file after its last user.
func (f *openFiles) remove(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	for d := f.open[path]; d != nil; d = f.open[path] {
		if d.users == 0 {
			err = f.drop(d)
			break
		}
		f.idle.Wait()
	}
	return errors.Join(err, os.Remove(path))
}

// drop closes a file.
func (f *openFiles) drop(d *diskFile) error {
	delete(f.open, d.path)
	f.recent.Remove(d.at)
	return d.Close()
}

// close closes all files, each after its last user.
func (f *openFiles) close() (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for f.recent.Len() > 0 {
		d := f.recent.Front().Value.(*diskFile)
		for d.users > 0 {
			f.idle.Wait()
		}
		err = errors.Join(err, f.drop(d))
	}
	return err
}
