package storage

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// CreateVolume refuses what breaks a rule of the controller, and its RuleError
// names the field, the value and the limit.
func TestCreateVolumeNamesTheBrokenRule(t *testing.T) {
	create := func(of CreateVolume) CreateVolume {
		of.Controller = "1"
		return of
	}
	for _, tt := range []struct {
		name string
		c    CreateVolume
		want RuleError
	}{
		{"a type that is none", create(CreateVolume{Type: "RAID7", Drives: bays(0, 3)}), RuleError{FieldType, -1, "RAID7", Unsupported, 0}},
		{"too few drives", create(CreateVolume{Type: RAID5, Drives: bays(0, 2)}), RuleError{FieldDrives, -1, "2", TooFew, 3}},
		{"too many drives", create(CreateVolume{Type: RAID1, Drives: bays(0, 4)}), RuleError{FieldDrives, -1, "4", TooMany, 3}},
		{"too few for spans", create(CreateVolume{Type: RAID50, Drives: bays(0, 5)}), RuleError{FieldDrives, -1, "5", TooFew, 6}},
		{"uneven spans", create(CreateVolume{Type: RAID10, Drives: bays(0, 5)}), RuleError{FieldDrives, -1, "5", Uneven, 0}},
		{"spans that do not fit", create(CreateVolume{Type: RAID50, Drives: bays(0, 6), Span: 4}), RuleError{FieldDrives, -1, "6", Uneven, 0}},
		{"a span too wide", create(CreateVolume{Type: RAID50, Drives: bays(0, 6), Span: 6}), RuleError{FieldSpan, -1, "6", Unsupported, 0}},
		{"a drive of another controller", create(CreateVolume{Type: RAID1, Drives: []string{"Disk.0", "Disk.8"}}), RuleError{FieldDrives, 1, "Disk.8", Unknown, 0}},
		{"a drive named twice", create(CreateVolume{Type: RAID1, Drives: []string{"Disk.0", "Disk.0"}}), RuleError{FieldDrives, 1, "Disk.0", Twice, 0}},
		{"a drive that is not there", create(CreateVolume{Type: RAID1, Drives: []string{"Disk.4", "Disk.0"}}), RuleError{FieldDrives, 0, "Disk.4", Unknown, 0}},
		{"a drive that has failed", create(CreateVolume{Type: RAID1, Drives: []string{"Disk.0", "Disk.5"}}), RuleError{FieldDrives, 1, "Disk.5", Faulty, 0}},
		{"a drive of a volume", create(CreateVolume{Type: RAID1, Drives: []string{"Disk.0", "Disk.6"}}), RuleError{FieldDrives, 1, "Disk.6", InUse, 0}},
		{"a drive of a volume, and one that is free", create(CreateVolume{Type: RAID0, Drives: []string{"Disk.6", "Disk.0"}}), RuleError{FieldDrives, 0, "Disk.6", InUse, 0}},
		{"a spare", create(CreateVolume{Type: RAID1, Drives: []string{"Disk.0", "Disk.7"}}), RuleError{FieldDrives, 1, "Disk.7", InUse, 0}},
		{"another kind of drive", create(CreateVolume{Type: RAID1, Drives: []string{"Disk.0", "Disk.3"}}), RuleError{FieldDrives, 1, "Disk.3", Mixed, 0}},
		{"more than there is", create(CreateVolume{Type: RAID1, Drives: bays(0, 2), Capacity: 4 << 20}), RuleError{FieldCapacity, -1, "4194304", TooLarge, 4<<20 - 128<<10}},
		{"less than nothing", create(CreateVolume{Type: RAID1, Drives: bays(0, 2), Capacity: -1}), RuleError{FieldCapacity, -1, "-1", TooSmall, 0}},
		{"a strip that is none", create(CreateVolume{Type: RAID1, Drives: bays(0, 2), Strip: 1000}), RuleError{FieldStrip, -1, "1000", Unsupported, 0}},
		{"a policy that is none", create(CreateVolume{Type: RAID1, Drives: bays(0, 2), Write: "Hope"}), RuleError{FieldWrite, -1, "Hope", Unsupported, 0}},
		{"another policy that is none", create(CreateVolume{Type: RAID1, Drives: bays(0, 2), Read: "Hope"}), RuleError{FieldRead, -1, "Hope", Unsupported, 0}},
		{"a method that is none", create(CreateVolume{Type: RAID1, Drives: bays(0, 2), Method: "Hope"}), RuleError{FieldMethod, -1, "Hope", Unsupported, 0}},
		{"a name that is too long", create(CreateVolume{Type: RAID1, Drives: bays(0, 2), Name: strings.Repeat("x", 65)}), RuleError{FieldName, -1, strings.Repeat("x", 65), TooLarge, 64}},
		{"a name with a line break", create(CreateVolume{Type: RAID1, Drives: bays(0, 2), Name: "a\n"}), RuleError{FieldName, -1, `"a\n"`, Unsupported, 0}},
		{"a spare that is a member", create(CreateVolume{Type: RAID1, Drives: bays(0, 2), Spares: []string{"Disk.1"}}), RuleError{FieldSpares, 0, "Disk.1", InUse, 0}},
		{"a spare of another kind", create(CreateVolume{Type: RAID1, Drives: bays(0, 2), Spares: []string{"Disk.3"}}), RuleError{FieldSpares, 0, "Disk.3", Mixed, 0}},
		{"a spare that is of no use", create(CreateVolume{Type: RAID0, Drives: bays(0, 2), Spares: []string{"Disk.2"}}), RuleError{FieldSpares, 0, "Disk.2", Unsupported, 0}},
		{"more drives than are free", create(CreateVolume{Type: RAID6}), RuleError{FieldDrives, -1, "3", TooFew, 4}},
		{"more than the free drives have", create(CreateVolume{Type: RAID5, Capacity: 20 << 20}), RuleError{FieldCapacity, -1, "20971520", TooLarge, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			hdd := disk
			hdd.Media = HDD
			if len(tt.c.Drives) < 5 { // or all are as new
				b.do(PullDrive{"Disk.3"})
				b.do(InsertDrive{Drive: "Disk.3", What: InsertNew, Model: &hdd})
				b.do(PullDrive{"Disk.4"})
				b.do(FailDrive{"Disk.5"})
				b.do(CreateVolume{Controller: "1", Type: RAID0, Drives: []string{"Disk.6"}, Capacity: 1 << 20})
				b.do(AssignSpare{Controller: "1", Drive: "Disk.7"})
			}
			got := b.refuse(tt.c, ErrRule)
			if got == nil {
				t.Fatal("no RuleError")
			}
			if d := cmp.Diff(tt.want, *got); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
			if !strings.HasPrefix(got.Error(), "storage: ") {
				t.Errorf("error = %q", got)
			}
		})
	}
}

