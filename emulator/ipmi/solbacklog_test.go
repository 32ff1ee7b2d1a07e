package ipmi

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine/console"
)

// TestBacklogKeepsWhatTheConsoleForgets prints more than a console remembers, and more than
// the backlog keeps.
func TestBacklogKeepsWhatTheConsoleForgets(t *testing.T) {
	var c *console.Console
	c = c.Append([]byte("before"))
	b := newBacklog(c, 3)
	current := func() *console.Console { return c }
	want := []byte("ore")
	for i := range 3 * console.Size / 8 {
		line := fmt.Appendf(nil, "%06d\r\n", i)
		c, want = c.Append(line), append(want, line...)
		b.add(current)
	}
	if got, at := b.Since(3); at != 3 || !bytes.Equal(got, want) || b.End() != c.End() {
		t.Errorf("Since(3) = %d bytes from %d, want %d from 3", len(got), at, len(want))
	}
	b.forget(1000)
	if got, at := b.Since(0); at != 1000 || !bytes.Equal(got, want[997:]) {
		t.Errorf("after forget: %d bytes from %d, want %d from 1000", len(got), at, len(want)-997)
	}
	for range 2*maxBacklog/console.Size + 1 {
		c = c.Append(bytes.Repeat([]byte{'x'}, console.Size/2))
		b.add(current)
	}
	if got, at := b.Since(0); len(got) != maxBacklog || at != c.End()-maxBacklog {
		t.Errorf("a full backlog has %d bytes from %d, want %d from %d", len(got), at, maxBacklog, c.End()-maxBacklog)
	}
	c = new(console.Console).Append([]byte("new"))
	b.add(current)
	if got, _ := b.Since(0); len(got) != 0 || b.End() != 3 {
		t.Errorf("after the console began again: %q, end %d", got, b.End())
	}
}
