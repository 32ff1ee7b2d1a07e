// Package journal is what a lab remembers of what happened: every request that
// a BMC answered, and what its machine and it did. It owns the order of the
// entries, the bounds and the questions that can be asked; it does not know who
// writes, and it holds no secret and no body.
//
// Two labs with the same seed and the same commands on a virtual clock have the
// same journal, byte for byte: entries are in the order of the lab's time, at
// one time in that of the hosts' names, and of one host as they came. So nothing
// in an entry may be of chance or of real time.
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

// Kind is what an entry is of.
type Kind string

// The kinds.
const (
	Request Kind = "request" // a client asked a BMC for something
	Event   Kind = "event"   // something happened to a machine or its BMC
	Control Kind = "control" // somebody changed the lab by other ways than a BMC
)

// Kinds are all kinds.
var Kinds = []Kind{Request, Event, Control}

// Entry is one thing that happened.
type Entry struct {
	At   time.Time `json:"time"` // of the lab; of a request, when it was answered
	Host string    `json:"host,omitempty"`
	Kind Kind      `json:"kind"`

	// Of a request.
	From    string         `json:"from,omitempty"` // address of the client, without its port
	Method  string         `json:"method,omitempty"`
	Path    string         `json:"path,omitempty"`
	Status  int            `json:"status,omitempty"` // 0 of one that got no answer
	User    string         `json:"user,omitempty"`
	Session string         `json:"session,omitempty"`
	Took    fault.Duration `json:"took,omitzero"` // of the lab's time
	In      int64          `json:"in,omitempty"`  // bytes of the bodies
	Out     int64          `json:"out,omitempty"`
	Faults  []string       `json:"faults,omitempty"` // rules that hit

	// Of all others.
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

// Config bounds a journal.
type Config struct {
	Entries int // at most; 0 is 50,000
	Bytes   int // of memory, about; 0 is 8 MiB
}

// entriesPerRow is how many entries are dropped at a time.
const entriesPerRow = 256

// Journal keeps the latest entries. It is safe for concurrent use.
type Journal struct {
	c Config

	mu       sync.Mutex
	archived []*row // oldest first, and in their order
	count    int    // entries of old
	bytes    int    // of old, but for the last
	current  row    // of the latest time
	added    uint64 // entries ever
	waiters  chan struct{}
}

// New makes an empty journal.
func New(c Config) *Journal {
	c.Entries, c.Bytes = cmp.Or(c.Entries, 50_000), cmp.Or(c.Bytes, 8<<20)
	return &Journal{c: c}
}

// Add writes an entry.
func (j *Journal) Add(e Entry) {
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

// archive puts the entries of the latest time in their order behind the others,
// and drops what is too much. It holds j.mu.
func (j *Journal) archive() {
	j.current.sort()
	for _, p := range j.current.entries {
		if n := len(j.archived); n == 0 || len(j.archived[n-1].entries) >= entriesPerRow {
			hint := 0 // this row will be about as long as the last one
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

// Mark is a place in a journal: all that had come by then.
type Mark uint64

// Select answers a question: what fits, oldest first, and the place that the
// answer goes up to.
func (j *Journal) Select(q Query) ([]Entry, Mark, error) {
	fits, err := q.parse()
	if err != nil {
		return nil, 0, err
	}
	j.mu.Lock()
	rows, mark, skip := slices.Clone(j.archived), Mark(j.added), max(0, j.count-j.c.Entries)
	if n := len(rows); n > 0 { // the last one grows
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

// Wait returns when anything has come after a place, or with the context's
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

// Dropped is how many entries there were that are no longer kept.
func (j *Journal) Dropped() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.added - uint64(min(j.count, j.c.Entries)+len(j.current.entries))
}

// Lines writes entries as JSON, one in a line.
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
