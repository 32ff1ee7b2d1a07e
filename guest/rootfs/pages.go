package rootfs

import (
	"fmt"
	"io"
)

const (
	pageSize = 64 << 10 // bytes that are read at once: 256 usual inodes
	maxPages = 128      // 8 MiB
)

// pages keeps the parts of a disk that were read last. Inodes are read one by one, and
// 256 of a usual size are in one.
type pages struct {
	r     io.ReaderAt
	size  int64
	kept  map[int64][]byte // by offset / pageSize
	order []int64          // of kept, the oldest first
}

// read fills p from an offset.
func (c *pages) read(p []byte, off int64) error {
	if off < 0 || off > c.size-int64(len(p)) {
		return fmt.Errorf("bytes %d to %d of %d", off, off+int64(len(p)), c.size)
	}
	for len(p) > 0 {
		page, err := c.page(off / pageSize)
		if err != nil {
			return err
		}
		n := copy(p, page[off%pageSize:])
		p, off = p[n:], off+int64(n)
	}
	return nil
}

func (c *pages) page(n int64) ([]byte, error) {
	if b, ok := c.kept[n]; ok {
		return b, nil
	}
	var b []byte
	if len(c.order) == maxPages {
		b = c.kept[c.order[0]][:pageSize]
		delete(c.kept, c.order[0])
		c.order = append(c.order[:0], c.order[1:]...)
	} else {
		b = make([]byte, pageSize)
	}
	b = b[:min(pageSize, c.size-n*pageSize)]
	if err := readFull(c.r, b, n*pageSize); err != nil {
		return nil, err
	}
	if c.kept == nil {
		c.kept = map[int64][]byte{}
	}
	c.kept[n] = b
	c.order = append(c.order, n)
	return b, nil
}
