package rootfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Cache keeps root file systems that were unpacked, for all processes of this machine that
// use its directory. Each is in a directory named by its key. A process that is killed
// leaves it whole or not there.
type Cache struct {
	Dir    string // made with mode 0700, and given that mode
	Max    int64  // bytes of all that nobody uses and that stay; 0: 20 GiB
	Limits Limits // of each

	step func(string) // reports the steps of an unpacking to tests
}

const (
	defaultMax = 20 << 30
	partSuffix = ".part" // an unpacking, or a removal, that is not done
)

// Cached is a root file system in a cache.
type Cached struct {
	Key          string
	Name         string // PRETTY_NAME of its os-release(5)
	Architecture string // as GOARCH has it
	Bytes        int64
	LastUse      time.Time
	InUse        bool
}

// KeyError means that a key is not the text of a digest.
type KeyError struct{ Key string }

// Error implements error.
func (e *KeyError) Error() string {
	return fmt.Sprintf("rootfs: the key %q is not a digest: it has to be 32 to 128 digits of 0-9 and a-f", e.Key)
}

func checkKey(key string) error {
	if len(key) < 32 || len(key) > 128 || strings.Trim(key, "0123456789abcdef") != "" {
		return &KeyError{Key: key}
	}
	return nil
}

// Use returns the root file system of a key. If it is not there, open returns the disk that
// has it and its size in bytes, and it is unpacked; all others who want it wait. The disk is
// closed if it is an io.Closer. Until done is called, or this process ends, the files stay.
func (c *Cache) Use(ctx context.Context, key string, open func() (io.ReaderAt, int64, error)) (root *Root, done func(), err error) {
	if err := errors.Join(checkKey(key), c.makeDir()); err != nil {
		return nil, nil, err
	}
	for {
		l, err := c.wait(ctx, key, shared)
		if err != nil {
			return nil, nil, err
		}
		if root, err := OpenRoot(c.entry(key)); err == nil {
			l.touch()
			return root, sync.OnceFunc(func() { l.touch(); l.release() }), nil
		}
		l.release()
		c.at("absent")
		if l, err = c.wait(ctx, key, exclusive); err != nil {
			return nil, nil, err
		}
		if err = c.build(ctx, key, open); err != nil {
			l.remove()
			return nil, nil, err
		}
		// It is taken like one that was there: a lock cannot become a shared one at once.
		l.release()
	}
}

func (c *Cache) entry(key string) string { return filepath.Join(c.Dir, key) }

func (c *Cache) max() int64 { return cmp.Or(c.Max, defaultMax) }

func (c *Cache) makeDir() error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("rootfs: cache: %w", err)
	}
	if err := os.Chmod(c.Dir, 0o700); err != nil {
		return fmt.Errorf("rootfs: cache: %w", err)
	}
	return nil
}

func (c *Cache) at(step string) {
	if c.step != nil {
		c.step(step)
	}
}

// build unpacks an entry, unless another process has. The caller has its lock.
func (c *Cache) build(ctx context.Context, key string, open func() (io.ReaderAt, int64, error)) error {
	entry, part := c.entry(key), c.entry(key)+partSuffix
	if _, err := OpenRoot(entry); err == nil {
		return nil
	}
	if err := errors.Join(removeAll(entry), removeAll(part)); err != nil {
		return fmt.Errorf("rootfs: cache: %w", err)
	}
	disk, size, err := open()
	if err != nil {
		return err
	}
	if file, ok := disk.(io.Closer); ok {
		defer file.Close()
	}
	found, err := Find(disk, size)
	if err != nil {
		return err
	}
	// Others make room first; what it really takes is known afterwards.
	if _, err := c.prune(key, c.max()-found.Used); err != nil {
		return err
	}
	c.at("found")
	if _, err := Unpack(ctx, found, part, c.Limits); err != nil {
		return err
	}
	c.at("unpacked")
	if err := syncAll(part); err != nil {
		return errors.Join(err, removeAll(part))
	}
	c.at("synced")
	if err := os.Rename(part, entry); err != nil {
		return errors.Join(fmt.Errorf("rootfs: cache: %w", err), removeAll(part))
	}
	c.at("renamed")
	return syncDir(c.Dir)
}

