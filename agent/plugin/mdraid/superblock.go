package mdraid

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// Linux's superblock of an array's member: metadata version 1, placed as 1.2
// (include/uapi/linux/raid/md_p.h, struct mdp_superblock_1). Sizes and offsets in
// it are in sectors of 512 bytes, and it is little-endian.
const (
	magic         = 0xa92b4efc
	superOffset   = 8    // sectors from the beginning of the member (1.2)
	dataOffset    = 2048 // sectors: the space before is for superblocks and bitmaps
	superSize     = 256  // bytes without the roles
	maxMembers    = 128  // size of the table of roles: 512 bytes in all
	roleSpare     = 0xffff
	layoutFlag    = 4096 // feature: the layout of level 0 is stored (since Linux 5.4)
	nothingToSync = math.MaxUint64
	maxName       = 32 // bytes
)

// Level is a personality of Linux's md driver, as stored in superblocks.
type Level int32

// The levels that the agent creates.
const (
	Stripe        Level = 0
	Mirror        Level = 1
	StripedMirror Level = 10
)

// Layouts: that of level 0 matters only for members of different sizes; that of
// level 10 is one far copy and two near ones, which put each chunk on two
// neighbours (md(4), "RAID10").
const (
	layoutAlternate = 2
	layoutNearTwo   = 1<<8 | 2
)

// chunk is the contiguous part of a striped array on one member, in sectors: 512
// KiB, mdadm's default.
const chunk = 1024

// superblock is the metadata of one member.
type superblock struct {
	array   [16]byte // UUID
	device  [16]byte // UUID of this member
	name    string
	made    time.Time
	level   Level
	members int
	role    int   // index of this member, from 0
	size    int64 // bytes of the array's data on each member
	room    int64 // bytes of the member behind dataOffset
}

// MarshalBinary returns the superblock's bytes for superOffset.
func (s superblock) MarshalBinary() ([]byte, error) {
	switch {
	case s.members < 1 || s.members > maxMembers:
		return nil, fmt.Errorf("%d members: the superblock has room for %d", s.members, maxMembers)
	case s.role < 0 || s.role >= s.members:
		return nil, fmt.Errorf("role %d of %d members", s.role, s.members)
	case len(s.name) > maxName:
		return nil, fmt.Errorf("name %q: at most %d bytes", s.name, maxName)
	}
	b := make([]byte, superSize+2*maxMembers)
	le := binary.LittleEndian
	made := uint64(s.made.Unix())&(1<<40-1) | uint64(s.made.Nanosecond()/1000)<<40
	le.PutUint32(b[0:], magic)
	le.PutUint32(b[4:], 1) // major version
	copy(b[16:], s.array[:])
	copy(b[32:64], s.name)
	le.PutUint64(b[64:], made)
	le.PutUint32(b[72:], uint32(s.level))
	le.PutUint64(b[80:], uint64(s.size/sector))
	le.PutUint32(b[92:], uint32(s.members))
	le.PutUint64(b[128:], dataOffset)
	le.PutUint64(b[136:], uint64(s.room/sector))
	le.PutUint64(b[144:], superOffset)
	le.PutUint32(b[160:], uint32(s.role)) // a member's number is its role
	copy(b[168:], s.device[:])
	le.PutUint64(b[192:], made) // time of the last write
	switch s.level {
	case Stripe:
		le.PutUint32(b[8:], layoutFlag)
		le.PutUint32(b[76:], layoutAlternate)
		le.PutUint32(b[88:], chunk)
		le.PutUint64(b[208:], nothingToSync)
	case StripedMirror:
		le.PutUint32(b[76:], layoutNearTwo)
		le.PutUint32(b[88:], chunk)
	case Mirror:
	default:
		return nil, fmt.Errorf("level %d is none that the agent makes", s.level)
	}
	// Mirrors begin out of sync, because the old contents of their members differ;
	// the kernel synchronizes them as soon as the system runs.
	le.PutUint32(b[220:], maxMembers)
	for i := range maxMembers {
		role := uint16(roleSpare)
		if i < s.members {
			role = uint16(i)
		}
		le.PutUint16(b[superSize+2*i:], role)
	}
	le.PutUint32(b[216:], checksum(b))
	return b, nil
}

// checksum adds the words of the superblock, and the carries to that (md.c,
// calc_sb_1_csum). Its own field must be zero.
func checksum(b []byte) uint32 {
	var sum uint64
	for ; len(b) >= 4; b = b[4:] {
		sum += uint64(binary.LittleEndian.Uint32(b))
	}
	return uint32(sum) + uint32(sum>>32)
}
