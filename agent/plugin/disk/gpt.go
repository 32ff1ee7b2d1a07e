package disk

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/metalab-dev/metalab/agent/configdrive"
	"github.com/metalab-dev/metalab/agent/gpt"
)

// gptTable is a GUID partition table in an image that may be smaller than the disk.
type gptTable struct {
	*gpt.Table
	t               *target
	sector, sectors int64 // bytes of one, and how many the disk has
}

// readGPT reads the table at an image's beginning; nil if there is none. It
// rejects a damaged table, whose partitions are unknown.
func readGPT(t *target, sectorSize int64) (*gptTable, error) {
	table, err := gpt.Read(bytes.NewReader(t.head), sectorSize, 1, headSize/sectorSize)
	if err != nil {
		return nil, fmt.Errorf("the image's %w", err)
	}
	if table == nil {
		return nil, nil
	}
	g := &gptTable{table, t, sectorSize, t.block.Size() / sectorSize}
	if g.room() <= 0 {
		return nil, fmt.Errorf("%s is too small for the image's GPT", t.name)
	}
	return g, nil
}

func (g *gptTable) room() int64 { return g.End(g.sectors) * g.sector }

func (g *gptTable) used() []span {
	var out []span
	for _, p := range g.All() {
		if p.First < uint64(g.sectors) && p.Last >= p.First {
			last := min(p.Last, uint64(g.sectors-1))
			out = append(out, span{int64(p.First) * g.sector, int64(last-p.First+1) * g.sector})
		}
	}
	return out
}

func (g *gptTable) add(s span) error {
	// The same disk and partition give the same GUID (RFC 9562 §5.8: version 8), so
	// that a repetition changes nothing.
	disk := g.Disk()
	id := sha256.Sum256(binary.LittleEndian.AppendUint64(disk[:], uint64(s.off)))
	id[7], id[8] = id[7]&0x0f|0x80, id[8]&0x3f|0x80
	if !g.Add(gpt.Partition{
		Type: gpt.LinuxData, ID: gpt.GUID(id[:16]), Name: configdrive.Label,
		First: uint64(s.off / g.sector), Last: uint64((s.off+s.n)/g.sector - 1),
	}) {
		return errors.New("all entries of the image's GPT are used")
	}
	return nil
}

// store writes both copies. Like sgdisk -e it moves the backup to this disk's end.
func (g *gptTable) store() error {
	gpt.Resize(g.t.head, g.sectors)
	for _, p := range g.Parts(g.sectors) {
		if err := g.t.replace(p.Off, p.Bytes); err != nil {
			return err
		}
	}
	return nil
}