// syncDir writes the names of a directory to the disk.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("rootfs: cache: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("rootfs: cache: sync of %s: %w", dir, err)
	}
	return nil
}

// List returns the root file systems of the cache, the most recently used first.
func (c *Cache) List() ([]Cached, error) {
	names, err := c.names()
	if err != nil {
		return nil, err
	}
	var out []Cached
	for _, key := range names {
		root, err := OpenRoot(c.entry(key))
		if err != nil {
			continue // it is being unpacked or removed
		}
		e := Cached{Key: key, Name: prettyName(root.OSRelease), Architecture: root.Architecture, Bytes: root.Bytes}
		if st, err := os.Stat(c.lockName(key)); err == nil {
			e.LastUse = st.ModTime()
		}
		l, err := c.try(key, exclusive)
		switch {
		case errors.Is(err, errLocked):
			e.InUse = true
		case err != nil:
			return nil, err
		default:
			l.release()
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Cached) int {
		return cmp.Or(b.LastUse.Compare(a.LastUse), cmp.Compare(a.Key, b.Key))
	})
	return out, nil
}

// names returns the keys that the directory has something of.
func (c *Cache) names() ([]string, error) {
	files, err := os.ReadDir(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("rootfs: cache: %w", err)
	}
	var out []string
	for _, f := range files {
		key := strings.TrimSuffix(strings.TrimSuffix(f.Name(), lockSuffix), partSuffix)
		if checkKey(key) == nil && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out, nil
}

// Prune removes what nobody uses: the least recently used beyond Max, or all; and what
// killed processes have left. It returns the entries that it has removed.
func (c *Cache) Prune(all bool) ([]Cached, error) {
	if all {
		return c.prune("", -1)
	}
	return c.prune("", c.max())
}

// prune removes entries until they have at most so many bytes, or all where that is less
// than 0, but not that of a key, whose lock the caller has.
func (c *Cache) prune(keep string, most int64) ([]Cached, error) {
	if err := c.sweep(keep); err != nil {
		return nil, err
	}
	entries, err := c.List()
	if err != nil {
		return nil, err
	}
	var sum int64
	for _, e := range entries {
		sum += e.Bytes
	}
	var removed []Cached
	for _, e := range slices.Backward(entries) {
		if most >= 0 && sum <= most {
			break
		}
		if e.Key == keep || e.InUse {
			continue
		}
		l, err := c.try(e.Key, exclusive)
		if errors.Is(err, errLocked) {
			continue
		}
		if err == nil {
			err = c.remove(e.Key)
			l.remove()
		}
		if err != nil {
			return removed, err
		}
		sum -= e.Bytes
		removed = append(removed, e)
	}
	return removed, nil
}

// remove removes an entry, whose lock the caller has. First it has no name that counts.
func (c *Cache) remove(key string) error {
	part := c.entry(key) + partSuffix
	if err := removeAll(part); err != nil {
		return fmt.Errorf("rootfs: cache: %w", err)
	}
	if err := os.Rename(c.entry(key), part); err != nil {
		return fmt.Errorf("rootfs: cache: %w", err)
	}
	c.at("removing")
	if err := removeAll(part); err != nil {
		return fmt.Errorf("rootfs: cache: %w", err)
	}
	return nil
}

// sweep removes what killed processes have left of keys but one.
func (c *Cache) sweep(keep string) error {
	names, err := c.names()
	if err != nil {
		return err
	}
	for _, key := range names {
		if key == keep {
			continue
		}
		l, err := c.try(key, exclusive)
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			return err
		}
		err = removeAll(c.entry(key) + partSuffix)
		if _, gone := os.Lstat(c.entry(key)); err == nil && errors.Is(gone, fs.ErrNotExist) {
			l.remove()
		} else {
			l.release()
		}
		if err != nil {
			return fmt.Errorf("rootfs: cache: %w", err)
		}
	}
	return nil
}

// prettyName returns the PRETTY_NAME of an os-release(5), or "".
func prettyName(text string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}
