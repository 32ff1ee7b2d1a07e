package disk

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"

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
	if err := s.begin(); err != nil {
		return 0, err
	}
	s.bar.next(75)
	if err := img.copyTo(ctx, s.target, s.bar); err != nil {
		return 0, err
	}
	return img.size, s.target.finish(img.size)
}

// sparse is a disk described by an image file. Its header is validated: size and
// unit are sound. Tables are validated when they are used.
type sparse struct {
	name string // of the format
	size int64  // of the disk in bytes
	unit int64  // granularity of the tables in bytes; a power of two, at most 2 MiB
	// extent returns how far the disk from at on, up to most bytes, is all zeros
	// or all data, and which. at is a multiple of unit.
	extent      func(at, most int64) (n int64, zero bool, err error)
	io.ReaderAt // of the disk; safe for concurrent use
}

// maxWorkers bounds the number of decompressing goroutines; each needs a buffer.
const maxWorkers = 4

// maxExtent bounds one walk of the tables, so that ctx is checked.
const maxExtent = 1 << 30

// copyTo writes the image to a disk: this goroutine walks the tables and passes
// ranges of data to workers, which decompress and write them.
func (q sparse) copyTo(ctx context.Context, t *target, bar *progress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pieces := make(chan run)
	var workers sync.WaitGroup
	for range min(maxWorkers, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			buf := make([]byte, max(chunk, q.unit))
			for p := range pieces {
				if err := recoverPanic(q.name, func() error { return q.copyPiece(t, p, buf) }); err != nil {
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

func (q sparse) walk(ctx context.Context, t *target, pieces chan<- run, bar *progress) error {
	step := max(chunk, q.unit)
	for at := int64(0); at < q.size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		length, zero, err := q.extent(at, min(q.size-at, maxExtent))
		if err != nil {
			return fmt.Errorf("disk: %s: tables for byte %d: %w", q.name, at, err)
		}
		if length <= 0 || length > q.size-at {
			return fmt.Errorf("disk: %s: the tables are wrong for byte %d", q.name, at)
		}
		if zero {
			if err := t.zero(at, length); err != nil {
				return err
			}
			at += length
			bar.part(at, q.size)
			continue
		}
		for end := at + length; at < end; {
			n := min(step, end-at)
			select {
			case pieces <- run{off: at, n: n}:
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
