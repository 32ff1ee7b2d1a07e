package view

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// disk returns a disk of 2 MiB with texts at offsets.
func disk(at map[int]string) []byte {
	b := make([]byte, 2<<20)
	for i, s := range at {
		copy(b[i:], s)
	}
	return b
}

func TestContentOfDisks(t *testing.T) {
	table := disk(map[int]string{512: "EFI PART", 1024: "a type of it 0123", 1024 + 56: "r\x00o\x00o\x00t\x00", 1<<20 + 0x438: "\x53\xef", 1<<20 + 0x478: "data"})
	binary.LittleEndian.PutUint64(table[512+72:], 2)
	binary.LittleEndian.PutUint32(table[512+80:], 128)
	binary.LittleEndian.PutUint32(table[512+84:], 128)
	binary.LittleEndian.PutUint64(table[1024+32:], 2048)
	binary.LittleEndian.PutUint64(table[1024+40:], 4095)
	old := disk(map[int]string{510: "\x55\xaa", 446 + 4: "\x83", 1 << 20: "XFSB"})
	binary.LittleEndian.PutUint32(old[446+8:], 2048)
	binary.LittleEndian.PutUint32(old[446+12:], 1024)
	damaged := bytes.Clone(table)
	binary.LittleEndian.PutUint32(damaged[512+84:], 1<<31)
	for _, tt := range []struct {
		name string
		in   []byte
		want string
	}{
		{"empty", disk(nil), ""},
		{"nothing can be read", nil, ""},
		{"ext4", disk(map[int]string{0x438: "\x53\xef", 0x478: "root"}), `ext4 "root"`},
		{"a label that is no text", disk(map[int]string{0x438: "\x53\xef", 0x478: "\x01\x02"}), "ext4"},
		{"LVM", disk(map[int]string{0x218: "LVM2 001"}), "LVM2 physical volume"},
		{"RAID", disk(map[int]string{0x1000: "\xfc\x4e\x2b\xa9", 0x1020: "host:0"}), `md RAID member "host:0"`},
		{"GPT", table, `GPT: root 1048 kB ext4 "data"`},
		{"a damaged GPT", damaged, "data"},
		{"MBR", old, "MBR: 524 kB xfs"},
		{"bytes", disk(map[int]string{7: "x"}), "data"},
	} {
		if got := contentOf(bytes.NewReader(tt.in)); got != tt.want {
			t.Errorf("%s: contentOf() = %s, want %s", tt.name, got, tt.want)
		}
	}
}
