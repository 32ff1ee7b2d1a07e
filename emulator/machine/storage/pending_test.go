package storage

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A command that is to apply at the next start waits for it; it is refused at
// once when it could not apply then.
func TestCommandsWaitForAStart(t *testing.T) {
	b := newBench(t)
	b.hear(b.Power(b.now, false))
	create := CreateVolume{Controller: "1", Type: RAID1, Drives: bays(0, 2), Method: Foreground, Task: "a"}
	b.do(OnReset{create, "a"})
	create.Task = "b"
	if r := b.refuse(OnReset{create, "b"}, ErrRule); r.Why != InUse { // by the one before
		t.Errorf("rule = %+v", r)
	}
	b.do(OnReset{DeleteVolume{Controller: "1", Volume: "1", Task: "c"}, "c"})
	b.do(OnReset{SecureErase{Drive: "Disk.8", Task: "d"}, "d"})
	_ = b.refuse(OnReset{PullDrive{"Disk.0"}, "e"}, ErrUnsupported)
	b.do(CancelTask{"c"})
	if b.View().Works("c") || !b.View().Works("d") || len(b.waits) != 3 {
		t.Errorf("waiting: %q", b.waits)
	}
	b.restart()
	b.do(PullDrive{"Disk.8"}) // now it cannot
	b.hear(b.Power(b.now, true))
	b.hear(b.Boot(b.now))
	b.pass()
	if v := b.volume("1"); v.Type != RAID1 {
		t.Errorf("volume = %+v", v)
	}
	want := []string{"c cancelled", "dstorage: there is no such thing: drive Disk.8", "a made 1"}
	if d := cmp.Diff(want, b.ended); d != "" {
		t.Errorf("jobs ended (-want +got):\n%s", d)
	}
	if evs := b.Boot(b.now); evs != nil {
		t.Errorf("the next start did it again: %v", evs)
	}
}

// A controller with RAID.JobSeconds executes changes one after the other; a
// change that a power loss interrupts is applied at the next start.
func TestControllerJobDuration(t *testing.T) {
	b := newBench(t)
	b.controllers[0].RAID.JobSeconds = 40
	soon := func(c Command, job string) { b.do(Soon{"1", c, job}) }
	soon(CreateVolume{Controller: "1", Type: RAID1, Drives: bays(0, 2), Task: "a"}, "a")
	soon(CreateVolume{Controller: "1", Type: RAID1, Drives: bays(2, 2), Task: "b"}, "b")
	if r := b.refuse(Soon{"1", CreateVolume{Controller: "1", Type: RAID1, Drives: bays(1, 2), Task: "c"}, "c"}, ErrRule); r.Why != InUse {
		t.Errorf("rule = %+v", r)
	}
	_ = b.refuse(Soon{"2", CreateVolume{Controller: "2", Type: RAID1, Drives: bays(8, 2), Task: "c"}, "c"}, ErrUnsupported)
	made := func(want int) {
		t.Helper()
		c, _ := b.View().Controller("1")
		if len(c.Volumes) != want {
			t.Errorf("after %v there are %d volumes, want %d", b.now.Sub(epoch), len(c.Volumes), want)
		}
	}
	at := func(after time.Duration) {
		b.now = epoch.Add(after)
		b.hear(b.Advance(b.now))
	}
	if got, _ := b.Deadline(); got != epoch.Add(40*time.Second) || !slices.Equal(b.ran, []string{"a", "b"}) {
		t.Errorf("the next change is at %v; %q run", got, b.ran)
	}
	at(39 * time.Second)
	made(0)
	at(40 * time.Second)
	made(1)
	b.restart()
	at(60 * time.Second)
	b.hear(b.Power(b.now, false))
	at(200 * time.Second)
	if !slices.Equal(b.waits, []string{"b"}) {
		t.Errorf("waiting: %q", b.waits)
	}
	b.hear(b.Power(b.now, true))
	made(1)
	b.hear(b.Boot(b.now))
	made(2)
	if d := cmp.Diff([]string{"a made 1", "b made 2"}, b.ended); d != "" {
		t.Errorf("jobs ended (-want +got):\n%s", d)
	}
}

// Forcing a failed volume online brings it back with the content of its drives.
func TestForceEnable(t *testing.T) {
	b := newBench(t)
	b.do(CreateVolume{Controller: "1", Type: RAID1, Drives: bays(0, 2), Method: Skip})
	_ = b.refuse(ForceEnable{Controller: "1", Volume: "1"}, ErrState)
	b.fill("1", 1)
	size := b.open("1").Size()
	b.do(PullDrive{"Disk.0"})
	b.fill("1", 2)
	b.do(FailDrive{"Disk.1"})
	_ = b.refuse(ForceEnable{Controller: "1", Volume: "1"}, ErrRule)
	b.do(InsertDrive{Drive: "Disk.0", What: InsertSame})
	_ = b.refuse(ImportForeign{Controller: "1"}, ErrRule)
	b.do(ForceEnable{Controller: "1", Volume: "1"})
	if v := b.volume("1"); !v.Degraded() || !v.Usable() {
		t.Errorf("volume = %+v", v)
	}
	b.filled("1", 1, size) // the old data
}

func TestSparesOfAVolume(t *testing.T) {
	b := newBench(t)
	b.do(CreateVolume{Controller: "1", Type: RAID1, Drives: bays(0, 2), Spares: []string{"Disk.2"}})
	b.do(SetSpares{"1", "1", []string{"Disk.3", "Disk.4"}})
	if got := b.volume("1").Spares; !slices.Equal(got, []string{"Disk.3", "Disk.4"}) {
		t.Errorf("spares = %v", got)
	}
	if r := b.refuse(SetSpares{"1", "1", []string{"Disk.3", "Disk.0"}}, ErrRule); r.Index != 1 {
		t.Errorf("rule = %+v", r)
	}
	b.do(SetSpares{"1", "1", nil})
	if d := b.drive("Disk.3"); d.State != DriveUnused {
		t.Errorf("drive = %+v", d)
	}
}

func TestDrivesAreReset(t *testing.T) {
	b := newBench(t)
	_ = b.refuse(ResetDrive{Drive: "Disk.8"}, ErrUnsupported)
	nvme := disk
	nvme.Protocol = NVMe
	b.controllers[1].Drives[0].Model = &nvme
	before, _ := b.drive("Disk.8").SMART(PowerCycles)
	b.do(ResetDrive{Drive: "Disk.8"})
	b.do(ResetDrive{Drive: "Disk.8", Power: true})
	if after, _ := b.drive("Disk.8").SMART(PowerCycles); after != before+1 {
		t.Errorf("power cycles: %d, then %d", before, after)
	}
}

// A client that knows the size of the drives only asks for all of it.
func TestLenientCapacity(t *testing.T) {
	for _, lenient := range []bool{false, true} {
		b := newBench(t)
		b.controllers[0].RAID.Lenient = lenient
		c := CreateVolume{Controller: "1", Type: RAID1, Drives: bays(0, 2), Capacity: disk.Capacity}
		if !lenient {
			_ = b.refuse(c, ErrRule)
			continue
		}
		b.do(c)
		c.Drives, c.Capacity = bays(2, 2), disk.Capacity+1
		_ = b.refuse(c, ErrRule)
	}
}
