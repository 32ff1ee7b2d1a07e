package mdraid

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/agent/gpt"
	"github.com/metalab-dev/metalab/agent/sys"
)

// ErrNoLoader reports an image without a boot loader that firmware could boot from
// a software RAID.
var ErrNoLoader = errors.New("the image has no EFI system partition, and firmware boots nothing else off software RAID")

// copySize is the number of bytes read at a time.
const copySize = 1 << 20

// CopyLoader copies the EFI system partition of the image on an array to the disks
// of the array. Call it when the image is complete: afterwards the server boots.
func CopyLoader(ctx context.Context, s sys.System, array string) error {
	name := kernelName(array)
	targets, err := bootPartitions(s.FS(), name)
	if err != nil {
		return fmt.Errorf("%s: %w", array, err)
	}
	from, err := s.OpenBlock(name)
	if err != nil {
		return err
	}
	defer from.Close()
	esp, err := findESP(from, blockSize(s, array))
	if err != nil {
		return fmt.Errorf("%s: %w", array, err)
	}
	for _, t := range targets {
		if err := copyTo(ctx, s, t, esp); err != nil {
			return fmt.Errorf("boot loader to /dev/%s: %w", t, err)
		}
	}
	return nil
}

// bootPartitions returns the EFI system partitions of the disks with an array's
// members, by kernel name. It skips disks without one: arrays of other creators
// need none.
func bootPartitions(root fs.ReadLinkFS, array string) ([]string, error) {
	members, err := fs.ReadDir(root, "sys/block/"+array+"/slaves")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range members {
		to, err := root.ReadLink("sys/block/" + array + "/slaves/" + m.Name())
		if err != nil {
			return nil, err
		}
		disk := "sys/block/" + path.Base(path.Dir(to)) // …/block/sda/sda2
		parts, err := fs.ReadDir(root, disk)
		if err != nil {
			continue // the whole disk is a member
		}
		for _, p := range parts {
			if strings.HasPrefix(p.Name(), path.Base(disk)) && isESP(root, disk+"/"+p.Name()) && !slices.Contains(out, p.Name()) {
				out = append(out, p.Name())
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no disk of it has an EFI system partition")
	}
	return out, nil
}

// isESP reads the type of a partition from udev.
func isESP(root fs.FS, dir string) bool {
	dev, err := fs.ReadFile(root, dir+"/dev")
	if err != nil {
		return false
	}
	data, err := fs.ReadFile(root, "run/udev/data/b"+strings.TrimSpace(string(dev)))
	return err == nil && strings.Contains(string(data), "E:ID_PART_ENTRY_TYPE="+gpt.ESP.String()+"\n")
}

// findESP finds the EFI system partition in an image's GPT.
func findESP(b sys.Block, block int64) (*io.SectionReader, error) {
	for _, size := range []int64{block, sector} { // most images are made for 512
		table, err := gpt.Read(b, size, 1, b.Size()/size)
		if err != nil && !errors.Is(err, gpt.ErrDamaged) {
			return nil, err
		}
		if table == nil {
			continue
		}
		for _, p := range table.All() {
			if p.Type == gpt.ESP && p.First <= p.Last && p.Last < 1<<40 {
				return io.NewSectionReader(b, int64(p.First)*size, int64(p.Last-p.First+1)*size), nil
			}
		}
	}
	return nil, ErrNoLoader
}

// copyTo writes the first sector last: without it firmware ignores the partition.
func copyTo(ctx context.Context, s sys.System, name string, esp *io.SectionReader) (err error) {
	to, err := s.OpenBlock(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := to.Close(); err == nil {
			err = e
		}
	}()
	if esp.Size() > to.Size() {
		return fmt.Errorf("the image's EFI system partition has %d MiB, and there is room for %d", esp.Size()/mib, to.Size()/mib)
	}
	first := make([]byte, sector)
	if _, err := esp.ReadAt(first, 0); err != nil {
		return err
	}
	buf := make([]byte, copySize)
	for off := int64(sector); off < esp.Size(); {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n, err := esp.ReadAt(buf[:min(copySize, esp.Size()-off)], off)
		if n == 0 && err != nil {
			return err
		}
		if _, err := to.WriteAt(buf[:n], off); err != nil {
			return err
		}
		off += int64(n)
	}
	if err := to.Sync(); err != nil {
		return err
	}
	if _, err := to.WriteAt(first, 0); err != nil {
		return err
	}
	return to.Sync()
}
