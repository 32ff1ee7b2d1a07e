package rootfs

import (
	"encoding/binary"
	"errors"
	"io"
	"runtime"

	"github.com/metalab-dev/metalab/agent/gpt"
)

var le = binary.LittleEndian

// rootTypes are the types of a root's partition by GOARCH (the UAPI Group's Discoverable
// Partitions Specification, "Defined Partition Type UUIDs").
var rootTypes = map[string]gpt.GUID{
	"386":     gpt.MustParse("44479540-f297-41b2-9af7-d131d5f0458a"),
	"amd64":   gpt.MustParse("4f68bce3-e8cd-4db1-96e7-fbcaf984b709"),
	"arm":     gpt.MustParse("69dad710-2ce4-4e3c-b16c-21a1d49abed3"),
	"arm64":   gpt.MustParse("b921b045-1df0-41c3-af44-4c6f280d3fae"),
	"loong64": gpt.MustParse("77055800-792c-4f94-b39a-98c91b762bb6"),
	"ppc64le": gpt.MustParse("c31c45e6-3f39-412e-80fb-4809c4980599"),
	"riscv64": gpt.MustParse("72ec70a6-cf74-40e6-bd49-4bda08e8f224"),
	"s390x":   gpt.MustParse("5eead9a9-fe09-4a1e-a1d7-520d00531306"),
}

// region is a range of a disk that may have a file system.
type region struct {
	number    int // 0 is the whole disk
	off, size int64
	rank      int // the greater, the sooner it is taken
}

// Ranks of regions.
const (
	anyType  = iota
	rootType // the type of a root on some architecture
	ownType  // on this machine's
)

func rankOf(t gpt.GUID) int {
	for arch, root := range rootTypes {
		if t == root {
			if arch == runtime.GOARCH {
				return ownType
			}
			return rootType
		}
	}
	return anyType
}

// blockSizes are the sizes of logical blocks that a partition table may count in.
var blockSizes = []int64{512, 4096}

// protective is the type of an MBR's partition that stands for a GPT (UEFI 2.10, §5.2.3).
const protective = 0xee

// partitions returns the partitions of a disk, none if there is no table.
func partitions(r io.ReaderAt, size int64) ([]region, error) {
	for _, block := range blockSizes {
		t, err := tableOf(r, block, size/block)
		if err != nil {
			return nil, err
		}
		if t != nil {
			return ofGPT(t, block, size), nil
		}
	}
	return ofMBR(r, size)
}

// tableOf returns the first copy of a GPT that is whole, or nil.
func tableOf(r io.ReaderAt, block, blocks int64) (*gpt.Table, error) {
	if blocks < 3 {
		return nil, nil
	}
	for _, at := range []int64{1, blocks - 1} {
		t, err := gpt.Read(r, block, at, blocks)
		if t != nil && err == nil {
			return t, nil
		}
		if err != nil && !errors.Is(err, gpt.ErrDamaged) {
			return nil, err
		}
		if err == nil && at == 1 && !protects(r) {
			return nil, nil // what is in the last block need not be this disk's
		}
	}
	return nil, nil
}

// protects reports whether a disk has an MBR that says that there is a GPT.
func protects(r io.ReaderAt) bool {
	var mbr [512]byte
	if readFull(r, mbr[:], 0) != nil || mbr[510] != 0x55 || mbr[511] != 0xaa {
		return false
	}
	for i := range 4 {
		if mbr[446+16*i+4] == protective {
			return true
		}
	}
	return false
}

func ofGPT(t *gpt.Table, block, size int64) []region {
	var out []region
	last := uint64(size/block) - 1
	for i, p := range t.All() {
		if p.First == 0 || p.First > p.Last || p.First > last {
			continue
		}
		blocks := int64(min(p.Last, last) - p.First + 1)
		out = append(out, region{number: i + 1, off: int64(p.First) * block, size: blocks * block, rank: rankOf(p.Type)})
	}
	return out
}

// maxLogical is how many partitions of an extended one are read: Linux takes as many.
const maxLogical = 256

// ofMBR returns the partitions of an MBR. Its blocks are of 512 bytes, or of 4096 where
// that is where something is.
func ofMBR(r io.ReaderAt, size int64) ([]region, error) {
	var first []region
	for _, block := range blockSizes {
		found, err := mbrIn(r, size, block)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = found
		}
		for _, p := range found {
			if kind, err := kindOf(io.NewSectionReader(r, p.off, p.size), p.size); err != nil || kind != "" {
				return found, err
			}
		}
	}
	return first, nil
}

// entry is one of the four in an MBR or EBR.
type entry struct {
	kind         byte
	first, count int64 // blocks
}

// entriesAt reads the entries of an MBR or EBR, none if there is none.
func entriesAt(r io.ReaderAt, off int64) ([]entry, error) {
	var b [512]byte
	if err := readFull(r, b[:], off); err != nil {
		return nil, err
	}
	if b[510] != 0x55 || b[511] != 0xaa {
		return nil, nil
	}
	out := make([]entry, 4)
	for i := range out {
		e := b[446+16*i:]
		out[i] = entry{kind: e[4], first: int64(le.Uint32(e[8:])), count: int64(le.Uint32(e[12:]))}
	}
	return out, nil
}

// extended reports whether a partition has others inside.
func (e entry) extended() bool { return e.kind == 0x05 || e.kind == 0x0f || e.kind == 0x85 }

func mbrIn(r io.ReaderAt, size, block int64) ([]region, error) {
	if size < 512 {
		return nil, nil
	}
	blocks := size / block
	table, err := entriesAt(r, 0)
	if err != nil {
		return nil, err
	}
	var out []region
	add := func(number int, first, count int64) {
		if first > 0 && first < blocks && count > 0 {
			out = append(out, region{number: number, off: first * block, size: min(count, blocks-first) * block})
		}
	}
	logical := 5 // the first number of a logical partition
	for i, e := range table {
		switch {
		case e.kind == 0:
		case !e.extended():
			add(i+1, e.first, e.count)
		default:
			// Each EBR has a partition, relative to itself, and where the next EBR is,
			// relative to the first one.
			for at, n := e.first, 0; at > 0 && at < blocks && n < maxLogical; n++ {
				ebr, err := entriesAt(r, at*block)
				if err != nil {
					return nil, err
				}
				if ebr == nil {
					break
				}
				if ebr[0].kind != 0 {
					add(logical, at+ebr[0].first, ebr[0].count)
					logical++
				}
				if !ebr[1].extended() || e.first+ebr[1].first <= at {
					break
				}
				at = e.first + ebr[1].first
			}
		}
	}
	return out, nil
}
