package storage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

var epoch = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)

// disk is a kind of drive that is small enough to be looked at.
var disk = Model{Vendor: "ATA", Product: "D", Protocol: SATA, Media: SSD, Capacity: 4 << 20, BlockSize: 512}

func rules() *RAID {
	return &RAID{
		Types: []TypeRule{
			{Type: RAID0, Min: 1, Max: 8}, {Type: RAID1, Min: 2, Max: 3}, {Type: RAID5, Min: 3, Max: 8}, {Type: RAID6, Min: 4, Max: 8},
			{Type: RAID10, Min: 2, Max: 2, MaxSpans: 4}, {Type: RAID50, Min: 3, Max: 4, MaxSpans: 2}, {Type: RAID60, Min: 4, Max: 4, MaxSpans: 2},
		},
		Strips: []int64{64 << 10, 16 << 10}, MaxVolumes: 6, MaxPerGroup: 2, Metadata: 64 << 10, Coercion: 128 << 10,
		Write: []WritePolicy{ProtectedWriteBack, WriteThrough}, Read: []ReadPolicy{ReadAhead, ReadCacheOff}, Spares: true, Passthrough: true,
	}
}

// testServer has a RAID controller "1" with eight bays and an adapter "2"
// without RAID with two.
func testServer(disk Model) []Controller {
	var out []Controller
	n := 0
	for _, m := range []*ControllerModel{
		{ID: "1", Name: "RAID", Bays: slices.Repeat([]Model{disk}, 8), RAID: rules()},
		{ID: "2", Name: "HBA", Bays: slices.Repeat([]Model{disk}, 2)},
	} {
		c := Controller{ControllerModel: m, Serial: "C" + m.ID}
		for b := range m.Bays {
			c.Drives = append(c.Drives, Drive{Model: &m.Bays[b], ID: fmt.Sprintf("Disk.%d", n), Bay: b, Serial: fmt.Sprintf("S%d", n), WWN: fmt.Sprintf("3%015d", n)})
			n++
		}
		out = append(out, c)
	}
	return out
}

// bench is a server with its drives: it does the work that the subsystem asks
// for before it keeps the state, as a rack does.
type bench struct {
	*testing.T
	*Subsystem
	now    time.Time
	drives map[string]*Memory
	places map[string]*Memory
	notes  []string // kinds and IDs of the notes
	waits  []string // jobs that wait
	ran    []string // jobs that began
	ended  []string // jobs that ended, with their faults
	wrong  int64    // rows that checks have mended
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, now: epoch, drives: map[string]*Memory{}, places: map[string]*Memory{}}
	var err error
	if b.Subsystem, err = New(testServer(disk), true, nil); err != nil {
		t.Fatal(err)
	}
	return b
}

// Deadline is the server's, not the test's.
func (b *bench) Deadline() (time.Time, bool) { return b.Subsystem.Deadline() }

// Drive implements Media.
func (b *bench) Drive(serial string) (Medium, error) {
	if b.drives[serial] == nil {
		size, ok := b.View().Size(serial)
		if !ok {
			return nil, fmt.Errorf("no drive %s", serial)
		}
		b.drives[serial] = NewMemory(size)
	}
	return b.drives[serial], nil
}

// Safe implements Media.
func (b *bench) Safe(name string, size int64) (Medium, error) {
	if b.places[name] == nil {
		b.places[name] = NewMemory(size)
	}
	return b.places[name], nil
}

