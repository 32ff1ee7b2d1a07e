package rootfs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"slices"
)

// Digest returns a key for Cache.Use where that of the image is not known: the SHA-256, in
// hexadecimal digits, of all that Unpack would write: names, types, modes, owners, times,
// links, capabilities and data. It reads the blocks of files alone, neither free blocks nor
// journals.
//
// A digest of the file system's own checksums and bitmaps would read less, but says
// nothing of the data, and who writes a disk can make them what he likes: one server's
// files would be another's. A 2 GB ext4 with 1.3 GB of files takes 1.5 s, nearly all of
// them for SHA-256 (BenchmarkDigest), all its bytes 7.5 s by sha256sum(1). A caller with
// the checksum of the image uses that one; another keeps the digest until the disk is
// written.
func Digest(ctx context.Context, from *FileSystem, limits Limits) (string, error) {
	limits.Bytes, limits.Files = cmp.Or(limits.Bytes, defaultBytes), cmp.Or(limits.Files, defaultFiles)
	root, err := from.Reader.Root()
	if err != nil {
		return "", err
	}
	d := &digest{ctx: ctx, from: from.Reader, limits: limits, sum: sha256.New(), links: map[uint64]int64{}, dirs: map[uint64]bool{}}
	d.text("metalab root 1") // another form has another key
	if err := d.file("", root, 0); err != nil {
		return "", err
	}
	return hex.EncodeToString(d.sum.Sum(nil)), nil
}

// digest is one run of Digest. Each field has a fixed size or its length before it: no two
// trees are the same bytes.
type digest struct {
	ctx    context.Context
	from   Reader
	limits Limits
	sum    hash.Hash

	links       map[uint64]int64 // which file, in the order of the walk, has an inode of several names
	dirs        map[uint64]bool
	files, data int64
	listed      int64 // names
	number      [8]byte
}

func (d *digest) int(n int64) {
	le.PutUint64(d.number[:], uint64(n))
	d.sum.Write(d.number[:])
}

func (d *digest) text(s string) {
	d.int(int64(len(s)))
	d.sum.Write([]byte(s))
}

func (d *digest) file(name string, in Inode, depth int) error {
	if err := d.ctx.Err(); err != nil {
		return fmt.Errorf("rootfs: %w", err)
	}
	if d.files++; d.files > d.limits.Files {
		return &LimitError{What: "files", Limit: d.limits.Files}
	}
	d.text(name)
	d.int(int64(in.Mode))
	d.int(int64(in.UID))
	d.int(int64(in.GID))
	d.int(in.Modified.Unix())
	d.int(int64(in.Modified.Nanosecond()))
	if in.Links > 1 && !in.Mode.IsDir() {
		first, ok := d.links[in.Number]
		if d.int(first); ok {
			return nil
		}
		d.links[in.Number] = d.files
	} else {
		d.int(-1)
	}
	switch in.Mode.Type() {
	case 0:
		return d.regular(in)
	case fs.ModeDir:
		return d.directory(name, in, depth)
	case fs.ModeSymlink:
		to, err := d.from.Link(in)
		d.text(to)
		return err
	}
	return nil
}

func (d *digest) directory(name string, in Inode, depth int) error {
	if d.dirs[in.Number] {
		return fmt.Errorf("rootfs: the directory %s is in the tree twice", name)
	}
	d.dirs[in.Number] = true
	if depth > deepest {
		return &LimitError{What: "directories in each other", Limit: deepest}
	}
	var entries []Entry
	err := d.from.List(in, func(e Entry) error {
		if d.listed++; d.listed > d.limits.Files {
			return &LimitError{What: "files", Limit: d.limits.Files}
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	d.int(int64(len(entries)))
	for _, e := range entries {
		next, err := d.from.Inode(e)
		if err != nil {
			return err
		}
		if err := d.file(e.Name, next, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// regular adds the data and, apart, where it is: how a file is cut into parts does not count.
func (d *digest) regular(in Inode) error {
	all, err := d.from.Attributes(in)
	if err != nil {
		return err
	}
	d.text(string(capabilityOf(all)))
	d.int(in.Size)
	data, holes := sha256.New(), sha256.New()
	end := int64(0)
	err = d.from.Data(in, func(off int64, b []byte) error {
		if err := d.ctx.Err(); err != nil {
			return err
		}
		if d.data += int64(len(b)); d.data > d.limits.Bytes {
			return &LimitError{What: "bytes", Limit: d.limits.Bytes}
		}
		if off != end {
			fmt.Fprintf(holes, "%d-%d ", end, off)
		}
		data.Write(b)
		end = off + int64(len(b))
		return nil
	})
	d.sum.Write(data.Sum(nil))
	d.sum.Write(holes.Sum(nil))
	return err
}
