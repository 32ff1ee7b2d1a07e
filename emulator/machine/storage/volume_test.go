package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

var geometries = []Geometry{
	{Type: RAID0, Strip: 8 << 10, Spans: 1, Width: 1},
	{Type: RAID0, Strip: 8 << 10, Spans: 1, Width: 3},
	{Type: RAID1, Strip: 8 << 10, Spans: 1, Width: 2},
	{Type: RAID1, Strip: 8 << 10, Spans: 1, Width: 3},
	{Type: RAID5, Strip: 8 << 10, Spans: 1, Width: 3},
	{Type: RAID5, Strip: 4 << 10, Spans: 1, Width: 5},
	{Type: RAID6, Strip: 8 << 10, Spans: 1, Width: 4},
	{Type: RAID6, Strip: 4 << 10, Spans: 1, Width: 7},
	{Type: RAID10, Strip: 8 << 10, Spans: 3, Width: 2},
	{Type: RAID50, Strip: 8 << 10, Spans: 2, Width: 3},
	{Type: RAID60, Strip: 4 << 10, Spans: 2, Width: 4},
}

func (g Geometry) name() string { return fmt.Sprintf("%s %dx%d", g.Type, g.Spans, g.Width) }

// array is a volume under test: its drives, which of them are there, and what
// it should hold.
type array struct {
	*testing.T
	Geometry
	at     Extent
	rnd    *rand.Rand
	drives []*Memory
	gone   []bool
	volume *Volume
	flat   []byte
}

func newArray(t *testing.T, g Geometry, rnd *rand.Rand) *array {
	a := &array{T: t, Geometry: g, at: Extent{Offset: 20 << 10, Rows: 37}, rnd: rnd, gone: make([]bool, g.Drives())}
	for range g.Drives() {
		a.drives = append(a.drives, a.newDrive())
	}
	a.flat = make([]byte, g.Capacity(a.at.Rows))
	a.open()
	return a
}

// newDrive is a drive that has something before and after the array's part.
func (a *array) newDrive() *Memory {
	m := NewMemory(a.at.Offset + a.at.Rows*a.Strip + memoryBlock)
	for _, off := range []int64{a.at.Offset - 1, a.at.Offset + a.at.Rows*a.Strip} {
		a.must(m.WriteAt([]byte{0xee}, off))
	}
	return m
}

// intact fails when the array has written outside of its extents.
func (a *array) intact() {
	a.Helper()
	for i, m := range a.drives {
		for _, off := range []int64{a.at.Offset - 1, a.at.Offset + a.at.Rows*a.Strip} {
			b := []byte{0}
			a.must(m.ReadAt(b, off))
			if b[0] != 0xee {
				a.Errorf("drive %d at %d: the array wrote past its part", i, off)
			}
		}
	}
}

func (a *array) must(_ int, err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

func (a *array) open() {
	a.Helper()
	members := make([]Medium, len(a.drives))
	for i, m := range a.drives {
		if !a.gone[i] {
			members[i] = m
		}
	}
	var err error
	if a.volume, err = NewVolume(a.Geometry, a.at, members); err != nil {
		a.Fatal(err)
	}
}

func (a *array) part() (off, n int64) {
	off = a.rnd.Int64N(int64(len(a.flat)))
	return off, min(a.rnd.Int64N(1+a.rnd.Int64N(4*a.Row())), int64(len(a.flat))-off)
}

func (a *array) write() {
	off, n := a.part()
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(a.rnd.Uint32())
	}
	if got, err := a.volume.WriteAt(p, off); got != len(p) || err != nil {
		a.Fatalf("WriteAt(%d bytes, %d) = %d, %v", n, off, got, err)
	}
	copy(a.flat[off:], p)
}

func (a *array) discard() {
	off, n := a.part()
	if err := a.volume.Discard(off, n); err != nil {
		a.Fatalf("Discard(%d, %d) = %v", off, n, err)
	}
	clear(a.flat[off : off+n])
}

func (a *array) compare(off, n int64) {
	a.Helper()
	p := bytes.Repeat([]byte{0xff}, int(n))
	if got, err := a.volume.ReadAt(p, off); got != len(p) || err != nil {
		a.Fatalf("ReadAt(%d bytes, %d) = %d, %v", n, off, got, err)
	}
	if !bytes.Equal(p, a.flat[off:off+n]) {
		i := 0
		for p[i] == a.flat[off+int64(i)] {
			i++
		}
		a.Fatalf("ReadAt(%d bytes, %d): byte %d is %#x, want %#x; drives gone: %v", n, off, i, p[i], a.flat[off+int64(i)], a.gone)
	}
}

