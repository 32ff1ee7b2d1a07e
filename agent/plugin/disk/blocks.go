package disk

import (
	"errors"
	"io"
)

// blocks is a disk in blocks of one size, with a table of their offsets in a file:
// the common part of VDI and VMDK.
type blocks struct {
	size, unit int64 // bytes of the disk, and of a block
	packed     bool  // the file has the blocks compressed
	// find looks up block i. zero means that the file does not contain it and that
	// it reads as zeros.
	find func(i int64) (at int64, zero bool, err error)
	// load reads a part of block i, which lies at the file's offset at, beginning
	// at off within the block.
	load func(i, at, off int64, p []byte) error
}

var errOutside = errors.New("it would lie outside the file")

// extent returns how many of the following bytes are all data or all zeros.
func (b *blocks) extent(at, most int64) (extent, error) {
	e := extent{packed: b.packed}
	for e.n < most {
		_, z, err := b.find((at + e.n) / b.unit)
		if err != nil && e.n == 0 {
			return extent{}, err
		}
		if e.n == 0 {
			e.zero = z
		}
		if err != nil || z != e.zero { // the next call reports it
			break
		}
		e.n += b.unit
	}
	e.n = min(e.n, most)
	return e, nil
}

// ReadAt implements io.ReaderAt.
func (b *blocks) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		if off >= b.size {
			return n, io.EOF
		}
		i, in := off/b.unit, off%b.unit
		part := p[n:min(int64(len(p)), int64(n)+min(b.unit-in, b.size-off))]
		at, zero, err := b.find(i)
		switch {
		case err != nil:
			return n, err
		case zero:
			clear(part)
		default:
			if err := b.load(i, at, in, part); err != nil {
				return n, err
			}
		}
		n += len(part)
		off += int64(len(part))
	}
	return n, nil
}

// readFull fills p from r. It returns an error for a file that ends before.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errOutside
	}
	return err
}
