package bmc

import (
	"bytes"
	"iter"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Log is a log of a BMC. IDs increase and are never reused. Entries are stored
// in chunks by ID, so that adding one does not copy all; a chunk is immutable.
type Log struct {
	Next   uint64   `json:"next"`           // ID of the next entry
	First  uint64   `json:"first"`          // entries with lower IDs were dropped
	Size   int      `json:"size"`           // number of entries
	Lost   uint64   `json:"lost,omitempty"` // entries dropped by a full log since it was cleared
	Chunks []*Chunk `json:"chunks,omitempty"`

	Added  time.Time `json:"added,omitzero"`  // BMC time of the last entry
	Erased time.Time `json:"erased,omitzero"` // BMC time at which entries were last deleted by a client
	Off    bool      `json:"off,omitempty"`   // disabled for events
}

// Chunk is a part of a log.
type Chunk struct {
	Number  uint64  `json:"number"` // IDs of its entries, divided by chunkSize
	Entries []Entry `json:"entries"`
}

// chunkSize is the number of IDs per chunk.
const chunkSize = 64

// Entry is an entry of a log.
type Entry struct {
	ID uint64 `json:"id"`
	event.Note
	Resolved bool   `json:"resolved,omitempty"` // marked as resolved
	Dump     string `json:"dump,omitempty"`     // ID of its Dump
	Record   []byte `json:"record,omitempty"`   // SEL record that a client wrote, of SELRecordSize; nil: the BMC made the entry
}

// LogSpec describes a log.
type LogSpec struct {
	Size int  // maximum number of entries
	Full Full // what happens to further entries
}

// Full is the policy of a log that is full.
type Full string

// The values are Redfish's OverWritePolicy (DSP2046, LogService).
const (
	Wraps Full = "WrapsWhenFull"   // drops the oldest entry
	Stays Full = "NeverOverWrites" // drops new entries until it is cleared
)

// Entries yields the entries, oldest first; a nil Log has none.
func (l *Log) Entries() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, c := range l.chunks() {
			for i := range c.Entries {
				if e := &c.Entries[i]; e.ID >= l.First && !yield(e) {
					return
				}
			}
		}
	}
}

// Entry returns the entry with an ID.
func (l *Log) Entry(id uint64) (*Entry, bool) {
	if l == nil || id < l.First {
		return nil, false
	}
	at, ok := l.chunk(id / chunkSize)
	if !ok {
		return nil, false
	}
	es := l.Chunks[at].Entries
	i, ok := slices.BinarySearchFunc(es, id, byID)
	if !ok {
		return nil, false
	}
	return &es[i], true
}

// After returns the first entry with a higher ID; After(0) is the oldest.
func (l *Log) After(id uint64) (*Entry, bool) {
	if l == nil {
		return nil, false
	}
	id = max(id+1, l.First)
	at, _ := l.chunk(id / chunkSize)
	for _, c := range l.Chunks[at:] {
		if i, _ := slices.BinarySearchFunc(c.Entries, id, byID); i < len(c.Entries) {
			return &c.Entries[i], true
		}
	}
	return nil, false
}

// Last returns the newest entry.
func (l *Log) Last() (*Entry, bool) {
	if l.Len() == 0 {
		return nil, false
	}
	es := l.Chunks[len(l.Chunks)-1].Entries
	return &es[len(es)-1], true
}

func byID(e Entry, id uint64) int {
	switch {
	case e.ID < id:
		return -1
	case e.ID > id:
		return 1
	}
	return 0
}

// chunk returns the index of a chunk by number, and whether it exists.
func (l *Log) chunk(number uint64) (int, bool) {
	return slices.BinarySearchFunc(l.Chunks, number, func(c *Chunk, n uint64) int {
		switch {
		case c.Number < n:
			return -1
		case c.Number > n:
			return 1
		}
		return 0
	})
}

// Len returns the number of entries.
func (l *Log) Len() int {
	if l == nil {
		return 0
	}
	return l.Size
}

// Takes reports whether the log is enabled for events.
func (l *Log) Takes() bool { return l == nil || !l.Off }

// with returns the log with one more entry, and the entry's ID; 0 when the log
// was full.
func (l *Log) with(e Entry, s LogSpec) (*Log, uint64) {
	var out *Log
	if l == nil {
		out = &Log{Next: 1, First: 1}
	} else {
		out = new(*l)
	}
	out.Chunks = slices.Clone(out.Chunks)
	if s.Size > 0 && out.Size >= s.Size {
		if s.Full == Stays {
			out.Lost++
			return out, 0
		}
		out.forget(out.Size - s.Size + 1)
	}
	e.ID = out.Next
	out.Next++
	out.Size++
	out.Added = e.At
	number := e.ID / chunkSize
	if at, ok := out.chunk(number); ok {
		c := out.Chunks[at]
		// Sharing the array is safe: a holder of the old chunk sees no further
		// than its length, and a log that a step made and discarded was shown
		// to nobody.
		out.Chunks[at] = &Chunk{number, append(c.Entries, e)}
	} else {
		out.Chunks = append(out.Chunks, &Chunk{number, []Entry{e}})
	}
	return out, e.ID
}

