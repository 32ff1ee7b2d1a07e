package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// chunk is the number of bytes that are read, hashed and written at a time. It
	// is small because a lab runs the agents of a thousand servers in one process.
	chunk   = 128 << 10
	buffers = 4 // maximum number of chunks in memory

	initialBuffer = 4 << 10 // for small files; it grows with larger ones
)

// pump reads d to its end and passes it on in chunks, in order; all but the last
// are full. Reading and hashing run concurrently with take. stop must cancel the
// context that d was opened with: it ends the reading when take fails.
func pump(ctx context.Context, stop context.CancelFunc, d source, h io.Writer, take func(off int64, p []byte) error) (int64, error) {
	free, full := make(chan []byte, buffers), make(chan []byte, buffers)
	made := 0
	var readErr error
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(full)
		for {
			var buf []byte
			if made < buffers && len(free) == 0 { // the reader is ahead of the writer
				made++
				buf = make([]byte, chunk)
			} else if buf = <-free; buf == nil { // take has failed
				return
			}
			n, err := fill(ctx, d, buf)
			if n > 0 {
				_, _ = h.Write(buf[:n]) // a hash never fails
				full <- buf[:n]         // never blocks: the channel has a place for each buffer
			}
			if err != nil {
				readErr = err
				return
			}
		}
	})
	var off int64
	var takeErr error
	for p := range full {
		if takeErr = take(off, p); takeErr != nil {
			stop()
			break
		}
		off += int64(len(p))
		free <- p[:chunk]
	}
	close(free)
	reader.Wait()
	switch {
	case takeErr != nil:
		return off, takeErr
	case !errors.Is(readErr, io.EOF):
		return off, readErr
	}
	return off, nil
}

// fill reads until buf is full or the file ends.
func fill(ctx context.Context, d source, buf []byte) (int, error) {
	for n := 0; ; {
		k, err := d.read(ctx, buf[n:])
		n += k
		if err != nil || n == len(buf) {
			return n, err
		}
	}
}

// readSmall reads a file of at most limit bytes. Most files are far smaller, so
// the buffer grows with the file.
func readSmall(ctx context.Context, d *download, limit int) ([]byte, error) {
	buf := make([]byte, min(limit+1, initialBuffer))
	for n := 0; ; {
		k, err := fill(ctx, d, buf[n:])
		n += k
		switch {
		case errors.Is(err, io.EOF):
			return buf[:n], nil
		case err != nil:
			return nil, err
		case n > limit:
			return nil, fmt.Errorf("disk: download %s: more than %d bytes", redactURL(d.url), limit)
		}
		buf = append(buf, make([]byte, min(n, limit+1-n))...)
	}
}
