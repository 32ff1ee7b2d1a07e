package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys"
)

// erasure erases the data of a disk and returns the name of the method.
type erasure func(ctx context.Context, b sys.Block, progress func(done, total int64)) (by string, err error)

var erasures = map[job.Erase]erasure{
	job.EraseMetadata: func(context.Context, sys.Block, func(int64, int64)) (string, error) { return "metadata", nil },
	job.EraseFull: func(ctx context.Context, b sys.Block, progress func(done, total int64)) (string, error) {
		return "zeros", overwrite(ctx, b, progress)
	},
	job.EraseSecure: secureErase,
}

// overwrite makes the whole disk read as zeros, and verifies samples.
func overwrite(ctx context.Context, b sys.Block, progress func(done, total int64)) error {
	size := b.Size() / sector * sector
	for off := int64(0); off < size; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n := min(maxHole, size-off)
		if err := b.Zero(off, n); err != nil {
			return err
		}
		off += n
		progress(off, size)
	}
	if err := b.Sync(); err != nil {
		return err
	}
	p := make([]byte, sampleSize)
	for off := int64(0); off < size; off += sampleStep {
		p := p[:min(sampleSize, size-off)]
		if n, err := b.ReadAt(p, off); n < len(p) {
			return err
		}
		if !bytes.Equal(p, zeros[:len(p)]) {
			return fmt.Errorf("the disk still holds something at byte %d after it was overwritten", off)
		}
	}
	return nil
}

// secureErase makes the disk erase itself, or overwrites it if it cannot.
func secureErase(ctx context.Context, b sys.Block, progress func(done, total int64)) (string, error) {
	by, err := "", sys.ErrNoErase
	if e, ok := b.(sys.Eraser); ok {
		by, err = e.SecureErase(ctx)
	}
	if errors.Is(err, sys.ErrNoErase) {
		return "zeros", overwrite(ctx, b, progress)
	}
	return by, err
}
