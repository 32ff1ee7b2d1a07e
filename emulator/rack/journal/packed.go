package journal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// Entries are stored packed. A packed entry takes about 100 bytes without a pointer
// for the garbage collector; an Entry takes 224 bytes and its strings, which is too
// much for the bound of 50,000 entries in 8 MiB. TestPackedEntriesUnpackUnchanged
// compares the two.

// packed locates an entry in the bytes of a row.
type packed struct {
	at   int64  // Unix time in nanoseconds
	n    uint64 // number of the entry, from 1
	b    int    // start of its bytes in the row
	end  int    // end of its bytes in the row
	host int    // length of the host's name, which comes first
}

// row holds some entries. Those of the latest time are in the order of their
// arrival.
type row struct {
	b       []byte
	entries []packed
}

func (r *row) add(at int64, n uint64, host int, b []byte) {
	begin := len(r.b)
	r.b = append(r.b, b...)
	r.entries = append(r.entries, packed{at: at, n: n, b: begin, end: len(r.b), host: host})
}

// sort sorts the entries by time, then by host, then by arrival.
func (r *row) sort() {
	if len(r.entries) < 2 {
		return
	}
	slices.SortFunc(r.entries, func(x, y packed) int {
		return cmp.Or(cmp.Compare(x.at, y.at), bytes.Compare(r.b[x.b:x.b+x.host], r.b[y.b:y.b+y.host]), cmp.Compare(x.n, y.n))
	})
}

// size returns the memory of a row in bytes.
func (r *row) size() int { return cap(r.b) + 40*cap(r.entries) }

// pack appends an entry without its time.
func pack(b []byte, e *Entry) []byte {
	b = append(b, e.Host...)
	nanos := int64(0)
	if !e.Real.IsZero() {
		nanos = e.Real.UnixNano()
	}
	b = binary.AppendVarint(b, nanos)
	b = binary.AppendVarint(b, int64(e.Status))
	b = binary.AppendVarint(b, int64(e.Took.Duration))
	b = binary.AppendVarint(b, e.In)
	b = binary.AppendVarint(b, e.Out)
	for _, s := range [...]string{string(e.Kind), e.From, e.Method, e.Path, e.User, e.Session, e.What, e.Text} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Faults)))
	for _, s := range e.Faults {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

// unpack returns a packed entry.
func (r *row) unpack(p packed) Entry {
	b := r.b[p.b:p.end]
	u := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return v
	}
	i := func() int64 {
		v, n := binary.Varint(b)
		b = b[n:]
		return v
	}
	text := func(n uint64) string {
		s := string(b[:n])
		b = b[n:]
		return s
	}
	e := Entry{At: time.Unix(0, p.at).UTC(), Host: text(uint64(p.host))}
	if nanos := i(); nanos != 0 {
		e.Real = time.Unix(0, nanos).UTC()
	}
	e.Status, e.Took = int(i()), fault.Duration{Duration: time.Duration(i())}
	e.In, e.Out = i(), i()
	for _, s := range []*string{(*string)(&e.Kind), &e.From, &e.Method, &e.Path, &e.User, &e.Session, &e.What, &e.Text} {
		*s = text(u())
	}
	for range u() {
		e.Faults = append(e.Faults, text(u()))
	}
	return e
}
