package command

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

// selCommands are the system event log commands (§31). The SEL is the event
// log that Redfish shows, with the same entry numbers.
var selCommands = []Row{
	{fn: wire.Storage, cmd: 0x40, name: "Get SEL Info", privilege: wire.User, run: getSELInfo},
	{fn: wire.Storage, cmd: 0x41, name: "Get SEL Allocation Info", privilege: wire.User, run: getSELAllocationInfo},
	{fn: wire.Storage, cmd: 0x42, name: "Reserve SEL", privilege: wire.User, run: reserveSEL},
	{fn: wire.Storage, cmd: 0x43, name: "Get SEL Entry", privilege: wire.User, least: 6, most: 6, run: getSELEntry},
	{fn: wire.Storage, cmd: 0x44, name: "Add SEL Entry", privilege: wire.Operator, least: sel.Size, most: sel.Size, mutates: true, run: addSELEntry},
	{fn: wire.Storage, cmd: 0x45, name: "Partial Add SEL Entry", privilege: wire.Operator, least: 6, most: 6 + sel.Size, mutates: true, run: partialAddSELEntry},
	{fn: wire.Storage, cmd: 0x46, name: "Delete SEL Entry", privilege: wire.Operator, least: 4, most: 4, mutates: true, run: deleteSELEntry},
	{fn: wire.Storage, cmd: 0x47, name: "Clear SEL", privilege: wire.Operator, least: 6, most: 6, mutates: true, run: clearSEL},
	{fn: wire.Storage, cmd: 0x48, name: "Get SEL Time", privilege: wire.User, run: getSELTime},
	{fn: wire.Storage, cmd: 0x49, name: "Set SEL Time", privilege: wire.Operator, least: 4, most: 4, mutates: true, run: setSELTime},
	{fn: wire.Storage, cmd: 0x5c, name: "Get SEL Time UTC Offset", privilege: wire.User, run: getSELTimeUTCOffset},
	{fn: wire.Storage, cmd: 0x5d, name: "Set SEL Time UTC Offset", privilege: wire.Operator, least: 2, most: 2, mutates: true, run: setSELTimeUTCOffset},
}

// Completion codes of the SEL commands (§31).
const (
	selNoSuchType    Code = 0x80
	selErasing       Code = 0x81
	selPartialLength Code = 0x80 // the parts of Partial Add SEL Entry are longer than a record
)

const (
	firstRecord       = 0x0000     // the first record there is
	lastRecord        = 0xffff     // the last record; in a response: no further record
	recordIDs         = 0xfffe     // number of record IDs: 0001h to FFFEh
	readEntireRecord  = 0xff       // bytes to read: the entire record
	timeUnspecified   = 0xffffffff // unspecified (§37)
	offsetUnspecified = 0x07ff     // UTC offset: unspecified
	maxUTCOffset      = 19*60 + 59 // minutes; §31.11b allows 24 hours, Redfish less than 20
)

// selState is the volatile state of the SEL commands.
type selState struct {
	reservation     uint16 // last one given; 0: none so far
	reserved        bool   // the reservation is valid while the log has reservedVersion
	reservedVersion selVersion
	partialEntry    []byte    // record of Partial Add SEL Entry so far
	erasedAt        time.Time // when the erasure is complete; zero: none is in progress
	erasedBy        uint16    // reservation that started the erasure
}

// selVersion changes when entries are added or removed.
type selVersion struct {
	next, first uint64
	size        int
}

func selVersionOf(l *bmc.Log) selVersion {
	if l == nil {
		return selVersion{}
	}
	return selVersion{l.Next, l.First, l.Size}
}

// holdsSELReservation reports whether a reservation is valid (§31.4.2).
func (x *Request) holdsSELReservation(reservation uint16) bool {
	s := &x.State.selState
	return s.reserved && reservation == s.reservation && s.reservedVersion == selVersionOf(x.bmc().Log)
}

// recordID returns the 16-bit record ID of a log entry; fewer entries exist at
// a time than there are IDs.
func recordID(entry uint64) uint16 { return uint16((entry-1)%recordIDs) + 1 }

// selEntry returns the log entry of a record ID; false when there is none.
func (x *Request) selEntry(record uint16) (*bmc.Entry, bool) {
	log := x.bmc().Log
	switch record {
	case firstRecord:
		return log.After(0)
	case lastRecord:
		return log.Last()
	}
	last, ok := log.Last()
	if !ok {
		return nil, false
	}
	// Record IDs repeat after recordIDs entries.
	for id := last.ID - uint64(recordID(last.ID)) + uint64(record); ; id -= recordIDs {
		if e, ok := log.Entry(id); ok {
			return e, true
		}
		if id < recordIDs || id < log.First {
			return nil, false
		}
	}
}

