package disk

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/metalab-dev/metalab/agent/sys"
)

const (
	sector = 512
	// headSize is the size of the part at a disk's beginning that is written last.
	headSize = 1 << 20
	// zeroRun is the shortest run of zeros that is passed to Block.Zero.
	zeroRun = 64 << 10
	// Runs of zeros are verified by samples: a page at both ends and at every
	// sampleStep. A device that ignores Zero fails at the first; reading terabytes
	// of zeros would take hours.
	sampleSize = 4 << 10
	sampleStep = 64 << 20
)

var (
	zeros      [zeroRun]byte
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// target is a disk while an image is written to it. The first MiB, which makes a
// disk bootable (boot sector, partition tables), is zeros from begin to finish, so
// that only a complete and verified image can boot.
type target struct {
	block sys.Block
	name  string // /dev/sda
	head  []byte // nil once it is written
	wiped bool   // begin has wiped the head
	// drive is the config drive to write beside the image, if any, and driveAt its
	// offset on the disk.
	drive         []byte
	driveOptional bool // the image is written without it when it has no place for it
	driveAt       int64

	mu     sync.Mutex
	data   []run // runs written so far
	zeroed []run
}

// run is a range of the disk and the CRC-32C of the data written there. The
// checksum detects accidents; attackers are excluded by the image's digest.
type run struct {
	off, n int64
	sum    uint32
}

// begin wipes the head, and the tail, where the backup GPT of an earlier
// installation would survive.
func (t *target) begin() error {
	t.head, t.wiped = make([]byte, headSize), true
	return wipeEnds(t.block, 0, t.block.Size(), headSize)
}

// put writes p at off. Only the last piece may end within a sector; the rest of
// that sector becomes zeros. Calls for ranges that do not overlap may run
// concurrently.
func (t *target) put(off int64, p []byte) error {
	if off < headSize {
		n := copy(t.head[off:], p)
		off, p = off+int64(n), p[n:]
	}
	for len(p) > 0 {
		n, zero := uniformPrefix(p)
		var err error
		if zero {
			err = t.zero(off, int64(n))
		} else {
			err = t.write(off, p[:n])
		}
		if err != nil {
			return err
		}
		off, p = off+int64(n), p[n:]
	}
	return nil
}

// uniformPrefix returns the length of p's prefix that is all data or all zeros,
// and which.
func uniformPrefix(p []byte) (n int, zero bool) {
	for n < len(p) {
		block := p[n:min(len(p), n+zeroRun)]
		isZero := bytes.Equal(block, zeros[:len(block)])
		if n == 0 {
			zero = isZero
		} else if zero != isZero {
			break
		}
		n += len(block)
	}
	return n, zero
}

// zero makes a range read as zeros, up to the end of its last sector.
func (t *target) zero(off, n int64) error {
	if off < headSize { // these are zeros already
		skip := min(n, headSize-off)
		off, n = off+skip, n-skip
	}
	if n == 0 {
		return nil
	}
	n = (n + sector - 1) / sector * sector
	if err := t.block.Zero(off, n); err != nil {
		return fmt.Errorf("disk: zero %s: %w", t.name, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := len(t.zeroed) - 1; last >= 0 && t.zeroed[last].off+t.zeroed[last].n == off {
		t.zeroed[last].n += n
	} else {
		t.zeroed = append(t.zeroed, run{off: off, n: n})
	}
	return nil
}

func (t *target) write(off int64, p []byte) error {
	if rest := len(p) % sector; rest != 0 {
		p = append(bytes.Clone(p), zeros[:sector-rest]...)
	}
	if _, err := t.block.WriteAt(p, off); err != nil {
		return fmt.Errorf("disk: write %s: %w", t.name, err)
	}
	sum := crc32.Checksum(p, castagnoli)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, run{off, int64(len(p)), sum})
	return nil
}

// finish writes the config drive and the head of an image of size bytes, and waits
// until everything is durable.
func (t *target) finish(size int64) error {
	if t.drive != nil {
		if err := t.placeConfigDrive(t.drive); err != nil {
			return err
		}
		size = max(size, min(headSize, t.block.Size())) // its partition table may have changed
	}
	if err := t.write(0, t.head[:min(size, headSize)]); err != nil {
		return err
	}
	t.head = nil
	return t.sync()
}

func (t *target) sync() error {
	if err := t.block.Sync(); err != nil {
		return fmt.Errorf("disk: sync %s: %w", t.name, err)
	}
	return nil
}

// verify reads the written ranges back and compares their checksums.
func (t *target) verify(ctx context.Context, progress func(done, total int64)) error {
	var total, done int64
	for _, r := range t.data {
		total += r.n
	}
	buf := make([]byte, chunk)
	read := func(off, n int64) ([]byte, error) { // at most a chunk
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("disk: verify %s: %w", t.name, err)
		}
		if k, err := t.block.ReadAt(buf[:n], off); int64(k) < n {
			return nil, fmt.Errorf("disk: verify %s: %w", t.name, err)
		}
		return buf[:n], nil
	}
	for _, r := range t.data {
		var sum uint32
		for at := int64(0); at < r.n; at += chunk {
			p, err := read(r.off+at, min(chunk, r.n-at))
			if err != nil {
				return err
			}
			sum = crc32.Update(sum, castagnoli, p)
		}
		if sum != r.sum {
			return fmt.Errorf("disk: %s holds something else than was written, in the %d bytes at %d", t.name, r.n, r.off)
		}
		done += r.n
		progress(done, total)
	}
	for _, r := range t.zeroed {
		for at := r.off; at < r.off+r.n; at += sampleStep {
			last := max(at, min(at+sampleStep, r.off+r.n)-sampleSize)
			for _, off := range []int64{at, last} {
				p, err := read(off, min(sampleSize, r.off+r.n-off))
				if err != nil {
					return err
				}
				if !bytes.Equal(p, zeros[:len(p)]) {
					return fmt.Errorf("disk: %s holds something else than the zeros that were written at %d", t.name, off)
				}
			}
		}
	}
	return nil
}
