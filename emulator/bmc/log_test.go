package bmc

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

func note(kind event.Kind) event.Note {
	return event.Note{At: origin, Kind: kind, Subject: event.Subject{Part: event.System}}
}

func ids(l *Log) []uint64 {
	var out []uint64
	for e := range l.Entries() {
		out = append(out, e.ID)
	}
	return out
}

func TestFullLogWrapsOrDrops(t *testing.T) {
	for _, tt := range []struct {
		full Full
		want []uint64
		lost uint64
	}{{Wraps, []uint64{38, 39, 40}, 0}, {Stays, []uint64{1, 2, 3}, 37}} {
		b := New(&Spec{Log: LogSpec{Size: 3, Full: tt.full}}, nil, nil)
		for range 40 {
			b.ObserveMachine(origin, []Event{note(event.PowerOn)})
		}
		l := b.View().Log
		if got := ids(l); !slices.Equal(got, tt.want) || l.Len() != 3 || l.Lost != tt.lost {
			t.Errorf("a log that %s has %d, %d of them, lost %d; want %d", tt.full, got, l.Len(), l.Lost, tt.want)
		}
		evs := do(t, b, origin, ClearLog{Log: EventLog})
		if len(evs) != 1 || evs[0].(Audited).Entry.Kind != event.LogCleared {
			t.Errorf("ClearLog tells %+v, want that the audit log has it", evs)
		}
		next := b.ObserveMachine(origin, []Event{note(event.PowerOff)})
		if got, want := next[0].(Logged).Entry.ID, tt.want[2]+1; got != want || b.View().Log.Lost != 0 || b.View().Log.Len() != 1 {
			t.Errorf("after the log was cleared its first entry has ID %d, want %d: IDs are used once", got, want)
		}
	}
}

// A log is what a list is, whatever is done to it, and it never changes what
// was handed out.
func TestLogIsAList(t *testing.T) {
	const seed = 3
	rnd := rand.New(rand.NewPCG(seed, 0))
	spec := LogSpec{Size: 50, Full: Wraps}
	var l *Log
	var list []Entry
	stored := map[string]string{}
	for n := range 1200 {
		before, was := l, fmt.Sprint(slices.Collect(values(l)))
		switch k := rnd.IntN(10); {
		case k < 7 || len(list) == 0:
			e := Entry{Note: event.Note{At: origin.Add(time.Duration(n)), Kind: event.PowerOn, Args: []string{fmt.Sprint(n)}}}
			l, e.ID = l.with(e, spec)
			if list = append(list, e); len(list) > spec.Size {
				list = list[1:]
			}
		case k == 7:
			i := rnd.IntN(len(list))
			l, _ = l.changed(list[i].ID, func(*Entry) *Entry { return nil })
			list = slices.Delete(slices.Clone(list), i, i+1)
		case k == 8:
			i := rnd.IntN(len(list))
			l, _ = l.changed(list[i].ID, func(e *Entry) *Entry { e.Resolved = true; return e })
			list = slices.Clone(list)
			list[i].Resolved = true
		case n%100 == 0:
			l, list = &Log{Next: l.Next, First: l.Next}, nil
		}
		if d := cmp.Diff(list, slices.Collect(values(l)), cmp.Comparer(func(a, b []Entry) bool {
			return len(a)+len(b) == 0 || slices.EqualFunc(a, b, func(x, y Entry) bool { return x.same(&y) })
		})); d != "" || l.Len() != len(list) {
			t.Fatalf("seed %d, step %d: %d entries (-want +got):\n%s", seed, n, l.Len(), d)
		}
		if now := fmt.Sprint(slices.Collect(values(before))); now != was {
			t.Fatalf("seed %d, step %d: a log that was handed out has changed", seed, n)
		}
		for _, e := range list {
			if got, ok := l.Entry(e.ID); !ok || !got.same(&e) {
				t.Fatalf("seed %d, step %d: Entry(%d) = %+v, %t", seed, n, e.ID, got, ok)
			}
		}
		// What a store is told leads to the same entries.
		for key, piece := range l.Changes(before) {
			if piece == nil {
				delete(stored, key)
				continue
			}
			raw, err := json.Marshal(piece)
			if err != nil {
				t.Fatal(err)
			}
			stored[key] += string(raw)
		}
		if len(stored) != len(l.Chunks) {
			t.Fatalf("seed %d, step %d: %d chunks are stored, want %d", seed, n, len(stored), len(l.Chunks))
		}
	}
	raw, err := json.Marshal(l.Head())
	if err != nil {
		t.Fatal(err)
	}
	var again Log
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Sorted(maps.Keys(stored)) {
		for d := json.NewDecoder(strings.NewReader(stored[key])); d.More(); {
			if err := again.Join(d.Decode); err != nil {
				t.Fatal(err)
			}
		}
	}
	if a, b := fmt.Sprint(slices.Collect(values(l))), fmt.Sprint(slices.Collect(values(&again))); a != b || again.Len() != l.Len() || again.Next != l.Next {
		t.Errorf("put together again the log is\n%s, want\n%s", b, a)
	}
}

