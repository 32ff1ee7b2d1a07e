package rootfs

import (
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz/lzma"
)

// squashUnpacker returns what unpacks the blocks of a compressor into dst, whose length is
// the most that there may be.
func squashUnpacker(compressor uint16) (func(dst, src []byte) (int, error), error) {
	switch compressor {
	case 1:
		return func(dst, src []byte) (int, error) {
			z, err := zlib.NewReader(bytes.NewReader(src))
			if err != nil {
				return 0, err
			}
			return readAtMost(dst, z)
		}, nil
	case 4:
		return unpackXZ, nil
	case 6:
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*maxSquash), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return func(dst, src []byte) (int, error) {
			b, err := z.DecodeAll(src, dst[:0])
			if err == nil && len(b) > len(dst) {
				err = errTooLong
			}
			return copy(dst, b), err
		}, nil
	}
	names := map[uint16]string{2: "LZMA", 3: "LZO", 5: "LZ4"}
	name := names[compressor]
	if name == "" {
		name = "unknown"
	}
	return nil, &UnsupportedError{Type: "squashfs", What: name + " compression"}
}

var errTooLong = errors.New("a block unpacks to more than it may")

// readAtMost reads all of r.
func readAtMost(dst []byte, r io.Reader) (int, error) {
	n, err := io.ReadFull(r, dst)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	if more, _ := io.ReadFull(r, make([]byte, 1)); more > 0 {
		return n, errTooLong
	}
	return n, nil
}

// unpackXZ reads the one block of an xz stream (The .xz File Format 1.1.0, sections 2 and 3).
// The reader of streams would take as much memory as a header says.
func unpackXZ(dst, src []byte) (int, error) {
	const header = 12
	errXZ := errors.New("an xz block of another form")
	if len(src) < header+8 || !bytes.HasPrefix(src, []byte("\xfd7zXZ\x00")) {
		return 0, errXZ
	}
	block := src[header:]
	size := (int(block[0]) + 1) * 4
	if block[0] == 0 || size > len(block) {
		return 0, errXZ
	}
	fields := block[2:size]
	for _, bit := range []byte{0x40, 0x80} { // sizes, each of up to 9 bytes
		if block[1]&bit == 0 {
			continue
		}
		for len(fields) > 0 && fields[0]&0x80 != 0 {
			fields = fields[1:]
		}
		fields = fields[min(1, len(fields)):]
	}
	if block[1]&3 != 0 || len(fields) < 3 || fields[0] != 0x21 || fields[1] != 1 {
		return 0, &UnsupportedError{Type: "squashfs", What: "filters of xz"} // -Xbcj of mksquashfs(1)
	}
	if p := fields[2]; p > 40 || (2|int64(p&1))<<(p/2+11) > 2*maxSquash {
		return 0, errXZ
	}
	r, err := lzma.Reader2Config{DictCap: 2 * maxSquash}.NewReader2(bytes.NewReader(block[size:]))
	if err != nil {
		return 0, err
	}
	return readAtMost(dst, r)
}

// maxMeta is how many blocks of metadata are kept: 8 MiB.
const maxMeta = 1024

// metaAt returns the block of metadata at a place.
func (s *squash) metaAt(at int64) (metaBlock, error) {
	if m, ok := s.meta[at]; ok {
		return m, nil
	}
	var h [2]byte
	if err := s.read(h[:], at); err != nil {
		return metaBlock{}, err
	}
	header := le.Uint16(h[:])
	size := int(header & 0x7fff)
	if size == 0 || size > squashMeta {
		return metaBlock{}, s.corrupt("a block of metadata has %d bytes", size)
	}
	m := metaBlock{b: make([]byte, squashMeta), next: at + 2 + int64(size)}
	if err := s.read(s.packed[:size], at+2); err != nil {
		return metaBlock{}, err
	}
	if header&0x8000 != 0 {
		m.b = m.b[:copy(m.b, s.packed[:size])]
	} else {
		n, err := s.unpack(m.b, s.packed[:size])
		if err != nil {
			return metaBlock{}, s.corrupt("a block of metadata: %v", err)
		}
		m.b = m.b[:n]
	}
	if len(m.b) == 0 {
		return metaBlock{}, s.corrupt("a block of metadata is empty")
	}
	if len(s.meta) >= maxMeta {
		clear(s.meta)
	}
	s.meta[at] = m
	return m, nil
}

// cursor reads metadata from a place on, through blocks that follow each other.
type cursor struct {
	s    *squash
	at   int64 // of the block
	skip int   // bytes of it that were read
}

func (c *cursor) read(p []byte) error {
	for len(p) > 0 {
		m, err := c.s.metaAt(c.at)
		if err != nil {
			return err
		}
		if c.skip >= len(m.b) {
			if c.skip > len(m.b) {
				return c.s.corrupt("an offset of %d in %d bytes", c.skip, len(m.b))
			}
			c.at, c.skip = m.next, 0
			continue
		}
		n := copy(p, m.b[c.skip:])
		p, c.skip = p[n:], c.skip+n
	}
	return nil
}

const plainBlock = 1 << 24 // a bit of a size: the block is not packed

// block reads a block of data of a size in the form of the disk, and returns its bytes,
// which are good until the next one.
func (s *squash) blockAt(at int64, size uint32, dst []byte) ([]byte, error) {
	n := int64(size &^ plainBlock)
	if n > s.block {
		return nil, s.corrupt("a block has %d bytes", n)
	}
	if size&plainBlock != 0 {
		return dst[:n], s.read(dst[:n], at)
	}
	if int64(len(s.packed)) < n {
		s.packed = make([]byte, s.block)
	}
	if err := s.read(s.packed[:n], at); err != nil {
		return nil, err
	}
	got, err := s.unpack(dst, s.packed[:n])
	if err != nil {
		return nil, s.corrupt("a block of data: %v", err)
	}
	return dst[:got], nil
}

