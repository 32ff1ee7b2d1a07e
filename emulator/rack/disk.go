package rack

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/rack/store"
)

var (
	// ErrNoDrive means that a host does not have, or no longer has, the drive or
	// volume.
	ErrNoDrive = errors.New("no such drive")
	// ErrDown means that the system which had this drive has stopped.
	ErrDown = errors.New("the system that had this drive is down")
	// ErrNotReady means that the controller is still writing the volume.
	ErrNotReady = errors.New("the volume is not ready")
)

// Disk is the content of a drive or of a volume. It implements storage.Medium. Its
// methods wait while a controller changes the set of drives.
type Disk struct {
	host *Host
	gate *bootGate // gate of the boot that the disk is attached to; nil for a disk that is always accessible
	id   string    // serial number of a drive, WWN of a volume
	size int64     // bytes

	mu    sync.Mutex
	at    *storage.View // storage view that bytes was found with; nil: none
	bytes storage.Medium
}

var (
	_ storage.Medium = (*Disk)(nil)
	_ storage.Medium = (*store.Disk)(nil)
)

// Medium returns the content of a drive, or of a volume as its controller assembles
// it, independent of what the machine does. The ID is that of a bay or a volume
// ("Disk.0", "Volume.1.1"), or the serial number of a drive on the shelf.
func (h *Host) Medium(id string) (*Disk, error) {
	v := h.Machine().Storage
	if d, ok := v.Drive(id); ok {
		return &Disk{host: h, id: d.Serial, size: d.Capacity}, nil
	}
	for _, c := range v.Controllers() {
		for _, x := range c.Volumes {
			if x.Device() == id {
				return &Disk{host: h, id: x.WWN, size: x.Size()}, nil
			}
		}
	}
	i := slices.IndexFunc(v.Shelf(), func(l storage.Loose) bool { return l.Serial == id })
	if i < 0 {
		return nil, fmt.Errorf("%w: %s of %s", ErrNoDrive, id, h.Name())
	}
	return &Disk{host: h, id: id, size: v.Shelf()[i].Model.Capacity}, nil
}

// Attach returns the content of a device that the system of one boot sees as a disk. As
// soon as that system has stopped, each read and write fails with ErrDown, and no write
// that it had begun changes the content later.
func (h *Host) Attach(boot uint64, id string) (*Disk, error) {
	i, devices := 0, h.Machine().Storage.Devices()
	if i = slices.IndexFunc(devices, func(d storage.Device) bool { return d.ID == id }); i < 0 {
		return nil, fmt.Errorf("%w: %s of %s", ErrNoDrive, id, h.Name())
	}
	out := &Disk{host: h}
	if d := devices[i]; d.Volume != nil {
		out.id, out.size = d.Volume.WWN, d.Volume.Size()
	} else {
		out.id, out.size = d.Drive.Serial, d.Drive.Capacity
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if os := h.Machine().OS; os == nil || os.Boot != boot {
		return nil, fmt.Errorf("%w: boot %d of %s", ErrDown, boot, h.Name())
	}
	if h.bootGate == nil {
		h.bootGate = &bootGate{boot: boot}
	}
	out.gate = h.bootGate
	return out, nil
}

// bootGate stands between the system of one boot and its drives. It is closed when
// the system stops.
type bootGate struct {
	boot uint64
	mu   sync.RWMutex // read-locked while the drives work
	down bool
}

// close refuses further work, and returns when no work is under way.
func (f *bootGate) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = true
}

func (f *bootGate) do(work func() error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.down {
		return ErrDown
	}
	return work()
}

// Size is the capacity in bytes.
func (d *Disk) Size() int64 { return d.size }

// ReadAt implements io.ReaderAt.
func (d *Disk) ReadAt(p []byte, off int64) (n int, err error) {
	err = d.use(func(m storage.Medium) error {
		n, err = m.ReadAt(p, off)
		return err
	})
	return n, err
}

// WriteAt implements io.WriterAt.
func (d *Disk) WriteAt(p []byte, off int64) (n int, err error) {
	err = d.use(func(m storage.Medium) error {
		if err := d.dropVolumeSystem(m, off, int64(len(p))); err != nil {
			return err
		}
		n, err = m.WriteAt(p, off)
		return err
	})
	return n, err
}

// NextData implements storage.Medium.
func (d *Disk) NextData(off int64) (at int64, err error) {
	err = d.use(func(m storage.Medium) error {
		at, err = m.NextData(off)
		return err
	})
	return at, err
}

// Discard implements storage.Medium.
func (d *Disk) Discard(off, n int64) error {
	return d.use(func(m storage.Medium) error {
		if err := d.dropVolumeSystem(m, off, n); err != nil {
			return err
		}
		return m.Discard(off, n)
	})
}

// Sync makes the bytes of the disk as durable as the rack's state (see Config.Fsync),
// because a system relies on the bytes that it has flushed.
func (d *Disk) Sync() error {
	return d.use(func(m storage.Medium) error {
		if s, ok := m.(interface{ Sync() error }); ok {
			return s.Sync()
		}
		return nil
	})
}

// use calls work with the bytes as the controller assembles them now, if the gate is
// open.
func (d *Disk) use(work func(storage.Medium) error) error {
	if d.gate == nil {
		return d.useUngated(work)
	}
	return d.gate.do(func() error { return d.useUngated(work) })
}

func (d *Disk) useUngated(work func(storage.Medium) error) error {
	d.host.disks.RLock()
	defer d.host.disks.RUnlock()
	m, err := d.medium(d.host.Machine().Storage)
	if err != nil {
		return err
	}
	return work(m)
}

// medium returns where the bytes are, given the host's storage.
func (d *Disk) medium(v storage.View) (storage.Medium, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at != nil && d.at.Same(v) {
		return d.bytes, nil
	}
	m, err := d.find(v)
	if err != nil {
		return nil, err
	}
	d.at, d.bytes = &v, m
	return m, nil
}

func (d *Disk) find(v storage.View) (storage.Medium, error) {
	gone := fmt.Errorf("%w: %s of %s", ErrNoDrive, d.id, d.host.Name())
	for _, c := range v.Controllers() {
		for _, x := range c.Volumes {
			if x.WWN != d.id {
				continue
			}
			if !x.Usable() && (d.gate != nil || x.Failed) {
				return nil, fmt.Errorf("%w: volume %s of %s", ErrNotReady, x.ID, d.host.Name())
			}
			return d.host.volume(x)
		}
	}
	if d.gate != nil {
		if !slices.ContainsFunc(v.Devices(), func(x storage.Device) bool { return x.Drive != nil && x.Drive.Serial == d.id }) {
			return nil, gone
		}
	} else if _, ok := v.Size(d.id); !ok {
		return nil, gone
	}
	return d.host.rack.store.Disk(d.host.Name(), d.id, d.size), nil
}
