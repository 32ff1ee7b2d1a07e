package bmc

import (
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Book names one of the logs of a BMC. Values are stored.
type Book string

// The logs.
const (
	EventLog Book = "events" // of the machine, and of what the BMC sees of it
	AuditLog Book = "audit"  // of the BMC: who came, what was asked, what became of it
)

// books are where each log is, how it is kept, which part an entry of it is, and
// how a new one is told.
var books = map[Book]struct {
	in   func(*State) **Log
	spec func(*Spec) LogSpec
	part event.Part
	tell func(at time.Time, e Entry) Event
}{
	EventLog: {
		func(st *State) **Log { return &st.Log }, func(s *Spec) LogSpec { return s.Log }, event.EventEntry,
		func(at time.Time, e Entry) Event { return Logged{At: at, Entry: e} },
	},
	AuditLog: {
		func(st *State) **Log { return &st.Audit }, func(s *Spec) LogSpec { return s.Audit }, event.AuditEntry,
		func(at time.Time, e Entry) Event { return Audited{At: at, Entry: e} },
	},
}

// book is a log of the BMC.
func (b *BMC) book(name Book) (**Log, error) {
	is, ok := books[name]
	if !ok {
		return nil, fmt.Errorf("%w: log %q", ErrNotFound, name)
	}
	return is.in(&b.st), nil
}

// write writes an entry, and tells it; its ID is 0 when the log was full. Logs
// have the time of the BMC.
func (b *BMC) write(name Book, e Entry) Event {
	is, at := books[name], e.At
	e.At = at.Add(b.st.Clock.Skew())
	log := is.in(&b.st)
	*log, e.ID = (*log).with(e, is.spec(b.spec))
	return is.tell(at, e)
}

// log writes a note into the event log.
func (b *BMC) log(n event.Note) Event { return b.write(EventLog, Entry{Note: n}) }

// audit writes a note into the audit log.
func (b *BMC) audit(n event.Note) Event { return b.write(AuditLog, Entry{Note: n}) }

// ClearLog forgets all entries of a log.
type ClearLog struct{ Book Book }

func (c ClearLog) apply(b *BMC, now time.Time) ([]Event, error) {
	at, err := b.book(c.Book)
	if err != nil {
		return nil, err
	}
	if *at != nil {
		*at = &Log{Next: (*at).Next, First: (*at).Next}
	}
	b.dropDumps()
	about := event.Subject{Part: event.Log, ID: string(c.Book)}
	return []Event{b.audit(event.Note{At: now, Kind: event.LogCleared, Subject: about, Args: []string{string(c.Book)}})}, nil
}

// ResolveEntry notes that somebody has seen to what an entry tells, or has not.
type ResolveEntry struct {
	Book     Book
	ID       uint64
	Resolved bool
}

func (c ResolveEntry) apply(b *BMC, _ time.Time) ([]Event, error) {
	return b.amend(c.Book, c.ID, func(e *Entry) *Entry {
		e.Resolved = c.Resolved
		return e
	})
}

// RemoveEntry forgets one entry.
type RemoveEntry struct {
	Book Book
	ID   uint64
}

func (c RemoveEntry) apply(b *BMC, _ time.Time) ([]Event, error) {
	evs, err := b.amend(c.Book, c.ID, func(*Entry) *Entry { return nil })
	b.dropDumps()
	return evs, err
}

// amend replaces an entry by what how makes of it; nil removes it.
func (b *BMC) amend(name Book, id uint64, how func(*Entry) *Entry) ([]Event, error) {
	at, err := b.book(name)
	if err != nil {
		return nil, err
	}
	l, ok := (*at).changed(id, how)
	if !ok {
		return nil, fmt.Errorf("%w: entry %d of log %s", ErrNotFound, id, name)
	}
	*at = l
	return nil, nil
}

// Logged tells an entry of the event log that was written.
type Logged struct {
	At    time.Time
	Entry Entry
}

// Audited tells an entry of the audit log that was written.
type Audited struct {
	At    time.Time
	Entry Entry
}

// Time implements Event.
func (e Logged) Time() time.Time { return e.At }

// Time implements Event.
func (e Audited) Time() time.Time { return e.At }
