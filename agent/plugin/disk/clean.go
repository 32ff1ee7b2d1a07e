package disk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys"
)

// endSize is the size of the range wiped at both ends of a disk and of each
// partition. It covers at the beginning: MBR, GPT, boot sectors, the superblocks
// of ext, XFS, Btrfs (64 KiB), F2FS, the labels of LVM, LUKS, swap, ZFS (512 KiB),
// bcache and MD 1.1 and 1.2; at the end: the backup GPT, MD 0.90 (64 to 128 KiB
// before it) and 1.0 (8 to 12 KiB), the other labels of ZFS, and the metadata of
// firmware RAID (DDF, IMSM).
const endSize = 1 << 20

// innerSignatures lists signatures further inside, which are wiped if they are
// found: offset from the beginning, magic number and its offset in the block.
var innerSignatures = []struct {
	at    int64
	magic string
	skip  int
}{
	{64 << 20, "_BHRfS_M", 64}, // Btrfs: second and third superblock
	{256 << 30, "_BHRfS_M", 64},
	{2 << 20, "SKUL\xba\xbe", 0}, // LUKS2: second header, depending on the size of the first
	{4 << 20, "SKUL\xba\xbe", 0},
}

// innerSize is the size of the range wiped at an inner signature: the largest
// superblock.
const innerSize = 4 << 10

// Erase erases every disk. Erasing only metadata takes seconds for any size, and
// does not protect the data. Erase continues after a disk that fails, and returns
// which disks were erased and how. progress, which may be nil, receives the
// percentage done.
func Erase(ctx context.Context, s sys.System, disks []job.Disk, how job.Erase, progress func(percent int)) ([]job.Erased, error) {
	do, known := erasures[how]
	if !known {
		return nil, fmt.Errorf("disk: erasure %q is unknown, want full, secure or none for metadata", shortened(string(how)))
	}
	erased := []job.Erased{}
	var failed error
	for i, d := range disks {
		part := func(done, total int64) {
			if progress != nil && total > 0 {
				progress((100*i + int(float64(done)/float64(total)*100)) / len(disks))
			}
		}
		part(0, 1)
		if err := context.Cause(ctx); err != nil {
			return erased, joinErrors(failed, fmt.Errorf("disk: clean %s: %w", d.Name, err))
		}
		by, err := eraseDisk(ctx, s, d.Name, do, part)
		if err != nil {
			failed = joinErrors(failed, fmt.Errorf("disk: clean %s: %w", d.Name, err))
			continue
		}
		erased = append(erased, job.Erased{Device: d.Name, By: by})
	}
	return erased, failed
}

// joinErrors joins errors in one line; either may be nil.
func joinErrors(err, more error) error {
	if err == nil || more == nil {
		return cmp.Or(err, more)
	}
	return fmt.Errorf("%w; %w", err, more)
}

// kernelName returns package sys's name of the device /dev/NAME.
func kernelName(name string) string {
	return strings.ReplaceAll(strings.TrimPrefix(name, "/dev/"), "/", "!")
}

// eraseDisk erases the data, then the metadata. The second takes no time, and is
// needed after a secure erasure too: its result is up to the device.
func eraseDisk(ctx context.Context, s sys.System, name string, do erasure, progress func(done, total int64)) (by string, err error) {
	block, err := s.OpenBlock(kernelName(name))
	if err != nil {
		return "", err
	}
	defer func() {
		if closeErr := block.Close(); err == nil {
			err = closeErr
		}
	}()
	if by, err = do(ctx, block, progress); err != nil {
		return "", err
	}
	// The partition tables are wiped last: until then they locate the rest.
	for _, p := range append(partitions(block, block.Size()), span{0, block.Size()}) {
		if err := context.Cause(ctx); err != nil {
			return "", err
		}
		if err := wipe(block, p); err != nil {
			return "", err
		}
	}
	if err := block.Sync(); err != nil {
		return "", err
	}
	var head [sector]byte
	if _, err := block.ReadAt(head[:], 0); err != nil {
		return "", err
	}
	if !bytes.Equal(head[:], zeros[:sector]) {
		return "", errors.New("the disk still holds something after it was erased")
	}
	return by, nil
}

// wipe erases the signatures of a disk or partition.
func wipe(block sys.Block, p span) error {
	for _, sig := range innerSignatures {
		if sig.at+innerSize > p.n {
			continue
		}
		var have [128]byte
		if _, err := block.ReadAt(have[:], p.off+sig.at); err != nil {
			return err
		}
		if bytes.HasPrefix(have[sig.skip:], []byte(sig.magic)) {
			if err := block.Zero(p.off+sig.at, innerSize); err != nil {
				return err
			}
		}
	}
	return wipeEnds(block, p.off, p.n, endSize)
}

// wipeEnds zeros the first and the last size bytes of a range, or all of a smaller
// one.
func wipeEnds(block sys.Block, off, n, size int64) error {
	size = min(size, n)
	if err := block.Zero(off+n-size, size); err != nil {
		return err
	}
	return block.Zero(off, size)
}
