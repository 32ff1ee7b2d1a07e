// Package datasource reads the data source of cloud-init from a volume: a device with a file
// system of FAT12, FAT16, FAT32 or ISO 9660 (Rock Ridge and Joliet names) whose label is one of
// cloudinit.Labels. Users of a server write its disks, so what a volume says of itself is bounded
// before it costs memory or time: go-diskfs follows a loop of clusters for ever and allocates the
// sizes that records claim, so the two formats are read here. The package does not know what
// becomes of the data.
package datasource

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/metalab-dev/metalab/agent/configdrive"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/guest/cloudinit"
)

// Bounds of reading a volume, in bytes. A seed has at most 64 MiB
// (configdrive.MaxSize); a directory of FAT has at most 65,536 entries of 32 bytes (Microsoft,
// "FAT32 File System Specification" 1.03, "FAT Directory Structure").
const (
	maxFile      = configdrive.MaxSize
	maxDirectory = 2 << 20
	// maxRead bounds all that is read, so that loops of directories and continuations end within
	// a second. A seed has at most three files beside its metadata.
	maxRead = 8 * maxFile
	// readCost is what the smallest read counts, and directoryCost how many bytes each byte of a
	// directory counts: its entries cost more than the content of a file.
	readCost, directoryCost = 512, 16
)

// errDamaged reports a file system that contradicts itself.
var errDamaged = errors.New("damaged file system")

// Find returns the data source of the first block device of a server that has one, and the name
// of the device: whole disks, partitions and arrays, in the order of their names. The error of a
// data source that cannot be read names its device.
func Find(s sys.System) (cloudinit.Instance, string, error) {
	devices, err := fs.ReadDir(s.FS(), "sys/class/block")
	if err != nil {
		return cloudinit.Instance{}, "", fmt.Errorf("block devices: %w", err)
	}
	for _, d := range devices {
		i, err := readDevice(s, d.Name())
		if errors.Is(err, cloudinit.ErrNoSource) {
			continue
		}
		if err != nil {
			err = fmt.Errorf("/dev/%s: %w", d.Name(), err)
		}
		return i, d.Name(), err
	}
	return cloudinit.Instance{}, "", cloudinit.ErrNoSource
}

// readDevice reads the data source of one block device.
func readDevice(s sys.System, name string) (cloudinit.Instance, error) {
	b, err := s.OpenBlock(name)
	if err != nil {
		return cloudinit.Instance{}, cloudinit.ErrNoSource // a CD drive, or a member of an array
	}
	defer b.Close()
	return Read(b, b.Size())
}

// Read returns the data source of a device of a size in bytes. Its error is
// cloudinit.ErrNoSource for a device without a file system that it reads, with another label, or
// without the files of a data source.
func Read(r io.ReaderAt, size int64) (_ cloudinit.Instance, err error) {
	defer func() {
		if p := recover(); p != nil { // a lab must outlive what one server's disk has
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	d := &device{r, size, maxRead}
	head, err := d.read(0, min(size, configdrive.HeadSize))
	if err != nil {
		return cloudinit.Instance{}, err
	}
	var (
		t     tree
		label string
	)
	switch format, name := configdrive.VolumeLabel(head); format {
	case configdrive.ISO9660:
		if cloudinit.Labels[name] == "" {
			return cloudinit.Instance{}, cloudinit.ErrNoSource // a large image need not be sound
		}
		t, err = openISO(d)
		label = name
	case configdrive.FAT:
		var f *fat
		if f, err = openFAT(d, head); err == nil {
			t, label = f, f.label(name)
		} else if cloudinit.Labels[name] == "" {
			return cloudinit.Instance{}, cloudinit.ErrNoSource
		}
	}
	switch {
	case err != nil:
		return cloudinit.Instance{}, err
	case cloudinit.Labels[label] == "":
		return cloudinit.Instance{}, cloudinit.ErrNoSource
	}
	return cloudinit.Read(volume{t})
}

// device is a block device, of which a number of bytes may be read.
type device struct {
	r    io.ReaderAt
	size int64 // bytes
	left int64 // bytes
}

// read returns n bytes at an offset. All of them are on the device.
func (d *device) read(at, n int64) ([]byte, error) {
	if at < 0 || n < 0 || n > d.size || at > d.size-n {
		return nil, fmt.Errorf("%w: %d bytes at %d are beyond its end at %d", errDamaged, n, at, d.size)
	}
	if err := d.count(max(n, readCost)); err != nil {
		return nil, err
	}
	p := make([]byte, n)
	if k, err := d.r.ReadAt(p, at); int64(k) < n {
		return nil, fmt.Errorf("read %d bytes at %d: %w", n, at, err)
	}
	return p, nil
}

// count takes a number of bytes from those that may be read.
func (d *device) count(n int64) error {
	if d.left -= n; d.left < 0 {
		return fmt.Errorf("%w: its directories and files have over %d bytes", errDamaged, int64(maxRead))
	}
	return nil
}
