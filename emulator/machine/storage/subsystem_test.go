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
// for before it keeps the state, as a lab does.
type bench struct {
	*testing.T
	*Subsystem
	now    time.Time
	drives map[string]*Memory
	places map[string]*Memory
	notes  []string // kinds and IDs of the notes
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
		case event.Running:
			b.ran = append(b.ran, ev.Job)
		case event.Done:
			if ev.Cancelled {
				ev.Fault = " cancelled"
			}
			if ev.Made != nil {
				ev.Fault = " made " + ev.Made.ID
			}
			b.ended = append(b.ended, ev.Job+ev.Fault)
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

// A server like its profile has no state, and comes back to that.
func TestNothingIsStoredOfTheProfile(t *testing.T) {
	b := newBench(t)
	b.do(SetIndicator{"Disk.3", true})
	if !b.drive("Disk.3").Locate || b.State() == nil {
		t.Error("the light is not on, or not stored")
	}
	was := b.State()
	b.do(SetIndicator{"Disk.3", true})
	if b.State() != was {
		t.Error("nothing changed, but the state is another")
	}
	b.do(SetIndicator{"Disk.3", false})
	b.do(PullDrive{"Disk.3"})
	b.do(InsertDrive{Drive: "Disk.3", What: InsertSame})
	if b.State() != nil {
		t.Errorf("State() = %+v, want nil", b.State())
	}
	b.expect("drive.removed Disk.3", "drive.inserted Disk.3")
}

// The life of a mirror: a drive fails, a spare takes its place, the failed one
// is replaced, and the data is there all the time.
func TestASpareTakesOver(t *testing.T) {
	b := newBench(t)
	b.do(CreateVolume{Controller: "1", Type: RAID5, Drives: bays(0, 3), Spares: []string{"Disk.3"}, Name: "data", Job: "7"})
	if v := b.volume("1"); v.Name != "data" || v.Write != ProtectedWriteBack || v.Size() != 2*(4<<20-128<<10) || v.Health() != event.OK {
		t.Errorf("volume = %+v, %d bytes, %s", v, v.Size(), v.Health())
	}
	if d := b.drive("Disk.3"); d.State != DriveSpare || d.Spare != DedicatedSpare || !slices.Equal(d.For, []string{"1"}) {
		t.Errorf("spare = %+v", d)
	}
	b.fill("1", 1)
	b.pass()
	b.expect("volume.created 1", "volume.initialized 1")
	if d := cmp.Diff([]string{"7 made 1"}, b.ended); d != "" {
		t.Errorf("jobs ended: %s", d)
	}

	b.do(FailDrive{"Disk.1"})
	b.expect("drive.failed Disk.1", "volume.degraded 1", "volume.rebuilding 1", "drive.rebuild.started Disk.3")
	v := b.volume("1")
	if v.Health() != event.Warning || len(v.Ops) != 1 || v.Ops[0].Kind != OpRebuild || b.drive("Disk.3").State != DriveRebuilding {
		t.Errorf("volume = %+v, drive %s", v, b.drive("Disk.3").State)
	}
	whole := v.Ops[0].Whole
	if got := v.Ops[0].Percent(b.now.Add(whole / 2)); got < 45 || got > 50 {
		t.Errorf("half way: %d%%", got)
	}
	b.filled("1", 1, v.Size()) // degraded
	b.fill("1", 2)
	b.restart()
	b.pass()
	b.expect("drive.rebuild.finished Disk.3", "volume.optimal 1")
	b.filled("1", 2, v.Size())

	if d := b.drive("Disk.1"); d.State != DriveFailed || d.Health() != event.Critical || len(d.Volumes) != 0 {
		t.Errorf("failed drive = %+v", d)
	}
	b.do(PullDrive{"Disk.1"})
	if _, ok := b.View().Drive("Disk.1"); ok {
		t.Error("a pulled drive is there still")
	}
	b.do(InsertDrive{Drive: "Disk.1", What: InsertNew})
	if d := b.drive("Disk.1"); d.State != DriveUnused || d.Serial == "S1" || len(d.Serial) != 10 || len(d.WWN) != 16 {
		t.Errorf("new drive = %+v", d)
	}
	// Without a spare the new drive of a bay takes the place of the old one.
	b.do(PullDrive{"Disk.0"})
	b.do(InsertDrive{Drive: "Disk.0", What: InsertNew})
	if got := b.drive("Disk.0").State; got != DriveRebuilding {
		t.Errorf("new drive in the bay of a lost one is %s", got)
	}
	b.pass()
	b.filled("1", 2, v.Size())
	if v := b.volume("1"); v.Health() != event.OK {
		t.Errorf("volume = %+v", v)
	}
}

// What a volume cannot outlive makes it fail, and its drives bring it back.
func TestAFailedVolumeComesBackByImport(t *testing.T) {
	b := newBench(t)
	b.do(CreateVolume{Controller: "1", Type: RAID1, Drives: bays(0, 2), Method: Skip})
	b.fill("1", 1)
	size := b.open("1").Size()
	b.do(PullDrive{"Disk.0"})
	b.fill("1", 2) // the pulled one does not know
	b.do(PullDrive{"Disk.1"})
	if v := b.volume("1"); !v.Failed || v.Health() != event.Critical || v.Usable() {
		t.Errorf("volume without drives = %+v", v)
	}
	b.heard()
	b.do(InsertDrive{Drive: "Disk.0", What: InsertSame})
	if b.drive("Disk.0").State != DriveForeign {
		t.Errorf("drive = %+v", b.drive("Disk.0"))
	}
	b.refuse(ImportForeign{Controller: "1"}, ErrRule) // what it holds is old
	b.do(PullDrive{"Disk.5"})
	b.heard()
	b.do(InsertDrive{Drive: "Disk.5", What: InsertSame, Serial: "S1"})
	b.restart()
	b.do(ImportForeign{Controller: "1", Job: "j"})
	b.expect("drive.inserted Disk.5", "drive.foreign Disk.5",
		"volume.imported 1", "volume.degraded 1", "volume.rebuilding 1", "drive.rebuild.started Disk.0")
	b.filled("1", 2, size)
	b.pass()
	b.filled("1", 2, size)
	if m := b.volume("1").Members; m[0].Bay != "Disk.0" || m[1].Bay != "Disk.5" || b.volume("1").Health() != event.OK {
		t.Errorf("members = %+v", m)
	}
}

// While the power is off nobody notices that drives are taken out and put back.
func TestNothingHappensWhileOff(t *testing.T) {
	b := newBench(t)
	b.do(CreateVolume{Controller: "1", Type: RAID5, Drives: bays(0, 3), Method: Skip})
	b.fill("1", 1)
	b.do(CheckConsistency{"1", "1", "c"})
	b.hear(b.Power(b.now, false))
	b.heard()
	for _, c := range []Command{
		CreateVolume{Controller: "1", Type: RAID0, Drives: bays(4, 1)}, DeleteVolume{Controller: "1", Volume: "1"},
		SecureErase{Drive: "Disk.8"}, ImportForeign{Controller: "1"}, AssignSpare{Controller: "1", Drive: "Disk.4"},
		SetRates{Controller: "1"}, ResetController{Controller: "1"}, SetVolume{Controller: "1", Volume: "1"},
	} {
		b.refuse(c, ErrPower)
	}
	if _, ok := b.Deadline(); ok {
		t.Error("work goes on while the power is off")
	}
	b.do(PullDrive{"Disk.0"})
	b.do(PullDrive{"Disk.1"})
	b.do(InsertDrive{Drive: "Disk.1", What: InsertSame, Serial: "S0"})
	b.do(InsertDrive{Drive: "Disk.0", What: InsertSame, Serial: "S1"})
	b.expect("drive.removed Disk.0", "drive.removed Disk.1", "drive.inserted Disk.1", "drive.inserted Disk.0")
	b.restart()
	b.now = b.now.Add(100 * time.Hour)
	b.hear(b.Power(b.now, true))
	if v := b.volume("1"); v.Health() != event.OK || v.Members[0].Bay != "Disk.1" {
		t.Errorf("volume = %+v", v)
	}
	b.pass()
	b.expect("volume.checked 1")
	if b.wrong != 0 {
		t.Errorf("%d rows were wrong", b.wrong)
	}
	if d := cmp.Diff([]string{"c", "c"}, b.ran); d != "" { // once more after the pause
		t.Errorf("jobs begun: %s", d)
	}
	b.filled("1", 1, b.open("1").Size())
}

func TestChecksMendAndTell(t *testing.T) {
	b := newBench(t)
	b.do(CreateVolume{Controller: "1", Type: RAID1, Drives: bays(0, 2), Method: Skip})
	b.fill("1", 1)
	if _, err := b.drives["S1"].WriteAt([]byte{0xff, 0xff}, 1000); err != nil {
		t.Fatal(err)
	}
	b.do(CheckConsistency{"1", "1", "c"})
	b.refuse(CheckConsistency{"1", "1", "d"}, ErrBusy)
	b.pass()
	b.do(Checked{"1", "1", b.wrong})
	b.expect("volume.created 1", "volume.checked 1", "volume.mended 1")
	if b.wrong != 1 {
		t.Errorf("%d rows were wrong, want 1", b.wrong)
	}
	b.do(CheckConsistency{"1", "1", "e"})
	b.do(CancelJob{"e"})
	b.do(CheckConsistency{"1", "1", "f"})
	b.do(PullDrive{"Disk.0"})
	b.refuse(CheckConsistency{"1", "1", "g"}, ErrState)
	want := []string{"c", "e cancelled", "fa drive of the volume was lost"}
	if d := cmp.Diff(want, b.ended); d != "" {
		t.Errorf("jobs ended (-want +got):\n%s", d)
	}
	b.do(CreateVolume{Controller: "1", Type: RAID0, Drives: bays(4, 2)})
	b.refuse(CheckConsistency{"1", "2", "h"}, ErrUnsupported)
}

func TestInitializing(t *testing.T) {
	b := newBench(t)
	b.do(CreateVolume{Controller: "1", Type: RAID10, Drives: bays(0, 4), Method: Foreground, Job: "a"})
	if v := b.volume("1"); v.Usable() || len(b.ended) != 0 {
		t.Errorf("volume in initialisation = %+v, ended %v", v, b.ended)
	}
	b.pass()
	if v := b.volume("1"); !v.Usable() {
		t.Errorf("volume = %+v", v)
	}
	b.fill("1", 1)
	b.do(InitializeVolume{Controller: "1", Volume: "1", Fast: true, Job: "b"})
	v := b.open("1")
	head := make([]byte, 1<<20)
	if _, err := v.ReadAt(head, 0); err != nil || !zeros(head) {
		t.Errorf("the head of the volume is not clear: %v", err)
	}
	b.fill("1", 2)
	b.do(InitializeVolume{Controller: "1", Volume: "1", Job: "c"})
	if at, err := b.open("1").NextData(0); err == nil {
		t.Errorf("NextData(0) = %d after an initialisation", at)
	}
	b.do(CancelJob{"c"})
	if d := cmp.Diff([]string{"a made 1", "b", "c cancelled"}, b.ended); d != "" {
		t.Errorf("jobs ended (-want +got):\n%s", d)
	}
	// What lies on drives from before is there again: a volume that is made as
	// the old one was shows the old data.
	b.fill("1", 3)
	b.do(DeleteVolume{Controller: "1", Volume: "1"})
	b.do(CreateVolume{Controller: "1", Type: RAID10, Drives: bays(0, 4)})
	if b.volume("2").WWN == "" || b.volume("2").ID != "2" {
		t.Errorf("volume = %+v", b.volume("2"))
	}
	b.filled("2", 3, b.open("2").Size())
}

func TestErasing(t *testing.T) {
	b := newBench(t)
	m, err := b.Drive("S8")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.WriteAt([]byte("secret"), 1<<20); err != nil {
		t.Fatal(err)
	}
	if r := b.refuse(SecureErase{Drive: "Disk.8", Way: CryptographicErase}, ErrRule); r.Field != FieldMethod || r.Value != "CryptographicErase" {
		t.Errorf("rule = %+v", r)
	}
	b.do(SecureErase{Drive: "Disk.8", Way: Overwrite, Passes: 3, Job: "e"})
	if _, err := m.NextData(0); err == nil {
		t.Error("the drive holds data")
	}
	if b.drive("Disk.8").State != DriveErasing || len(b.View().Devices()) != 9 {
		t.Errorf("drive = %+v, devices %d", b.drive("Disk.8"), len(b.View().Devices()))
	}
	b.refuse(SecureErase{Drive: "Disk.8"}, ErrBusy)
	b.refuse(CancelJob{"e"}, ErrState)
	b.pass()
	b.do(SecureErase{Drive: "Disk.8", Job: "f"})
	b.do(PullDrive{"Disk.8"})
	if d := cmp.Diff([]string{"e", "fthe drive is gone"}, b.ended); d != "" {
		t.Errorf("jobs ended (-want +got):\n%s", d)
	}
	b.do(CreateVolume{Controller: "1", Type: RAID0, Drives: bays(0, 1)})
	b.refuse(SecureErase{Drive: "Disk.0"}, ErrState)
}

func TestExpanding(t *testing.T) {
	b := newBench(t)
	b.do(CreateVolume{Controller: "1", Type: RAID5, Drives: bays(0, 3), Capacity: 1 << 20, Method: Skip, Name: "old"})
	b.fill("1", 1)
	for _, m := range []string{"S0", "S1", "S2", "S3"} { // what lay there before
		d, err := b.Drive(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.WriteAt(pattern(1<<20, 9), 2<<20); err != nil {
			t.Fatal(err)
		}
	}
	n := b.open("1").Size()
	b.do(ExpandVolume{Controller: "1", Volume: "1", Capacity: 3 << 20, Job: "a"})
	if got := b.open("1").Size(); got != n {
		t.Errorf("the volume has %d bytes at once", got)
	}
	b.pass()
	if got := b.open("1").Size(); got < 3<<20 || got > 3<<20+256<<10 {
		t.Errorf("the volume has %d bytes", got)
	}
	b.filled("1", 1, n)
	if at, err := b.open("1").NextData(n); err == nil {
		t.Errorf("there is data at %d, in the new part", at)
	}
	b.fill("1", 2)
	n = b.open("1").Size()
	b.do(ExpandVolume{Controller: "1", Volume: "1", Drives: []string{"Disk.3"}, Type: RAID6, Job: "b"})
	if b.drive("Disk.3").State != DriveReserved {
		t.Errorf("drive = %+v", b.drive("Disk.3"))
	}
	name := "new"
	b.do(SetVolume{Controller: "1", Volume: "1", Name: &name})
	at, _ := b.Deadline()
	b.now = at
	b.hear(b.Advance(at)) // the data is in a safe place
	if b.volume("1").Usable() || len(b.State().Safes()) != 1 {
		t.Error("the volume can be used while it is being written")
	}
	b.restart()
	for range 2 { // killed after the work was done, before that was stored
		before := b.State()
		at, _ = b.Deadline()
		b.now = at
		evs := b.Advance(at)
		b.hear(evs)
		b.Restore(true, before)
	}
	b.pass()
	v := b.volume("1")
	if v.Type != RAID6 || len(v.Members) != 4 || v.Name != "new" || !v.Usable() || v.Size() <= n {
		t.Errorf("volume = %+v, %d bytes", v, v.Size())
	}
	b.filled("1", 2, n)
	if d := cmp.Diff([]string{"a", "b"}, slices.Compact(b.ended)); d != "" {
		t.Errorf("jobs ended (-want +got):\n%s", d)
	}
	b.do(FailDrive{"Disk.0"})
	b.do(FailDrive{"Disk.2"})
	b.filled("1", 2, n)

	b.do(CreateVolume{Controller: "1", Type: RAID1, Drives: bays(4, 2), Method: Skip})
	b.fill("2", 3)
	b.do(ExpandVolume{Controller: "1", Volume: "2", Drives: []string{"Disk.6"}, Type: RAID5, Job: "c"})
	b.do(PullDrive{"Disk.6"})
	b.pass()
	b.filled("2", 3, b.open("2").Size())
	if got := b.ended[len(b.ended)-1]; got != "ca drive that was to be added is gone" {
		t.Errorf("job ended: %s", got)
	}
}

// Drives that carry another server's volume bring it along.
func TestForeignDrives(t *testing.T) {
	b := newBench(t)
	b.do(CreateVolume{Controller: "1", Type: RAID5, Drives: bays(0, 3), Method: Skip, Name: "moved"})
	b.fill("1", 4)
	size := b.open("1").Size()
	for _, bay := range bays(0, 3) {
		b.do(PullDrive{bay})
	}
	other := newBench(t)
	other.controllers[0].Serial = "another"
	other.do(PullDrive{"Disk.0"})
	other.do(DiscardDrive{"S0"})
	other.do(PullDrive{"Disk.1"})
	other.do(DiscardDrive{"S1"})
	loose := b.View().Shelf()
	for i, bay := range []string{"Disk.0", "Disk.1"} { // two of three, in other bays
		l := loose[2-i]
		l.Config = cloneArrays(l.Config)
		l.Serial = "X" + l.Serial
		for j := range l.Config[0].Members {
			l.Config[0].Members[j].Serial = "XS" + fmt.Sprint(j)
		}
		other.drives[l.Serial] = b.drives[l.Serial[1:]]
		other.do(InsertDrive{Drive: bay, What: InsertLoose, Loose: &l})
	}
	if d := other.drive("Disk.1"); d.State != DriveForeign {
		t.Errorf("drive = %+v", d)
	}
	other.refuse(CreateVolume{Controller: "1", Type: RAID0, Drives: bays(0, 1)}, ErrRule)
	other.heard()
	other.do(ImportForeign{Controller: "1"})
	other.expect("volume.imported 1", "volume.degraded 1")
	if v := other.volume("1"); v.Name != "moved" || !v.Degraded() {
		t.Errorf("volume = %+v", v)
	}
	other.filled("1", 4, size)

	b.do(InsertDrive{Drive: "Disk.0", What: InsertForeign})
	if d := b.drive("Disk.0"); d.State != DriveForeign {
		t.Errorf("drive = %+v", d)
	}
	b.do(ImportForeign{Controller: "1"})
	if v := b.volume("2"); !v.Degraded() || v.Type != RAID1 {
		t.Errorf("volume = %+v", v)
	}
	b.do(InsertDrive{Drive: "Disk.1", What: InsertForeign})
	b.do(ClearForeign{Controller: "1"})
	if d := b.drive("Disk.1"); d.State != DriveUnused {
		t.Errorf("drive = %+v", d)
	}
	b.refuse(ClearForeign{Controller: "1"}, ErrState)
	// An adapter without RAID takes no notice.
	b.do(PullDrive{"Disk.8"})
	b.do(InsertDrive{Drive: "Disk.8", What: InsertForeign})
	if d := b.drive("Disk.8"); d.State != DriveUnused {
		t.Errorf("drive = %+v", d)
	}
}

func TestPredictions(t *testing.T) {
	b := newBench(t)
	d := b.drive("Disk.0")
	if used, ok := d.SMART(PercentageUsed); !ok || used > 3 || d.Predicted {
		t.Errorf("a new drive has used %d%% of its life, %v", used, ok)
	}
	b.do(PredictFailure{"Disk.0", true})
	b.do(SetSMART{"Disk.0", []Reading{{PercentageUsed, 101}, {Temperature, 55}}})
	b.do(PredictFailure{"Disk.0", false})
	d = b.drive("Disk.0")
	if used, _ := d.SMART(PercentageUsed); used != 101 || !d.Predicted || d.Health() != event.Warning {
		t.Errorf("drive = %+v, used %d", d, used)
	}
	b.do(SetSMART{"Disk.0", []Reading{{PercentageUsed, 99}}})
	b.expect("drive.predicted Disk.0", "drive.unpredicted Disk.0")
	for _, r := range []Reading{{"colour", 1}, {Temperature, 126}, {AvailableSpare, -1}} {
		if got := b.refuse(SetSMART{"Disk.0", []Reading{r}}, ErrRule); got.Field != FieldSMART {
			t.Errorf("rule = %+v", got)
		}
	}
	before := b.drive("Disk.0")
	b.do(PullDrive{"Disk.0"})
	b.do(InsertDrive{Drive: "Disk.0", What: InsertNew})
	after := b.drive("Disk.0")
	x, _ := before.SMART(PowerOnHours)
	y, _ := after.SMART(PowerOnHours)
	if x == y {
		t.Errorf("another drive has the same %d hours", x)
	}
}

// Volumes can share drives, one behind the other.
func TestVolumesShareDrives(t *testing.T) {
	b := newBench(t)
	create := CreateVolume{Controller: "1", Type: RAID5, Drives: bays(0, 3), Capacity: 2 << 20, Method: Skip}
	b.do(create)
	create.Drives = []string{"Disk.2", "Disk.0", "Disk.1"} // in any order
	b.do(create)
	one, two := b.volume("1"), b.volume("2")
	if two.Offset != one.end() || !slices.Equal(one.Members, two.Members) {
		t.Errorf("volumes = %+v, %+v", one, two)
	}
	b.fill("1", 1)
	b.fill("2", 2)
	b.refuse(create, ErrRule) // not three
	b.do(AssignSpare{Controller: "1", Drive: "Disk.5"})
	b.do(PullDrive{"Disk.1"})
	b.pass()
	b.filled("1", 1, 2<<20)
	b.filled("2", 2, 2<<20)
	if got := b.drive("Disk.5").Volumes; !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("the spare is part of %v", got)
	}
	if r := b.refuse(ExpandVolume{Controller: "1", Volume: "1", Drives: []string{"Disk.6"}}, ErrRule); r.Field != FieldVolumes {
		t.Errorf("rule = %+v", r)
	}
	if r := b.refuse(ExpandVolume{Controller: "1", Volume: "1"}, ErrRule); r.Field != FieldCapacity {
		t.Errorf("rule = %+v", r)
	}
	b.do(DeleteVolume{Controller: "1", Volume: "1"})
	create.Drives = []string{"Disk.0", "Disk.5", "Disk.2"}
	create.Capacity = 1 << 20
	b.do(create)
	if got := b.volume("3").Offset; got != 0 {
		t.Errorf("a volume that fits before another is at %d", got)
	}
	b.filled("2", 2, 2<<20)
}
