// Package journal records what happens in a rack: every request that a BMC has
// answered, and every event of a machine or a BMC. It owns the order of the entries,
// their bounds, and queries. It does not know who writes, and holds no secret and no
// body.
//
// Two racks with the same seed and the same commands on a virtual clock have the same
// journal, byte for byte: entries are sorted by the lab's time, then by host, and
// entries of one host keep their order. So nothing in an entry may be random, or come
// from real time except Real, which a virtual clock does not have.
package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// Kind is the kind of an entry.
type Kind string

// The kinds of entries.
const (
	Request Kind = "request" // a client's request to a BMC
	Event   Kind = "event"   // an event of a machine or its BMC
	Control Kind = "control" // a change of the rack that did not come through a BMC
)

// Kinds lists all kinds.
var Kinds = []Kind{Request, Event, Control}

// Entry is one request or event.
type Entry struct {
	At   time.Time `json:"time"`              // the lab's time; of a request, when it was answered
	Real time.Time `json:"realTime,omitzero"` // real time when the entry was added; zero on a virtual clock
	Host string    `json:"host,omitempty"`
	Kind Kind      `json:"kind"`

	// Fields of requests.
	From    string         `json:"from,omitempty"` // IP address of the client
	Method  string         `json:"method,omitempty"`
	Path    string         `json:"path,omitempty"`
	Status  int            `json:"status,omitempty"` // 0: no response
	User    string         `json:"user,omitempty"`
	Session string         `json:"session,omitempty"`
	Took    fault.Duration `json:"took,omitzero"` // the lab's time
	In      int64          `json:"in,omitempty"`  // bytes of the request and response bodies
	Out     int64          `json:"out,omitempty"`
	Faults  []string       `json:"faults,omitempty"` // IDs of the fault rules that applied

	// Fields of all other entries.
	What string `json:"what,omitempty"` // "power.on"
	Text string `json:"text,omitempty"` // for people
}

// maxText bounds each text of an entry, in bytes.
const maxText = 1 << 10

func (e *Entry) trim() {
	for _, s := range []*string{&e.Path, &e.Text, &e.Method, &e.User} {
		if len(*s) > maxText {
			*s = strings.ToValidUTF8((*s)[:maxText], "") + "…"
		}
	}
}

// Config bounds a Journal.
type Config struct {
	Entries int // at most; 0 means 50,000
	Bytes   int // bytes of memory at most, approximately; 0 means 8 MiB
	// Real returns real time, for Entry.Real; false when there is none. nil: there is
	// none.
	Real func() (time.Time, bool)
}

// entriesPerRow is how many entries are dropped at once.
const entriesPerRow = 256

// Journal keeps the latest entries. It is safe for concurrent use.
type Journal struct {
	c Config

	mu       sync.Mutex
	archived []*row // sorted, oldest first
	count    int    // entries in archived
	bytes    int    // size of archived without its last row
	current  row    // entries with the latest time, not sorted yet
	added    uint64 // entries ever added
	waiters  chan struct{}
}

// New returns an empty journal.
func New(c Config) *Journal {
	c.Entries, c.Bytes = cmp.Or(c.Entries, 50_000), cmp.Or(c.Bytes, 8<<20)
	return &Journal{c: c}
}

// Add adds an entry. It sets Real when the journal's Config has a source of it.
func (j *Journal) Add(e Entry) {
	if j.c.Real != nil {
		if at, ok := j.c.Real(); ok {
			e.Real = at
		}
	}
	e.trim()
	var room [512]byte
	b, at := pack(room[:0], &e), e.At.UnixNano()
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.current.entries) > 0 && at > j.current.entries[0].at || len(j.current.entries) >= j.c.Entries {
		j.archive()
	}
	j.added++
	j.current.add(at, j.added, len(e.Host), b)
	if j.waiters != nil {
		close(j.waiters)
		j.waiters = nil
	}
}

// archive sorts the entries of the latest time and moves them behind the others, and
// drops the oldest rows beyond the bounds. The caller holds j.mu.
func (j *Journal) archive() {
	j.current.sort()
	for _, p := range j.current.entries {
		if n := len(j.archived); n == 0 || len(j.archived[n-1].entries) >= entriesPerRow {
			hint := 0 // expect a row as long as the last one
			if n > 0 {
				j.bytes += j.archived[n-1].size()
				hint = len(j.archived[n-1].b) + len(j.archived[n-1].b)/16
			}
			j.archived = append(j.archived, &row{b: make([]byte, 0, hint), entries: make([]packed, 0, entriesPerRow)})
		}
		j.archived[len(j.archived)-1].add(p.at, p.n, p.host, j.current.b[p.b:p.end])
		j.count++
	}
	j.current.b, j.current.entries = j.current.b[:0], j.current.entries[:0]
	for len(j.archived) > 1 && (j.count-len(j.archived[0].entries) >= j.c.Entries || j.bytes > j.c.Bytes) {
		j.count -= len(j.archived[0].entries)
		j.bytes -= j.archived[0].size()
		j.archived = j.archived[1:]
	}
}

// Mark is a position in a journal: after all entries that had been added by then.
type Mark uint64

// Mark returns the position after all entries.
func (j *Journal) Mark() Mark {
	j.mu.Lock()
	defer j.mu.Unlock()
	return Mark(j.added)
}

// Select returns the entries that match a query, oldest first, and the position up
// to which it has looked.
func (j *Journal) Select(q Query) ([]Entry, Mark, error) {
	fits, err := q.parse()
	if err != nil {
		return nil, 0, err
	}
	j.mu.Lock()
	rows, mark, skip := slices.Clone(j.archived), Mark(j.added), max(0, j.count-j.c.Entries)
	if n := len(rows); n > 0 { // Add appends to the last one
		rows[n-1] = new(*rows[n-1])
	}
	now := &row{b: slices.Clone(j.current.b), entries: slices.Clone(j.current.entries)}
	j.mu.Unlock()
	now.sort()
	out := []Entry{} // [] in JSON
	for _, r := range append(rows, now) {
		for _, p := range r.entries {
			if skip--; skip >= 0 || p.n <= uint64(q.After) {
				continue
			}
			if e := r.unpack(p); fits(&e) {
				out = append(out, e)
			}
		}
	}
	if q.Last > 0 && len(out) > q.Last {
		out = out[len(out)-q.Last:]
	}
	return out, mark, nil
}

// Wait returns when an entry was added after a position, or with the context's
// error.
func (j *Journal) Wait(ctx context.Context, after Mark) error {
	j.mu.Lock()
	if j.added > uint64(after) {
		j.mu.Unlock()
		return nil
	}
	if j.waiters == nil {
		j.waiters = make(chan struct{})
	}
	more := j.waiters
	j.mu.Unlock()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-more:
		return nil
	}
}

// Dropped returns how many entries were dropped.
func (j *Journal) Dropped() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.added - uint64(min(j.count, j.c.Entries)+len(j.current.entries))
}

// Lines encodes entries as JSON, one per line.
func Lines(entries []Entry) ([]byte, error) {
	var out []byte
	for i := range entries {
		b, err := json.Marshal(&entries[i])
		if err != nil {
			return nil, err
		}
		out = append(append(out, b...), '\n')
	}
	return out, nil
}