func values(l *Log) func(func(Entry) bool) {
	return func(yield func(Entry) bool) {
		for e := range l.Entries() {
			if !yield(*e) {
				return
			}
		}
	}
}

// One entry more is one piece more to store, however long the log is.
func TestNewEntryIsOneChange(t *testing.T) {
	var l *Log
	spec := LogSpec{Size: 10_000, Full: Wraps}
	for range 12_000 {
		before := l
		l, _ = l.with(Entry{Note: note(event.PowerOn)}, spec)
		n := 0
		for range l.Changes(before) {
			n++
		}
		if n > 2 { // the new one, and the chunk that is forgotten for it
			t.Fatalf("entry %d changes %d pieces", l.Next-1, n)
		}
	}
}

func TestLogsHaveTheTimeOfTheBMC(t *testing.T) {
	b := newBMC()
	do(t, b, origin, SetTime{To: origin.Add(time.Hour)})
	do(t, b, origin, SkewClock{By: time.Minute})
	b.ObserveMachine(origin, []Event{note(event.PowerOn)})
	for e := range b.View().Log.Entries() {
		if want := origin.Add(time.Hour + time.Minute); !e.At.Equal(want) {
			t.Errorf("the entry is of %v, want %v", e.At, want)
		}
	}
	for _, east := range []int{-1200, 1200} {
		if _, err := b.Apply(origin, SetZone{UTCOffset: east}); err == nil {
			t.Errorf("SetZone{%d} passed", east)
		}
	}
}

func TestResolveAndRemoveEntries(t *testing.T) {
	b := newBMC()
	b.ObserveMachine(origin, []Event{note(event.PowerOn), note(event.PowerOff)})
	do(t, b, origin, ResolveEntry{Log: EventLog, ID: 2, Resolved: true})
	if e, ok := b.View().Log.Entry(2); !ok || !e.Resolved {
		t.Errorf("entry 2 = %+v, %t, want it resolved", e, ok)
	}
	do(t, b, origin, RemoveEntry{Log: EventLog, ID: 1})
	if got := ids(b.View().Log); !slices.Equal(got, []uint64{2}) {
		t.Errorf("entries = %d, want 2", got)
	}
	for _, c := range []Command{
		RemoveEntry{Log: EventLog, ID: 1}, ResolveEntry{Log: EventLog, ID: 9}, RemoveEntry{Log: AuditLog, ID: 2}, ClearLog{Log: "diary"}, RemoveEntry{Log: "diary", ID: 2},
		CollectDump{Log: "diary"},
	} {
		refused(t, b, origin, c, ErrNotFound)
	}
}

func TestDumpIsCollected(t *testing.T) {
	s := *spec
	s.Collect = 30 * time.Second
	b := New(&s, []Account{admin}, nil)
	do(t, b, origin, CollectDump{Log: AuditLog, Task: OpenTask{Name: "Collect"}})
	if at, ok := b.AwaitedDeadline(); !ok || !at.Equal(origin.Add(30*time.Second)) {
		t.Errorf("Awaited() = %v, %t, want the end of the collecting", at, ok)
	}
	b.Advance(origin.Add(time.Minute))
	j, _ := b.task("1")
	if j.State != TaskCompleted || j.Made == nil || j.Made.Part != event.AuditEntry || !j.Ended.Equal(origin.Add(30*time.Second)) {
		t.Fatalf("job = %+v, want that it has made an entry", j)
	}
	e, _ := b.View().Audit.Entry(1)
	d, ok := b.View().Dumps.Find(e.Dump)
	if !ok || len(d.Data) == 0 {
		t.Fatalf("entry %+v leads to no dump", e)
	}
	for range maxDumps {
		do(t, b, origin.Add(time.Hour), CollectDump{Log: AuditLog})
		b.Advance(origin.Add(2 * time.Hour))
	}
	if _, ok := b.View().Dumps.Find(e.Dump); ok || len(b.View().Dumps.List) != maxDumps {
		t.Errorf("%d dumps are kept, want %d and the oldest gone", len(b.View().Dumps.List), maxDumps)
	}
	do(t, b, origin.Add(3*time.Hour), RemoveEntry{Log: AuditLog, ID: 2})
	if n := len(b.View().Dumps.List); n != maxDumps-1 {
		t.Errorf("%d dumps are kept after an entry of one was removed", n)
	}
	do(t, b, origin.Add(3*time.Hour), CollectDump{Log: AuditLog})
	do(t, b, origin.Add(3*time.Hour), CancelTask{ID: "4"})
	if stateOf(b, "4") != TaskCancelled {
		t.Errorf("job is %s, want Cancelled: its work is the BMC's own", stateOf(b, "4"))
	}
}
