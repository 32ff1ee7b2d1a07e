package netboot

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/metalab-dev/metalab/agent/job"
)

// slotSize is the size in bytes of a slot for the configuration of one boot: a
// certificate, an address and a token.
const slotSize = 8 << 10

// Slot returns the placeholder in an image for the configuration of a boot. An image is
// built once with slots, and each boot reads it with its own configuration in their
// place, so that the kernel is not copied for each server.
func Slot() []byte {
	b := make([]byte, 0, slotSize)
	for i := uint64(1); len(b) < slotSize; i++ { // every block differs from the others
		b = append(b, "METALAB:"...)
		b = binary.LittleEndian.AppendUint64(b, i*0x9e3779b97f4a7c15)
	}
	return b
}

// blank is a file with slots at some offsets.
type blank struct {
	r     io.ReaderAt
	size  int64
	slots []int64
}

func newBlank(r io.ReaderAt, size int64) (*blank, error) {
	b := &blank{r: r, size: size}
	slot := Slot()
	const step = 1 << 20
	buf := make([]byte, step+slotSize)
	for off := int64(0); off < size; off += step {
		n, err := r.ReadAt(buf[:min(int64(len(buf)), size-off)], off)
		if err != nil && err != io.EOF {
			return nil, err
		}
		for from := 0; ; {
			at := bytes.Index(buf[from:n], slot)
			if at < 0 || from+at >= step {
				break
			}
			b.slots = append(b.slots, off+int64(from+at))
			from += at + slotSize
		}
	}
	return b, nil
}

// filled returns the contents with the bytes with in each slot; they must be slotSize long.
func (b *blank) filled(with []byte) *io.SectionReader {
	return io.NewSectionReader(&filled{blank: b, with: with}, 0, b.size)
}

type filled struct {
	*blank
	with []byte
}

// ReadAt implements io.ReaderAt.
func (f *filled) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.r.ReadAt(p, off)
	for _, at := range f.slots {
		if from, to := max(off, at), min(off+int64(n), at+slotSize); from < to {
			copy(p[from-off:to-off], f.with[from-at:])
		}
	}
	return n, err
}

// slotOf returns the configuration of a boot as JSON, padded with spaces to slotSize.
func slotOf(m job.Media) ([]byte, error) {
	config, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Boot, err)
	}
	if len(config)+1 > slotSize {
		return nil, fmt.Errorf("%s: the configuration has %d bytes, an image has room for %d", m.Boot, len(config), slotSize-1)
	}
	config = append(config, bytes.Repeat([]byte{' '}, slotSize-len(config)-1)...)
	return append(config, '\n'), nil
}
