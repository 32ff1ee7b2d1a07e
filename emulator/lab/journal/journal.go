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

// size is about what an entry holds, in bytes.
func (e *Entry) size() int {
	n := 256 + len(e.Path) + len(e.Text) + len(e.Method) + len(e.User) + len(e.From) + len(e.Session)
	for _, f := range e.Faults {
		n += 16 + len(f)
	}
	return n
}

// Config bounds a journal.
type Config struct {
	Entries int // at most; 0 is 20,000
	Bytes   int // of memory, about; 0 is 8 MiB
}

// Journal keeps the latest entries. It is safe for concurrent use.
type Journal struct {
	c Config

	mu      sync.Mutex
	old     []kept // a ring, in its order from first
	first   int
	bytes   int
	now     []kept // of the latest time, as they came
	came    uint64 // entries ever
	dropped uint64 // entries that are no longer there
	more    chan struct{}
}

// kept is an entry with its number.
type kept struct {
	Entry
	n uint64 // counted as they came, from 1
}

// New makes an empty journal.
func New(c Config) *Journal {
	c.Entries, c.Bytes = cmp.Or(c.Entries, 20_000), cmp.Or(c.Bytes, 8<<20)
	return &Journal{c: c}
}

// Add writes an entry.
func (j *Journal) Add(e Entry) {
	e.trim()
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.now) > 0 && e.At.After(j.now[0].At) || len(j.now) >= j.c.Entries {
		j.settle()
	}
	j.came++
	j.now = append(j.now, kept{e, j.came})
	if j.more != nil {
		close(j.more)
		j.more = nil
	}
}

// settle puts the entries of the latest time in their order behind the others,
// and drops what is too much. It holds j.mu.
func (j *Journal) settle() {
	slices.SortFunc(j.now, order)
	for _, k := range j.now {
		j.bytes += k.size()
		if len(j.old) < j.c.Entries {
			j.old = append(j.old, k)
		} else {
			j.bytes -= j.old[j.first].size()
			j.old[j.first] = k
			j.first = (j.first + 1) % len(j.old)
			j.dropped++
		}
	}
	j.now = j.now[:0]
	if j.bytes <= j.c.Bytes {
		return
	}
	all, cut := j.settled(), 0
	for ; j.bytes > j.c.Bytes*3/4; cut++ {
		j.bytes -= all[cut].size()
	}
	j.dropped += uint64(cut)
	j.old, j.first = all[cut:], 0
}

func order(a, b kept) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Host, b.Host), cmp.Compare(a.n, b.n))
}

// settled are the entries of the ring in their order.
func (j *Journal) settled() []kept {
	return append(slices.Clone(j.old[j.first:]), j.old[:j.first]...)
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
	all := append(j.settled(), j.now...)
	slices.SortStableFunc(all[len(j.old):], order)
	mark := Mark(j.came)
	j.mu.Unlock()
	out := []Entry{} // [] in JSON
	for _, k := range all {
		if k.n > uint64(q.After) && fits(&k.Entry) {
			out = append(out, k.Entry)
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
	if j.came > uint64(after) {
		j.mu.Unlock()
		return nil
	}
	if j.more == nil {
		j.more = make(chan struct{})
	}
	more := j.more
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
	return j.dropped
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