// Data implements Reader.
func (s *squash) Data(in Inode, yield func(off int64, b []byte) error) error {
	n, ok := in.file.(squashNode)
	if !ok || !in.Mode.IsRegular() {
		return s.corrupt("inode %d is no regular file", in.Number)
	}
	blocks := in.Size / s.block
	if n.fragment == noFragment && in.Size%s.block != 0 {
		blocks++
	}
	sizes, at := n.sizes, n.start
	for i := range blocks {
		var b [4]byte
		if err := sizes.read(b[:]); err != nil {
			return err
		}
		size, off := le.Uint32(b[:]), i*s.block
		if size&^plainBlock == 0 {
			continue // a hole
		}
		data, err := s.blockAt(at, size, s.data)
		if err != nil {
			return err
		}
		if want := min(s.block, in.Size-off); int64(len(data)) != want {
			return s.corrupt("a block of inode %d has %d bytes, not %d", in.Number, len(data), want)
		}
		if err := yield(off, data); err != nil {
			return err
		}
		at += int64(size &^ plainBlock)
	}
	tail := in.Size - blocks*s.block
	if tail <= 0 {
		return nil
	}
	f, err := s.fragmentOf(n.fragment)
	if err != nil {
		return err
	}
	if int64(n.offset)+tail > int64(len(f)) {
		return s.corrupt("the end of inode %d is outside its fragment", in.Number)
	}
	return yield(blocks*s.block, f[n.offset:int64(n.offset)+tail])
}

// maxTails is how many fragments are kept: at most 8 MiB.
const maxTails = 8

// fragmentOf returns a block that has the ends of several files.
func (s *squash) fragmentOf(index uint32) ([]byte, error) {
	if f, ok := s.tails[index]; ok {
		return f, nil
	}
	if int64(index) >= s.fragmentCount {
		return nil, s.corrupt("it names fragment %d of %d", index, s.fragmentCount)
	}
	var e [16]byte
	if err := s.tableEntry(e[:], s.fragments, int64(index)); err != nil {
		return nil, err
	}
	at := le.Uint64(e[:])
	if at > uint64(s.size) {
		return nil, s.corrupt("fragment %d is at %d of %d", index, at, s.size)
	}
	f, err := s.blockAt(int64(at), le.Uint32(e[8:]), make([]byte, s.block))
	if err != nil {
		return nil, err
	}
	if len(s.tails) >= maxTails {
		clear(s.tails)
	}
	s.tails[index] = f
	return f, nil
}

// squashPrefixes are those that a name's type stands for.
var squashPrefixes = map[uint16]string{0: "user.", 1: "trusted.", 2: "security."}

const (
	outOfLine     = 0x100 // the value is the place of another one
	maxAttributes = 1024
)

// Attributes implements Reader.
func (s *squash) Attributes(in Inode) (map[string][]byte, error) {
	out := map[string][]byte{}
	n, _ := in.file.(squashNode)
	if !n.hasAttributes || n.attribute == noFragment {
		return out, nil
	}
	if int64(n.attribute) >= s.attributeCount {
		return nil, s.corrupt("it names attributes %d of %d", n.attribute, s.attributeCount)
	}
	var id [16]byte
	if err := s.tableEntry(id[:], s.attributes, int64(n.attribute)); err != nil {
		return nil, err
	}
	count := le.Uint32(id[8:])
	if count > maxAttributes {
		return nil, s.corrupt("inode %d has %d attributes", in.Number, count)
	}
	c, err := s.valueAt(le.Uint64(id[:]))
	for range count {
		if err != nil {
			return nil, err
		}
		err = s.attribute(&c, out)
	}
	return out, err
}

func (s *squash) valueAt(ref uint64) (cursor, error) {
	if ref>>16 > uint64(s.size) || s.values > s.size {
		return cursor{}, s.corrupt("an attribute is at %d of %d", ref>>16, s.size)
	}
	return cursor{s: s, at: s.values + int64(ref>>16), skip: int(ref & 0xffff)}, nil
}

// attribute reads a name and its value.
func (s *squash) attribute(c *cursor, out map[string][]byte) error {
	var h [4]byte
	if err := c.read(h[:]); err != nil {
		return err
	}
	kind, name := le.Uint16(h[:]), make([]byte, min(256, int(le.Uint16(h[2:]))))
	if err := c.read(name); err != nil {
		return err
	}
	value, err := readValue(c)
	if err != nil {
		return err
	}
	if kind&outOfLine != 0 {
		if len(value) != 8 {
			return s.corrupt("an attribute's place has %d bytes", len(value))
		}
		at, err := s.valueAt(le.Uint64(value))
		if err != nil {
			return err
		}
		if value, err = readValue(&at); err != nil {
			return err
		}
	}
	out[squashPrefixes[kind&0xff]+string(name)] = value
	return nil
}

func readValue(c *cursor) ([]byte, error) {
	var h [4]byte
	if err := c.read(h[:]); err != nil {
		return nil, err
	}
	size := le.Uint32(h[:])
	if size > maxAttribute {
		return nil, c.s.corrupt("an attribute has %d bytes", size)
	}
	b := make([]byte, size)
	return b, c.read(b)
}
