package rack_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// raidRack returns a rack of servers with RAID controllers.
func raidRack(n int) *rackfile.Lab {
	r := rackfile.Default(n)
	r.Hosts[0].Profile = "raid"
	return &r
}

// raiding starts a rack with hosts that are on, and a volume of three drives on the
// first.
func raiding(t *testing.T, dir string, n int) (*racktest.Rack, *rack.Host) {
	t.Helper()
	var d diary
	l := racktest.Start(t, rack.Config{Dir: dir, Rack: raidRack(n), Events: d.event})
	for _, h := range l.Hosts() {
		power(t, h, machine.ResetOn)
	}
	l.Advance(3 * time.Minute)
	h := l.First()
	store(t, h, storage.CreateVolume{Controller: "1", Type: storage.RAID5, Drives: []string{"Disk.0", "Disk.1", "Disk.2"}, Capacity: 1e12})
	return l, h
}

func store(t *testing.T, h *rack.Host, c storage.Command) {
	t.Helper()
	if err := h.Storage(t.Context(), c); err != nil {
		t.Fatalf("%T%+v = %v", c, c, err)
	}
}

func says(t *testing.T, m io.ReaderAt, off int64, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := m.ReadAt(got, off); err != nil || string(got) != want {
		t.Errorf("ReadAt(%d) = %q, %v, want %q", off, got, err, want)
	}
}

func put(t *testing.T, m io.WriterAt, off int64, p string) {
	t.Helper()
	if _, err := m.WriteAt([]byte(p), off); err != nil {
		t.Fatal(err)
	}
}

