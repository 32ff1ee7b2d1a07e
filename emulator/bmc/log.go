package bmc

import (
	"bytes"
	"iter"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Log is a log of a BMC. IDs grow and are never used again. Its entries are in
// chunks, by ID, so that an entry more does not copy the rest; a chunk is never
// changed.
type Log struct {
	Next   uint64   `json:"next"`           // ID of the next entry
	First  uint64   `json:"first"`          // entries with a lower ID are forgotten
	Size   int      `json:"size"`           // entries there are
	Lost   uint64   `json:"lost,omitempty"` // entries that a full log did not take, since it was cleared
	Chunks []*Chunk `json:"chunks,omitempty"`

	Added  time.Time `json:"added,omitzero"`  // when the last entry was written, as the BMC has the time
	Erased time.Time `json:"erased,omitzero"` // when entries were last removed by hand, likewise
	Off    bool      `json:"off,omitempty"`   // events are not written
}

// Chunk is a stretch of a log.
type Chunk struct {
	Number  uint64  `json:"number"` // of its entries' IDs, divided by chunkSize
	Entries []Entry `json:"entries"`
}

// chunkSize is how many IDs share a chunk.
const chunkSize = 64

// Entry is one line of a log.
type Entry struct {
	ID uint64 `json:"id"`
	event.Note
	Resolved bool   `json:"resolved,omitempty"` // somebody has seen to it
	Dump     string `json:"dump,omitempty"`     // ID of the Dump that belongs to it
	Record   []byte `json:"record,omitempty"`   // as which it was written, of RecordSize; nil: it is the BMC's own
}

// LogSpec says how a log is kept.
type LogSpec struct {
	Size int  // entries, at most
	Full Full // what becomes of an entry that is one too many
}

// Full says what a log does that is full.
type Full string

// The ways; the values are Redfish's OverWritePolicy (DSP2046, LogService).
const (
	Wraps Full = "WrapsWhenFull"   // it forgets the oldest
	Stays Full = "NeverOverWrites" // it takes no more until it is cleared
)

// Entries are the entries, oldest first; a nil Log has none.
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

// Entry is the entry with an ID.
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

// After is the first entry whose ID is higher; After(0) is the oldest.
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

// Last is the newest entry.
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

// chunk is where the chunk with a number is, or would be.
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

// Len is how many entries there are.
func (l *Log) Len() int {
	if l == nil {
		return 0
	}
	return l.Size
}

// Takes says whether events are written into the log.
func (l *Log) Takes() bool { return l == nil || !l.Off }

// with is the log with an entry more, whose ID is told; 0 when it was full.
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
		// Who holds the chunk as it was sees no further than its length, and a
		// log that a step has made and that was not kept was shown to nobody:
		// so entries may share what they stand in.
		out.Chunks[at] = &Chunk{number, append(c.Entries, e)}
	} else {
		out.Chunks = append(out.Chunks, &Chunk{number, []Entry{e}})
	}
	return out, e.ID
}

// forget forgets the n oldest entries. They stay in their chunk until all of it
// is forgotten.
func (l *Log) forget(n int) {
	for e := range l.Entries() {
		if n == 0 {
			break
		}
		l.First = e.ID + 1
		l.Size--
		n--
	}
	for len(l.Chunks) > 0 { // those in which nothing is left are the first
		c := l.Chunks[0]
		if n := len(c.Entries); n > 0 && c.Entries[n-1].ID >= l.First {
			break
		}
		l.Chunks = l.Chunks[1:]
	}
}

// changed is the log with one entry replaced by what how makes of it; nil
// removes it.
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

// Head is the log without its entries: a store keeps these apart, so that one
// more does not write all of them again.
func (l *Log) Head() any {
	if l == nil {
		return nil
	}
	head := *l
	head.Chunks = nil
	return &head
}

// Changes are the entries that each chunk has more than in another log, by the
// chunk's key; nil comes before those of a chunk that must be written anew, and
// for one that is gone. What both logs share is passed over.
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

// begins tells whether a chunk begins with all entries of another: mostly both
// stand in the same place.
func (c *Chunk) begins(o *Chunk) bool {
	n := len(o.Entries)
	return n > 0 && n <= len(c.Entries) && (&o.Entries[0] == &c.Entries[0] ||
		slices.EqualFunc(o.Entries, c.Entries[:n], func(a, b Entry) bool { return a.same(&b) }))
}

// next is the chunk with a number, nil if there is none. Who asks for one after
// the other, in their order, keeps in at how far that has come.
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

// chunks are the chunks; a nil Log has none.
func (l *Log) chunks() []*Chunk {
	if l == nil {
		return nil
	}
	return l.Chunks
}

// key is the key of a chunk; keys are in the order of numbers. The letter tells
// them from those that entries once had by themselves.
func key(number uint64) string {
	b := []byte("c0000000000000000000")
	for i := len(b) - 1; number > 0; i-- {
		b[i] += byte(number % 10)
		number /= 10
	}
	return string(b)
}

// same tells whether two entries are the same.
func (e *Entry) same(o *Entry) bool {
	return e.ID == o.ID && e.At.Equal(o.At) && e.Kind == o.Kind && e.Subject == o.Subject && slices.Equal(e.Args, o.Args) &&
		e.Resolved == o.Resolved && e.Dump == o.Dump && bytes.Equal(e.Record, o.Record)
}

// Join adds an entry to a log that is being put together again, in the order of
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
