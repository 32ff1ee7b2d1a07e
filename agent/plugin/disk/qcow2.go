package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
	"github.com/lima-vm/go-qcow2reader/image/qcow2"
	qcow2log "github.com/lima-vm/go-qcow2reader/log"
)

// Limits of qcow2 images (docs/interop/qcow2.rst and block/qcow2.h of QEMU).
const (
	minClusterBits = 9
	maxClusterBits = 21
	maxL1Bytes     = 32 << 20
)

// Incompatible features (docs/interop/qcow2.rst). The dirty bit means that
// reference counts may be wrong, which does not affect reading.
const (
	featureDirty        = 1 << 0
	featureExternalData = 1 << 2
	featureCompression  = 1 << 3
	featureExtendedL2   = 1 << 4
	featuresReadable    = featureDirty | featureCompression | featureExtendedL2
)

// openQcow2 validates the header before the library reads it: go-qcow2reader would
// open a backing file by any path in the image, and trusts sizes and offsets that
// need gigabytes of memory or no cluster at all.
func openQcow2(r io.ReaderAt, fileSize int64) (sparse, error) {
	var h [112]byte
	if n, err := r.ReadAt(h[:], 0); n < 72 {
		return sparse{}, fmt.Errorf("disk: qcow2: header: %w", err)
	}
	u32 := func(at int) uint32 { return binary.BigEndian.Uint32(h[at:]) }
	u64 := func(at int) uint64 { return binary.BigEndian.Uint64(h[at:]) }
	version, backing, bits, size := u32(4), u64(8), u32(20), u64(24)
	crypt, l1Entries, l1Offset := u32(32), u32(36), u64(40)
	l2Entry := int64(8) // bytes
	switch {
	case string(h[:4]) != qcow2.Magic:
		return sparse{}, errors.New("disk: qcow2: no magic number")
	case version != 2 && version != 3:
		return sparse{}, fmt.Errorf("disk: qcow2: version %d is not supported", version)
	case backing != 0 || u32(16) != 0:
		return sparse{}, errors.New("disk: qcow2: the image needs a backing file")
	case bits < minClusterBits || bits > maxClusterBits:
		return sparse{}, fmt.Errorf("disk: qcow2: cluster size of 2^%d bytes is not allowed", bits)
	case crypt != 0:
		return sparse{}, errors.New("disk: qcow2: the image is encrypted")
	case size == 0 || size > 1<<62:
		return sparse{}, fmt.Errorf("disk: qcow2: virtual size of %d bytes is not allowed", size)
	}
	if version == 3 {
		features, headerSize := u64(72), u32(100)
		switch {
		case features&featureExternalData != 0:
			return sparse{}, errors.New("disk: qcow2: the image needs an external data file")
		case features&^featuresReadable != 0:
			return sparse{}, fmt.Errorf("disk: qcow2: incompatible features %#x are not supported", features&^featuresReadable)
		case headerSize < 104 || headerSize%8 != 0 || headerSize > 1<<bits:
			return sparse{}, fmt.Errorf("disk: qcow2: header of %d bytes is not allowed", headerSize)
		case features&featureExtendedL2 != 0:
			l2Entry = 16
		}
	}
	img := sparse{name: formatQcow2, size: int64(size), unit: 1 << bits, ratio: deflateRatio}
	if version == 3 && u64(72)&featureCompression != 0 {
		img.ratio = zstdRatio // the other type that the library accepts
	}
	img.loose = l2Entry == 16                 // the library does not look at the bitmaps of subclusters
	mapped := img.unit * (img.unit / l2Entry) // bytes that one L1 entry maps
	switch {
	case int64(l1Entries)*8 > maxL1Bytes:
		return sparse{}, fmt.Errorf("disk: qcow2: L1 table of %d entries is not allowed", l1Entries)
	case int64(l1Entries) < (img.size-1)/mapped+1:
		return sparse{}, fmt.Errorf("disk: qcow2: L1 table of %d entries is too short for %d bytes", l1Entries, size)
	case l1Offset == 0 || l1Offset > uint64(fileSize) || fileSize-int64(l1Offset) < int64(l1Entries)*8:
		return sparse{}, errors.New("disk: qcow2: the L1 table is not in the file")
	}
	prepareLibrary()
	err := recoverPanic(formatQcow2, func() error {
		opened, err := qcow2.Open(io.NewSectionReader(r, 0, fileSize), nil)
		if err == nil {
			err = opened.Readable()
		}
		if err != nil {
			return fmt.Errorf("disk: qcow2: %w", err)
		}
		img.ReaderAt = opened
		// The library miscounts extents that begin within a cluster.
		img.extent = func(at, most int64) (extent, error) {
			ext, err := opened.Extent(at, most)
			return extent{n: ext.Length, zero: ext.Zero, packed: ext.Compressed}, err
		}
		return nil
	})
	return img, err
}

// prepareLibrary sets go-qcow2reader's package variables. Its own decompressor
// returns a cluster in pieces and decompresses the cluster again for each, which
// is quadratic in the cluster size; it has none for zstd; and its warnings go to
// the standard logger.
var prepareLibrary = sync.OnceFunc(func() {
	qcow2log.SetWarnFunc(nil)
	qcow2.SetDecompressor(qcow2.CompressionTypeZlib, func(r io.Reader) (io.ReadCloser, error) {
		f := inflaters.Get().(io.Reader)
		if err := f.(flate.Resetter).Reset(r, nil); err != nil {
			return nil, err
		}
		return &fullReader{f, &inflaters}, nil
	})
	qcow2.SetDecompressor(qcow2.CompressionTypeZstd, func(r io.Reader) (io.ReadCloser, error) {
		z := zstds.Get().(*zstd.Decoder)
		if err := z.Reset(r); err != nil {
			return nil, err
		}
		return &fullReader{z, &zstds}, nil
	})
})

// Decompressors are reused for the thousands of clusters of an image. For one of
// 128 MiB BenchmarkWriteQcow2 allocates 21 MB (zlib) and 16 MB (zstd) per write
// with these pools, 85 MB and 293 MB without them.
var (
	inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}
	zstds     = sync.Pool{New: func() any {
		// One goroutine, and no window larger than the largest cluster.
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			panic(err) // the options are constants
		}
		return z
	}}
)

// fullReader is a decompressor whose Read fills the buffer or fails.
type fullReader struct {
	io.Reader
	pool *sync.Pool
}

func (w *fullReader) Read(p []byte) (int, error) { return io.ReadFull(w.Reader, p) }

func (w *fullReader) Close() error {
	w.pool.Put(w.Reader)
	return nil
}
