package console

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// The console keeps its last Size bytes with their numbers, Since returns all
// that is new, a store that applies Changes holds the same console, and Append
// leaves the older console unchanged.
func TestAppendSinceAndChangesAgree(t *testing.T) {
	const seed = 1
	rnd := rand.New(rand.NewPCG(seed, 0))
	var c *Console
	var all []byte
	stored := map[string][][]byte{}
	for range 400 {
		before, beforeText := c, string(first(c.Since(0)))
		part := make([]byte, 1+rnd.IntN(300))
		for i := range part {
			part[i] = byte(rnd.Uint32())
		}
		from := c.End()
		c = c.Append(part)
		all = append(all, part...)
		if got, at := c.Since(from); at != from || !bytes.Equal(got, part) {
			t.Fatalf("seed %d: Since(%d) = % x at %d, want % x", seed, from, got, at, part)
		}
		if c.End() != uint64(len(all)) {
			t.Fatalf("seed %d: End() = %d, want %d", seed, c.End(), len(all))
		}
		text, at := c.Since(0)
		if !bytes.Equal(text, all[at:]) || len(text) > Size || len(all) > Size && len(text) < Size-blockSize {
			t.Fatalf("seed %d: %d bytes from %d on are not the last of %d", seed, len(text), at, len(all))
		}
		if got := string(first(before.Since(0))); got != beforeText {
			t.Fatalf("seed %d: the console of before changed", seed)
		}
		changes := 0
		for key, piece := range c.Changes(before) {
			changes++
			if piece == nil {
				delete(stored, key)
			} else {
				stored[key] = append(stored[key], piece.([]byte))
			}
		}
		if changes > 3 {
			t.Fatalf("seed %d: %d bytes more change %d blocks", seed, len(part), changes)
		}
		again := c.Head().(*Console)
		for n := range c.blocks() {
			for _, added := range stored[blockKey(n)] {
				if err := again.Join(func(p any) error { *p.(*[]byte) = slices.Clone(added); return nil }); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got, from := again.Since(0); from != at || !bytes.Equal(got, text) || len(stored) != len(c.Blocks) {
			t.Fatalf("seed %d: from the store comes another console: %d bytes from %d on, of %d blocks", seed, len(got), from, len(stored))
		}
	}
}

func first(text []byte, _ uint64) []byte { return text }