func TestWhatIsNotSupportedIsRefused(t *testing.T) {
	b := newBench(t)
	_ = b.refuse(CreateVolume{Controller: "2", Type: RAID0, Drives: bays(8, 1)}, ErrUnsupported)
	_ = b.refuse(CreateVolume{Controller: "3", Type: RAID0}, ErrNotFound)
	_ = b.refuse(DeleteVolume{Controller: "1", Volume: "1"}, ErrNotFound)
	_ = b.refuse(AssignSpare{Controller: "2", Drive: "Disk.8"}, ErrUnsupported)
	_ = b.refuse(UnassignSpare{Controller: "1", Drive: "Disk.0"}, ErrState)
	_ = b.refuse(PullDrive{"Disk.99"}, ErrNotFound)
	_ = b.refuse(InsertDrive{Drive: "Disk.0", What: InsertNew}, ErrState)
	b.do(PullDrive{"Disk.0"})
	_ = b.refuse(PullDrive{"Disk.0"}, ErrNotFound)
	_ = b.refuse(FailDrive{"Disk.0"}, ErrNotFound)
	nvme := disk
	nvme.Protocol = NVMe
	if r := b.refuse(InsertDrive{Drive: "Disk.0", What: InsertNew, Model: &nvme}, ErrRule); r.Field != FieldModel {
		t.Errorf("rule = %+v", r)
	}
	_ = b.refuse(InsertDrive{Drive: "Disk.0", What: InsertSame, Serial: "nobody"}, ErrNotFound)
	_ = b.refuse(InsertDrive{Drive: "Disk.0", What: "thrown"}, ErrUnsupported)
	_ = b.refuse(CancelTask{"none"}, ErrNotFound)
	for range 6 {
		b.do(CreateVolume{Controller: "1", Type: RAID0, Capacity: 1 << 20})
	}
	if r := b.refuse(CreateVolume{Controller: "1", Type: RAID0}, ErrRule); r.Field != FieldVolumes || r.Limit != 6 {
		t.Errorf("rule = %+v", r)
	}
	empty, bad := "", ReadPolicy("Hope")
	if r := b.refuse(SetVolume{Controller: "1", Volume: "1", Name: &empty}, ErrRule); r.Field != FieldName {
		t.Errorf("rule = %+v", r)
	}
	if r := b.refuse(SetVolume{Controller: "1", Volume: "1", Read: &bad}, ErrRule); r.Field != FieldRead {
		t.Errorf("rule = %+v", r)
	}
}

