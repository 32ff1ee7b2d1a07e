package rack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// openVolumes are the RAID volumes of a host that are in use. All readers and
// writers share one storage.Volume each, which keeps parity right.
type openVolumes struct {
	mu  sync.Mutex
	all map[string]*storage.Volume // by WWN
}

// volume returns the content of a volume. The caller holds h.disks.
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

// close forgets the volumes because the drives that they consist of change.
func (o *openVolumes) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = nil
}

// driveBytes gives storage.Work access to the bytes of a host's drives.
type driveBytes struct{ *Host }

// Drive implements storage.Media.
func (m driveBytes) Drive(serial string) (storage.Medium, error) {
	for _, v := range []storage.View{m.machine.View().Storage, m.Machine().Storage} { // the step may have inserted or pulled the drive
		if size, ok := v.Size(serial); ok {
			return m.rack.store.Disk(m.Name(), serial, size), nil
		}
	}
	return nil, fmt.Errorf("%w: %s of %s", ErrNoDrive, serial, m.Name())
}

// Safe implements storage.Media.
func (m driveBytes) Safe(name string, size int64) (storage.Medium, error) {
	return m.rack.store.Disk(m.Name(), journalPrefix+name, size), nil
}

// journalPrefix begins the names of files that hold a volume while its drives are
// rewritten. Serial numbers have no lower-case letters.
const journalPrefix = "safe-"

// workOnDrives does the work on bytes of drives that a step asks for. Nobody else
// can read or write until release is called. The caller holds h.mu.
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
			return release, fmt.Errorf("%s: %w", h.Name(), err)
		}
		if wrong == 0 || w.Kind != storage.WorkCheck {
			continue
		}
		evs, err := h.machine.Apply(st.now, machine.Storage{Command: storage.Checked{Controller: w.Array.Controller, Volume: w.Array.ID, Wrong: wrong}})
		if err != nil && !errors.Is(err, storage.ErrNotFound) { // the same step has deleted it
			return release, fmt.Errorf("%s: %w", h.Name(), err)
		}
		st.machine = append(st.machine, evs...)
	}
	return release, nil
}

// removeDriveFiles removes the files of drives that a step has taken from the host.
func (h *Host) removeDriveFiles(st *step) {
	now := h.machine.State().Storage
	if now == st.was.Machine.Storage {
		return
	}
	current := driveFiles(now)
	for _, name := range driveFiles(st.was.Machine.Storage) {
		if slices.Contains(current, name) || h.hasDrive(name) {
			continue
		}
		if err := h.rack.store.RemoveDisk(h.Name(), name); err != nil {
			h.rack.log.Warn("file of a removed drive not deleted", "host", h.Name(), "drive", name, "err", err)
		}
	}
}

// hasDrive reports whether a drive is in a bay or on the shelf.
func (h *Host) hasDrive(serial string) bool {
	_, ok := h.machine.View().Storage.Size(serial)
	return ok
}

// driveFiles returns the names of the files that a storage state refers to.
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

// Drives returns the drives of a host in the order of its bays.
func (h *Host) Drives() []storage.DriveView {
	var out []storage.DriveView
	for _, c := range h.Machine().Storage.Controllers() {
		out = append(out, c.Drives...)
	}
	return out
}

// Volumes returns the volumes of a host.
func (h *Host) Volumes() []storage.VolumeView {
	var out []storage.VolumeView
	for _, c := range h.Machine().Storage.Controllers() {
		out = append(out, c.Volumes...)
	}
	return out
}

// Shelf returns the drives that were pulled out of a host, oldest first.
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
		return fmt.Errorf("a drive of another host comes by MoveDrive")
	}
	return h.Storage(ctx, c)
}

// FailDrive makes a drive fail.
func (h *Host) FailDrive(ctx context.Context, bay string) error {
	return h.Storage(ctx, storage.FailDrive{Drive: bay})
}

// MoveDrive takes a drive from the shelf of one host and inserts it into an empty
// bay of another, with its content.
func (l *Rack) MoveDrive(ctx context.Context, from *Host, serial string, to *Host, bay string) error {
	if from == to {
		return to.InsertDrive(ctx, storage.InsertDrive{Drive: bay, What: storage.InsertSame, Serial: serial})
	}
	shelf := from.Shelf()
	i := slices.IndexFunc(shelf, func(x storage.Loose) bool { return x.Serial == serial })
	if i < 0 {
		return fmt.Errorf("%w: %s on the shelf of %s", ErrNoDrive, serial, from.Name())
	}
	// Both hosts have the content until both have stored their change.
	if err := l.store.ShareDisk(from.Name(), to.Name(), serial); err != nil {
		return err
	}
	if err := to.Storage(ctx, storage.InsertDrive{Drive: bay, What: storage.InsertLoose, Loose: &shelf[i]}); err != nil {
		return errors.Join(err, l.store.RemoveDisk(to.Name(), serial))
	}
	return from.Storage(ctx, storage.DiscardDrive{Serial: serial})
}
