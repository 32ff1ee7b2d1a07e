package rack

import (
	"errors"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/rack/store"
)

// SystemFiles returns the files that the operating system on the disk has stored by
// PutSystemFiles; nil if it has stored none, or if the first sector was overwritten
// since. Whoever reads them defines their format.
func (d *Disk) SystemFiles() (content []byte, err error) {
	err = d.useSystems(func(on []systemPlace) error {
		var errs []error
		for _, p := range on {
			b, err := p.drive.SystemFiles(p.anchor)
			if err == nil && b != nil {
				content = b
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	return content, err
}

// PutSystemFiles stores the files of the operating system on the disk with its drives:
// they move, are copied and are lost with its sectors. Writing or discarding the first
// sector removes them. nil removes them, too.
func (d *Disk) PutSystemFiles(content []byte) error {
	return d.useSystems(func(on []systemPlace) error {
		for _, p := range on {
			if err := p.drive.PutSystemFiles(p.anchor, content); err != nil {
				return err
			}
		}
		return nil
	})
}

// systemPlace is a drive that has the first byte of a disk, or of a volume's part on it.
type systemPlace struct {
	drive  *store.Disk
	anchor int64 // offset of that byte
}

func (d *Disk) useSystems(work func([]systemPlace) error) error {
	do := func() error {
		d.host.disks.RLock()
		defer d.host.disks.RUnlock()
		v := d.host.Machine().Storage
		if _, err := d.find(v); err != nil { // as readers and writers of its sectors
			return err
		}
		return work(d.systemPlaces(v))
	}
	if d.gate == nil {
		return do()
	}
	return d.gate.do(do)
}

// systemPlaces returns where the files of a system are stored: with a drive, or with each
// drive of a volume that is there, since any of them may be pulled.
func (d *Disk) systemPlaces(v storage.View) (out []systemPlace) {
	for _, c := range v.Controllers() {
		for _, x := range c.Volumes {
			if x.WWN != d.id {
				continue
			}
			for _, m := range x.Members {
				if size, ok := v.Size(m.Serial); ok && m.State == storage.Online {
					out = append(out, systemPlace{d.host.rack.store.Disk(d.host.Name(), m.Serial, size), x.Offset})
				}
			}
			return out
		}
	}
	return []systemPlace{{d.host.rack.store.Disk(d.host.Name(), d.id, d.size), 0}}
}

// dropVolumeSystem removes the files of the system on a volume whose first sector is
// written: not every drive of a RAID 5 is. The store does so for single drives. The
// caller holds d.host.disks.
func (d *Disk) dropVolumeSystem(m storage.Medium, off, n int64) error {
	if _, ok := m.(*storage.Volume); !ok || off > 0 || n == 0 {
		return nil
	}
	for _, p := range d.systemPlaces(d.host.Machine().Storage) {
		if err := p.drive.PutSystemFiles(p.anchor, nil); err != nil {
			return err
		}
	}
	return nil
}