// search checks that NextData passes over zeros only.
func (a *array) search() {
	off, _ := a.part()
	next, err := a.volume.NextData(off)
	if errors.Is(err, io.EOF) {
		next = int64(len(a.flat))
	} else if err != nil {
		a.Fatalf("NextData(%d) = %v", off, err)
	}
	if next < off || next > int64(len(a.flat)) || !zeros(a.flat[off:next]) {
		a.Fatalf("NextData(%d) = %d: passes over data; drives gone: %v", off, next, a.gone)
	}
}

// fail takes a drive away if the volume outlives that.
func (a *array) fail() {
	i := a.rnd.IntN(len(a.drives))
	lost := 0
	for j := range a.Width {
		if a.gone[i/a.Width*a.Width+j] {
			lost++
		}
	}
	if a.gone[i] || lost == a.spare() {
		return
	}
	a.gone[i] = true
	a.open()
}

// replace puts another drive, which may hold old data, where one is gone.
func (a *array) replace() {
	for i := range a.drives {
		if !a.gone[i] {
			continue
		}
		target := a.newDrive()
		if a.rnd.IntN(2) == 0 { // the old one comes back
			target = a.drives[i]
		}
		for range 1 + a.rnd.IntN(2) { // twice: nothing happens
			if err := a.volume.Rebuild(i, target); err != nil {
				a.Fatalf("Rebuild(%d) = %v", i, err)
			}
		}
		a.drives[i], a.gone[i] = target, false
		a.open()
		return
	}
}

// A volume reads as the bytes that were written, while its drives fail, are
// replaced and rebuilt.
func TestVolumeMatchesByteSlice(t *testing.T) {
	for seed := range uint64(3) {
		for _, g := range geometries {
			t.Run(fmt.Sprintf("%s/seed %d", g.name(), seed), func(t *testing.T) {
				a := newArray(t, g, rand.New(rand.NewPCG(seed, 1)))
				for range 400 {
					switch n := a.rnd.IntN(100); {
					case n < 40:
						a.write()
					case n < 65:
						off, n := a.part()
						a.compare(off, n)
					case n < 80:
						a.discard()
					case n < 90:
						a.search()
					case n < 95:
						a.fail()
					default:
						a.replace()
					}
				}
				a.compare(0, int64(len(a.flat)))
				for range len(a.drives) {
					a.replace()
				}
				a.compare(0, int64(len(a.flat)))
				if wrong, err := a.volume.Check(); wrong != 0 || err != nil {
					t.Errorf("Check() = %d rows wrong, %v", wrong, err)
				}
				a.intact()
			})
		}
	}
}

// A volume survives the loss of every set of drives that its redundancy covers,
// and fails with one more.
func TestVolumesSurviveAllowedFailures(t *testing.T) {
	for _, g := range geometries {
		t.Run(g.name(), func(t *testing.T) {
			a := newArray(t, g, rand.New(rand.NewPCG(5, 1)))
			for range 50 {
				a.write()
			}
			for set := range 1 << g.Drives() {
				worst := 0
				members := make([]Medium, g.Drives())
				lost := make([]int, g.Spans)
				for i, m := range a.drives {
					if set>>i&1 == 0 {
						members[i] = m
						continue
					}
					lost[i/g.Width]++
					worst = max(worst, lost[i/g.Width])
				}
				v, err := NewVolume(g, a.at, members)
				if outlives := worst <= g.spare(); outlives != (err == nil) || !outlives && !errors.Is(err, ErrFailed) {
					t.Fatalf("without drives %b: %v", set, err)
				}
				if err == nil {
					a.volume = v
					a.compare(0, int64(len(a.flat)))
				}
			}
		})
	}
}

