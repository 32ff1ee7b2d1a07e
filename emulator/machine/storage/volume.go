package storage

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrFailed means that a volume has lost more drives than its redundancy
// allows.
var ErrFailed = errors.New("storage: too many drives of the volume are gone")

// Volume is the content of an array of drives. It is a Medium, and safe for
// concurrent use if all users share the Volume.
type Volume struct {
	Geometry
	start   int64    // offset of the array on each drive
	rows    int64    // per span
	members []Medium // span after span; nil: missing

	// Only one writer may change a row at a time, or its parity would be wrong.
	mu sync.RWMutex
}

var _ Medium = (*Volume)(nil)

// Extent is an array's part of each drive.
type Extent struct {
	Offset int64 `json:"offset"` // bytes
	Rows   int64 `json:"rows"`
}

// NewVolume assembles drives, span after span; nil is a missing drive. It fails
// with ErrFailed when a span lacks too many.
func NewVolume(g Geometry, at Extent, members []Medium) (*Volume, error) {
	if !g.Type.Known() || g.Strip <= 0 || g.Spans < 1 || g.data() < 1 || len(members) != g.Drives() {
		return nil, fmt.Errorf("storage: %d drives do not make a volume of %+v", len(members), g)
	}
	for s := range g.Spans {
		lost := 0
		for _, m := range members[s*g.Width : (s+1)*g.Width] {
			if m == nil {
				lost++
			}
		}
		if lost > g.spare() {
			return nil, fmt.Errorf("%w: %d of span %d", ErrFailed, lost, s)
		}
	}
	return &Volume{Geometry: g, start: at.Offset, rows: at.Rows, members: members}, nil
}

// Size returns the volume's capacity in bytes.
func (v *Volume) Size() int64 { return v.Capacity(v.rows) }

// Sync flushes the drives of the volume: writes are then as durable as the drives make them.
func (v *Volume) Sync() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var errs []error
	for _, m := range v.members {
		if m != nil {
			errs = append(errs, flush(m))
		}
	}
	return errors.Join(errs...)
}

// drives returns the drives of a span.
func (v *Volume) drives(span int) []Medium { return v.members[span*v.Width : (span+1)*v.Width] }

// on returns the offset of a position on its drive.
func (v *Volume) on(p place) int64 { return v.start + p.row*v.Strip + p.in }

// holder returns the drive with a column of a row; nil when it is missing.
func (v *Volume) holder(p place, column int) Medium {
	return v.drives(p.span)[v.column(p.row, column)]
}

// any returns the first drive of a span that is present.
func (v *Volume) any(span int) Medium {
	for _, m := range v.drives(span) {
		if m != nil {
			return m
		}
	}
	return nil // NewVolume refuses such a span
}

