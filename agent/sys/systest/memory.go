package systest

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// pageSize is the unit of allocation; pages of zeros are not stored.
const pageSize = 64 << 10

// Memory is a sparse block device in memory. It is safe for concurrent use and
// keeps its content after Close, like a disk.
type Memory struct {
	size int64

	mu    sync.RWMutex
	pages map[int64][]byte // by page number; a missing page reads as zeros
}

// NewMemory returns a device of size bytes that reads as zeros.
func NewMemory(size int64) *Memory {
	return &Memory{size: size, pages: map[int64][]byte{}}
}

// Size returns the device's size in bytes.
func (m *Memory) Size() int64 { return m.size }

// Held returns the bytes of memory that the device uses.
func (m *Memory) Held() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return int64(len(m.pages)) * pageSize
}

// ReadAt implements io.ReaderAt.
func (m *Memory) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("systest: read at %d", off)
	}
	if off >= m.size {
		return 0, io.EOF
	}
	var err error
	if int64(len(p)) > m.size-off {
		p, err = p[:m.size-off], io.EOF
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	m.each(off, int64(len(p)), func(page, at, n, done int64) {
		to := p[done : done+n]
		if held := m.pages[page]; held != nil {
			copy(to, held[at:])
		} else {
			clear(to)
		}
	})
	return len(p), err
}

// WriteAt implements io.WriterAt. It writes nothing if p does not fit.
func (m *Memory) WriteAt(p []byte, off int64) (int, error) {
	if err := m.within(off, int64(len(p))); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.each(off, int64(len(p)), func(page, at, n, done int64) {
		held := m.pages[page]
		if held == nil {
			held = make([]byte, pageSize)
			m.pages[page] = held
		}
		copy(held[at:], p[done:done+n])
	})
	return len(p), nil
}

// Zero implements sys.Block. It frees whole pages.
func (m *Memory) Zero(off, n int64) error {
	if off%512 != 0 || n%512 != 0 {
		return fmt.Errorf("systest: zero: %d bytes at %d are not whole sectors", n, off)
	}
	if err := m.within(off, n); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if pages := n / pageSize; pages > int64(len(m.pages)) { // fast for terabytes without data
		for page, held := range m.pages {
			from, to := max(off, page*pageSize), min(off+n, (page+1)*pageSize)
			if from >= to {
				continue
			}
			m.wipe(page, held, from-page*pageSize, to-from)
		}
		return nil
	}
	m.each(off, n, func(page, at, n, _ int64) {
		if held := m.pages[page]; held != nil {
			m.wipe(page, held, at, n)
		}
	})
	return nil
}

// Sync implements sys.Block.
func (m *Memory) Sync() error { return nil }

// Close implements sys.Block.
func (m *Memory) Close() error { return nil }

func (m *Memory) wipe(page int64, held []byte, at, n int64) {
	clear(held[at : at+n])
	if n == pageSize || bytes.Equal(held, zeroPage[:]) {
		delete(m.pages, page)
	}
}

var zeroPage [pageSize]byte

// each splits a range at page boundaries: at is the offset within the page, done
// the length of the range before it.
func (m *Memory) each(off, n int64, do func(page, at, n, done int64)) {
	for done := int64(0); done < n; {
		page, at := (off+done)/pageSize, (off+done)%pageSize
		part := min(pageSize-at, n-done)
		do(page, at, part, done)
		done += part
	}
}

func (m *Memory) within(off, n int64) error {
	if off < 0 || n < 0 || off > m.size-n {
		return fmt.Errorf("systest: %d bytes at %d are beyond the end at %d: %w", n, off, m.size, io.ErrShortWrite)
	}
	return nil
}