func medium(t *testing.T, h *rack.Host, id string) *rack.Disk {
	t.Helper()
	m, err := h.Medium(id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// What a system wrote to its volume is readable after a drive has failed, during and
// after the rebuild, and after a restart of the rack.
func TestRAIDVolumeSurvivesADriveFailure(t *testing.T) {
	dir := t.TempDir()
	l, h := raiding(t, dir, 1)
	v, err := h.Attach(1, "Volume.1.1")
	if err != nil {
		t.Fatal(err)
	}
	if v.Size() < 1e12 || v.Size() > 1e12+1<<20 {
		t.Errorf("the volume has %d bytes", v.Size())
	}
	const far = 900e9
	put(t, v, 0, "first")
	put(t, v, far, "last")
	store(t, h, storage.AssignSpare{Controller: "1", Drive: "Disk.3"})
	if err := h.FailDrive(t.Context(), "Disk.0"); err != nil {
		t.Fatal(err)
	}
	says(t, v, 0, "first")
	put(t, v, far+4, " of all")
	l.Advance(48 * time.Hour)
	if x := h.Volumes()[0]; x.Degraded() || len(x.Ops) != 0 {
		t.Fatalf("volume after two days = %+v", x)
	}
	if err := h.PullDrive(t.Context(), "Disk.1"); err != nil { // the data now depends on Disk.3
		t.Fatal(err)
	}
	says(t, v, 0, "first")
	says(t, v, far, "last of all")
	l.Stop()

	l = racktest.Start(t, rack.Config{Dir: dir, Rack: raidRack(1)})
	h = l.First()
	if x := h.Volumes()[0]; !x.Degraded() || len(h.Shelf()) != 1 {
		t.Errorf("volume after a restart = %+v, shelf %d", x, len(h.Shelf()))
	}
	m := medium(t, h, "Volume.1.1")
	says(t, m, 0, "first")
	says(t, m, far, "last of all")
	if at, err := m.NextData(1 << 30); err != nil || at < far-2<<20 || at > far {
		t.Errorf("NextData(1 GiB) = %d, %v", at, err)
	}
	if err := m.Sync(); err != nil {
		t.Error(err)
	}
}

// A system sees volumes, and drives that no volume uses, and boots from the first
// that has content.
func TestRAIDVolumeIsABootSource(t *testing.T) {
	l, h := raiding(t, "", 1)
	var ids []string
	for _, d := range h.Machine().Storage.Devices() {
		ids = append(ids, d.ID)
	}
	want := []string{"Volume.1.1", "Disk.3", "Disk.4", "Disk.5", "Disk.6", "Disk.7", "Disk.8", "Disk.9", "Disk.10", "Disk.11"}
	if d := cmp.Diff(want, ids); d != "" {
		t.Errorf("devices (-want +got):\n%s", d)
	}
	power(t, h, machine.ForceRestart)
	l.Advance(3 * time.Minute)
	if os := h.Machine().OS; os == nil || os.Source.Device != "Volume.1.1" {
		t.Errorf("the machine runs %+v", os)
	}
	if _, err := h.Attach(2, "Disk.0"); !errors.Is(err, rack.ErrNoDrive) {
		t.Errorf("Attach() of a member = %v, want %v", err, rack.ErrNoDrive)
	}
}

// A drive that is pulled fails the reads and writes of the running system.
func TestPulledDriveFailsReadsOfTheSystem(t *testing.T) {
	_, h := raiding(t, "", 1)
	drive, err := h.Attach(1, "Disk.8")
	if err != nil {
		t.Fatal(err)
	}
	put(t, drive, 100, "mine")
	if err := h.PullDrive(t.Context(), "Disk.8"); err != nil {
		t.Fatal(err)
	}
	if _, err := drive.WriteAt([]byte("x"), 0); !errors.Is(err, rack.ErrNoDrive) {
		t.Errorf("WriteAt() to a pulled drive = %v, want %v", err, rack.ErrNoDrive)
	}
	if err := h.InsertDrive(t.Context(), storage.InsertDrive{Drive: "Disk.8", What: storage.InsertNew}); err != nil {
		t.Fatal(err)
	}
	if _, err := drive.WriteAt([]byte("x"), 0); !errors.Is(err, rack.ErrNoDrive) {
		t.Errorf("WriteAt() to a drive whose bay has another = %v, want %v", err, rack.ErrNoDrive)
	}
	if _, err := medium(t, h, "Disk.8").NextData(0); !errors.Is(err, io.EOF) {
		t.Errorf("NextData() of a new drive = %v, want EOF", err)
	}
	serial := h.Shelf()[0].Serial
	says(t, medium(t, h, serial), 100, "mine")
	if err := h.PullDrive(t.Context(), "Disk.8"); err != nil {
		t.Fatal(err)
	}
	if err := h.InsertDrive(t.Context(), storage.InsertDrive{Drive: "Disk.8", What: storage.InsertSame, Serial: serial}); err != nil {
		t.Fatal(err)
	}
	says(t, drive, 100, "mine") // inserted again

	v, err := h.Attach(1, "Volume.1.1")
	if err != nil {
		t.Fatal(err)
	}
	store(t, h, storage.InitializeVolume{Controller: "1", Volume: "1"})
	if _, err := v.ReadAt(make([]byte, 1), 0); !errors.Is(err, rack.ErrNotReady) {
		t.Errorf("ReadAt() of a volume in initialisation = %v, want %v", err, rack.ErrNotReady)
	}
	store(t, h, storage.DeleteVolume{Controller: "1", Volume: "1"})
	if _, err := v.ReadAt(make([]byte, 1), 0); !errors.Is(err, rack.ErrNoDrive) {
		t.Errorf("ReadAt() of a deleted volume = %v, want %v", err, rack.ErrNoDrive)
	}
}

// A drive that moves to another server keeps its content.
func TestMoveDriveKeepsItsContent(t *testing.T) {
	dir := t.TempDir()
	l, a := raiding(t, dir, 2)
	b := l.Hosts()[1]
	put(t, medium(t, a, "Volume.1.1"), 5<<30, "moved")
	power(t, a, machine.ForceOff) // else the volume would go on without the first drive
	l.Advance(time.Minute)
	for _, bay := range []string{"Disk.0", "Disk.1", "Disk.2"} {
		if err := b.PullDrive(t.Context(), bay); err != nil {
			t.Fatal(err)
		}
		if err := b.Storage(t.Context(), storage.DiscardDrive{Serial: b.Shelf()[0].Serial}); err != nil {
			t.Fatal(err)
		}
		if err := a.PullDrive(t.Context(), bay); err != nil {
			t.Fatal(err)
		}
		if err := l.MoveDrive(t.Context(), a, a.Shelf()[0].Serial, b, bay); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.Shelf()) != 0 {
		t.Errorf("the shelf has %d drives", len(a.Shelf()))
	}
	store(t, b, storage.ImportForeign{Controller: "1"})
	says(t, medium(t, b, "Volume.1.1"), 5<<30, "moved")
	if x := b.Volumes()[0]; x.Degraded() {
		t.Errorf("volume = %+v", x)
	}
	left, err := filepath.Glob(filepath.Join(dir, "disks", a.Name(), "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("files of drives that are gone: %q, %v", left, err)
	}
	if err := l.MoveDrive(t.Context(), a, "nobody", b, "Disk.0"); !errors.Is(err, rack.ErrNoDrive) {
		t.Errorf("MoveDrive() of nothing = %v", err)
	}
	store(t, b, storage.PullDrive{Drive: "Disk.0"})
	if err := l.MoveDrive(t.Context(), b, b.Shelf()[0].Serial, a, "Disk.5"); !errors.Is(err, storage.ErrState) {
		t.Errorf("MoveDrive() into a bay that has a drive = %v, want %v", err, storage.ErrState)
	}
	if len(b.Shelf()) != 1 {
		t.Error("the drive has left its shelf")
	}
}

// While a volume is expanded, its data is in a temporary file. Secure erase removes
// the bytes from the drive's file (statement D3).
func TestExpandVolumeAndSecureErase(t *testing.T) {
	dir := t.TempDir()
	l, h := raiding(t, dir, 1)
	put(t, medium(t, h, "Volume.1.1"), 7<<30, "kept")
	l.Advance(48 * time.Hour) // for the initialisation
	store(t, h, storage.ExpandVolume{Controller: "1", Volume: "1", Drives: []string{"Disk.3"}, Type: storage.RAID6})
	l.Advance(100 * time.Hour)
	x := h.Volumes()[0]
	if x.Type != storage.RAID6 || len(x.Members) != 4 {
		t.Fatalf("volume = %+v", x)
	}
	says(t, medium(t, h, "Volume.1.1"), 7<<30, "kept")
	between, err := filepath.Glob(filepath.Join(dir, "disks", h.Name(), "safe-*"))
	if err != nil || len(between) != 0 {
		t.Errorf("files in between: %q, %v", between, err)
	}
	secret := bytes.Repeat([]byte("secret"), 10000)
	put(t, medium(t, h, "Disk.8"), 1<<20, string(secret))
	file := filepath.Join(dir, "disks", h.Name(), h.Drives()[8].Serial+".img")
	find := func() bool {
		raw, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		b := make([]byte, 2<<20)
		if _, err := raw.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(b, []byte("secret"))
	}
	if !find() {
		t.Fatal("the drive's file does not hold what was written")
	}
	store(t, h, storage.SecureErase{Drive: "Disk.8"})
	if find() {
		t.Error("the drive's file holds what was erased")
	}
}
