package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// openVolumes are the volumes of a host that somebody reads or writes. All use the
// same one of each, which keeps parity right.
type openVolumes struct {
	mu  sync.Mutex
	all map[string]*storage.Volume // by WWN
}

// volume is the content of a volume. Whoever asks holds h.disks.
func (h *Host) volume(x storage.VolumeView) (*storage.Volume, error) {
	h.volumes.mu.Lock()
	defer h.volumes.mu.Unlock()
	if v := h.volumes.all[x.WWN]; v != nil {
		return v, nil
	}
	v, err := x.Open(driveBytes{h}.Drive)
	if err != nil {
		return nil, err
	}
	if h.volumes.all == nil {
		h.volumes.all = map[string]*storage.Volume{}
	}
	h.volumes.all[x.WWN] = v
	return v, nil
}

// close forgets them: what they are made of changes.
func (o *openVolumes) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = nil
}

// driveBytes are the bytes of a host's drives, for the work that its storage asks
// for.
type driveBytes struct{ *Host }

// Drive implements storage.Media.
func (m driveBytes) Drive(serial string) (storage.Medium, error) {
	for _, v := range []storage.View{m.machine.View().Storage, m.Machine().Storage} { // it may have come or gone in this step
		if size, ok := v.Size(serial); ok {
			return m.lab.store.Disk(m.Name(), serial, size), nil
		}
	}
	return nil, fmt.Errorf("%w: %s of %s", ErrNoDrive, serial, m.Name())
}

// Safe implements storage.Media.
func (m driveBytes) Safe(name string, size int64) (storage.Medium, error) {
	return m.lab.store.Disk(m.Name(), journalPrefix+name, size), nil
}

// journalPrefix begins the names of files that hold a volume in between. No serial
// number has a small letter.
const journalPrefix = "safe-"

// workOnDrives does what a step asks for on the bytes of drives, and lets nobody else
// read or write until release is called. It holds h.mu.
func (h *Host) workOnDrives(st *step) (release func(), err error) {
	var asked []storage.Work
	for _, ev := range st.machine {
		if w, ok := ev.(storage.Work); ok {
			asked = append(asked, w)
		}
	}
	if len(asked) == 0 && h.machine.State().Storage == st.was.Machine.Storage {
		return func() {}, nil
	}
	h.disks.Lock()
	h.volumes.close()
	release = sync.OnceFunc(h.disks.Unlock)
	for _, w := range asked {
		wrong, err := w.Do(driveBytes{h})
		if err != nil {
			return release, fmt.Errorf("lab: %s: %w", h.Name(), err)
		}
		if wrong == 0 || w.Kind != storage.WorkCheck {
			continue
		}
		evs, err := h.machine.Apply(st.now, machine.Storage{Command: storage.Checked{Controller: w.Array.Controller, Volume: w.Array.ID, Wrong: wrong}})
		if err != nil && !errors.Is(err, storage.ErrNotFound) { // it was deleted in the same step
			return release, fmt.Errorf("lab: %s: %w", h.Name(), err)
		}
		st.machine = append(st.machine, evs...)
	}
	return release, nil
}

// removeDriveFiles removes the files of drives that the host has no more.
func (h *Host) removeDriveFiles(st *step) {
	now := h.machine.State().Storage
	if now == st.was.Machine.Storage {
		return
	}
	kept := driveFiles(now)
	for _, name := range driveFiles(st.was.Machine.Storage) {
		if slices.Contains(kept, name) || h.hasDrive(name) {
			continue
		}
		if err := h.lab.store.RemoveDisk(h.Name(), name); err != nil {
			h.lab.log.Warn("content of a drive that is gone stays", "host", h.Name(), "drive", name, "err", err)
		}
	}
}

// hasDrive tells whether a drive is in a bay or on the shelf.
func (h *Host) hasDrive(serial string) bool {
	_, ok := h.machine.View().Storage.Size(serial)
	return ok
}

// driveFiles are the names of the driveFiles that a state of the storage tells of.
func driveFiles(st *storage.State) []string {
	if st == nil {
		return nil
	}
	var out []string
	for _, b := range st.Bays {
		if b.Unit != nil {
			out = append(out, b.Unit.Serial)
		}
	}
	for _, l := range st.Shelf {
		out = append(out, l.Serial)
	}
	for _, name := range st.Safes() {
		out = append(out, journalPrefix+name)
	}
	return out
}

// Drives are the drives that a host has, in the order of its bays.
func (h *Host) Drives() []storage.DriveView {
	var out []storage.DriveView
	for _, c := range h.Machine().Storage.Controllers() {
		out = append(out, c.Drives...)
	}
	return out
}

// Volumes are the volumes that a host has.
func (h *Host) Volumes() []storage.VolumeView {
	var out []storage.VolumeView
	for _, c := range h.Machine().Storage.Controllers() {
		out = append(out, c.Volumes...)
	}
	return out
}

// Shelf are the drives that were pulled out of a host, oldest first.
func (h *Host) Shelf() []storage.Loose { return h.Machine().Storage.Shelf() }

// Storage carries out a command to a host's drives and volumes.
func (h *Host) Storage(ctx context.Context, c storage.Command) error {
	return h.Apply(ctx, machine.Storage{Command: c})
}

// PullDrive takes a drive out of its bay. Its content stays on the host's
// shelf.
func (h *Host) PullDrive(ctx context.Context, bay string) error {
	return h.Storage(ctx, storage.PullDrive{Drive: bay})
}

// InsertDrive puts a drive into an empty bay.
func (h *Host) InsertDrive(ctx context.Context, c storage.InsertDrive) error {
	if c.What == storage.InsertLoose {
		return fmt.Errorf("lab: a drive of another host comes by MoveDrive")
	}
	return h.Storage(ctx, c)
}

// FailDrive breaks a drive.
func (h *Host) FailDrive(ctx context.Context, bay string) error {
	return h.Storage(ctx, storage.FailDrive{Drive: bay})
}

// MoveDrive takes a drive from the shelf of one host and puts it into an empty
// bay of another, with its content.
func (l *Lab) MoveDrive(ctx context.Context, from *Host, serial string, to *Host, bay string) error {
	if from == to {
		return to.InsertDrive(ctx, storage.InsertDrive{Drive: bay, What: storage.InsertSame, Serial: serial})
	}
	shelf := from.Shelf()
	i := slices.IndexFunc(shelf, func(x storage.Loose) bool { return x.Serial == serial })
	if i < 0 {
		return fmt.Errorf("%w: %s on the shelf of %s", ErrNoDrive, serial, from.Name())
	}
	// Both hosts have the content until both have said what became of it.
	if err := l.store.ShareDisk(from.Name(), to.Name(), serial); err != nil {
		return err
	}
	if err := to.Storage(ctx, storage.InsertDrive{Drive: bay, What: storage.InsertLoose, Loose: &shelf[i]}); err != nil {
		return errors.Join(err, l.store.RemoveDisk(to.Name(), serial))
	}
	return from.Storage(ctx, storage.DiscardDrive{Serial: serial})
}
