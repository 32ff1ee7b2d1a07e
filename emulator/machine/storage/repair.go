package storage

import (
	"bytes"
	"errors"
	"io"
)

// Rebuild writes the content of the volume's index-th drive to target, and
// discards the rest of its part. The volume must lack that drive. Repeating it
// does no harm.
func (v *Volume) Rebuild(index int, target Medium) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := target.Discard(v.start, v.rows*v.Strip); err != nil {
		return err
	}
	var b buffers
	return v.eachRow(index/v.Width, func(at place) error {
		return v.pieces(at, v.Strip, func(at place, _, n int64) error {
			part, err := v.part(&b, at, index%v.Width, n)
			if err != nil || zeros(part) {
				return err
			}
			_, err = target.WriteAt(part, v.on(at))
			return err
		})
	})
}

// part returns what the index-th drive of a span holds in n bytes of a row.
func (v *Volume) part(b *buffers, at place, index int, n int64) ([]byte, error) {
	if levels[v.Type].mirror {
		b.release()
		out := b.take(n)
		return out, read(v.any(at.span), out, v.on(at))
	}
	data, err := v.load(b, at, n)
	if err != nil {
		return nil, err
	}
	for c, d := range data {
		if v.column(at.row, c) == index {
			return d, nil
		}
	}
	for i, sum := range v.parity(b, data, n) {
		if v.column(at.row, len(data)+i) == index {
			return sum, nil
		}
	}
	return nil, ErrFailed // unreachable: every drive has a column
}

// Check compares the drives' copies, or data with parity. Where they differ,
// data, or the first copy, is taken as correct and the rest is rewritten. It
// returns the number of rows that differed. All drives must be present.
func (v *Volume) Check() (wrong int64, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.Type.Redundant() {
		return 0, nil
	}
	var b buffers
	for s := range v.Spans {
		err := v.eachRow(s, func(at place) error {
			bad := false
			err := v.pieces(at, v.Strip, func(at place, _, n int64) error {
				repaired, err := v.repairRow(&b, at, n)
				bad = bad || repaired
				return err
			})
			if bad {
				wrong++
			}
			return err
		})
		if err != nil {
			return wrong, err
		}
	}
	return wrong, nil
}

// repairRow checks and repairs n bytes of one row.
func (v *Volume) repairRow(b *buffers, at place, n int64) (bad bool, err error) {
	var want [][]byte // expected bytes of the drives from column first on
	from := 1
	if levels[v.Type].mirror {
		b.release()
		first := b.take(n)
		if err := read(v.drives(at.span)[0], first, v.on(at)); err != nil {
			return false, err
		}
		for range v.Width - 1 {
			want = append(want, first)
		}
	} else {
		data, err := v.load(b, at, n)
		if err != nil {
			return false, err
		}
		from, want = v.data(), v.parity(b, data, n)
	}
	held := b.take(n)
	for i, w := range want {
		m := v.holder(at, from+i)
		if err := read(m, held, v.on(at)); err != nil {
			return bad, err
		}
		if bytes.Equal(held, w) {
			continue
		}
		bad = true
		if _, err := m.WriteAt(w, v.on(at)); err != nil {
			return bad, err
		}
	}
	return bad, nil
}

// eachRow calls f for each row of a span in which any drive has data.
func (v *Volume) eachRow(span int, f func(at place) error) error {
	for row := int64(0); ; row++ {
		var err error
		if row, err = v.spanRow(span, row); err != nil || row >= v.rows {
			return err
		}
		if err := f(place{row: row, span: span}); err != nil {
			return err
		}
	}
}

// zeros reports whether all of b is zero.
func zeros(b []byte) bool { return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1]) }

const copyBlock = 1 << 20

// Copy copies the first n bytes of src to dst, including holes.
func Copy(dst, src Medium, n int64) error {
	b := make([]byte, copyBlock)
	for off := int64(0); off < n; {
		at, err := src.NextData(off)
		if errors.Is(err, io.EOF) || err == nil && at > n {
			at = n
		} else if err != nil {
			return err
		}
		if err := dst.Discard(off, at-off); err != nil || at == n {
			return err
		}
		part := b[:min(copyBlock, n-at)]
		if err := read(src, part, at); err != nil {
			return err
		}
		if _, err := dst.WriteAt(part, at); err != nil {
			return err
		}
		off = at + int64(len(part))
	}
	return nil
}