// Without drives in the command, the controller takes the smallest number that
// suffices.
func TestDrivesAreChosen(t *testing.T) {
	for _, tt := range []struct {
		kind     RAIDType
		capacity int64
		want     int // drives
	}{
		{RAID0, 0, 1}, {RAID0, 9 << 20, 3}, {RAID1, 0, 2}, {RAID5, 0, 3}, {RAID5, 9 << 20, 4}, {RAID6, 9 << 20, 5},
		{RAID10, 0, 4}, {RAID10, 9 << 20, 6}, {RAID50, 0, 6}, {RAID60, 0, 8},
	} {
		b := newBench(t)
		b.do(CreateVolume{Controller: "1", Type: tt.kind, Capacity: tt.capacity})
		v := b.volume("1")
		row := v.Row() * int64(v.Spans)
		if len(v.Members) != tt.want || v.Size() < tt.capacity || tt.capacity > 0 && v.Size()-tt.capacity >= row {
			t.Errorf("%s of %d bytes has %d drives, want %d, and %d bytes", tt.kind, tt.capacity, len(v.Members), tt.want, v.Size())
		}
	}
}

func TestRatesAndResets(t *testing.T) {
	b := newBench(t)
	fast, too := 90, 101
	b.do(SetRates{Controller: "1", Rebuild: &fast})
	if r := b.refuse(SetRates{Controller: "1", Check: &too}, ErrRule); r.Field != FieldRate || r.Index != 1 {
		t.Errorf("rule = %+v", r)
	}
	b.do(CreateVolume{Controller: "1", Type: RAID1, Drives: bays(0, 2), Method: Skip})
	b.do(AssignSpare{Controller: "1", Drive: "Disk.2"})
	b.do(ResetController{Controller: "1", KeepVolumes: true, Task: "a"})
	c, _ := b.View().Controller("1")
	if c.Rebuild != defaultShare || len(c.Volumes) != 1 || b.drive("Disk.2").State != DriveSpare {
		t.Errorf("controller = %+v", c)
	}
	b.fill("1", 1)
	b.do(ResetController{Controller: "1", Task: "b"})
	c, _ = b.View().Controller("1")
	if len(c.Volumes) != 0 || b.drive("Disk.2").State != DriveUnused || b.drive("Disk.0").State != DriveUnused {
		t.Errorf("controller = %+v", c)
	}
}

func TestControllerModelErrors(t *testing.T) {
	m := ControllerModel{Bays: []Model{disk}, RAID: rules(), Rates: Rates{Erase: -1}}
	m.Bays[0].Capacity = 1000
	m.Bays[0].Sanitize = []Sanitize{"Fire"}
	m.RAID.Types[2].Min = 2
	m.RAID.Types[3].MaxSpans = 2
	m.RAID.Types = append(m.RAID.Types, TypeRule{Type: RAID5, Min: 3, Max: 3})
	m.RAID.Strips[1] = 1000
	m.RAID.Write[0] = "Hope"
	var got []string
	for _, f := range m.Flaws() {
		got = append(got, f.Field)
	}
	want := []string{
		"bays[0].capacity", "bays[0].sanitize[0]", "rates", "raid.types[2].min", "raid.types[3].maxSpans", "raid.types[7].type",
		"raid.strips[1]", "raid.write[0]",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("flaws (-want +got):\n%s", d)
	}
	if got := (&ControllerModel{Bays: []Model{disk}, RAID: rules()}).Flaws(); got != nil {
		t.Errorf("flaws of what is right: %v", got)
	}
}
