package lab

import (
	"errors"
	"fmt"
	"sync"

	"github.com/metalab-dev/metalab/emulator/lab/store"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

var (
	// ErrNoDrive means that a host has no drive of that ID.
	ErrNoDrive = errors.New("lab: no such drive")
	// ErrDown answers a system whose boot is over.
	ErrDown = errors.New("lab: the system that had this drive is down")
)

// Medium is the content of a drive, as one sees it who pulls it out: whatever
// the machine does.
func (h *Host) Medium(driveID string) (*store.Disk, error) {
	id := h.Machine().Identity
	for _, c := range id.Storage {
		for _, d := range c.Drives {
			if d.ID == driveID {
				return h.lab.store.Disk(id.Name, d.ID, d.Capacity), nil
			}
		}
	}
	return nil, fmt.Errorf("%w: %s of %s", ErrNoDrive, driveID, id.Name)
}

// Attach is the content of a drive as the system of one boot sees it. As soon
// as that system has lost its machine, each of its reads and writes fails with
// ErrDown, and none that was under way is still to land.
func (h *Host) Attach(boot uint64, driveID string) (*Attached, error) {
	m, err := h.Medium(driveID)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if os := h.Machine().OS; os == nil || os.Boot != boot {
		return nil, fmt.Errorf("%w: boot %d of %s", ErrDown, boot, h.Name())
	}
	if h.boot == nil {
		h.boot = &fence{number: boot}
	}
	return &Attached{medium: m, boot: h.boot}, nil
}

// fence stands between the system of one boot and its drives.
type fence struct {
	number uint64
	mu     sync.RWMutex // held for reading while the drives work
	down   bool
}

// close lets nothing more through, and returns when nothing is on its way.
func (f *fence) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = true
}

func (f *fence) pass(work func() error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.down {
		return ErrDown
	}
	return work()
}

// Attached is a drive that a running system has. It is a storage.Medium.
type Attached struct {
	medium *store.Disk
	boot   *fence
}

var (
	_ storage.Medium = (*Attached)(nil)
	_ storage.Medium = (*store.Disk)(nil)
)

// Size is the drive's capacity in bytes.
func (a *Attached) Size() int64 { return a.medium.Size() }

// ReadAt implements io.ReaderAt.
func (a *Attached) ReadAt(p []byte, off int64) (n int, err error) {
	err = a.boot.pass(func() error {
		n, err = a.medium.ReadAt(p, off)
		return err
	})
	return n, err
}

// WriteAt implements io.WriterAt.
func (a *Attached) WriteAt(p []byte, off int64) (n int, err error) {
	err = a.boot.pass(func() error {
		n, err = a.medium.WriteAt(p, off)
		return err
	})
	return n, err
}

// NextData implements storage.Medium.
func (a *Attached) NextData(off int64) (at int64, err error) {
	err = a.boot.pass(func() error {
		at, err = a.medium.NextData(off)
		return err
	})
	return at, err
}

// Discard implements storage.Medium.
func (a *Attached) Discard(off, n int64) error {
	return a.boot.pass(func() error { return a.medium.Discard(off, n) })
}

// Sync returns when what was written is as durable as the lab's state is.
func (a *Attached) Sync() error { return a.boot.pass(a.medium.Sync) }
