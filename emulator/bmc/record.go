package bmc

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// SELRecordSize is the size of a record of a system event log (IPMI v2.0 rev 1.1,
// §32), in bytes.
const SELRecordSize = 16

// recordKinds are what an entry that is kept as a record can be, by how bad it
// is.
var recordKinds = map[event.Severity]event.Kind{
	event.OK: event.SELRecordAdded, event.Warning: event.SELRecordAddedWarning, event.Critical: event.SELRecordAddedCritical,
}

// AddSELRecord writes an entry that somebody else has made, and keeps it as it is.
// The event Logged tells its ID. The BMC does not know what such bytes mean.
type AddSELRecord struct {
	Record   []byte // of RecordSize; nobody changes it any more
	Severity event.Severity
	Subject  event.Subject // that it is about, if that is known
	Event    bool          // it is an event, which a log that takes none does not take
}

func (c AddSELRecord) apply(b *BMC, now time.Time) ([]Event, error) {
	kind, ok := recordKinds[c.Severity]
	if !ok || len(c.Record) != SELRecordSize {
		return nil, fmt.Errorf("bmc: record of %d bytes and severity %q: must be %d bytes, and OK, Warning or Critical", len(c.Record), c.Severity, SELRecordSize)
	}
	e := Entry{
		Note:   event.Note{At: now, Kind: kind, Subject: c.Subject, Args: []string{fmt.Sprintf("%x", c.Record[:])}},
		Record: slices.Clone(c.Record),
	}
	if c.Event {
		return []Event{b.write(EventLog, e)}, nil
	}
	return []Event{b.inscribe(EventLog, e)}, nil
}
