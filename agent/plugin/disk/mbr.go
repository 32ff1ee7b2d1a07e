package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// mbrTable is a master boot record with four primary partitions (UEFI 2.10 §5.2).
type mbrTable struct {
	t       *target
	records []record
}

// fatLBA is parted's partition type for FAT. It does not determine the content.
const fatLBA = 0x0c

func readMBR(t *target) (*mbrTable, error) {
	tables := tables{r: t, size: t.block.Size()}
	records := tables.records(0)
	for i := range records {
		if status := t.head[446+16*i]; status != 0 && status != 0x80 {
			records = nil // a boot sector of a file system
			break
		}
	}
	m := &mbrTable{t: t, records: records}
	if len(m.used()) == 0 {
		return nil, errors.New("the image has no partition table")
	}
	return m, nil
}

func (m *mbrTable) used() []span {
	var out []span
	for _, r := range m.records {
		if r.kind != 0 && r.first != 0 && r.count != 0 {
			out = append(out, span{int64(r.first) * sector, int64(r.count) * sector})
		}
	}
	return out
}

// room is limited to 32-bit sector numbers.
func (m *mbrTable) room() int64 { return min(m.t.block.Size()/sector, 1<<32-1) * sector }

func (m *mbrTable) add(s span) error {
	for i, r := range m.records {
		if r.kind != 0 {
			continue
		}
		e := m.t.head[446+16*i:][:16]
		// The CHS address of sectors beyond CHS; the LBA fields apply.
		copy(e, []byte{0, 0xfe, 0xff, 0xff, fatLBA, 0xfe, 0xff, 0xff})
		binary.LittleEndian.PutUint32(e[8:], uint32(s.off/sector))
		binary.LittleEndian.PutUint32(e[12:], uint32(s.n/sector))
		return nil
	}
	return fmt.Errorf("%s has an MBR, and its four primary partitions are used", m.t.name)
}

// store does nothing: the record is in the head.
func (m *mbrTable) store() error { return nil }
