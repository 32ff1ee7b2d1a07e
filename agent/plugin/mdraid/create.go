// Package mdraid does the in-band work on software RAID: it stops running arrays,
// creates arrays by writing the metadata of Linux's md driver and mdadm (version
// 1.2), and copies an image's boot loader to where firmware finds it. The
// operating system reads and writes arrays, and the caller chooses their disks.
package mdraid

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/agent/gpt"
	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys"
)

// arrayName matches the kernel's names of arrays: md127, or md_root for a
// requested name.
var arrayName = regexp.MustCompile(`^md[_\d]`)

// Running returns the kernel names of the running arrays.
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

// Stop stops the running arrays, so that their members can be written. It returns
// an error for an array in use.
func Stop(s sys.System) error {
	for _, name := range Running(s) {
		stopper, ok := s.(sys.Stopper)
		if !ok {
			return fmt.Errorf("stop /dev/%s: the system cannot", name)
		}
		if err := stopper.StopArray(name); err != nil {
			return fmt.Errorf("stop /dev/%s: %w", name, err)
		}
	}
	return nil
}

// Check returns the error that Create would return, without touching a disk.
func Check(s sys.System, spec job.RAIDSpec, volumes []Volume) error {
	_, err := newPlan(spec, volumes, func(disk string) int64 { return blockSize(s, disk) })
	return err
}

// Create creates arrays on disks with erased metadata. It writes all superblocks
// before the first partition table: until then there is nothing for the kernel to
// assemble.
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
			return nil, fmt.Errorf("open %s: %w", d.Name, err)
		}
		open[d.Name] = b
	}
	for _, step := range []func(*diskPlan, sys.Block) error{writeMembers, writeTable} {
		for _, d := range p.disks {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			err := step(d, open[d.Name])
			if err == nil {
				err = open[d.Name].Sync()
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.Name, err)
			}
		}
	}
	var failed error
	for _, d := range p.disks {
		err := open[d.Name].Close()
		delete(open, d.Name)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", d.Name, err))
		}
	}
	return p.arrays, failed
}

// writeMembers writes superblocks, and zeros at the beginning and the end of an
// array, so that it contains no partition tables and file systems of earlier uses.
func writeMembers(d *diskPlan, b sys.Block) error {
	if d.esp > 0 {
		if err := b.Zero(d.esp, mib); err != nil {
			return err
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

// writeTable writes the protective MBR last: without it the rest is ignored.
func writeTable(d *diskPlan, b sys.Block) error {
	blocks := d.SizeBytes / d.block
	mbr := make([]byte, sector)
	gpt.Protect(mbr, blocks)
	for _, p := range append(d.table.Parts(blocks), gpt.Part{Off: 0, Bytes: mbr}) {
		if _, err := b.WriteAt(p.Bytes, p.Off); err != nil {
			return err
		}
	}
	return nil
}

// blockSize returns the size of a disk's logical blocks in bytes.
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

// kernelName returns package sys's name of the device /dev/NAME.
func kernelName(name string) string {
	return strings.ReplaceAll(strings.TrimPrefix(name, "/dev/"), "/", "!")
}
