package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// checkFiles reports whether a directory holds a store, and checks its database. bbolt
// maps the file and trusts it: a page that is cut off or points elsewhere ends the
// process with a fault that cannot be recovered from. An empty file is a new database
// for bbolt, so that everything would be lost without a word.
func checkFiles(dir string) (found bool, err error) {
	path := filepath.Join(dir, file)
	f, err := os.Open(path)
	missing := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		missing = "it is missing"
	case err != nil:
		return false, unreadable(path, err)
	default:
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return false, err
		}
		if st.IsDir() {
			return false, unreadable(path, &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid})
		}
		if st.Size() > 0 {
			c := databaseCheck{r: f, size: st.Size()}
			if err := c.run(); err != nil {
				return false, &DamageError{Path: path, Offset: c.at, Detail: err.Error(), Fix: restoreFix}
			}
			return true, nil
		}
		missing = "it is empty"
	}
	rest, err := others(dir)
	if err != nil || rest == "" { // there is no store yet
		return false, err
	}
	return false, &DamageError{Path: path, Offset: -1, Detail: missing + ", and " + rest + " is there", Fix: restoreFix}
}

// others returns a file of a store other than its database; "" when there is none.
func others(dir string) (string, error) {
	for _, name := range []string{logFile, markFile, disksDir, string(mediaDir)} {
		path := filepath.Join(dir, name)
		st, err := os.Stat(path)
		if err == nil && !st.IsDir() {
			return path, nil
		}
		if err == nil {
			var entries []fs.DirEntry
			if entries, err = os.ReadDir(path); len(entries) > 0 {
				return filepath.Join(path, entries[0].Name()), nil
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", unreadable(path, err)
		}
	}
	return "", nil
}

// databaseCheck checks the pages of a bbolt file (bbolt 1.5, internal/common: page.go,
// meta.go, bucket.go) without mapping it.
type databaseCheck struct {
	r    io.ReaderAt
	size int64 // bytes
	at   int64 // offset of the page that is checked

	page  int64 // bytes
	pages uint64
	seen  map[uint64]bool

	sealed  bool   // a value has a checksum
	plain   string // the first value without one, and its page, for people
	plainAt int64
}

// Layout of a page, in the byte order of the computer.
const (
	pageHead  = 16 // id (8), flags (2), count (2), overflow (4)
	rootBytes = 16 // header of a bucket: root page (8), sequence (8)
	metaBytes = 64
	elemBytes = 16 // element of a branch: pos (4), ksize (4), pgid (8); of a leaf: flags, pos, ksize, vsize (4 each)

	branchPage = 1
	leafPage   = 2
	bucketLeaf = 1 // flag of a leaf's element that is a bucket

	boltMagic   = 0xED0CDAED
	boltVersion = 2
)

var native = binary.NativeEndian

// boltMeta is a meta page: the root of one transaction.
type boltMeta struct {
	pageSize uint32
	root     uint64
	pages    uint64
	tx       uint64
}

// run returns the first damage, and sets c.at to the offset of its page.
func (c *databaseCheck) run() error {
	m, err := c.newestMeta()
	if err != nil {
		return err
	}
	c.page, c.pages, c.seen = int64(m.pageSize), m.pages, map[uint64]bool{}
	if want := int64(m.pages) * c.page; c.size < want {
		c.at = c.size
		return fmt.Errorf("it ends at byte %d of %d", c.size, want)
	}
	if err := c.tree(m.root, nil, nil); err != nil {
		return err
	}
	if c.sealed && c.plain != "" { // a transaction of this release seals all
		c.at = c.plainAt
		return fmt.Errorf("%s: it has no checksum, and others have", c.plain)
	}
	return nil
}

// newestMeta returns the meta page of the last transaction. A write that was cut can
// have left one of the two unreadable.
func (c *databaseCheck) newestMeta() (newest boltMeta, err error) {
	found := false
	add := func(off int64) {
		m, ok := c.meta(off)
		if ok && (!found || m.tx > newest.tx) {
			newest, found = m, true
		}
	}
	add(0)
	for i := range 15 { // the page size is not known before
		if found && int64(newest.pageSize) != 1024<<i {
			continue
		}
		add(1024 << i)
	}
	if !found {
		return newest, errors.New("it does not begin as a database")
	}
	return newest, nil
}

func (c *databaseCheck) meta(off int64) (m boltMeta, ok bool) {
	b := make([]byte, pageHead+metaBytes)
	if _, err := c.r.ReadAt(b, off); err != nil {
		return m, false
	}
	b = b[pageHead:]
	sum := fnv.New64a()
	sum.Write(b[:metaBytes-8])
	if native.Uint32(b) != boltMagic || native.Uint32(b[4:]) != boltVersion || native.Uint64(b[metaBytes-8:]) != sum.Sum64() {
		return m, false
	}
	return boltMeta{pageSize: native.Uint32(b[8:]), root: native.Uint64(b[16:]), pages: native.Uint64(b[40:]), tx: native.Uint64(b[48:])}, true
}

// tree checks the tree of a bucket whose keys are not before low, and before high if that
// is not nil.
func (c *databaseCheck) tree(id uint64, low, high []byte) error {
	if id < 2 || id >= c.pages {
		return fmt.Errorf("page %d does not exist", id)
	}
	c.at = int64(id) * c.page
	head := make([]byte, pageHead)
	if _, err := c.r.ReadAt(head, c.at); err != nil {
		return err
	}
	count := uint64(native.Uint32(head[12:])) + 1
	if native.Uint64(head) != id || count > c.pages-id {
		return fmt.Errorf("page %d is not itself", id)
	}
	for i := range count {
		if c.seen[id+i] {
			return fmt.Errorf("page %d has two places", id+i)
		}
		c.seen[id+i] = true
	}
	b := make([]byte, int64(count)*c.page)
	if _, err := c.r.ReadAt(b, c.at); err != nil {
		return err
	}
	return c.nodes(b, low, high)
}

// nodes checks a page, or the bucket inside a value.
func (c *databaseCheck) nodes(b, low, high []byte) error {
	at, id := c.at, native.Uint64(b)
	broken := func(i int, what string) error {
		c.at = at
		return fmt.Errorf("page %d, element %d: %s", id, i, what)
	}
	kind, n := native.Uint16(b[8:]), int(native.Uint16(b[10:]))
	if kind != branchPage && kind != leafPage {
		return broken(0, "it is no page of keys")
	}
	if pageHead+n*elemBytes > len(b) || kind == branchPage && n == 0 {
		return broken(n, "there are not as many")
	}
	keys := make([][]byte, n)
	values := make([][]byte, n)
	for i := range n {
		here := pageHead + i*elemBytes
		e := b[here : here+elemBytes]
		pos, key, value := native.Uint32(e), native.Uint32(e[4:]), uint32(0)
		if kind == leafPage {
			pos, key, value = native.Uint32(e[4:]), native.Uint32(e[8:]), native.Uint32(e[12:])
		}
		from := uint64(here) + uint64(pos)
		if from+uint64(key)+uint64(value) > uint64(len(b)) || int(pos) < (n-i)*elemBytes {
			return broken(i, "it lies outside of its page")
		}
		keys[i], values[i] = b[from:from+uint64(key)], b[from+uint64(key):from+uint64(key)+uint64(value)]
		if i > 0 && bytes.Compare(keys[i-1], keys[i]) >= 0 || i == 0 && low != nil && bytes.Compare(low, keys[i]) > 0 ||
			high != nil && bytes.Compare(keys[i], high) >= 0 {
			return broken(i, "its key is out of order")
		}
	}
	for i := range n {
		e := b[pageHead+i*elemBytes:]
		switch {
		case kind == branchPage:
			end := high
			if i+1 < n {
				end = keys[i+1]
			}
			if err := c.tree(native.Uint64(e[8:]), keys[i], end); err != nil {
				return err
			}
		case native.Uint32(e)&bucketLeaf == 0:
			if err := c.sealedValue(i, keys[i], values[i], at, id); err != nil {
				return broken(i, err.Error())
			}
		case len(values[i]) < rootBytes:
			return broken(i, "its bucket is cut off")
		default:
			root := native.Uint64(values[i])
			inside := values[i][rootBytes:]
			if root != 0 {
				if err := c.tree(root, nil, nil); err != nil {
					return err
				}
			} else if len(inside) < pageHead {
				return broken(i, "its bucket is cut off")
			} else if err := c.nodes(inside, nil, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// sealedValue checks the checksum of a value.
func (c *databaseCheck) sealedValue(i int, key, stored []byte, at int64, page uint64) error {
	switch {
	case !isSealed(stored):
		if c.plain == "" {
			c.plain, c.plainAt = fmt.Sprintf("page %d, element %d, the value of %q", page, i, key), at
		}
	case !isIntact(key, stored):
		return fmt.Errorf("the value of %q is not as it was written", key)
	default:
		c.sealed = true
	}
	return nil
}