// selTimestamp returns a BMC time as a SEL timestamp (§37), which is local
// time.
func selTimestamp(c *bmc.Clock, at time.Time) uint32 {
	if at.IsZero() {
		return timeUnspecified
	}
	return uint32(min(max(0, c.LocalAsUTC(at).Unix()), timeUnspecified-1))
}

// record returns a log entry as a SEL record.
func (x *Request) record(e *bmc.Entry) [sel.Size]byte { return recordOf(x.Host, e) }

func recordOf(h Host, e *bmc.Entry) [sel.Size]byte {
	var r [sel.Size]byte
	if len(e.Record) == sel.Size {
		r = [sel.Size]byte(e.Record)
	} else {
		is := selEvent(h.Machine(), &e.Note)
		r = is.Record()
	}
	sel.Stamp(&r, recordID(e.ID), selTimestamp(h.BMC().Clock, e.At))
	return r
}

// erasing reports whether an erasure is in progress.
func (x *Request) erasing() bool { return x.Now.Before(x.State.erasedAt) }

// getSELInfo handles Get SEL Info (§31.2).
func getSELInfo(x *Request) error {
	if x.erasing() {
		return selErasing
	}
	v := x.bmc()
	var added, erased time.Time
	overflow := byte(0)
	if v.Log != nil {
		added, erased = v.Log.Added, v.Log.Erased
		if v.Log.Lost > 0 {
			overflow = 0x80
		}
	}
	x.put(0x51)
	x.put16(uint16(min(v.Log.Len(), 0xffff)))
	x.put16(uint16(min(x.freeEntries()*sel.Size, 0xffff)))
	x.put32(selTimestamp(v.Clock, added))
	x.put32(selTimestamp(v.Clock, erased))
	x.put(overflow | 0x0f) // supports delete, partial add, reserve, allocation info
	return nil
}

// freeEntries returns how many entries still fit into the log.
func (x *Request) freeEntries() int {
	v := x.bmc()
	return max(0, v.Spec.Log.Size-v.Log.Len())
}

// getSELAllocationInfo handles Get SEL Allocation Info (§31.3); an allocation
// unit is a record.
func getSELAllocationInfo(x *Request) error {
	free := uint16(min(x.freeEntries(), 0xffff))
	x.put16(uint16(min(x.bmc().Spec.Log.Size, 0xffff)))
	x.put16(sel.Size)
	x.put16(free)
	x.put16(free)
	x.put(1)
	return nil
}

// reserveSEL handles Reserve SEL (§31.4).
func reserveSEL(x *Request) error {
	if x.erasing() {
		return selErasing
	}
	s := &x.State.selState
	if s.reservation++; s.reservation == 0 {
		s.reservation = 1
	}
	s.reserved, s.reservedVersion, s.partialEntry = true, selVersionOf(x.bmc().Log), nil
	x.put16(s.reservation)
	return nil
}

// getSELEntry handles Get SEL Entry (§31.5).
func getSELEntry(x *Request) error {
	offset, count := int(x.data[4]), int(x.data[5])
	switch {
	case x.erasing():
		return selErasing
	case offset > 0 && !x.holdsSELReservation(le16(x.data)):
		return ReservationCanceled
	case offset >= sel.Size:
		return ParameterOutOfRange
	case count == readEntireRecord:
		count = sel.Size - offset
	case offset+count > sel.Size:
		return CannotReturnBytes
	}
	e, ok := x.selEntry(le16(x.data[2:]))
	if !ok {
		return NotPresent
	}
	r := x.record(e)
	next := uint16(lastRecord)
	if after, ok := x.bmc().Log.After(e.ID); ok {
		next = recordID(after.ID)
	}
	x.put16(next)
	x.put(r[offset : offset+count]...)
	return nil
}

// addSELEntry handles Add SEL Entry (§31.6). The record is stored byte for
// byte, except for its ID and timestamp.
func addSELEntry(x *Request) error {
	if x.erasing() {
		return selErasing
	}
	return x.addRecord([sel.Size]byte(x.data), false)
}

// systemSubject is the subject of a record that names no other.
var systemSubject = event.Subject{Part: event.System}

// addRecord stores a record and answers its ID.
func (x *Request) addRecord(r [sel.Size]byte, isEvent bool) error {
	if r[2] < sel.OEMTimed && r[2] != sel.SystemEvent {
		return selNoSuchType
	}
	c := bmc.AddSELRecord{Record: r[:], Severity: event.OK, Subject: systemSubject, Event: isEvent}
	if is, ok := sel.Parse(r[:]); ok {
		c.Severity = is.Severity()
		if s, ok := eventSubject(x.machine(), is); ok {
			c.Subject = s
		}
	}
	evs, err := x.applyBMC(c)
	if err != nil {
		return err
	}
	for _, ev := range evs {
		logged, ok := ev.(bmc.Logged)
		switch {
		case !ok || logged.Entry.Record == nil:
		case logged.Entry.ID > 0:
			x.put16(recordID(logged.Entry.ID))
			return nil
		case isEvent && !x.bmc().Log.Takes():
			return nil // event logging is disabled: the event is accepted and dropped
		}
	}
	return OutOfSpace
}

