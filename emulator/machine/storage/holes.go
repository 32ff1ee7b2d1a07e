package storage

import (
	"errors"
	"fmt"
	"io"
)

// NextData implements Medium. For a missing drive it assumes data wherever
// another drive has data in the same row, which may be too much.
func (v *Volume) NextData(off int64) (int64, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.nextData(off)
}

func (v *Volume) nextData(off int64) (int64, error) {
	if off < 0 {
		return 0, fmt.Errorf("storage: search at %d: negative offset", off)
	}
	for at := v.locate(off); off < v.Size(); at = v.locate(off) {
		for ; at.column < v.data(); at.column, at.in = at.column+1, 0 {
			in, found, err := v.dataInStrip(at)
			if err != nil {
				return 0, err
			}
			if found {
				at.in = in
				return v.offset(at), nil
			}
		}
		next, err := v.nextRow(at.row*int64(v.Spans) + int64(at.span) + 1)
		if err != nil {
			return 0, err
		}
		off = next * v.Row()
	}
	return 0, io.EOF
}

// dataInStrip looks for data at or after a position within its strip.
func (v *Volume) dataInStrip(at place) (in int64, found bool, err error) {
	m := v.holder(at, at.column)
	if levels[v.Type].mirror {
		m = v.any(at.span)
	}
	if m == nil {
		row, err := v.spanRow(at.span, at.row)
		return at.in, row == at.row, err
	}
	next, err := m.NextData(v.on(at))
	if errors.Is(err, io.EOF) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	in = at.in + next - v.on(at)
	return in, in < v.Strip, nil
}

// nextRow returns the first row, counted over all spans, at or after a row in
// which any drive has data; the number of rows when there is none.
func (v *Volume) nextRow(row int64) (int64, error) {
	spans := int64(v.Spans)
	first := v.rows * spans
	for s := range spans {
		r, err := v.spanRow(int(s), (row-s+spans-1)/spans)
		if err != nil {
			return 0, err
		}
		if r < v.rows {
			first = min(first, r*spans+s)
		}
	}
	return first, nil
}

// spanRow is nextRow within one span.
func (v *Volume) spanRow(span int, row int64) (int64, error) {
	first := v.rows
	for _, m := range v.drives(span) {
		if m == nil || row >= v.rows {
			continue
		}
		at, err := m.NextData(v.start + row*v.Strip)
		if errors.Is(err, io.EOF) {
			continue
		}
		if err != nil {
			return 0, err
		}
		first = min(first, (at-v.start)/v.Strip)
	}
	return first, nil
}

// Discard implements Medium.
func (v *Volume) Discard(off, n int64) error {
	if off < 0 || n < 0 || off+n > v.Size() {
		return fmt.Errorf("storage: discard of %d bytes at %d: volume has %d", n, off, v.Size())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	row := v.Row()
	for end := off + n; off < end; {
		if off%row == 0 && end-off >= row {
			last := end / row
			if err := v.discardRows(off/row, last); err != nil {
				return err
			}
			off = last * row
			continue
		}
		part := min(end-off, row-off%row)
		if err := v.discardInRow(off, part); err != nil {
			return err
		}
		off += part
	}
	return nil
}

// discardRows discards complete rows, counted over all spans: the parity of
// zeros is zeros.
func (v *Volume) discardRows(from, to int64) error {
	spans := int64(v.Spans)
	for s := range spans {
		first, last := (from-s+spans-1)/spans, (to-s+spans-1)/spans
		for _, m := range v.drives(int(s)) {
			if m == nil || last <= first {
				continue
			}
			if err := m.Discard(v.start+first*v.Strip, (last-first)*v.Strip); err != nil {
				return err
			}
		}
	}
	return nil
}

// discardInRow discards a part of a row, or writes zeros where parity must be
// computed.
func (v *Volume) discardInRow(off, n int64) error {
	at := v.locate(off)
	switch l := levels[v.Type]; {
	case l.mirror:
		for _, m := range v.drives(at.span) {
			if m == nil {
				continue
			}
			if err := m.Discard(v.on(at), n); err != nil {
				return err
			}
		}
		return nil
	case l.parity == 0:
		return v.eachStrip(at, n, func(at place, _, n int64) error {
			return v.holder(at, at.column).Discard(v.on(at), n)
		})
	}
	next, err := v.nextData(off)
	switch {
	case errors.Is(err, io.EOF) || err == nil && next >= off+n:
		return nil
	case err != nil:
		return err
	}
	return v.writeRow(new(buffers), make([]byte, off+n-next), v.locate(next))
}
