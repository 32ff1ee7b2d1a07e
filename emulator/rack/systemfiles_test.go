package rack_test

import (
	"errors"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/rack"
)

func putFiles(t *testing.T, d *rack.Disk, content string) {
	t.Helper()
	if err := d.PutSystemFiles([]byte(content)); err != nil {
		t.Fatal(err)
	}
}

func checkFiles(t *testing.T, d *rack.Disk, want string) {
	t.Helper()
	if got, err := d.SystemFiles(); err != nil || string(got) != want {
		t.Errorf("files of the system = %q, %v, want %q", got, err, want)
	}
}

// The files of a system are those of the drive that its image lies on: whatever empties
// the drive removes them.
func TestSystemFilesGoWithTheirImage(t *testing.T) {
	l, h := raiding(t, "", 1)
	const drive = "Disk.8"
	m := medium(t, h, drive)
	for name, overwrite := range map[string]func(){
		"image":   func() { put(t, m, 0, "image") },
		"discard": func() { _ = m.Discard(0, m.Size()) },
		"secure erase": func() {
			store(t, h, storage.SecureErase{Drive: drive})
			l.Advance(100 * time.Hour)
		},
	} {
		putFiles(t, m, "of "+name)
		put(t, m, 512, "data")
		checkFiles(t, m, "of "+name)
		overwrite()
		checkFiles(t, m, "")
	}
}

func TestSystemFilesOfAVolume(t *testing.T) {
	_, h := raiding(t, "", 1)
	v := medium(t, h, "Volume.1.1")
	putFiles(t, v, "first")
	checkFiles(t, medium(t, h, "Disk.8"), "")
	for _, bay := range []string{"Disk.0"} { // any drive may be lost
		if err := h.PullDrive(t.Context(), bay); err != nil {
			t.Fatal(err)
		}
		checkFiles(t, v, "first")
	}
	put(t, v, 0, "image") // the third drive has no part of the first row
	checkFiles(t, v, "")
	putFiles(t, v, "second")
	store(t, h, storage.DeleteVolume{Controller: "1", Volume: "1"})
	if _, err := v.SystemFiles(); !errors.Is(err, rack.ErrNoDrive) {
		t.Errorf("files of a volume that was deleted: %v, want %v", err, rack.ErrNoDrive)
	}
}

func TestSystemFilesMoveWithTheDrives(t *testing.T) {
	l, a := raiding(t, "", 2)
	b := l.Hosts()[1]
	putFiles(t, medium(t, a, "Disk.8"), "moved")
	for _, h := range []*rack.Host{a, b} {
		if err := h.PullDrive(t.Context(), "Disk.8"); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Storage(t.Context(), storage.DiscardDrive{Serial: b.Shelf()[0].Serial}); err != nil {
		t.Fatal(err)
	}
	if err := l.MoveDrive(t.Context(), a, a.Shelf()[0].Serial, b, "Disk.8"); err != nil {
		t.Fatal(err)
	}
	checkFiles(t, medium(t, b, "Disk.8"), "moved")
}

// A system that is down changes no files.
func TestSystemFilesAreClosedWithTheirBoot(t *testing.T) {
	l, h := raiding(t, "", 1)
	v, err := h.Attach(1, "Volume.1.1")
	if err != nil {
		t.Fatal(err)
	}
	putFiles(t, v, "first")
	power(t, h, machine.ForceOff)
	l.Advance(time.Minute)
	if err := v.PutSystemFiles([]byte("later")); !errors.Is(err, rack.ErrDown) {
		t.Errorf("a system that is down stores files: %v, want %v", err, rack.ErrDown)
	}
	checkFiles(t, medium(t, h, "Volume.1.1"), "first")
}
