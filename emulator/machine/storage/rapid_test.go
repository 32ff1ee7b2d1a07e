package storage

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// breakable is a drive that can stop working under a volume that is open.
type breakable struct {
	*Memory
	broken bool
}

var errBroken = errors.New("the drive does not answer")

func (b *breakable) ReadAt(p []byte, off int64) (int, error) {
	if b.broken {
		return 0, errBroken
	}
	return b.Memory.ReadAt(p, off)
}

func (b *breakable) WriteAt(p []byte, off int64) (int, error) {
	if b.broken {
		return 0, errBroken
	}
	return b.Memory.WriteAt(p, off)
}

func (b *breakable) NextData(off int64) (int64, error) {
	if b.broken {
		return 0, errBroken
	}
	return b.Memory.NextData(off)
}

func (b *breakable) Discard(off, n int64) error {
	if b.broken {
		return errBroken
	}
	return b.Memory.Discard(off, n)
}

// anyGeometry draws how a volume lies on its drives.
func anyGeometry(t *rapid.T) Geometry {
	g := Geometry{
		Type:  rapid.SampledFrom([]RAIDType{RAID0, RAID1, RAID5, RAID6, RAID10, RAID50, RAID60}).Draw(t, "type"),
		Strip: rapid.SampledFrom([]int64{4 << 10, 8 << 10}).Draw(t, "strip"), Spans: 1,
	}
	l := levels[g.Type]
	least := max(1, l.parity+1)
	if l.mirror {
		least = 2
	} else if l.parity > 0 {
		least = l.parity + 2
	}
	g.Width = rapid.IntRange(least, least+3).Draw(t, "width")
	if l.nested {
		g.Spans = rapid.IntRange(2, 3).Draw(t, "spans")
	}
	return g
}

// model is a volume, and the bytes that it should hold: that is all there is to
// know of it.
type model struct {
	g      Geometry
	at     Extent
	drives []*breakable
	online []bool // what the drive holds is current
	volume *Volume
	flat   []byte
	failed bool // it has lost more than its level makes up for
}

// lost is how many drives each span lacks.
func (m *model) lost() []int {
	out := make([]int, m.g.Spans)
	for i, on := range m.online {
		if !on {
			out[i/m.g.Width]++
		}
	}
	return out
}

// open puts the drives together that are online.
func (m *model) open(t *rapid.T) {
	members := make([]Medium, len(m.drives))
	for i, d := range m.drives {
		if m.online[i] {
			members[i] = d
		}
	}
	m.failed = false
	for _, n := range m.lost() {
		m.failed = m.failed || n > m.g.spare()
	}
	v, err := NewVolume(m.g, m.at, members)
	if m.failed != (err != nil) || err != nil && !errors.Is(err, ErrFailed) {
		t.Fatalf("%+v without %v: NewVolume = %v, want failed: %v", m.g, m.lost(), err, m.failed)
	}
	m.volume = v
}

// readsBack compares the volume's content with the bytes that were written.
func (m *model) readsBack(t *rapid.T) {
	if m.failed {
		return
	}
	got := make([]byte, len(m.flat))
	if n, err := m.volume.ReadAt(got, 0); err != nil || n != len(got) {
		t.Fatalf("%+v without %v: ReadAt = %d, %v", m.g, m.lost(), n, err)
	}
	if !bytes.Equal(got, m.flat) {
		i := 0
		for got[i] == m.flat[i] {
			i++
		}
		t.Fatalf("%+v without %v: %#x at %d, want %#x", m.g, m.lost(), got[i], i, m.flat[i])
	}
}

