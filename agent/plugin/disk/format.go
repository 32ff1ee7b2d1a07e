package disk

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"unicode"
)

// sink receives a download.
type sink interface {
	// take receives the file in order, in chunks.
	take(off int64, p []byte) error
	// finish is called when the file is complete and has the right digest. It
	// returns the image's size.
	finish(ctx context.Context, fileSize int64) (int64, error)
	// release frees the sink's resources, after success and failure.
	release()
}

// unpackers maps the formats that describe a disk to their readers.
var unpackers = map[string]func(r io.ReaderAt, fileSize int64) (sparse, error){
	formatQcow2: openQcow2, formatVDI: openVDI, formatVMDK: openVMDK,
}

// sink returns the sink for a file's format, detected by its first bytes.
func (w Writer) sink(format string, first []byte, size int64, t *target, bar *progress) (sink, error) {
	found := detect(first)
	_, packed := unpackers[found]
	switch _, wanted := unpackers[format]; {
	case format != "" && format != found && (packed || wanted):
		return nil, fmt.Errorf("disk: image format is given as %s, but the file is %s", format, found)
	case found != formatRaw && !packed:
		return nil, notAnImage(found)
	}
	if found == formatVMDK { // rejected now rather than after gigabytes
		if err := checkVMDKKind(first); err != nil {
			return nil, err
		}
	}
	if found == formatRaw && isText(first) {
		return nil, notAnImage("text")
	}
	if packed {
		bar.next(40)
		return newScratchSink(w.System, found, size, t, bar)
	}
	bar.next(70)
	return newRawSink(size, t)
}

// notAnImage is the error for a file that would not boot if it was written to a disk unchanged.
func notAnImage(found string) error {
	return fmt.Errorf("disk: the image is %s, want raw, qcow2, vdi or vmdk", found)
}

// isText reports whether a file begins with a sector of ASCII text, such as a server's answer to a
// wrong URL: a disk begins with a boot record or with zeros.
func isText(first []byte) bool {
	return !bytes.ContainsFunc(first[:min(len(first), sector)], func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) && !unicode.IsSpace(r) })
}

// signatures lists the magic numbers of formats that must not be written to a disk
// unchanged.
var signatures = []struct {
	at    int
	magic string
	name  string
}{
	{0, "QFI\xfb", formatQcow2},
	{0, "KDMV", formatVMDK},
	{0, "COWD", formatVMDK},
	{0, "# Disk DescriptorFile", formatVMDK},
	{0, "vhdxfile", "vhdx"},
	{0, vhdCookie, "vhd"},
	{0x40, "\x7f\x10\xda\xbe", formatVDI},
	{0, "\x1f\x8b\x08", "gzip"},
	{0, "\xfd7zXZ\x00", "xz"},
	{0, "BZh", "bzip2"},
	{0, "\x28\xb5\x2f\xfd", "zstd"},
	{0, "PK\x03\x04", "zip"},
	{0, "<!DOCTYPE", "HTML"},
	{0, "<html", "HTML"},
}

// vhdCookie begins the footer of a VHD: its last sector, of which a dynamic one has a copy in its
// first (Microsoft, "Virtual Hard Disk Image Format Specification", "Hard Disk Footer Format").
const vhdCookie = "conectix"

// detect returns the format of a file by its first bytes; the default is raw.
func detect(first []byte) string {
	for _, s := range signatures {
		if len(first) >= s.at && bytes.HasPrefix(first[s.at:], []byte(s.magic)) {
			return s.name
		}
	}
	return formatRaw
}

// rawSink writes to the disk while downloading. It joins runs of zeros, so that a
// large hole costs one command.
type rawSink struct {
	*target
	hole run    // zeros not yet written
	last []byte // the last sector so far
}

// maxHole bounds the duration of one command.
const maxHole = 1 << 30

func newRawSink(size int64, t *target) (*rawSink, error) {
	if err := fits(size, t); err != nil {
		return nil, err
	}
	return &rawSink{target: t}, t.begin()
}

func (s *rawSink) take(off int64, p []byte) error {
	if err := fits(off+int64(len(p)), s.target); err != nil {
		return err
	}
	s.last = append(s.last, p[max(0, len(p)-sector):]...)
	s.last = append(s.last[:0], s.last[max(0, len(s.last)-sector):]...)
	if n, zero := uniformPrefix(p); zero && n == len(p) {
		if s.hole.n == 0 {
			s.hole.off = off
		}
		if s.hole.n += int64(n); s.hole.n < maxHole {
			return nil
		}
		return s.flush()
	}
	if err := s.flush(); err != nil {
		return err
	}
	return s.put(off, p)
}

func (s *rawSink) flush() error {
	n := s.hole.n
	s.hole.n = 0
	return s.zero(s.hole.off, n)
}

func (s *rawSink) finish(_ context.Context, size int64) (int64, error) {
	if bytes.HasPrefix(s.last, []byte(vhdCookie)) {
		return 0, notAnImage("vhd")
	}
	if err := s.flush(); err != nil {
		return 0, err
	}
	return size, s.target.finish(size)
}

func (s *rawSink) release() {}

// fits returns an error for an image larger than the disk; size may be unknown
// (-1).
func fits(size int64, t *target) error {
	if size > t.block.Size() {
		return fmt.Errorf("disk: the image has %d bytes or more, %s only %d", size, t.name, t.block.Size())
	}
	return nil
}
