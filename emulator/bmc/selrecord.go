package bmc

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// SELRecordSize is the size of a SEL record in bytes (IPMI v2.0 rev 1.1, §32).
const SELRecordSize = 16

// recordKinds maps severities to the kinds of entries that clients write.
var recordKinds = map[event.Severity]event.Kind{
	event.OK: event.SELRecordAdded, event.Warning: event.SELRecordAddedWarning, event.Critical: event.SELRecordAddedCritical,
}

// AddSELRecord writes a SEL record that a client made and keeps its bytes. The
// event Logged reports its ID. The BMC does not interpret the bytes.
type AddSELRecord struct {
	Record   []byte // SELRecordSize bytes; must not be changed afterwards
	Severity event.Severity
	Subject  event.Subject // if known
	Event    bool          // an event, which a disabled log drops
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
	return []Event{b.appendEntry(EventLog, e)}, nil
}
