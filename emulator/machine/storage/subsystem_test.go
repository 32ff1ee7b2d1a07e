package storage

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// A server that equals its profile stores no state, also after changes that were
// undone.
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

// A mirror keeps its data while a drive fails, a spare replaces it, and the
// failed drive is replaced.
func TestHotSpareReplacesFailedDrive(t *testing.T) {
	b := newBench(t)
	b.do(CreateVolume{Controller: "1", Type: RAID5, Drives: bays(0, 3), Spares: []string{"Disk.3"}, Name: "data", Task: "7"})
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
	total := v.Ops[0].Duration
	if got := v.Ops[0].Percent(b.now.Add(total / 2)); got < 45 || got > 50 {
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

// A volume that loses more drives than its redundancy covers fails; importing
// its drives restores it.
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
	_ = b.refuse(ImportForeign{Controller: "1"}, ErrRule) // what it holds is old
	b.do(PullDrive{"Disk.5"})
	b.heard()
	b.do(InsertDrive{Drive: "Disk.5", What: InsertSame, Serial: "S1"})
	b.restart()
	b.do(ImportForeign{Controller: "1", Task: "j"})
	b.expect("drive.inserted Disk.5", "drive.foreign Disk.5",
		"volume.imported 1", "volume.degraded 1", "volume.rebuilding 1", "drive.rebuild.started Disk.0")
	b.filled("1", 2, size)
	b.pass()
	b.filled("1", 2, size)
	if m := b.volume("1").Members; m[0].Bay != "Disk.0" || m[1].Bay != "Disk.5" || b.volume("1").Health() != event.OK {
		t.Errorf("members = %+v", m)
	}
}

// Drives that are pulled and put back while the power is off cause no event.
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
		_ = b.refuse(c, ErrPower)
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

func TestConsistencyCheckRepairs(t *testing.T) {
	b := newBench(t)
	b.do(CreateVolume{Controller: "1", Type: RAID1, Drives: bays(0, 2), Method: Skip})
	b.fill("1", 1)
	if _, err := b.drives["S1"].WriteAt([]byte{0xff, 0xff}, 1000); err != nil {
		t.Fatal(err)
	}
	b.do(CheckConsistency{"1", "1", "c"})
	_ = b.refuse(CheckConsistency{"1", "1", "d"}, ErrBusy)
	b.pass()
	b.do(Checked{"1", "1", b.wrong})
	b.expect("volume.created 1", "volume.checked 1", "volume.mended 1")
	if b.wrong != 1 {
		t.Errorf("%d rows were wrong, want 1", b.wrong)
	}
	b.do(CheckConsistency{"1", "1", "e"})
	b.do(CancelTask{"e"})
	b.do(CheckConsistency{"1", "1", "f"})
	b.do(PullDrive{"Disk.0"})
	_ = b.refuse(CheckConsistency{"1", "1", "g"}, ErrState)
	want := []string{"c", "e cancelled", "fa drive of the volume was lost"}
	if d := cmp.Diff(want, b.ended); d != "" {
		t.Errorf("jobs ended (-want +got):\n%s", d)
	}
	b.do(CreateVolume{Controller: "1", Type: RAID0, Drives: bays(4, 2)})
	_ = b.refuse(CheckConsistency{"1", "2", "h"}, ErrUnsupported)
}

func TestInitializing(t *testing.T) {
	b := newBench(t)
	b.do(CreateVolume{Controller: "1", Type: RAID10, Drives: bays(0, 4), Method: Foreground, Task: "a"})
	if v := b.volume("1"); v.Usable() || len(b.ended) != 0 {
		t.Errorf("volume in initialisation = %+v, ended %v", v, b.ended)
	}
	b.pass()
	if v := b.volume("1"); !v.Usable() {
		t.Errorf("volume = %+v", v)
	}
	b.fill("1", 1)
	b.do(InitializeVolume{Controller: "1", Volume: "1", Fast: true, Task: "b"})
	v := b.open("1")
	head := make([]byte, 1<<20)
	if _, err := v.ReadAt(head, 0); err != nil || !zeros(head) {
		t.Errorf("the head of the volume is not clear: %v", err)
	}
	b.fill("1", 2)
	b.do(InitializeVolume{Controller: "1", Volume: "1", Task: "c"})
	if at, err := b.open("1").NextData(0); err == nil {
		t.Errorf("NextData(0) = %d after an initialisation", at)
	}
	b.do(CancelTask{"c"})
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
	b.do(SecureErase{Drive: "Disk.8", Way: Overwrite, Passes: 3, Task: "e"})
	if _, err := m.NextData(0); err == nil {
		t.Error("the drive holds data")
	}
	if b.drive("Disk.8").State != DriveErasing || len(b.View().Devices()) != 9 {
		t.Errorf("drive = %+v, devices %d", b.drive("Disk.8"), len(b.View().Devices()))
	}
	_ = b.refuse(SecureErase{Drive: "Disk.8"}, ErrBusy)
	_ = b.refuse(CancelTask{"e"}, ErrState)
	b.pass()
	b.do(SecureErase{Drive: "Disk.8", Task: "f"})
	b.do(PullDrive{"Disk.8"})
	if d := cmp.Diff([]string{"e", "fthe drive is gone"}, b.ended); d != "" {
		t.Errorf("jobs ended (-want +got):\n%s", d)
	}
	b.do(CreateVolume{Controller: "1", Type: RAID0, Drives: bays(0, 1)})
	_ = b.refuse(SecureErase{Drive: "Disk.0"}, ErrState)
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
	b.do(ExpandVolume{Controller: "1", Volume: "1", Capacity: 3 << 20, Task: "a"})
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
	b.do(ExpandVolume{Controller: "1", Volume: "1", Drives: []string{"Disk.3"}, Type: RAID6, Task: "b"})
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
	b.do(ExpandVolume{Controller: "1", Volume: "2", Drives: []string{"Disk.6"}, Type: RAID5, Task: "c"})
	b.do(PullDrive{"Disk.6"})
	b.pass()
	b.filled("2", 3, b.open("2").Size())
	if got := b.ended[len(b.ended)-1]; got != "ca drive that was to be added is gone" {
		t.Errorf("job ended: %s", got)
	}
}

// Drives with another server's volume offer it as a foreign configuration.
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
	_ = other.refuse(CreateVolume{Controller: "1", Type: RAID0, Drives: bays(0, 1)}, ErrRule)
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
	_ = b.refuse(ClearForeign{Controller: "1"}, ErrState)
	// An adapter without RAID takes no notice.
	b.do(PullDrive{"Disk.8"})
	b.do(InsertDrive{Drive: "Disk.8", What: InsertForeign})
	if d := b.drive("Disk.8"); d.State != DriveUnused {
		t.Errorf("drive = %+v", d)
	}
}

func TestFailurePredictions(t *testing.T) {
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

// Volumes can share drives: each has an extent of them.
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
	_ = b.refuse(create, ErrRule) // not three
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
