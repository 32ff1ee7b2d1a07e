package bmc

import (
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// LogName names a log of a BMC. Values are stored.
type LogName string

// The logs.
const (
	EventLog LogName = "events" // events of the machine, and observations of the BMC
	AuditLog LogName = "audit"  // requests, logins and changes of accounts
)

// logs describes the logs: where each is, its size, the part that an entry is,
// and the event that reports a new entry.
var logs = map[LogName]struct {
	in       func(*State) **Log
	spec     func(*Spec) LogSpec
	part     event.Part
	newEvent func(at time.Time, e Entry) Event
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

// logNamed returns a log of the BMC.
func (b *BMC) logNamed(name LogName) (**Log, error) {
	is, ok := logs[name]
	if !ok {
		return nil, fmt.Errorf("%w: log %q", ErrNotFound, name)
	}
	return is.in(&b.st), nil
}

// write appends an entry with the BMC's time and returns the event that reports
// it. The entry's ID is 0 when the log was full or disabled.
func (b *BMC) write(name LogName, e Entry) Event {
	if log := *logs[name].in(&b.st); log != nil && log.Off {
		at := e.At
		e.At = at.Add(b.st.Clock.Skew())
		return logs[name].newEvent(at, e)
	}
	return b.appendEntry(name, e)
}

// appendEntry is write, for disabled logs too.
func (b *BMC) appendEntry(name LogName, e Entry) Event {
	is, at := logs[name], e.At
	e.At = at.Add(b.st.Clock.Skew())
	log := is.in(&b.st)
	*log, e.ID = (*log).with(e, is.spec(b.spec))
	if name == EventLog {
		b.postpone(at, &e)
	}
	return is.newEvent(at, e)
}

// log writes a note into the event log.
func (b *BMC) log(n event.Note) Event { return b.write(EventLog, Entry{Note: n}) }

// audit writes a note into the audit log.
func (b *BMC) audit(n event.Note) Event { return b.write(AuditLog, Entry{Note: n}) }

// ClearLog deletes all entries of a log. The audit log records it.
type ClearLog struct {
	Log  LogName
	Mark bool // the log's first entry records that it was cleared
}

func (c ClearLog) apply(b *BMC, now time.Time) ([]Event, error) {
	at, err := b.logNamed(c.Log)
	if err != nil {
		return nil, err
	}
	empty := &Log{Next: 1, First: 1, Erased: now.Add(b.st.Clock.Skew())}
	if old := *at; old != nil {
		empty.Next, empty.First, empty.Added, empty.Off = old.Next, old.Next, old.Added, old.Off
	}
	*at = empty
	b.dropDumps()
	about := event.Subject{Part: event.Log, ID: string(c.Log)}
	note := event.Note{At: now, Kind: event.LogCleared, Subject: about, Args: []string{string(c.Log)}}
	evs := []Event{b.audit(note)}
	if c.Mark && c.Log != AuditLog {
		evs = append(evs, b.write(c.Log, Entry{Note: note}))
	}
	return evs, nil
}

// ResolveEntry marks an entry as resolved or unresolved.
type ResolveEntry struct {
	Log      LogName
	ID       uint64
	Resolved bool
}

func (c ResolveEntry) apply(b *BMC, _ time.Time) ([]Event, error) {
	return b.amend(c.Log, c.ID, func(e *Entry) *Entry {
		e.Resolved = c.Resolved
		return e
	})
}

// RemoveEntry deletes an entry.
type RemoveEntry struct {
	Log LogName
	ID  uint64
}

func (c RemoveEntry) apply(b *BMC, now time.Time) ([]Event, error) {
	evs, err := b.amend(c.Log, c.ID, func(*Entry) *Entry { return nil })
	if err != nil {
		return nil, err
	}
	(*logs[c.Log].in(&b.st)).Erased = now.Add(b.st.Clock.Skew()) // the log was replaced by amend
	b.dropDumps()
	return evs, nil
}

// EnableLog enables or disables a log for events.
type EnableLog struct {
	Log LogName
	On  bool
}

func (c EnableLog) apply(b *BMC, _ time.Time) ([]Event, error) {
	at, err := b.logNamed(c.Log)
	if err != nil {
		return nil, err
	}
	b.keepLog(at, c.On)
	return nil, nil
}

// keepLog enables or disables a log.
func (b *BMC) keepLog(at **Log, on bool) {
	if (*at).Takes() == on {
		return
	}
	l := &Log{Next: 1, First: 1}
	if *at != nil {
		l = new(**at)
	}
	l.Off = !on
	*at = l
}

// amend replaces an entry with what how returns; nil deletes it.
func (b *BMC) amend(name LogName, id uint64, how func(*Entry) *Entry) ([]Event, error) {
	at, err := b.logNamed(name)
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

// Logged reports a new entry of the event log.
type Logged struct {
	At    time.Time
	Entry Entry
}

// Audited reports a new entry of the audit log.
type Audited struct {
	At    time.Time
	Entry Entry
}

// Time implements Event.
func (e Logged) Time() time.Time { return e.At }

// Time implements Event.
func (e Audited) Time() time.Time { return e.At }