// After any sequence of writes, lost and replaced drives and rebuilds, a read
// returns the bytes that were written or an error, never other bytes.
func TestVolumesReadBackWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{g: anyGeometry(t), at: Extent{Offset: 16 << 10, Rows: rapid.Int64Range(1, 9).Draw(t, "rows")}}
		for range m.g.Drives() {
			m.drives = append(m.drives, &breakable{Memory: NewMemory(m.at.Offset + m.at.Rows*m.g.Strip)})
			m.online = append(m.online, true)
		}
		m.flat = make([]byte, m.g.Capacity(m.at.Rows))
		m.open(t)
		drive := rapid.IntRange(0, len(m.drives)-1)
		t.Repeat(map[string]func(*rapid.T){
			"": m.readsBack,
			"write": func(t *rapid.T) {
				if m.failed {
					t.Skip("there is no volume")
				}
				off := rapid.IntRange(0, len(m.flat)-1).Draw(t, "off")
				p := bytes.Repeat([]byte{byte(rapid.IntRange(0, 255).Draw(t, "byte")), byte(off)}, rapid.IntRange(1, 20_000).Draw(t, "n"))
				p = p[:min(len(p), len(m.flat)-off)]
				if _, err := m.volume.WriteAt(p, int64(off)); err != nil {
					t.Fatalf("WriteAt: %v", err)
				}
				copy(m.flat[off:], p)
			},
			"discard": func(t *rapid.T) {
				if m.failed {
					t.Skip("there is no volume")
				}
				off := rapid.IntRange(0, len(m.flat)-1).Draw(t, "off")
				n := rapid.IntRange(0, len(m.flat)-off).Draw(t, "n")
				if err := m.volume.Discard(int64(off), int64(n)); err != nil {
					t.Fatalf("Discard: %v", err)
				}
				clear(m.flat[off : off+n])
			},
			"lose": func(t *rapid.T) {
				i := drive.Draw(t, "drive")
				if !m.online[i] || m.failed {
					t.Skip("it is lost already")
				}
				m.online[i] = false
				m.open(t)
				if m.failed { // it was one too many: the drive comes back as it was
					m.online[i] = true
					m.open(t)
				}
			},
			"break while open": func(t *rapid.T) {
				if m.failed {
					t.Skip("there is no volume")
				}
				i := drive.Draw(t, "drive")
				m.drives[i].broken = true
				got := make([]byte, len(m.flat))
				n, err := m.volume.ReadAt(got, 0)
				if !bytes.Equal(got[:n], m.flat[:n]) {
					t.Fatalf("%+v with drive %d broken: other bytes than were written, %v", m.g, i, err)
				}
				m.drives[i].broken = false
			},
			"replace": func(t *rapid.T) {
				i := drive.Draw(t, "drive")
				if m.failed || m.online[i] {
					t.Skip("nothing to replace")
				}
				fresh := &breakable{Memory: NewMemory(m.at.Offset + m.at.Rows*m.g.Strip)}
				junk := bytes.Repeat([]byte{0xa5}, int(m.at.Rows*m.g.Strip)) // bytes from the drive's former use
				if _, err := fresh.WriteAt(junk, m.at.Offset); err != nil {
					t.Fatal(err)
				}
				if err := m.volume.Rebuild(i, fresh); err != nil {
					t.Fatalf("%+v: Rebuild(%d) = %v", m.g, i, err)
				}
				m.drives[i], m.online[i] = fresh, true
				m.open(t)
			},
			"check": func(t *rapid.T) {
				if m.failed {
					t.Skip("there is no volume")
				}
				for _, n := range m.lost() {
					if n > 0 {
						t.Skip("a degraded volume is not checked")
					}
				}
				if wrong, err := m.volume.Check(); err != nil || wrong != 0 {
					t.Fatalf("%+v: Check = %d, %v", m.g, wrong, err)
				}
			},
		})
	})
}

// A volume opens with any set of lost drives that its RAID level covers, and with
// no larger set.
func TestFailedVolumeReturnsErrors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGeometry(t)
		members := make([]Medium, g.Drives())
		lost := make([]int, g.Spans)
		for i := range members {
			if rapid.IntRange(0, 3).Draw(t, "there") > 0 {
				members[i] = NewMemory(1 << 20)
			} else {
				lost[i/g.Width]++
			}
		}
		fails := false
		for _, n := range lost {
			fails = fails || n > g.spare()
		}
		_, err := NewVolume(g, Extent{Rows: 4}, members)
		if fails != errors.Is(err, ErrFailed) || !fails && err != nil {
			t.Fatalf("%+v without %v: NewVolume = %v", g, lost, err)
		}
	})
}

// Rebuilding a drive and reading without it, beside the copy of as many bytes
// from one drive to another, which is as fast as it could be.
func BenchmarkVolume(b *testing.B) {
	const rows = 64
	fill := func(m Medium, n int64) {
		if _, err := m.WriteAt(pattern(n, 7), 0); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("plain copy", func(b *testing.B) {
		const n = rows * 256 << 10
		from, to := NewMemory(n), NewMemory(n)
		fill(from, n)
		b.SetBytes(n)
		for b.Loop() {
			if err := Copy(to, from, n); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, g := range []Geometry{
		{Type: RAID1, Strip: 256 << 10, Spans: 1, Width: 2}, {Type: RAID5, Strip: 256 << 10, Spans: 1, Width: 4},
		{Type: RAID6, Strip: 256 << 10, Spans: 1, Width: 5}, {Type: RAID10, Strip: 256 << 10, Spans: 2, Width: 2},
	} {
		members := make([]Medium, g.Drives())
		for i := range members {
			members[i] = NewMemory(rows * g.Strip)
		}
		v, err := NewVolume(g, Extent{Rows: rows}, members)
		if err != nil {
			b.Fatal(err)
		}
		fill(v, v.Size())
		members[0] = nil
		if v, err = NewVolume(g, Extent{Rows: rows}, members); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("rebuild %s", g.Type), func(b *testing.B) {
			to := NewMemory(rows * g.Strip)
			b.SetBytes(rows * g.Strip)
			for b.Loop() {
				if err := v.Rebuild(0, to); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("degraded read %s", g.Type), func(b *testing.B) {
			p := make([]byte, 1<<20)
			b.SetBytes(v.Size())
			for b.Loop() {
				for off := int64(0); off < v.Size(); off += int64(len(p)) {
					if _, err := v.ReadAt(p[:min(int64(len(p)), v.Size()-off)], off); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
