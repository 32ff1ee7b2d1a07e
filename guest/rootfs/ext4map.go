package rootfs

import (
	"fmt"
	"math"
)

// run is a number of blocks of a file that are next to each other on the disk.
type run struct {
	logical, physical, count int64
}

// maxRead is how many bytes of a file are read at once.
const maxRead = 1 << 20

// runs calls yield for the blocks of a file that are on the disk, in ascending order, and
// joins those that are neighbours.
func (e *ext) runs(in Inode, yield func(run) error) error {
	f := in.file.(extFile)
	var last run
	next := int64(0) // the first block that has not been seen
	add := func(r run) error {
		if r.logical < next {
			return e.corrupt("inode %d maps block %d twice", in.Number, r.logical)
		}
		if err := e.inside(r.physical, r.count); err != nil {
			return err
		}
		next = r.logical + r.count
		if last.count > 0 && last.logical+last.count == r.logical && last.physical+last.count == r.physical {
			last.count += r.count
			return nil
		}
		done := last
		last = r
		if done.count == 0 {
			return nil
		}
		return yield(done)
	}
	var err error
	if f.flags&flagExtents != 0 {
		err = e.extents(f.raw[40:100], -1, 0, math.MaxUint32+1, add)
	} else {
		err = e.indirect(f.raw[40:100], (in.Size+e.block-1)/e.block, add)
	}
	if err != nil || last.count == 0 {
		return err
	}
	return yield(last)
}

const (
	extentMagic = 0xf30a
	maxDepth    = 5     // of a tree of extents
	unwritten   = 32768 // a longer extent is one that reads as zeros
)

// extents reads a node of a tree of extents, whose depth the node above has told, or is -1
// for the root. All that is in it begins from block from on and ends before to.
func (e *ext) extents(node []byte, depth int, from, to int64, yield func(run) error) error {
	count, own := int(le.Uint16(node[2:])), int(le.Uint16(node[6:]))
	switch {
	case le.Uint16(node) != extentMagic || 12+12*count > len(node):
		return e.corrupt("a node of extents is none")
	case depth < 0 && own > maxDepth, depth >= 0 && own != depth:
		return e.corrupt("a tree of extents has depth %d", own)
	case depth >= 0 && count == 0:
		return e.corrupt("a node of extents is empty")
	}
	for i := range count {
		b := node[12+12*i:]
		first := int64(le.Uint32(b))
		if first < from || first >= to {
			return e.corrupt("extents are not in order")
		}
		if own == 0 {
			n := int64(le.Uint16(b[4:]))
			hole := n > unwritten
			if hole {
				n -= unwritten
			}
			if n == 0 || n > to-first {
				return e.corrupt("an extent has %d blocks", n)
			}
			if from = first + n; hole {
				continue
			}
			if err := yield(run{first, int64(le.Uint32(b[8:])) | int64(le.Uint16(b[6:]))<<32, n}); err != nil {
				return err
			}
			continue
		}
		end := to
		if i+1 < count {
			end = min(to, int64(le.Uint32(b[12:])))
		}
		if err := e.spend(); err != nil {
			return err
		}
		next := make([]byte, e.block)
		if err := e.readBlock(next, int64(le.Uint32(b[4:]))|int64(le.Uint16(b[8:]))<<32); err != nil {
			return err
		}
		if err := e.extents(next, own-1, first, end, yield); err != nil {
			return err
		}
		from = first + 1
	}
	return nil
}

// indirect reads the map of a file of ext2 and ext3: 12 blocks, and three more that have
// the numbers of others, of such, and of such again.
func (e *ext) indirect(numbers []byte, blocks int64, yield func(run) error) error {
	at := int64(0)
	for i := range 15 {
		if err := e.mapped(int64(le.Uint32(numbers[4*i:])), max(0, i-11), &at, blocks, yield); err != nil {
			return err
		}
	}
	return nil
}

// mapped reads the part of a map that begins with a block: the file's own at level 0.
func (e *ext) mapped(n int64, level int, at *int64, blocks int64, yield func(run) error) error {
	if *at >= blocks {
		return nil
	}
	per := e.block / 4
	if n == 0 { // a hole
		covered := int64(1)
		for range level {
			covered *= per
		}
		*at += covered
		return nil
	}
	if level == 0 {
		*at++
		return yield(run{*at - 1, n, 1})
	}
	if err := e.spend(); err != nil {
		return err
	}
	b := make([]byte, e.block)
	if err := e.readBlock(b, n); err != nil {
		return err
	}
	for i := range per {
		if err := e.mapped(int64(le.Uint32(b[4*i:])), level-1, at, blocks, yield); err != nil {
			return err
		}
	}
	return nil
}

// readable refuses files whose bytes mean something else.
func (e *ext) readable(in Inode) (extFile, error) {
	f, ok := in.file.(extFile)
	switch {
	case !ok:
		return f, fmt.Errorf("rootfs: inode %d is of another file system", in.Number)
	case f.flags&flagEncrypt != 0:
		return f, &UnsupportedError{Type: e.kind, What: fmt.Sprintf("an encrypted inode (%d)", in.Number)}
	case f.flags&flagCasefold != 0:
		return f, &UnsupportedError{Type: e.kind, What: fmt.Sprintf("a directory of folded case (inode %d)", in.Number)}
	}
	return f, nil
}

// Data implements Reader.
func (e *ext) Data(in Inode, yield func(off int64, b []byte) error) error {
	f, err := e.readable(in)
	if err != nil {
		return err
	}
	if f.flags&flagInline != 0 {
		b, err := e.inline(in, f)
		if err == nil && len(b) > 0 {
			err = yield(0, b)
		}
		return err
	}
	if e.buf == nil {
		e.buf = make([]byte, maxRead)
	}
	return e.runs(in, func(r run) error {
		off := r.logical * e.block
		from, left := r.physical*e.block, min(r.count*e.block, in.Size-off)
		for left > 0 { // nothing is left of blocks beyond the file's end
			b := e.buf[:min(left, maxRead)]
			if err := readFull(e.r, b, from); err != nil {
				return fmt.Errorf("rootfs: inode %d: %w", in.Number, err)
			}
			if err := yield(off, b); err != nil {
				return err
			}
			n := int64(len(b))
			off, from, left = off+n, from+n, left-n
		}
		return nil
	})
}

// inline returns the bytes of a file that are in its inode: 60 in place of the map, the
// rest as an attribute.
func (e *ext) inline(in Inode, f extFile) ([]byte, error) {
	b := append([]byte(nil), f.raw[40:100]...)
	if in.Size > int64(len(b)) {
		more, err := e.inlineRest(f)
		if err != nil {
			return nil, err
		}
		b = append(b, more...)
	}
	if in.Size > int64(len(b)) {
		return nil, e.corrupt("inode %d has %d of %d bytes", in.Number, len(b), in.Size)
	}
	return b[:in.Size], nil
}

// Link implements Reader.
func (e *ext) Link(in Inode) (string, error) {
	f, err := e.readable(in)
	if err != nil {
		return "", err
	}
	if in.Size == 0 || in.Size > 4095 { // PATH_MAX without its NUL
		return "", e.corrupt("the symbolic link of inode %d has %d bytes", in.Number, in.Size)
	}
	if f.flags&flagInline == 0 && f.flags&flagExtents == 0 && in.Size < 60 {
		return cText(f.raw[40 : 40+in.Size]), nil
	}
	out := make([]byte, in.Size)
	if err := e.Data(in, func(off int64, b []byte) error { copy(out[off:], b); return nil }); err != nil {
		return "", err
	}
	return cText(out), nil
}
