package bmc

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

func TestSELRecordsAreStoredUnchanged(t *testing.T) {
	b := New(&Spec{Log: LogSpec{Size: 2, Full: Stays}}, nil, nil)
	raw := []byte{2: 2, 7: 0x41, 9: 4, 10: 1, 11: 0x30, 12: 1, 13: 9, 15: 0xff}
	evs := do(t, b, origin, AddSELRecord{Record: raw, Severity: event.Critical, Subject: event.Subject{Part: event.System}})
	entry := evs[0].(Logged).Entry
	if entry.ID != 1 || entry.Kind != event.SELRecordAddedCritical || entry.Severity() != event.Critical || !cmp.Equal(entry.Record, raw) {
		t.Errorf("%+v", entry)
	}
	st := b.State()
	text, err := json.Marshal(st.Log)
	if err != nil {
		t.Fatal(err)
	}
	var l Log
	if err := json.Unmarshal(text, &l); err != nil {
		t.Fatal(err)
	}
	if e, ok := l.Entry(1); !ok || !cmp.Equal(e.Record, raw) || !l.Added.Equal(origin) {
		t.Errorf("stored and read again: %+v", e)
	}
	for _, c := range []AddSELRecord{{Record: raw[:15], Severity: event.OK}, {Record: raw, Severity: "Fatal"}} {
		if _, err := b.Apply(origin, c); err == nil {
			t.Errorf("Apply(%+v) was accepted", c)
		}
	}
}

func TestSELRecordsHaveTheSeverityThatTheirWriterGives(t *testing.T) {
	b := New(&Spec{Log: LogSpec{Size: 9, Full: Wraps}}, nil, nil)
	for _, want := range []event.Severity{event.OK, event.Warning, event.Critical} {
		entry := do(t, b, origin, AddSELRecord{Record: make([]byte, SELRecordSize), Severity: want})[0].(Logged).Entry
		if got := entry.Severity(); got != want {
			t.Errorf("a record of severity %s is kept as %s", want, got)
		}
	}
}

func TestDisabledLogDropsEvents(t *testing.T) {
	b := New(&Spec{Log: LogSpec{Size: 9, Full: Wraps}}, nil, nil)
	do(t, b, origin, EnableLog{Log: EventLog, On: true})
	if b.State().Log != nil {
		t.Error("to have it on that is on has changed it")
	}
	do(t, b, origin, EnableLog{Log: EventLog})
	evs := b.ObserveMachine(origin, []Event{note(event.PowerOn)})
	if e := evs[0].(Logged).Entry; e.ID != 0 || b.View().Log.Len() != 0 {
		t.Errorf("entry %d was written", e.ID)
	}
	raw := make([]byte, SELRecordSize)
	if e := do(t, b, origin, AddSELRecord{Record: raw, Severity: event.OK, Event: true})[0].(Logged).Entry; e.ID != 0 {
		t.Errorf("event %d was written", e.ID)
	}
	if e := do(t, b, origin, AddSELRecord{Record: raw, Severity: event.OK})[0].(Logged).Entry; e.ID != 1 {
		t.Errorf("a record that is no event has ID %d", e.ID)
	}
	do(t, b, origin, Restart{Kind: ForceRestart})
	b.Advance(origin.Add(time.Hour))
	if !b.View().Log.Takes() {
		t.Error("after a restart of the BMC its log takes no events")
	}
}

func TestLogRecordsAdditionAndEraseTimes(t *testing.T) {
	b := New(&Spec{Log: LogSpec{Size: 9, Full: Wraps}}, nil, nil)
	do(t, b, origin, SkewClock{By: time.Hour})
	is := func(added, erased time.Time) {
		t.Helper()
		if l := b.View().Log; !l.Added.Equal(added) || !l.Erased.Equal(erased) {
			t.Errorf("added %v, erased %v; want %v, %v", l.Added, l.Erased, added, erased)
		}
	}
	b.ObserveMachine(origin, []Event{note(event.PowerOn)})
	is(origin.Add(time.Hour), time.Time{})
	do(t, b, origin.Add(time.Minute), RemoveEntry{Log: EventLog, ID: 1})
	is(origin.Add(time.Hour), origin.Add(61*time.Minute))
	if _, err := b.Apply(origin.Add(2*time.Minute), RemoveEntry{Log: EventLog, ID: 1}); err == nil {
		t.Error("an entry was removed twice")
	}
	is(origin.Add(time.Hour), origin.Add(61*time.Minute))
	evs := do(t, b, origin.Add(3*time.Minute), ClearLog{Log: EventLog, Mark: true})
	is(origin.Add(63*time.Minute), origin.Add(63*time.Minute))
	if l := b.View().Log; l.Len() != 1 || len(evs) != 2 {
		t.Errorf("%d entries, %+v", l.Len(), evs)
	}
	if e, ok := b.View().Log.Last(); !ok || e.Kind != event.LogCleared || e.ID != 2 {
		t.Errorf("the first entry of a cleared log is %+v", e)
	}
}

func TestLogIsWalked(t *testing.T) {
	var l *Log
	if _, ok := l.After(0); ok {
		t.Error("nil has an entry")
	}
	if _, ok := l.Last(); ok {
		t.Error("nil has a last entry")
	}
	for range 60 {
		l, _ = l.with(Entry{Note: note(event.PowerOn)}, LogSpec{Size: 50, Full: Wraps})
	}
	for id := uint64(15); id < 50; id++ {
		l, _ = l.changed(id, func(*Entry) *Entry { return nil })
	}
	var got []uint64
	for e, ok := l.After(0); ok; e, ok = l.After(e.ID) {
		got = append(got, e.ID)
	}
	if d := cmp.Diff(ids(l), got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if e, ok := l.Last(); !ok || e.ID != 60 {
		t.Errorf("last = %+v", e)
	}
	if e, ok := l.After(14); !ok || e.ID != 50 {
		t.Errorf("after 14 = %+v", e)
	}
}

// The time that a wall clock shows is set where the BMC is; Redfish's zone stays.
func TestClockIsSetByLocalTime(t *testing.T) {
	b := New(&Spec{}, nil, nil)
	do(t, b, origin, SetZone{UTCOffset: 60})
	if c := b.View().Clock; !c.OffsetSet || !c.LocalAsUTC(origin).Equal(origin.Add(time.Hour)) {
		t.Errorf("%+v", c)
	}
	do(t, b, origin, SetLocalTime{To: origin.Add(3 * time.Hour)})
	if c := b.View().Clock; c.OffsetSet || c.UTCOffset != 60 || c.Offset != 2*time.Hour {
		t.Errorf("%+v", c)
	}
	var none *Clock
	if !none.LocalAsUTC(origin).Equal(origin) {
		t.Error("a clock that nobody has set is not UTC")
	}
}
