package storage

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// A Memory behaves like a byte slice under any sequence of operations.
func TestMemoryIsLikeBytes(t *testing.T) {
	const size, seed = 3*memoryBlock + 777, 1
	rnd := rand.New(rand.NewPCG(seed, 0))
	m, model := NewMemory(size), make([]byte, size)
	for i := range 2000 {
		off := rnd.Int64N(size)
		n := min(rnd.Int64N(2*memoryBlock), size-off)
		switch rnd.IntN(3) {
		case 0:
			p := bytes.Repeat([]byte{byte(1 + rnd.IntN(255))}, int(n))
			if got, err := m.WriteAt(p, off); got != int(n) || err != nil {
				t.Fatalf("seed %d, step %d: WriteAt(%d bytes, %d) = %d, %v", seed, i, n, off, got, err)
			}
			copy(model[off:], p)
		case 1:
			if err := m.Discard(off, n); err != nil {
				t.Fatalf("seed %d, step %d: Discard(%d, %d) = %v", seed, i, off, n, err)
			}
			clear(model[off : off+n])
		case 2:
			p := bytes.Repeat([]byte{0xff}, int(n))
			if got, err := m.ReadAt(p, off); got != int(n) || err != nil || !bytes.Equal(p, model[off:off+n]) {
				t.Fatalf("seed %d, step %d: ReadAt(%d bytes, %d) = %d, %v, or other bytes", seed, i, n, off, got, err)
			}
		}
	}
}

func TestMemoryEnds(t *testing.T) {
	m := NewMemory(100)
	if n, err := m.WriteAt(make([]byte, 10), 95); n != 0 || err == nil {
		t.Errorf("WriteAt past the end = %d, %v, want 0 and an error", n, err)
	}
	if n, err := m.ReadAt(make([]byte, 10), 95); n != 5 || !errors.Is(err, io.EOF) {
		t.Errorf("ReadAt past the end = %d, %v, want 5, EOF", n, err)
	}
	if n, err := m.ReadAt(make([]byte, 1), 100); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("ReadAt at the end = %d, %v, want 0, EOF", n, err)
	}
	for _, at := range []struct{ off, n int64 }{{-1, 1}, {0, -1}, {95, 10}} {
		if err := m.Discard(at.off, at.n); err == nil {
			t.Errorf("Discard(%d, %d) = nil, want an error", at.off, at.n)
		}
	}
	if _, err := m.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("ReadAt(-1) = nil, want an error")
	}
	if _, err := m.WriteAt(make([]byte, 1), -1); err == nil {
		t.Error("WriteAt(-1) = nil, want an error")
	}
}

func TestMemoryNextData(t *testing.T) {
	m := NewMemory(10 * memoryBlock)
	if _, err := m.NextData(0); !errors.Is(err, io.EOF) {
		t.Errorf("NextData(0) of an empty medium = %v, want EOF", err)
	}
	for _, block := range []int64{7, 2} {
		if _, err := m.WriteAt([]byte{1}, block*memoryBlock+5); err != nil {
			t.Fatal(err)
		}
	}
	for off, want := range map[int64]int64{
		0:                   2 * memoryBlock,
		2*memoryBlock + 100: 2*memoryBlock + 100, // at the granularity of blocks
		3 * memoryBlock:     7 * memoryBlock,
	} {
		if got, err := m.NextData(off); got != want || err != nil {
			t.Errorf("NextData(%d) = %d, %v, want %d", off, got, err, want)
		}
	}
	for _, off := range []int64{8 * memoryBlock, 10 * memoryBlock, 11 * memoryBlock} {
		if _, err := m.NextData(off); !errors.Is(err, io.EOF) {
			t.Errorf("NextData(%d) = %v, want EOF", off, err)
		}
	}
	if err := m.Discard(2*memoryBlock, memoryBlock); err != nil {
		t.Fatal(err)
	}
	if got, err := m.NextData(0); got != 7*memoryBlock || err != nil {
		t.Errorf("NextData(0) after Discard = %d, %v, want %d", got, err, 7*memoryBlock)
	}
}