func (b *bench) hear(evs []event.Event) {
	b.Helper()
	for _, ev := range evs {
		switch ev := ev.(type) {
		case Work:
			wrong, err := ev.Do(b)
			if err != nil {
				b.Fatalf("%s: %v", ev.Kind, err)
			}
			b.wrong += wrong
		case event.Note:
			if want := event.Kinds[ev.Kind].Text; want == "" || len(ev.Args) == 0 {
				b.Errorf("note %+v has no text", ev)
			}
			b.notes = append(b.notes, fmt.Sprintf("%s %s", ev.Kind, ev.Subject.ID))
		case event.TaskWaiting:
			b.waits = append(b.waits, ev.Task)
		case event.TaskRunning:
			b.ran = append(b.ran, ev.Task)
		case event.TaskDone:
			if ev.Cancelled {
				ev.Fault = " cancelled"
			}
			if ev.Made != nil {
				ev.Fault = " made " + ev.Made.ID
			}
			b.ended = append(b.ended, ev.Task+ev.Fault)
		}
	}
}

// do applies a command that must succeed.
func (b *bench) do(c Command) {
	b.Helper()
	evs, err := b.Apply(b.now, c)
	if err != nil {
		b.Fatalf("%T%+v = %v", c, c, err)
	}
	b.hear(evs)
}

// refuse applies a command that must fail, and must change nothing.
func (b *bench) refuse(c Command, want error) *RuleError {
	b.Helper()
	before := b.State()
	evs, err := b.Apply(b.now, c)
	b.hear(evs)
	if !errors.Is(err, want) {
		b.Errorf("%T%+v = %v, want %v", c, c, err, want)
	}
	if b.State() != before {
		b.Errorf("%T%+v was refused, and changed the state", c, c)
	}
	var rule *RuleError
	errors.As(err, &rule)
	return rule
}

// pass lets time go by until nothing is under way.
func (b *bench) pass() {
	b.Helper()
	for at, ok := b.Deadline(); ok; at, ok = b.Deadline() {
		b.now = at
		b.hear(b.Advance(at))
	}
}

// heard forgets the notes and returns them.
func (b *bench) heard() []string {
	out := b.notes
	b.notes = nil
	return out
}

func (b *bench) expect(want ...string) {
	b.Helper()
	if d := cmp.Diff(want, b.heard()); d != "" {
		b.Errorf("notes (-want +got):\n%s", d)
	}
}

// drive is a drive as it is seen; it must be there.
func (b *bench) drive(bay string) DriveView {
	b.Helper()
	d, ok := b.View().Drive(bay)
	if !ok {
		b.Fatalf("there is no drive %s", bay)
	}
	return d
}

func (b *bench) volume(id string) VolumeView {
	b.Helper()
	v, ok := b.View().Volume("1", id)
	if !ok {
		b.Fatalf("there is no volume %s", id)
	}
	return v
}

func (b *bench) open(id string) *Volume {
	b.Helper()
	x := b.volume(id)
	v, err := x.Open(b.Drive)
	if err != nil {
		b.Fatalf("volume %s: %v", id, err)
	}
	return v
}

// fill writes a pattern all over a volume; filled checks it.
func (b *bench) fill(id string, seed byte) {
	b.Helper()
	v := b.open(id)
	if _, err := v.WriteAt(pattern(v.Size(), seed), 0); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) filled(id string, seed byte, n int64) {
	b.Helper()
	got := make([]byte, n)
	if _, err := b.open(id).ReadAt(got, 0); err != nil || !bytes.Equal(got, pattern(n, seed)) {
		b.Errorf("volume %s does not hold what was written: %v", id, err)
	}
}

func pattern(n int64, seed byte) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i)*31 + byte(i>>8)*7 + byte(i>>16) + seed
	}
	return p
}

// restart stores the state and loads it again.
func (b *bench) restart() {
	b.Helper()
	raw, err := json.Marshal(b.State())
	if err != nil {
		b.Fatal(err)
	}
	var st *State
	if err := json.Unmarshal(raw, &st); err != nil {
		b.Fatal(err)
	}
	if d := cmp.Diff(b.State(), st); d != "" {
		b.Errorf("the state is another after a restart (-before +after):\n%s", d)
	}
	if b.Subsystem, err = New(b.controllers, b.on, st); err != nil {
		b.Fatal(err)
	}
}

func bays(from, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("Disk.%d", from+i))
	}
	return out
}
