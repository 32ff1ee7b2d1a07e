// Package console holds a server's serial console: the bytes that it has shown,
// and the state of the terminal that somebody types at. Both are values: a
// change makes a new one. The package knows neither the machine that prints nor
// what a typed line or key means to it.
package console

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
)

const (
	// blockSize is the unit in which the console is stored, in bytes: one more
	// line rewrites at most this much.
	blockSize = 1 << 10
	maxBlocks = 8
)

// Size is the number of bytes that a console remembers at most.
const Size = blockSize * maxBlocks

// Console is the output of a serial console and the terminal at it. Bytes are
// numbered from 0 and numbers never repeat, so that a reader can ask for all
// that came after a byte; only the last Size bytes are kept. A nil Console has
// shown nothing.
type Console struct {
	First    uint64    `json:"first,omitempty"`  // number of the first byte of Blocks
	Blocks   [][]byte  `json:"blocks,omitempty"` // blockSize bytes each, except the last
	Terminal *Terminal `json:"terminal,omitempty"`
}

// End returns the number that the next byte will have.
func (c *Console) End() uint64 {
	if c == nil {
		return 0
	}
	end := c.First
	for _, b := range c.Blocks {
		end += uint64(len(b))
	}
	return end
}

// Since returns the bytes from number from on. at is the number of the first
// byte returned: it is higher than from when older bytes were dropped.
func (c *Console) Since(from uint64) (text []byte, at uint64) {
	if c == nil {
		return nil, 0
	}
	end := c.End()
	from = min(max(from, c.First), end)
	text = make([]byte, 0, end-from)
	at = c.First
	for _, b := range c.Blocks {
		if next := at + uint64(len(b)); next > from {
			text = append(text, b[max(from, at)-at:]...)
		}
		at += uint64(len(b))
	}
	return text, from
}

// Append returns the console with text after its last byte; c does not change.
func (c *Console) Append(text []byte) *Console {
	out := new(Console)
	if c != nil {
		*out = *c
		out.Blocks = slices.Clone(c.Blocks)
	}
	for len(text) > 0 {
		n := len(out.Blocks)
		if n == 0 || len(out.Blocks[n-1]) == blockSize {
			out.Blocks = append(out.Blocks, nil)
			n++
		}
		last := out.Blocks[n-1]
		part := text[:min(len(text), blockSize-len(last))]
		out.Blocks[n-1] = slices.Concat(last, part)
		text = text[len(part):]
	}
	if n := len(out.Blocks) - maxBlocks; n > 0 {
		out.First += uint64(n) * blockSize
		out.Blocks = slices.Clone(out.Blocks[n:])
	}
	return out
}

// LineStart returns the number of the first byte of the last line.
func (c *Console) LineStart() uint64 {
	text, at := c.Since(0)
	return at + uint64(bytes.LastIndexByte(text, '\n')+1)
}

// AtLineStart reports whether the next byte begins a line.
func (c *Console) AtLineStart() bool {
	if c == nil || len(c.Blocks) == 0 {
		return true
	}
	last := c.Blocks[len(c.Blocks)-1]
	return last[len(last)-1] == '\n'
}

// Head returns the console without its blocks, which a store writes one by one.
func (c *Console) Head() any {
	if c == nil {
		return nil
	}
	head := *c
	head.Blocks = nil
	return &head
}

// Changes yields what a store that holds the console before must write: by block
// key, the bytes to append to that block; nil deletes the block, which is gone or
// no longer begins with the bytes it had.
func (c *Console) Changes(before any) iter.Seq2[string, any] {
	was, _ := before.(*Console)
	return func(yield func(string, any) bool) {
		for n := range was.blocks() {
			if _, ok := c.block(n); !ok && !yield(blockKey(n), nil) {
				return
			}
		}
		for n, b := range c.blocks() {
			old, ok := was.block(n)
			if !bytes.HasPrefix(b, old) {
				if !yield(blockKey(n), nil) {
					return
				}
				old = nil
			}
			if (!ok || len(old) < len(b)) && !yield(blockKey(n), b[len(old):]) {
				return
			}
		}
	}
}

// Join appends the bytes of one stored change while a console is read back from
// a store, in the order in which Changes yielded them.
func (c *Console) Join(decode func(more any) error) error {
	var b []byte
	if err := decode(&b); err != nil {
		return err
	}
	if n := len(c.Blocks); n > 0 && len(c.Blocks[n-1])+len(b) <= blockSize {
		c.Blocks[n-1] = append(c.Blocks[n-1], b...)
		return nil
	}
	c.Blocks = append(c.Blocks, b)
	return nil
}

// blocks yields the blocks with their numbers, counted from the first block that
// the console ever had.
func (c *Console) blocks() iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		if c == nil {
			return
		}
		for i, b := range c.Blocks {
			if !yield(c.First/blockSize+uint64(i), b) {
				return
			}
		}
	}
}

func (c *Console) block(n uint64) ([]byte, bool) {
	if c == nil || n < c.First/blockSize {
		return nil, false
	}
	i := n - c.First/blockSize
	if i >= uint64(len(c.Blocks)) {
		return nil, false
	}
	return c.Blocks[i], true
}

func blockKey(n uint64) string { return fmt.Sprintf("%016x", n) }
