package systest

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/agent/sys"
)

// superblock is the metadata of a member, version 1.2 of Linux's md driver
// (include/uapi/linux/raid/md_p.h). This package has a reader of its own so that
// it does not share mistakes with the writer.
type superblock struct {
	raw     []byte
	array   string // UUID in mdadm's notation
	name    string
	level   int32
	layout  uint32
	chunk   int64 // bytes
	members int
	role    int   // role of this member; -1 if it is none, or has failed
	size    int64 // bytes of data on each member
	data    int64 // offset of the data
	events  uint64
}

const superAt = 4096 // offset in a member, in bytes

// readSuperblock reads the superblock of a possible member; nil if it is none, or
// broken.
func readSuperblock(r io.ReaderAt, off, size int64) *superblock {
	b := make([]byte, 4096)
	if size < superAt+int64(len(b)) {
		return nil
	}
	if _, err := r.ReadAt(b, off+superAt); err != nil {
		return nil
	}
	le := binary.LittleEndian
	roles := le.Uint32(b[220:])
	if le.Uint32(b) != 0xa92b4efc || le.Uint32(b[4:]) != 1 || le.Uint64(b[144:]) != superAt/512 || roles > 1920 {
		return nil
	}
	b = b[:256+2*roles]
	if le.Uint32(b[216:]) != superblockChecksum(b) {
		return nil
	}
	id := hex.EncodeToString(b[16:32])
	s := &superblock{
		raw: b, array: id[:8] + ":" + id[8:16] + ":" + id[16:24] + ":" + id[24:],
		name: strings.TrimRight(string(b[32:64]), "\x00"), level: int32(le.Uint32(b[72:])), layout: le.Uint32(b[76:]),
		chunk: int64(le.Uint32(b[88:])) * 512, members: int(le.Uint32(b[92:])), role: -1,
		size: int64(le.Uint64(b[80:])) * 512, data: int64(le.Uint64(b[128:])) * 512, events: le.Uint64(b[200:]),
	}
	if n := le.Uint32(b[160:]); n < roles {
		if role := int(le.Uint16(b[256+2*n:])); role < s.members {
			s.role = role
		}
	}
	room := int64(le.Uint64(b[136:])) * 512
	if s.level == 0 {
		s.size = room / max(s.chunk, 512) * max(s.chunk, 512)
	}
	striped := s.level == 0 || s.level == 10
	if s.members < 1 || s.size <= 0 || s.size > room || s.data < superAt || s.data+room > size ||
		striped && (s.chunk < 4096 || s.level == 10 && s.layout != 1<<8|2) || !striped && s.level != 1 {
		return nil
	}
	return s
}

// superblockChecksum returns the checksum of a superblock, whose own field counts
// as zero.
func superblockChecksum(b []byte) uint32 {
	var sum uint64
	for i := 0; i+4 <= len(b); i += 4 {
		if i != 216 {
			sum += uint64(binary.LittleEndian.Uint32(b[i:]))
		}
	}
	if len(b)%4 == 2 {
		sum += uint64(binary.LittleEndian.Uint16(b[len(b)-2:]))
	}
	return uint32(sum) + uint32(sum>>32)
}

// copies returns how many members store each byte.
func (s *superblock) copies() int {
	switch s.level {
	case 0:
		return 1
	case 1:
		return s.members
	}
	return 2
}

// capacity returns the size of the array in bytes.
func (s *superblock) capacity() int64 {
	if s.level == 1 {
		return s.size
	}
	rows := s.size / s.chunk
	return rows * int64(s.members) / int64(s.copies()) * s.chunk
}

// locate returns the members that store the byte at off, its offset on them, and
// how many contiguous bytes follow. In the near layout the copies of a chunk are
// on neighbouring members, counted on from row to row (md(4)).
func (s *superblock) locate(off int64) (members []int, at, n int64) {
	if s.level == 1 {
		for i := range s.members {
			members = append(members, i)
		}
		return members, off, s.size - off
	}
	place := off / s.chunk * int64(s.copies())
	for i := range int64(s.copies()) {
		members = append(members, int((place+i)%int64(s.members)))
	}
	return members, place/int64(s.members)*s.chunk + off%s.chunk, s.chunk - off%s.chunk
}

// array is a running array.
type array struct {
	*superblock
	kernel string  // md127
	parts  []*part // by role; nil for a missing member
}

// runs reports whether every byte is on some member.
func (s *superblock) runs(parts []*part) bool {
	if s.level == 1 {
		return slices.ContainsFunc(parts, func(p *part) bool { return p != nil })
	}
	for row := range int64(s.members) { // the pattern repeats after that many rows
		for c := range int64(s.members) {
			members, _, _ := s.locate((row*int64(s.members) + c) * s.chunk)
			if !slices.ContainsFunc(members, func(i int) bool { return parts[i] != nil }) {
				return false
			}
		}
	}
	return true
}