// A consistency check finds wrong copies and parity, repairs them, and does not
// change the data.
func TestConsistencyCheckRepairsRedundancy(t *testing.T) {
	for _, g := range geometries {
		if !g.Type.Redundant() {
			continue
		}
		t.Run(g.name(), func(t *testing.T) {
			a := newArray(t, g, rand.New(rand.NewPCG(6, 1)))
			for range 50 {
				a.write()
			}
			const row = 5
			parity := g.column(row, g.data()) // parity drive of the last span
			if levels[g.Type].mirror {
				parity = 1
			}
			drive := a.drives[len(a.drives)-g.Width+parity]
			at := a.at.Offset + row*g.Strip + 17
			b := []byte{0}
			a.must(drive.ReadAt(b, at))
			a.must(drive.WriteAt([]byte{^b[0]}, at))
			for _, want := range []int64{1, 0} {
				if wrong, err := a.volume.Check(); wrong != want || err != nil {
					t.Errorf("Check() = %d, %v, want %d", wrong, err, want)
				}
			}
			a.compare(0, int64(len(a.flat)))
			got := []byte{0}
			a.must(drive.ReadAt(got, at))
			if got[0] != b[0] {
				t.Error("the check did not repair the drive")
			}
		})
	}
}

// counted counts the bytes that are read and written.
type counted struct {
	*Memory
	bytes *int64
}

func (c counted) ReadAt(p []byte, off int64) (int, error) {
	*c.bytes += int64(len(p))
	return c.Memory.ReadAt(p, off)
}

func (c counted) WriteAt(p []byte, off int64) (int, error) {
	*c.bytes += int64(len(p))
	return c.Memory.WriteAt(p, off)
}

// Operations on four terabytes of holes read and write next to nothing.
func TestHolesCostNothing(t *testing.T) {
	for _, g := range geometries {
		if !g.Type.Redundant() {
			continue
		}
		g.Strip = 64 << 10
		t.Run(g.name(), func(t *testing.T) {
			var moved int64
			const rows = int64(4e12) >> 16
			var members []Medium
			for range g.Drives() {
				members = append(members, counted{NewMemory((rows + 1) * g.Strip), &moved})
			}
			at := Extent{Rows: rows}
			v, err := NewVolume(g, at, members)
			if err != nil {
				t.Fatal(err)
			}
			for _, off := range []int64{0, v.Size() / 3, v.Size() - 1} {
				if _, err := v.WriteAt([]byte{1}, off); err != nil {
					t.Fatal(err)
				}
			}
			moved = 0
			if wrong, err := v.Check(); wrong != 0 || err != nil {
				t.Errorf("Check() = %d, %v", wrong, err)
			}
			degraded := append([]Medium{nil}, members[1:]...)
			d, err := NewVolume(g, at, degraded)
			if err != nil {
				t.Fatal(err)
			}
			fresh := counted{NewMemory((rows + 1) * g.Strip), &moved}
			if err := d.Rebuild(0, fresh); err != nil {
				t.Fatal(err)
			}
			if err := Copy(NewMemory(v.Size()), d, v.Size()); err != nil {
				t.Fatal(err)
			}
			if err := d.Discard(1, d.Size()-2); err != nil {
				t.Fatal(err)
			}
			if most := 40 * int64(g.Drives()) * g.Strip; moved > most {
				t.Errorf("%d bytes were moved, want at most %d", moved, most)
			}
		})
	}
}

func TestVolumesEnd(t *testing.T) {
	a := newArray(t, geometries[5], rand.New(rand.NewPCG(8, 1)))
	v, size := a.volume, int64(len(a.flat))
	if v.Size() != size {
		t.Errorf("Size() = %d, want %d", v.Size(), size)
	}
	if n, err := v.ReadAt(make([]byte, 10), size-5); n != 5 || !errors.Is(err, io.EOF) {
		t.Errorf("ReadAt past the end = %d, %v, want 5, EOF", n, err)
	}
	if n, err := v.WriteAt(make([]byte, 10), size-5); n != 0 || err == nil {
		t.Errorf("WriteAt past the end = %d, %v, want 0 and an error", n, err)
	}
	if _, err := v.NextData(size); !errors.Is(err, io.EOF) {
		t.Errorf("NextData at the end = %v, want EOF", err)
	}
	for _, off := range []int64{-1, size} {
		if err := v.Discard(off, 1); err == nil {
			t.Errorf("Discard(%d, 1) = nil, want an error", off)
		}
	}
	if _, err := v.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("ReadAt(-1) = nil, want an error")
	}
	if _, err := v.NextData(-1); err == nil {
		t.Error("NextData(-1) = nil, want an error")
	}
	if _, err := NewVolume(a.Geometry, a.at, nil); err == nil || errors.Is(err, ErrFailed) {
		t.Errorf("NewVolume without drives = %v, want an error that is ours", err)
	}
}
