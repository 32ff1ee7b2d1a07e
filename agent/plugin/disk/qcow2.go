package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
	"github.com/lima-vm/go-qcow2reader/image"
	"github.com/lima-vm/go-qcow2reader/image/qcow2"
	qcow2log "github.com/lima-vm/go-qcow2reader/log"

	"github.com/metalab-dev/metalab/agent/sys"
)

// qcow2Sink keeps the file aside until its digest is known to be right.
type qcow2Sink struct {
	*target
	scratch sys.Scratch
	bar     *progress
	limit   int64 // of the file's size in bytes
}

func newQcow2Sink(s sys.System, size int64, t *target, bar *progress) (*qcow2Sink, error) {
	// A file that fills the disk is a little larger than it, by its tables.
	limit := t.block.Size() + t.block.Size()/64 + 16<<20
	if size > limit {
		return nil, fmt.Errorf("disk: the qcow2 file has %d bytes, %s only %d", size, t.name, t.block.Size())
	}
	scratch, err := s.TempFile()
	if err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	return &qcow2Sink{target: t, scratch: scratch, bar: bar, limit: limit}, nil
}

func (s *qcow2Sink) take(off int64, p []byte) error {
	if off+int64(len(p)) > s.limit {
		return fmt.Errorf("disk: the qcow2 file has more than %d bytes, %s only %d", s.limit, s.name, s.block.Size())
	}
	if _, err := s.scratch.WriteAt(p, off); err != nil {
		return fmt.Errorf("disk: keep the qcow2 file: %w", err)
	}
	return nil
}

func (s *qcow2Sink) release() { s.scratch.Close() }

func (s *qcow2Sink) finish(ctx context.Context, fileSize int64) (int64, error) {
	img, err := openQcow2(s.scratch, fileSize)
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

// qcow2Image is an image whose header has been checked.
type qcow2Image struct {
	image.Image
	size    int64 // of the disk that the image describes
	cluster int64 // bytes
}

// Limits of qcow2 images (docs/interop/qcow2.rst and block/qcow2.h of QEMU).
const (
	minClusterBits = 9
	maxClusterBits = 21
	maxL1Bytes     = 32 << 20
)

// Incompatible features (docs/interop/qcow2.rst). The dirty bit means that
// reference counts may be wrong; reading needs none.
const (
	featureDirty        = 1 << 0
	featureExternalData = 1 << 2
	featureCompression  = 1 << 3
	featureExtendedL2   = 1 << 4
	featuresReadable    = featureDirty | featureCompression | featureExtendedL2
)

// openQcow2 checks the header before the library sees it: go-qcow2reader would
// open a backing file by whatever path the image names, and believes sizes and
// offsets that need gigabytes of memory or no cluster at all.
func openQcow2(r io.ReaderAt, fileSize int64) (qcow2Image, error) {
	var h [112]byte
	if n, err := r.ReadAt(h[:], 0); n < 72 {
		return qcow2Image{}, fmt.Errorf("disk: qcow2: header: %w", err)
	}
	u32 := func(at int) uint32 { return binary.BigEndian.Uint32(h[at:]) }
	u64 := func(at int) uint64 { return binary.BigEndian.Uint64(h[at:]) }
	version, backing, bits, size := u32(4), u64(8), u32(20), u64(24)
	crypt, l1Entries, l1Offset := u32(32), u32(36), u64(40)
	l2Entry := int64(8) // bytes
	switch {
	case string(h[:4]) != qcow2.Magic:
		return qcow2Image{}, errors.New("disk: qcow2: no magic number")
	case version != 2 && version != 3:
		return qcow2Image{}, fmt.Errorf("disk: qcow2: version %d is not supported", version)
	case backing != 0 || u32(16) != 0:
		return qcow2Image{}, errors.New("disk: qcow2: the image needs a backing file")
	case bits < minClusterBits || bits > maxClusterBits:
		return qcow2Image{}, fmt.Errorf("disk: qcow2: cluster size of 2^%d bytes is not allowed", bits)
	case crypt != 0:
		return qcow2Image{}, errors.New("disk: qcow2: the image is encrypted")
	case size == 0 || size > 1<<62:
		return qcow2Image{}, fmt.Errorf("disk: qcow2: virtual size of %d bytes is not allowed", size)
	}
	if version == 3 {
		features, headerSize := u64(72), u32(100)
		switch {
		case features&featureExternalData != 0:
			return qcow2Image{}, errors.New("disk: qcow2: the image needs an external data file")
		case features&^featuresReadable != 0:
			return qcow2Image{}, fmt.Errorf("disk: qcow2: incompatible features %#x are not supported", features&^featuresReadable)
		case headerSize < 104 || headerSize%8 != 0 || headerSize > 1<<bits:
			return qcow2Image{}, fmt.Errorf("disk: qcow2: header of %d bytes is not allowed", headerSize)
		case features&featureExtendedL2 != 0:
			l2Entry = 16
		}
	}
	img := qcow2Image{size: int64(size), cluster: 1 << bits}
	mapped := img.cluster * (img.cluster / l2Entry) // bytes that one L1 entry stands for
	switch {
	case int64(l1Entries)*8 > maxL1Bytes:
		return qcow2Image{}, fmt.Errorf("disk: qcow2: L1 table of %d entries is not allowed", l1Entries)
	case int64(l1Entries) < (img.size-1)/mapped+1:
		return qcow2Image{}, fmt.Errorf("disk: qcow2: L1 table of %d entries is too short for %d bytes", l1Entries, size)
	case l1Offset == 0 || l1Offset > uint64(fileSize) || fileSize-int64(l1Offset) < int64(l1Entries)*8:
		return qcow2Image{}, errors.New("disk: qcow2: the L1 table is not in the file")
	}
	prepareLibrary()
	err := guarded(func() error {
		opened, err := qcow2.Open(io.NewSectionReader(r, 0, fileSize), nil)
		if err == nil {
			err = opened.Readable()
		}
		if err != nil {
			return fmt.Errorf("disk: qcow2: %w", err)
		}
		img.Image = opened
		return nil
	})
	return img, err
}

// maxWorkers bounds how many cores unpack; each takes a buffer.
const maxWorkers = 4

// maxExtent bounds how far one look at the tables goes, so that ctx is heeded.
const maxExtent = 1 << 30

// copyTo lays the image on a disk: this goroutine walks the tables and passes
// stretches of data on to workers, which unpack and write them.
func (q qcow2Image) copyTo(ctx context.Context, t *target, bar *progress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pieces := make(chan run)
	var workers sync.WaitGroup
	for range min(maxWorkers, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			buf := make([]byte, max(chunk, q.cluster))
			for p := range pieces {
				if err := guarded(func() error { return q.copyPiece(t, p, buf) }); err != nil {
					cancel(err)
				}
			}
		})
	}
	err := guarded(func() error { return q.walk(ctx, t, pieces, bar) })
	close(pieces)
	workers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return err
}