// openArray opens all members.
func (a *array) openArray() (sys.Block, error) {
	b := &arrayBlock{array: a, members: make([]sys.Block, a.members)}
	for i, p := range a.parts {
		if p == nil {
			b.stale = true
			continue
		}
		m, err := p.open()
		if err != nil {
			b.Close()
			return nil, err
		}
		b.members[i] = &window{Block: m, off: p.off, size: p.size}
	}
	return b, nil
}

// arrayBlock is an open array.
type arrayBlock struct {
	*array
	mu      sync.Mutex
	members []sys.Block // by role; nil for a member that is missing or has failed
	stale   bool        // members are missing, and the superblocks of the others do not say so yet
}

var errArray = errors.New("systest: the array has lost too many members")

func (b *arrayBlock) Size() int64 { return b.capacity() }

// ReadAt reads each segment from the first member that works.
func (b *arrayBlock) ReadAt(p []byte, off int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if off < 0 || off >= b.capacity() {
		return 0, io.EOF
	}
	var end error
	if int64(len(p)) > b.capacity()-off {
		p, end = p[:b.capacity()-off], io.EOF
	}
	done := 0
	for done < len(p) {
		members, at, n := b.locate(off + int64(done))
		q := p[done:min(len(p), done+int(min(n, 1<<30)))]
		err := errArray
		for _, i := range members {
			if m := b.members[i]; m != nil {
				if _, err = m.ReadAt(q, b.data+at); err == nil {
					break
				}
				b.fail(i)
			}
		}
		if err != nil {
			return done, err
		}
		done += len(q)
	}
	return done, end
}

// WriteAt writes each segment to all members that store it.
func (b *arrayBlock) WriteAt(p []byte, off int64) (int, error) {
	done := 0
	err := b.each(off, int64(len(p)), func(m sys.Block, at, from, n int64) error {
		_, err := m.WriteAt(p[from:from+n], at)
		done = int(from + n)
		return err
	})
	if err != nil {
		return done, err
	}
	return len(p), nil
}

// Zero implements sys.Block.
func (b *arrayBlock) Zero(off, n int64) error {
	return b.each(off, n, func(m sys.Block, at, _, n int64) error { return m.Zero(at, n) })
}

func (b *arrayBlock) each(off, n int64, do func(m sys.Block, at, from, n int64) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if off < 0 || n < 0 || off > b.capacity()-n {
		return fmt.Errorf("systest: %d bytes at %d are beyond the end at %d: %w", n, off, b.capacity(), io.ErrShortWrite)
	}
	if b.stale {
		if err := b.record(); err != nil {
			return err
		}
	}
	for done := int64(0); done < n; {
		members, at, room := b.locate(off + done)
		room = min(room, n-done)
		err := errArray
		for _, i := range members {
			if b.members[i] == nil {
				continue
			}
			if e := do(b.members[i], b.data+at, done, room); e != nil {
				if b.copies() == 1 {
					return e
				}
				b.fail(i)
				continue
			}
			err = nil
		}
		if err != nil {
			return err
		}
		if b.stale {
			if err := b.record(); err != nil {
				return err
			}
		}
		done += room
	}
	return nil
}

// fail removes a member.
func (b *arrayBlock) fail(i int) {
	b.members[i].Close()
	b.members[i], b.stale = nil, true
}

// record updates the superblocks of a degraded array: a member missing now has an
// older count of events, and is ignored when it comes back.
func (b *arrayBlock) record() error {
	b.events++
	le := binary.LittleEndian
	for i, m := range b.members {
		if m == nil {
			continue
		}
		raw := slices.Clone(b.parts[i].member.raw)
		le.PutUint64(raw[200:], b.events)
		for role, other := range b.members {
			if other == nil {
				le.PutUint16(raw[256+2*role:], 0xfffe) // faulty
			}
		}
		le.PutUint32(raw[216:], superblockChecksum(raw))
		if _, err := m.WriteAt(raw, superAt); err != nil {
			return fmt.Errorf("systest: superblock: %w", err)
		}
		b.parts[i].member.raw = raw
	}
	b.stale = false
	return nil
}

// Sync implements sys.Block.
func (b *arrayBlock) Sync() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.members {
		if m != nil {
			if err := m.Sync(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close closes the members.
func (b *arrayBlock) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	for i, m := range b.members {
		if m != nil {
			err = errors.Join(err, m.Close())
			b.members[i] = nil
		}
	}
	return err
}