// ReadAt implements io.ReaderAt.
func (v *Volume) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("storage: read at %d: negative offset", off)
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	var b buffers
	n := 0
	for n < len(p) && off < v.Size() {
		at := v.locate(off)
		part := p[n : n+int(min(int64(len(p)-n), v.Strip-at.in))]
		if err := v.readStrip(&b, part, at); err != nil {
			return n, err
		}
		n += len(part)
		off += int64(len(part))
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readStrip reads a part of one strip.
func (v *Volume) readStrip(b *buffers, p []byte, at place) error {
	m := v.holder(at, at.column)
	if levels[v.Type].mirror {
		m = v.any(at.span)
	}
	if m != nil {
		return read(m, p, v.on(at))
	}
	return v.pieces(at, int64(len(p)), func(in place, from, n int64) error {
		data, err := v.load(b, in, n)
		if err != nil {
			return err
		}
		copy(p[from:], data[at.column])
		return nil
	})
}

// piece is how much of each strip is computed at a time, so that a row's pieces
// stay in the processor's cache.
const piece = 64 << 10

// pieces calls f for each piece of n bytes of a strip, with its offset among
// them and its length.
func (v *Volume) pieces(at place, n int64, f func(at place, from, n int64) error) error {
	for from := int64(0); from < n; from += piece {
		if err := f(at, from, min(piece, n-from)); err != nil {
			return err
		}
		at.in += piece
	}
	return nil
}

// read fills p; a Medium may return io.EOF with its last bytes.
func read(m Medium, p []byte, off int64) error {
	n, err := m.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	return err
}

// load reads n bytes of every strip of a row from at.in on, and computes those
// of missing drives. The result belongs to b until the next call.
func (v *Volume) load(b *buffers, at place, n int64) (data [][]byte, err error) {
	b.release()
	columns, parity := v.data(), levels[v.Type].parity
	all := b.row(columns + parity)
	var lost []int // data columns
	for c := range columns {
		all[c] = b.take(n)
		if m := v.holder(at, c); m == nil {
			lost = append(lost, c)
		} else if err := read(m, all[c], v.on(at)); err != nil {
			return nil, err
		}
	}
	data = all[:columns]
	// As many of P and Q as columns are missing.
	syndrome := [2][]byte{}
	left := len(lost)
	for i := 0; i < parity && left > 0; i++ {
		m := v.holder(at, columns+i)
		if m == nil {
			continue
		}
		all[columns+i] = b.take(n)
		if err := read(m, all[columns+i], v.on(at)); err != nil {
			return nil, err
		}
		syndrome[i], left = all[columns+i], left-1
	}
	switch p, q := syndrome[0], syndrome[1]; {
	case left > 0:
		return nil, fmt.Errorf("%w: row %d of span %d", ErrFailed, at.row, at.span)
	case len(lost) == 0:
	case len(lost) == 2:
		solve(data, lost[0], lost[1], p, q, b.take(n), b.take(n))
	case p != nil:
		solveP(data, lost[0], p)
	default:
		solveQ(data, lost[0], q, b.take(n))
	}
	return data, nil
}

// WriteAt implements io.WriterAt; it refuses to write past the end.
func (v *Volume) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > v.Size() {
		return 0, fmt.Errorf("storage: write of %d bytes at %d: volume has %d", len(p), off, v.Size())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	var b buffers
	n := 0
	for n < len(p) {
		at := v.locate(off)
		part := p[n : n+int(min(int64(len(p)-n), v.Row()-off%v.Row()))]
		if err := v.writeRow(&b, part, at); err != nil {
			return n, err
		}
		n += len(part)
		off += int64(len(part))
	}
	return n, nil
}

// writeRow writes a part of one row.
func (v *Volume) writeRow(b *buffers, p []byte, at place) error {
	switch l := levels[v.Type]; {
	case l.mirror:
		for _, m := range v.drives(at.span) {
			if m == nil {
				continue
			}
			if _, err := m.WriteAt(p, v.on(at)); err != nil {
				return err
			}
		}
		return nil
	case l.parity > 0:
		return v.writeParity(b, p, at)
	}
	return v.eachStrip(at, int64(len(p)), func(at place, from, n int64) error {
		_, err := v.holder(at, at.column).WriteAt(p[from:from+n], v.on(at))
		return err
	})
}

// eachStrip calls f for each strip of n bytes of a row, with the offset of the
// strip's share among them and its length.
func (v *Volume) eachStrip(at place, n int64, f func(at place, from, n int64) error) error {
	for from := int64(0); from < n; {
		share := min(n-from, v.Strip-at.in)
		if err := f(at, from, share); err != nil {
			return err
		}
		from += share
		at.column, at.in = at.column+1, 0
	}
	return nil
}

// writeParity writes a part of one row and recomputes the row's parity from all
// its data, so that the parity is correct whatever it was before.
func (v *Volume) writeParity(b *buffers, p []byte, at place) error {
	touched := place{row: at.row, span: at.span, in: at.in}
	n := int64(len(p))
	if at.in+n > v.Strip { // more than one strip
		touched.in, n = 0, v.Strip
	}
	var data [][]byte
	if int64(len(p)) == v.Row() { // the entire row is new
		b.release()
		data = b.row(v.data())
		for c := range data {
			data[c] = p[int64(c)*v.Strip : int64(c+1)*v.Strip]
		}
	} else {
		var err error
		if data, err = v.load(b, touched, n); err != nil {
			return err
		}
		_ = v.eachStrip(at, int64(len(p)), func(at place, from, n int64) error {
			copy(data[at.column][at.in-touched.in:], p[from:from+n])
			return nil
		})
	}
	err := v.eachStrip(at, int64(len(p)), func(at place, from, n int64) error {
		m := v.holder(at, at.column)
		if m == nil { // parity holds it
			return nil
		}
		_, err := m.WriteAt(p[from:from+n], v.on(at))
		return err
	})
	if err != nil {
		return err
	}
	for i, sum := range v.parity(b, data, n) {
		if m := v.holder(touched, v.data()+i); m != nil {
			if _, err := m.WriteAt(sum, v.on(touched)); err != nil {
				return err
			}
		}
	}
	return nil
}

// parity returns P, or P and Q, of a row's data; it belongs to b, as the data
// may.
func (v *Volume) parity(b *buffers, data [][]byte, n int64) [][]byte {
	out := make([][]byte, 2)[:levels[v.Type].parity]
	for i := range out {
		out[i] = b.take(n)
	}
	if len(out) > 0 {
		syndromes(data, out[0], out[:2][1])
	}
	return out
}