// guarded turns a panic of the library into an error: its input was made by
// others.
func guarded(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("disk: qcow2: the image is malformed: %v", p)
		}
	}()
	return do()
}

func (q qcow2Image) walk(ctx context.Context, t *target, pieces chan<- run, bar *progress) error {
	step := max(chunk, q.cluster)
	for at := int64(0); at < q.size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// at is always at the beginning of a cluster: the library miscounts others.
		ext, err := q.Extent(at, min(q.size-at, maxExtent))
		if err != nil {
			return fmt.Errorf("disk: qcow2: tables for byte %d: %w", at, err)
		}
		if ext.Length <= 0 || ext.Length > q.size-at {
			return fmt.Errorf("disk: qcow2: the tables are wrong for byte %d", at)
		}
		if ext.Zero {
			if err := t.zero(at, ext.Length); err != nil {
				return err
			}
			at += ext.Length
			bar.part(at, q.size)
			continue
		}
		for end := at + ext.Length; at < end; {
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

func (q qcow2Image) copyPiece(t *target, p run, buf []byte) error {
	for n := int64(0); n < p.n; {
		k, err := q.ReadAt(buf[n:p.n], p.off+n)
		n += int64(k)
		if n < p.n && (err != nil || k == 0) {
			return fmt.Errorf("disk: qcow2: data for byte %d: %w", p.off+n, err)
		}
	}
	return t.put(p.off, buf[:p.n])
}

// prepareLibrary sets what go-qcow2reader keeps in package variables. Its own
// decompressor hands out a cluster in pieces and unpacks the cluster anew for
// each, which takes the square of the cluster size; it has none for zstd; and
// its warnings go to the standard logger.
var prepareLibrary = sync.OnceFunc(func() {
	qcow2log.SetWarnFunc(nil)
	qcow2.SetDecompressor(qcow2.CompressionTypeZlib, func(r io.Reader) (io.ReadCloser, error) {
		f := inflaters.Get().(io.Reader)
		if err := f.(flate.Resetter).Reset(r, nil); err != nil {
			return nil, err
		}
		return &whole{f, &inflaters}, nil
	})
	qcow2.SetDecompressor(qcow2.CompressionTypeZstd, func(r io.Reader) (io.ReadCloser, error) {
		z := zstds.Get().(*zstd.Decoder)
		if err := z.Reset(r); err != nil {
			return nil, err
		}
		return &whole{z, &zstds}, nil
	})
})

var (
	inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}
	zstds     = sync.Pool{New: func() any {
		// One goroutine's worth, and no window beyond the largest cluster.
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			panic(err) // the options are constants
		}
		return z
	}}
)

// whole is a decompressor that fills the caller's buffer or fails.
type whole struct {
	io.Reader
	pool *sync.Pool
}

func (w *whole) Read(p []byte) (int, error) { return io.ReadFull(w.Reader, p) }

func (w *whole) Close() error {
	w.pool.Put(w.Reader)
	return nil
}