// partialAddSELEntry handles Partial Add SEL Entry (§31.7).
func partialAddSELEntry(x *Request) error {
	s := &x.State.selState
	offset, last, part := int(x.data[4]), x.data[5]&0x0f, x.data[6:]
	switch {
	case x.erasing():
		return selErasing
	case !x.holdsSELReservation(le16(x.data)):
		s.partialEntry = nil
		return ReservationCanceled
	case last > 1:
		return InvalidDataField
	case offset == 0:
		s.partialEntry = nil
	case offset != len(s.partialEntry):
		return ParameterOutOfRange // parts must be adjacent
	}
	if len(s.partialEntry)+len(part) > sel.Size {
		s.partialEntry = nil
		return selPartialLength
	}
	s.partialEntry = append(s.partialEntry[:len(s.partialEntry):len(s.partialEntry)], part...)
	if last == 1 {
		record := s.partialEntry
		s.partialEntry = nil
		if len(record) != sel.Size {
			return selPartialLength
		}
		return x.addRecord([sel.Size]byte(record), false)
	}
	x.put16(recordID(x.nextEntry())) // ID that the complete record will have
	return nil
}

// deleteSELEntry handles Delete SEL Entry (§31.8).
func deleteSELEntry(x *Request) error {
	if x.erasing() {
		return selErasing
	}
	if !x.holdsSELReservation(le16(x.data)) {
		return ReservationCanceled
	}
	e, ok := x.selEntry(le16(x.data[2:]))
	if !ok {
		return NotPresent
	}
	if _, err := x.applyBMC(bmc.RemoveEntry{Log: bmc.EventLog, ID: e.ID}); err != nil {
		return err
	}
	x.State.reserved = false
	x.put16(recordID(e.ID))
	return nil
}

// clearSEL handles Clear SEL (§31.9). The entries are gone at once; the
// erasure status stays "in progress" for as long as the vendor's BMC takes.
func clearSEL(x *Request) error {
	const begin, ask = 0xaa, 0x00
	s := &x.State.selState
	reservation, do := le16(x.data), x.data[5]
	switch {
	case string(x.data[2:5]) != "CLR" || do != begin && do != ask:
		return InvalidDataField
	case !x.holdsSELReservation(reservation) && (do == begin || reservation == 0 || reservation != s.erasedBy):
		return ReservationCanceled
	case do == begin && x.erasing():
		return selErasing
	case do == begin:
		if _, err := x.applyBMC(bmc.ClearLog{Log: bmc.EventLog, Mark: true}); err != nil {
			return err
		}
		s.erasedAt, s.erasedBy, s.reserved = x.Now.Add(x.Host.Dialect().IPMI.ClearSELDuration), reservation, false
	}
	if x.erasing() {
		x.put(0)
	} else {
		x.put(1)
	}
	return nil
}

// getSELTime handles Get SEL Time (§31.10).
func getSELTime(x *Request) error {
	x.put32(selTimestamp(x.bmc().Clock, x.clock()))
	return nil
}

// setSELTime handles Set SEL Time (§31.11): local time, whose UTC offset
// becomes unspecified.
func setSELTime(x *Request) error {
	to := le32(x.data)
	if to == timeUnspecified {
		return InvalidDataField
	}
	_, err := x.applyBMC(bmc.SetLocalTime{To: time.Unix(int64(to), 0)})
	return err
}

// getSELTimeUTCOffset handles Get SEL Time UTC Offset (§31.11a).
func getSELTimeUTCOffset(x *Request) error {
	offset := offsetUnspecified
	if c := x.bmc().Clock; c != nil && c.OffsetSet {
		offset = c.UTCOffset
	}
	x.put16(uint16(offset))
	return nil
}

// setSELTimeUTCOffset handles Set SEL Time UTC Offset (§31.11b).
func setSELTimeUTCOffset(x *Request) error {
	offset := int(int16(le16(x.data)))
	if offset == offsetUnspecified {
		return x.clearUTCOffset()
	}
	if offset < -maxUTCOffset || offset > maxUTCOffset {
		return ParameterOutOfRange
	}
	zone := ""
	if c := x.bmc().Clock; c != nil && c.UTCOffset == offset {
		zone = c.Zone
	}
	_, err := x.applyBMC(bmc.SetZone{UTCOffset: offset, Name: zone})
	return err
}

// clearUTCOffset makes the UTC offset unspecified without changing the local
// time.
func (x *Request) clearUTCOffset() error {
	c := x.bmc().Clock
	if c == nil || !c.OffsetSet {
		return nil
	}
	_, err := x.applyBMC(bmc.SetZone{Unsaid: true, UTCOffset: c.UTCOffset, Name: c.Zone})
	return err
}