// forget drops the n oldest entries. A chunk stays until all its entries are
// dropped.
func (l *Log) forget(n int) {
	for e := range l.Entries() {
		if n == 0 {
			break
		}
		l.First = e.ID + 1
		l.Size--
		n--
	}
	for len(l.Chunks) > 0 { // empty chunks are at the beginning
		c := l.Chunks[0]
		if n := len(c.Entries); n > 0 && c.Entries[n-1].ID >= l.First {
			break
		}
		l.Chunks = l.Chunks[1:]
	}
}

// changed returns the log with an entry replaced by what how returns; nil
// deletes it.
func (l *Log) changed(id uint64, how func(*Entry) *Entry) (*Log, bool) {
	if _, ok := l.Entry(id); !ok {
		return l, false
	}
	out := new(*l)
	out.Chunks = slices.Clone(l.Chunks)
	at, _ := l.chunk(id / chunkSize)
	c := &Chunk{Number: l.Chunks[at].Number}
	for _, e := range l.Chunks[at].Entries {
		if e.ID != id {
			c.Entries = append(c.Entries, e)
			continue
		}
		if e := how(&e); e != nil {
			c.Entries = append(c.Entries, *e)
			continue
		}
		out.Size--
	}
	out.Chunks[at] = c
	if len(c.Entries) == 0 {
		out.Chunks = slices.Delete(out.Chunks, at, at+1)
	}
	return out, true
}

// Head returns the log without its entries, which a store writes separately, so
// that a new entry does not rewrite all.
func (l *Log) Head() any {
	if l == nil {
		return nil
	}
	head := *l
	head.Chunks = nil
	return &head
}

// Changes yields what a store that holds the log before must write, by chunk
// key: the new entries of each chunk; nil deletes a chunk, or comes before the
// entries of one that is rewritten.
func (l *Log) Changes(before any) iter.Seq2[string, any] {
	was, _ := before.(*Log)
	return func(yield func(string, any) bool) {
		at := 0
		for _, c := range was.chunks() {
			if l.next(&at, c.Number) == nil && !yield(key(c.Number), nil) {
				return
			}
		}
		at = 0
		for _, c := range l.chunks() {
			old, from := was.next(&at, c.Number), 0
			switch {
			case old == c:
				continue
			case old == nil:
			case c.begins(old):
				from = len(old.Entries)
			case !yield(key(c.Number), nil):
				return
			}
			for i := from; i < len(c.Entries); i++ {
				if !yield(key(c.Number), &c.Entries[i]) {
					return
				}
			}
		}
	}
}

// begins reports whether a chunk begins with all entries of another; usually
// both share their array.
func (c *Chunk) begins(o *Chunk) bool {
	n := len(o.Entries)
	return n > 0 && n <= len(c.Entries) && (&o.Entries[0] == &c.Entries[0] ||
		slices.EqualFunc(o.Entries, c.Entries[:n], func(a, b Entry) bool { return a.same(&b) }))
}

// next returns the chunk with a number, nil if there is none. at holds the
// position for a caller that asks in ascending order.
func (l *Log) next(at *int, number uint64) *Chunk {
	all := l.chunks()
	for *at < len(all) && all[*at].Number < number {
		*at++
	}
	if *at < len(all) && all[*at].Number == number {
		return all[*at]
	}
	return nil
}

// chunks returns the chunks; a nil Log has none.
func (l *Log) chunks() []*Chunk {
	if l == nil {
		return nil
	}
	return l.Chunks
}

// key returns the key of a chunk; keys sort by number. The letter distinguishes
// them from the keys of single entries in an older format.
func key(number uint64) string {
	b := []byte("c0000000000000000000")
	for i := len(b) - 1; number > 0; i-- {
		b[i] += byte(number % 10)
		number /= 10
	}
	return string(b)
}

// same reports whether two entries are equal.
func (e *Entry) same(o *Entry) bool {
	return e.ID == o.ID && e.At.Equal(o.At) && e.Kind == o.Kind && e.Subject == o.Subject && slices.Equal(e.Args, o.Args) &&
		e.Resolved == o.Resolved && e.Dump == o.Dump && bytes.Equal(e.Record, o.Record)
}

// Join adds a stored entry while a log is read back from a store, in order of
// their keys.
func (l *Log) Join(decode func(more any) error) error {
	var e Entry
	if err := decode(&e); err != nil {
		return err
	}
	number := e.ID / chunkSize
	at, ok := l.chunk(number)
	if !ok {
		l.Chunks = slices.Insert(l.Chunks, at, &Chunk{number, []Entry{e}})
		return nil
	}
	c := l.Chunks[at]
	if i, known := slices.BinarySearchFunc(c.Entries, e.ID, byID); known {
		c.Entries[i] = e
	} else {
		c.Entries = slices.Insert(c.Entries, i, e)
	}
	return nil
}
