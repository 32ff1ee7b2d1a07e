package ipmi

import (
	"sync"

	"github.com/metalab-dev/metalab/emulator/machine/console"
)

// maxBacklog bounds the output, in bytes, that waits for a console. A serial port of 115.2 kbit/s
// prints as much in a minute and a half.
const maxBacklog = 1 << 20

// backlog implements sol.Screen. It keeps a machine's output until the console has taken it:
// a machine whose time is faster than its client's prints more between two acknowledgements
// than its console remembers.
type backlog struct {
	mu    sync.Mutex
	text  []byte
	first uint64 // number of the first byte of text
}

// newBacklog returns the backlog of the output from byte from on.
func newBacklog(c *console.Console, from uint64) *backlog {
	b := &backlog{first: from}
	b.add(func() *console.Console { return c })
	return b
}

// add adds the output that the console has and the backlog has not. It drops the oldest beyond
// maxBacklog. It asks for the console with its lock held, so that no caller adds an older one
// after a newer one.
func (b *backlog) add(current func() *console.Console) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := current()
	end := b.first + uint64(len(b.text))
	if c.End() < end { // the host was reset to a snapshot: its console begins again
		b.text, b.first = nil, c.End()
		return
	}
	text, at := c.Since(end)
	if at > end {
		b.text, b.first = nil, at
	}
	b.text = append(b.text, text...)
	if more := len(b.text) - maxBacklog; more > 0 {
		b.text, b.first = b.text[more:], b.first+uint64(more)
	}
}

// forget drops the output before byte to.
func (b *backlog) forget(to uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := min(to-min(to, b.first), uint64(len(b.text))); n > 0 {
		b.text, b.first = b.text[n:], b.first+n
	}
}

// Since implements sol.Screen. The text is valid after the backlog changes.
func (b *backlog) Since(from uint64) (text []byte, at uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at = min(max(from, b.first), b.first+uint64(len(b.text)))
	return b.text[at-b.first:], at
}

// End implements sol.Screen.
func (b *backlog) End() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first + uint64(len(b.text))
}
