package netboot

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/metalab-dev/metalab/agent/job"
)

// slotSize is the room in bytes that a medium keeps for the configuration of
// one boot: a certificate, an address and a token.
const slotSize = 8 << 10

// Slot is what a medium holds where the configuration of a boot goes. A medium
// is made once, with slots, and read with each boot's configuration in their
// place: a kernel need not be copied for each server.
func Slot() []byte {
	b := make([]byte, 0, slotSize)
	for i := uint64(1); len(b) < slotSize; i++ { // no two blocks of it are alike
		b = append(b, "METALAB:"...)
		b = binary.LittleEndian.AppendUint64(b, i*0x9e3779b97f4a7c15)
	}
	return b
}

// blank is content with slots.
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

// filled is the content with something in each slot; it must be slotSize long.
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

// slotOf is the configuration of a boot as it fills a slot. Blanks behind it
// are nothing to whoever reads JSON.
func slotOf(m job.Media) ([]byte, error) {
	config, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("netboot: %s: %w", m.Boot, err)
	}
	if len(config)+1 > slotSize {
		return nil, fmt.Errorf("netboot: %s: a configuration of %d bytes: media have room for %d", m.Boot, len(config), slotSize-1)
	}
	config = append(config, bytes.Repeat([]byte{' '}, slotSize-len(config)-1)...)
	return append(config, '\n'), nil
}
