package disk

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/metalab-dev/metalab/agent/configdrive"
)

// drivePart is the size of a config drive's partition, and partAlign the alignment
// of partitions (ironic-python-agent, create_config_drive_partition).
const (
	drivePart = configdrive.MaxSize
	partAlign = 1 << 20
)

// partitionTable is an image's partition table.
type partitionTable interface {
	// used returns the existing partitions.
	used() []span
	// room returns the end of the space for a new partition.
	room() (end int64)
	// add adds a partition.
	add(s span) error
	// store writes the table for a disk of this size.
	store() error
}

// placeConfigDrive writes the config drive to the disk: to the image's partition
// for it, or to a new one at the disk's end. The image is complete except for its
// head, so that a disk without its config drive cannot boot.
func (t *target) placeConfigDrive(drive []byte) error {
	table, err := t.table()
	var at int64
	if err == nil {
		at, err = t.partition(table, int64(len(drive)))
	}
	if err != nil && t.driveOptional { // the image has no place for it
		return nil
	}
	if err == nil {
		err = table.store()
	}
	if err == nil {
		err = t.replace(at, drive)
	}
	if err != nil {
		return fmt.Errorf("disk: config drive: %w", err)
	}
	t.driveAt = at
	return nil
}

// table returns the image's partition table.
func (t *target) table() (partitionTable, error) {
	for _, sectorSize := range []int64{512, 4096} {
		g, err := readGPT(t, sectorSize)
		if g != nil || err != nil {
			return g, err
		}
	}
	return readMBR(t)
}

// partition finds or adds the partition of the config drive.
func (t *target) partition(table partitionTable, size int64) (int64, error) {
	end := table.room()
	start := (end - drivePart) / partAlign * partAlign
	full := error(nil)
	for _, p := range table.used() {
		head := make([]byte, min(p.n, configdrive.HeadSize))
		if n, _ := t.ReadAt(head, p.off); n == len(head) && configdrive.Is(head) {
			if p.n < size {
				return 0, fmt.Errorf("the image's %s partition has %d bytes, %d are needed", configdrive.Label, p.n, size)
			}
			return p.off, nil
		}
		if p.off+p.n > start && p.off < end {
			full = fmt.Errorf("%s has no room behind the image's partitions: one ends at byte %d, the last %d MiB from byte %d on are needed",
				t.name, p.off+p.n, drivePart>>20, start)
		}
	}
	if start < headSize {
		return 0, fmt.Errorf("%s is too small: it has %d bytes", t.name, t.block.Size())
	}
	if full != nil {
		return 0, full
	}
	return start, table.add(span{start, end - start})
}

// ReadAt reads the disk with the head that is not yet written.
func (t *target) ReadAt(p []byte, off int64) (int, error) {
	n, err := t.block.ReadAt(p, off)
	if off < headSize && off >= 0 {
		copy(p[:n], t.head[off:])
	}
	return n, err
}

// replace overwrites a part of the image.
func (t *target) replace(off int64, p []byte) error {
	if off < headSize {
		n := copy(t.head[off:], p)
		off, p = off+int64(n), p[n:]
	}
	for len(p) > 0 {
		n := min(len(p), chunk)
		if err := t.unverify(off, int64(n)); err != nil {
			return err
		}
		if err := t.write(off, p[:n]); err != nil {
			return err
		}
		off, p = off+int64(n), p[n:]
	}
	return nil
}

var errLost = errors.New("something else than was written")

// unverify removes a range from the runs to be verified. The rest of a run that it
// cuts is verified now and recorded again.
func (t *target) unverify(off, n int64) error {
	end := off + n
	var zeroed, data []run
	for _, r := range t.zeroed {
		if r.off < off {
			zeroed = append(zeroed, run{off: r.off, n: min(r.n, off-r.off)})
		}
		if last := r.off + r.n; last > end {
			zeroed = append(zeroed, run{off: max(r.off, end), n: last - max(r.off, end)})
		}
	}
	for _, r := range t.data {
		last := r.off + r.n
		if last <= off || r.off >= end {
			data = append(data, r)
			continue
		}
		p := make([]byte, r.n)
		if k, err := t.block.ReadAt(p, r.off); int64(k) < r.n {
			return fmt.Errorf("read %s: %w", t.name, err)
		}
		if crc32.Checksum(p, castagnoli) != r.sum {
			return fmt.Errorf("%s holds %w, in the %d bytes at %d", t.name, errLost, r.n, r.off)
		}
		if r.off < off {
			data = append(data, run{r.off, off - r.off, crc32.Checksum(p[:off-r.off], castagnoli)})
		}
		if last > end {
			data = append(data, run{end, last - end, crc32.Checksum(p[end-r.off:], castagnoli)})
		}
	}
	t.zeroed, t.data = zeroed, data
	return nil
}
