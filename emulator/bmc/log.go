package bmc

import (
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Log is the BMC's event log. IDs grow and are never used again.
type Log struct {
	Next    uint64  `json:"next"`    // ID of the next entry
	Entries []Entry `json:"entries"` // oldest first
}

// Entry is one line of the log.
type Entry struct {
	ID uint64 `json:"id"`
	event.Note
}

// All are the entries, oldest first; a nil Log has none.
func (l *Log) All() []Entry {
	if l == nil {
		return nil
	}
	return l.Entries
}

// defaultLogSize is how many entries a log holds whose Spec does not say.
const defaultLogSize = 1000

// log writes an entry; a full log forgets its oldest.
func (b *BMC) log(n event.Note) Event {
	l := &Log{Next: 1}
	if b.st.Log != nil {
		l = new(*b.st.Log)
	}
	e := Entry{ID: l.Next, Note: n}
	l.Next++
	old := l.Entries
	if len(old) >= defaultLogSize {
		old = slices.Clone(old[len(old)-defaultLogSize+1:])
	}
	// Others may hold the old slice, and may have grown it differently.
	l.Entries = append(slices.Clip(old), e)
	b.st.Log = l
	return Logged{At: n.At, Entry: e}
}

// ClearLog forgets all entries.
type ClearLog struct{}

func (ClearLog) apply(b *BMC, _ time.Time) ([]Event, error) {
	if b.st.Log != nil {
		b.st.Log = &Log{Next: b.st.Log.Next}
	}
	return nil, nil
}

// Logged tells an entry of the log that was written.
type Logged struct {
	At    time.Time
	Entry Entry
}

// Time implements Event.
func (e Logged) Time() time.Time { return e.At }
