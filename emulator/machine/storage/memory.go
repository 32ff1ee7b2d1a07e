package storage

import (
	"fmt"
	"io"
	"slices"
	"sync"
)

const memoryBlock = 64 << 10

// Memory is a Medium in memory, for tests. It stores only blocks that were
// written.
type Memory struct {
	mu     sync.RWMutex
	size   int64
	blocks map[int64][]byte
}

// NewMemory returns an empty Memory of size bytes.
func NewMemory(size int64) *Memory {
	return &Memory{size: size, blocks: map[int64][]byte{}}
}

// ReadAt implements io.ReaderAt.
func (m *Memory) ReadAt(p []byte, off int64) (int, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if off < 0 {
		return 0, fmt.Errorf("storage: read at %d: negative offset", off)
	}
	n := 0
	for n < len(p) && off < m.size {
		in := off % memoryBlock
		want := min(int64(len(p)-n), memoryBlock-in, m.size-off)
		dst := p[n : n+int(want)]
		if b := m.blocks[off/memoryBlock]; b != nil {
			copy(dst, b[in:])
		} else {
			clear(dst)
		}
		n += int(want)
		off += want
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements io.WriterAt; it refuses to write past the end.
func (m *Memory) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > m.size {
		return 0, fmt.Errorf("storage: write of %d bytes at %d: medium has %d", len(p), off, m.size)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for n < len(p) {
		in := off % memoryBlock
		b := m.blocks[off/memoryBlock]
		if b == nil {
			b = make([]byte, memoryBlock)
			m.blocks[off/memoryBlock] = b
		}
		c := copy(b[in:], p[n:])
		n += c
		off += int64(c)
	}
	return n, nil
}

// NextData implements Medium, at the granularity of its blocks.
func (m *Memory) NextData(off int64) (int64, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var held []int64
	for i := range m.blocks {
		if (i+1)*memoryBlock > off {
			held = append(held, i)
		}
	}
	if len(held) == 0 || off >= m.size {
		return 0, io.EOF
	}
	return max(off, slices.Min(held)*memoryBlock), nil
}

// Discard implements Medium.
func (m *Memory) Discard(off, n int64) error {
	if off < 0 || n < 0 || off+n > m.size {
		return fmt.Errorf("storage: discard of %d bytes at %d: medium has %d", n, off, m.size)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, b := range m.blocks {
		from, to := max(off, i*memoryBlock), min(off+n, (i+1)*memoryBlock)
		switch {
		case to-from == memoryBlock:
			delete(m.blocks, i)
		case to > from:
			clear(b[from-i*memoryBlock : to-i*memoryBlock])
		}
	}
	return nil
}
