package disk

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/metalab-dev/metalab/agent/sys"
)

// scratchSink stores the file in a scratch file until its digest is verified, and
// then writes the disk that it describes.
type scratchSink struct {
	*target
	format  string
	scratch sys.Scratch
	bar     *progress
	limit   int64 // maximum size of the file in bytes
}

func newScratchSink(s sys.System, format string, size int64, t *target, bar *progress) (*scratchSink, error) {
	// A file for a full disk is a little larger than the disk, because of its
	// tables.
	limit := t.block.Size() + t.block.Size()/64 + 16<<20
	if size > limit {
		return nil, fmt.Errorf("disk: the %s file has %d bytes, %s only %d", format, size, t.name, t.block.Size())
	}
	scratch, err := s.TempFile()
	if err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	return &scratchSink{target: t, format: format, scratch: scratch, bar: bar, limit: limit}, nil
}

func (s *scratchSink) take(off int64, p []byte) error {
	if off+int64(len(p)) > s.limit {
		return fmt.Errorf("disk: the %s file has more than %d bytes, %s only %d", s.format, s.limit, s.name, s.block.Size())
	}
	if _, err := s.scratch.WriteAt(p, off); err != nil {
		return fmt.Errorf("disk: keep the %s file: %w", s.format, err)
	}
	return nil
}

func (s *scratchSink) release() { s.scratch.Close() }

func (s *scratchSink) finish(ctx context.Context, fileSize int64) (int64, error) {
	img, err := unpackers[s.format](s.scratch, fileSize)
	if err != nil {
		return 0, err
	}
	if img.size > s.block.Size() {
		return 0, fmt.Errorf("disk: the image has %d bytes, %s only %d", img.size, s.name, s.block.Size())
	}
	if err := recoverPanic(s.format, func() error { return img.checkContent(ctx, fileSize) }); err != nil {
		return 0, err
	}
	if err := s.begin(); err != nil {
		return 0, err
	}
	s.bar.next(75)
	if err := img.copyTo(ctx, s.target, s.bar, fileSize); err != nil {
		return 0, err
	}
	return img.size, s.target.finish(img.size)
}

// sparse is a disk described by an image file. Its header is validated: size and
// unit are sound. Tables are validated when they are used.
type sparse struct {
	name string // name of the format
	size int64  // size of the disk in bytes
	unit int64  // granularity of the tables in bytes; a power of two, at most 2 MiB
	// ratio is how many bytes of the disk one byte of compressed data can make.
	ratio int64
	// loose means that extents of data may be zeros that the file does not contain.
	loose bool
	// extent describes the disk from at on, up to most bytes. at is a multiple of
	// unit.
	extent      func(at, most int64) (extent, error)
	io.ReaderAt // reads the disk; safe for concurrent use
}

// extent is a part of the disk that is the same throughout.
type extent struct {
	n      int64 // bytes
	zero   bool  // else the file has data
	packed bool  // the data is compressed
}

// The most bytes that one byte of compressed data can make.
const (
	deflateRatio = 1032     // 258 bytes from a length and a distance of a bit each (RFC 1951, section 3.2.5)
	zstdRatio    = 32 << 10 // 128 KiB from an RLE block of 4 bytes (RFC 8878, section 3.1.1.2)
)

// checkContent walks the tables, and returns an error when they describe more data than
// the file can contain. Tables of a few bytes, which map all clusters to the same one,
// would else fill the disk. No program that makes images maps a cluster twice.
func (q sparse) checkContent(ctx context.Context, fileSize int64) error {
	most := []int64{fileSize + q.unit, fileSize} // the last cluster may be cut off
	var have [2]int64
	for at := int64(0); at < q.size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e, err := q.next(at)
		if err != nil {
			return err
		}
		if at += e.n; e.zero || q.loose && !e.packed {
			continue
		}
		kind, per := 0, int64(1)
		if e.packed {
			kind, per = 1, q.ratio
		}
		if have[kind] += e.n; have[kind]/per > most[kind] {
			return q.excess(have[kind], fileSize)
		}
	}
	return nil
}

func (q sparse) excess(have, fileSize int64) error {
	return fmt.Errorf("disk: %s: the image is malformed: its tables describe %d bytes of data or more for a disk of %d bytes, but the file of %d bytes cannot contain them",
		q.name, have, q.size, fileSize)
}

// next returns the extent at a byte of the disk, which it checks.
func (q sparse) next(at int64) (extent, error) {
	e, err := q.extent(at, min(q.size-at, maxExtent))
	if err != nil {
		return extent{}, fmt.Errorf("disk: %s: tables for byte %d: %w", q.name, at, err)
	}
	if e.n <= 0 || e.n > q.size-at {
		return extent{}, fmt.Errorf("disk: %s: the tables are wrong for byte %d", q.name, at)
	}
	return e, nil
}

// piece is data that a worker copies.
type piece struct {
	run
	packed bool // the file has it compressed
}

// dataSectors counts the sectors that are not zeros.
func dataSectors(p []byte) (n int64) {
	for ; len(p) > 0; p = p[min(sector, len(p)):] {
		if part := p[:min(sector, len(p))]; !bytes.Equal(part, zeros[:len(part)]) {
			n++
		}
	}
	return n
}

// maxWorkers bounds the number of decompressing goroutines; each needs a buffer.
const maxWorkers = 4

// maxExtent bounds one walk of the tables, so that ctx is checked.
const maxExtent = 1 << 30

// copyTo writes the image to a disk: this goroutine walks the tables and passes
// ranges of data to workers, which decompress and write them.
func (q sparse) copyTo(ctx context.Context, t *target, bar *progress, fileSize int64) error {
	var data atomic.Int64 // bytes that are not zeros and not compressed
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pieces := make(chan piece)
	var workers sync.WaitGroup
	for range min(maxWorkers, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			buf := make([]byte, max(chunk, q.unit))
			for p := range pieces {
				err := recoverPanic(q.name, func() error { return q.copyPiece(t, p.run, buf) })
				if err == nil && q.loose && !p.packed {
					if n := data.Add(dataSectors(buf[:p.n]) * sector); n > fileSize+q.unit {
						err = q.excess(n, fileSize)
					}
				}
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	err := recoverPanic(q.name, func() error { return q.walk(ctx, t, pieces, bar) })
	close(pieces)
	workers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return err
}

// recoverPanic turns a panic of a format's reader into an error: its input is
// untrusted.
func recoverPanic(format string, do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("disk: %s: the image is malformed: %v", format, p)
		}
	}()
	return do()
}

func (q sparse) walk(ctx context.Context, t *target, pieces chan<- piece, bar *progress) error {
	step := max(chunk, q.unit)
	for at := int64(0); at < q.size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e, err := q.next(at)
		if err != nil {
			return err
		}
		if e.zero {
			if err := t.zero(at, e.n); err != nil {
				return err
			}
			at += e.n
			bar.part(at, q.size)
			continue
		}
		for end := at + e.n; at < end; {
			n := min(step, end-at)
			select {
			case pieces <- piece{run: run{off: at, n: n}, packed: e.packed}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			at += n
			bar.part(at, q.size)
		}
	}
	return nil
}

func (q sparse) copyPiece(t *target, p run, buf []byte) error {
	for n := int64(0); n < p.n; {
		k, err := q.ReadAt(buf[n:p.n], p.off+n)
		n += int64(k)
		if n < p.n && (err != nil || k == 0) {
			return fmt.Errorf("disk: %s: data for byte %d: %w", q.name, p.off+n, err)
		}
	}
	return t.put(p.off, buf[:p.n])
}
