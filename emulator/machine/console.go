package machine

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

const (
	// consoleBlock is how much of a console is stored together: a line more
	// writes so much again, and no more.
	consoleBlock  = 1 << 10
	consoleBlocks = 8
	maxPrint      = consoleBlock * consoleBlocks
)

// Console is what a machine has shown on its serial console, as far as it is
// remembered, and who is at it. Bytes are numbered from 0 for ever, so that a
// reader can ask for what has come since. A nil Console has shown nothing.
type Console struct {
	First    uint64    `json:"first,omitempty"`  // number of the first byte of Blocks
	Blocks   [][]byte  `json:"blocks,omitempty"` // of consoleBlock bytes, but for the last
	Terminal *Terminal `json:"terminal,omitempty"`
}

// End is the number that the next byte will have.
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

// Since is what was shown from the byte of that number on; at is the number of
// the first byte of it: a later one where what was before is forgotten.
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

// with is the console with more text. What it was remains as it is.
func (c *Console) with(text []byte) *Console {
	out := new(Console)
	if c != nil {
		*out = *c
		out.Blocks = slices.Clone(c.Blocks)
	}
	for len(text) > 0 {
		n := len(out.Blocks)
		if n == 0 || len(out.Blocks[n-1]) == consoleBlock {
			out.Blocks = append(out.Blocks, nil)
			n++
		}
		last := out.Blocks[n-1]
		part := text[:min(len(text), consoleBlock-len(last))]
		out.Blocks[n-1] = slices.Concat(last, part)
		text = text[len(part):]
	}
	if n := len(out.Blocks) - consoleBlocks; n > 0 {
		out.First += uint64(n) * consoleBlock
		out.Blocks = slices.Clone(out.Blocks[n:])
	}
	return out
}

// fresh tells whether the next byte begins a line.
func (c *Console) fresh() bool {
	if c == nil || len(c.Blocks) == 0 {
		return true
	}
	last := c.Blocks[len(c.Blocks)-1]
	return last[len(last)-1] == '\n'
}

// Head is the console without its text, which a store keeps by the block.
func (c *Console) Head() any {
	if c == nil {
		return nil
	}
	head := *c
	head.Blocks = nil
	return &head
}

// Changes are the text that each block has more than in another console, by the
// block's key; nil is for a block that is gone, or that does not begin as it did.
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

// Join adds text to a console that is being put together again.
func (c *Console) Join(decode func(more any) error) error {
	var b []byte
	if err := decode(&b); err != nil {
		return err
	}
	if n := len(c.Blocks); n > 0 && len(c.Blocks[n-1])+len(b) <= consoleBlock {
		c.Blocks[n-1] = append(c.Blocks[n-1], b...)
		return nil
	}
	c.Blocks = append(c.Blocks, b)
	return nil
}

// blocks are the blocks by their numbers, which count from the first that the
// console ever had.
func (c *Console) blocks() iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		if c == nil {
			return
		}
		for i, b := range c.Blocks {
			if !yield(c.First/consoleBlock+uint64(i), b) {
				return
			}
		}
	}
}

func (c *Console) block(n uint64) ([]byte, bool) {
	if c == nil || n < c.First/consoleBlock {
		return nil, false
	}
	i := n - c.First/consoleBlock
	if i >= uint64(len(c.Blocks)) {
		return nil, false
	}
	return c.Blocks[i], true
}

func blockKey(n uint64) string { return fmt.Sprintf("%016x", n) }

// Print is the running system's own doing: a text on the console. Its lines
// end with \n or \r\n.
type Print struct {
	Boot uint64
	Text string
}

func (c Print) apply(m *Machine, _ time.Time) ([]Event, error) {
	switch {
	case m.st.OS == nil || m.st.OS.Boot != c.Boot:
		return nil, fmt.Errorf("%w: boot %d", ErrStale, c.Boot)
	case m.st.Phase == Paused:
		return nil, fmt.Errorf("%w: print while %s", ErrPower, m.st.Phase)
	case len(c.Text) > maxPrint:
		return nil, fmt.Errorf("machine: print: %d bytes: must be at most %d: %w", len(c.Text), maxPrint, ErrUnknown)
	case c.Text == "":
		return nil, nil
	}
	if !m.st.Console.fresh() { // what stands in the line belongs to somebody else
		m.print("\r\n")
	}
	m.print(strings.ReplaceAll(strings.ReplaceAll(c.Text, "\r\n", "\n"), "\n", "\r\n"))
	return nil, nil
}

// print shows a text as it is.
func (m *Machine) print(text string) {
	if text != "" {
		m.st.Console = m.st.Console.with([]byte(text))
	}
}

// lines shows lines. One that is empty is left out.
func (m *Machine) lines(all ...string) {
	var b strings.Builder
	for _, l := range all {
		if l != "" {
			b.WriteString(l)
			b.WriteString("\r\n")
		}
	}
	m.print(b.String())
}
