package storage

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestGaloisField(t *testing.T) {
	for a := range 256 {
		a := byte(a)
		if product(a, 1) != a || product(1, a) != a {
			t.Errorf("%d times 1 = %d", a, product(a, 1))
		}
		if a != 0 && product(a, inverse(a)) != 1 {
			t.Errorf("%d times its inverse = %d", a, product(a, inverse(a)))
		}
		for b := range 256 {
			b := byte(b)
			if product(a, b) != longProduct(a, b) {
				t.Fatalf("%d times %d = %d, want %d", a, b, product(a, b), longProduct(a, b))
			}
		}
	}
}

// longProduct multiplies as one does on paper.
func longProduct(a, b byte) byte {
	sum := 0
	for i := range 8 {
		if b>>i&1 == 1 {
			sum ^= int(a) << i
		}
	}
	for i := 14; i >= 8; i-- {
		if sum>>i&1 == 1 {
			sum ^= polynomial << (i - 8)
		}
	}
	return byte(sum)
}

func TestDoubleMatchesProduct(t *testing.T) {
	all := make([]byte, 256+5) // not whole words
	for i := range all {
		all[i] = byte(i)
	}
	got := bytes.Clone(all)
	double(got)
	for i, x := range all {
		if got[i] != product(x, 2) {
			t.Errorf("double(%d) = %d, want %d", x, got[i], product(x, 2))
		}
	}
}

// Any two lost columns of a row are reconstructed from the others.
func TestAnyTwoColumnsAreSolved(t *testing.T) {
	const seed, width, size = 7, 10, 129
	rnd := rand.New(rand.NewPCG(seed, 0))
	row := func() [][]byte {
		data := make([][]byte, width)
		for i := range data {
			data[i] = make([]byte, size)
			for j := range data[i] {
				data[i][j] = byte(rnd.Uint32())
			}
		}
		return data
	}
	want := row()
	p, q := make([]byte, size), make([]byte, size)
	syndromes(want, p, q)
	for x := range width {
		got := row()
		for i := range got {
			copy(got[i], want[i])
		}
		clear(got[x])
		solveQ(got, x, bytes.Clone(q), make([]byte, size))
		if !bytes.Equal(got[x], want[x]) {
			t.Errorf("seed %d: solveQ(%d) is wrong", seed, x)
		}
		got[x] = row()[0] // anything
		solveP(got, x, p)
		if !bytes.Equal(got[x], want[x]) {
			t.Errorf("seed %d: solveP(%d) is wrong", seed, x)
		}
		for y := x + 1; y < width; y++ {
			got := row()
			for i := range got {
				if i != x && i != y {
					copy(got[i], want[i])
				}
			}
			solve(got, x, y, bytes.Clone(p), bytes.Clone(q), row()[0], row()[0])
			if !bytes.Equal(got[x], want[x]) || !bytes.Equal(got[y], want[y]) {
				t.Errorf("seed %d: solve(%d, %d) is wrong", seed, x, y)
			}
		}
	}
}

// locate gives each byte of a volume one place, which no other byte has; the
// remaining places hold parity.
func TestGeometryIsABijection(t *testing.T) {
	for _, g := range []Geometry{
		{Type: RAID0, Strip: 4, Spans: 1, Width: 3}, {Type: RAID1, Strip: 4, Spans: 1, Width: 2},
		{Type: RAID5, Strip: 4, Spans: 1, Width: 4}, {Type: RAID6, Strip: 4, Spans: 1, Width: 5},
		{Type: RAID10, Strip: 4, Spans: 3, Width: 2}, {Type: RAID50, Strip: 4, Spans: 2, Width: 3},
		{Type: RAID60, Strip: 4, Spans: 2, Width: 4},
	} {
		const rows = 11
		seen := map[place]bool{}
		for off := range g.Capacity(rows) {
			p := g.locate(off)
			if g.offset(p) != off {
				t.Fatalf("%+v: offset(locate(%d)) = %d", g, off, g.offset(p))
			}
			if seen[p] || p.row >= rows || p.span >= g.Spans || p.column >= g.data() || p.in >= g.Strip {
				t.Fatalf("%+v: locate(%d) = %+v", g, off, p)
			}
			seen[p] = true
		}
		for row := range int64(rows) {
			held := map[int]bool{}
			for c := range g.data() + levels[g.Type].parity {
				held[g.column(row, c)] = true
			}
			if want := g.data() + levels[g.Type].parity; len(held) != want {
				t.Errorf("%+v: row %d is on %d drives, want %d", g, row, len(held), want)
			}
		}
		for rows := int64(1); rows < 5; rows++ {
			size := g.Capacity(rows)
			if g.RowsFor(size) != rows || g.RowsFor(size-1) != rows || g.RowsFor(size+1) != rows+1 {
				t.Errorf("%+v: RowsFor(%d and its neighbours) = %d, %d, %d", g, size, g.RowsFor(size-1), g.RowsFor(size), g.RowsFor(size+1))
			}
		}
	}
}
