// Package mdraid does the in-band work on software RAID: it takes the arrays
// apart that Linux runs, makes new ones by writing what Linux's md driver and
// mdadm read (metadata 1.2), and puts the boot loader of an image where
// firmware finds it. Reading and writing arrays is the operating system's
// business, and which disks they are made of that of who asks.
package mdraid

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys"
)

// arrayName is how the kernel calls arrays: md127, or md_root where a name was
// asked for.
var arrayName = regexp.MustCompile(`^md[_\d]`)

// Running are the kernel's names of the arrays that run.
func Running(s sys.System) []string {
	entries, err := fs.ReadDir(s.FS(), "sys/block")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if arrayName.MatchString(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out
}

// Stop takes the arrays apart that run, so that their members can be written
// to. An array that cannot be stopped is an error: it is in use.
func Stop(s sys.System) error {
	for _, name := range Running(s) {
		stopper, ok := s.(sys.Stopper)
		if !ok {
			return fmt.Errorf("mdraid: stop /dev/%s: the system cannot", name)
		}
		if err := stopper.StopArray(name); err != nil {
			return fmt.Errorf("mdraid: stop /dev/%s: %w", name, err)
		}
	}
	return nil
}

// Check says what Create would refuse, without touching a disk.
func Check(s sys.System, spec job.RAIDSpec, volumes []Volume) error {
	_, err := newPlan(spec, volumes, func(disk string) int64 { return blockSize(s, disk) })
	return err
}

// Create makes arrays of disks whose metadata has been erased. All superblocks
// are written before the first partition table is: until then there is nothing
// that the kernel would assemble.
func Create(ctx context.Context, s sys.System, spec job.RAIDSpec, volumes []Volume) ([]job.Array, error) {
	p, err := newPlan(spec, volumes, func(disk string) int64 { return blockSize(s, disk) })
	if err != nil {
		return nil, err
	}
	open := map[string]sys.Block{}
	defer func() {
		for _, b := range open {
			b.Close()
		}
	}()
	for _, d := range p.disks {
		b, err := s.OpenBlock(kernelName(d.Name))
		if err != nil {
			return nil, fmt.Errorf("mdraid: open %s: %w", d.Name, err)
		}
		open[d.Name] = b
	}
	for _, step := range []func(*diskPlan, sys.Block) error{writeMembers, writeTable} {
		for _, d := range p.disks {
			if err := context.Cause(ctx); err != nil {
				return nil, fmt.Errorf("mdraid: %w", err)
			}
			err := step(d, open[d.Name])
			if err == nil {
				err = open[d.Name].Sync()
			}
			if err != nil {
				return nil, fmt.Errorf("mdraid: %s: %w", d.Name, err)
			}
		}
	}
	var failed error
	for _, d := range p.disks {
		err := open[d.Name].Close()
		delete(open, d.Name)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("mdraid: %s: %w", d.Name, err))
		}
	}
	return p.arrays, failed
}

// writeMembers writes superblocks, and zeros where an array begins and ends: it
// shall hold no tables and no file system of what lay on the disk before.
func writeMembers(d *diskPlan, b sys.Block) error {
	for _, part := range d.table.all {
		if part.kind == typeESP {
			if err := b.Zero(part.off, mib); err != nil {
				return err
			}
		}
	}
	for _, m := range d.members {
		raw, err := m.MarshalBinary()
		if err != nil {
			return err
		}
		data := m.off + dataOffset*sector
		for _, off := range []int64{m.off, data, data + m.size - mib} {
			if err := b.Zero(off, mib); err != nil {
				return err
			}
		}
		if _, err := b.WriteAt(raw, m.off+superOffset*sector); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(d *diskPlan, b sys.Block) error {
	for _, p := range d.table.pieces() {
		if _, err := b.WriteAt(p.bytes, p.off); err != nil {
			return err
		}
	}
	return nil
}

// blockSize is the size of a disk's logical blocks in bytes.
func blockSize(s sys.System, disk string) int64 {
	text, err := fs.ReadFile(s.FS(), "sys/block/"+kernelName(disk)+"/queue/logical_block_size")
	if err != nil {
		return sector
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n < sector || n > mib {
		return sector
	}
	return n
}

// kernelName is how sys knows the device /dev/NAME.
func kernelName(name string) string {
	return strings.ReplaceAll(strings.TrimPrefix(name, "/dev/"), "/", "!")
}
