package view

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
)

// signature identifies a kind of content by bytes at an offset, and locates its label.
type signature struct {
	kind  string
	at    int64
	magic string
	label int64 // offset; 0: none
	size  int   // bytes of the label
}

// signatures are of file systems and of what volumes are made of, in the order in which they
// are looked for (libblkid's names).
var signatures = []signature{
	{kind: "LUKS", magic: "LUKS\xba\xbe"},
	{kind: "xfs", magic: "XFSB", label: 0x6c, size: 12},
	{kind: "squashfs", magic: "hsqs"},
	{kind: "LVM2 physical volume", at: 0x218, magic: "LVM2 001"},
	{kind: "swap", at: 0xff6, magic: "SWAPSPACE2", label: 0x41c, size: 16},
	{kind: "md RAID member", at: 0x1000, magic: "\xfc\x4e\x2b\xa9", label: 0x1020, size: 32},
	{kind: "ext4", at: 0x438, magic: "\x53\xef", label: 0x478, size: 16},
	{kind: "vfat", at: 0x52, magic: "FAT32", label: 0x47, size: 11},
	{kind: "vfat", at: 0x36, magic: "FAT", label: 0x2b, size: 11},
	{kind: "btrfs", at: 0x10040, magic: "_BHRfS_M", label: 0x1012b, size: 64},
	{kind: "iso9660", at: 0x8001, magic: "CD001", label: 0x8028, size: 32},
}

// Bounds of the bytes that are read of a disk.
const (
	headSize     = 68 << 10 // bytes of a disk or a partition that have all signatures
	maxPartition = 16       // partitions that are shown
)

// contentOf returns what lies on a disk, for people: its partitions, or its file system; ""
// when it is empty. It reads some kilobytes.
func contentOf(disk io.ReaderAt) string {
	head := read(disk, 0, headSize)
	if kind := formatOf(head); kind != "" {
		return kind
	}
	for _, sector := range []int64{512, 4096} {
		if parts := gpt(disk, head, sector); len(parts) > 0 {
			return "GPT: " + strings.Join(parts, ", ")
		}
	}
	if parts := mbr(disk, head); len(parts) > 0 {
		return "MBR: " + strings.Join(parts, ", ")
	}
	if len(bytes.Trim(head, "\x00")) > 0 {
		return "data"
	}
	return ""
}

// read returns up to n bytes from an offset. What cannot be read is not there.
func read(disk io.ReaderAt, at int64, n int) []byte {
	b := make([]byte, n)
	got, _ := disk.ReadAt(b, at)
	return b[:got]
}

// formatOf returns the format of the beginning of a disk or a partition, with its label.
func formatOf(head []byte) string {
	for _, s := range signatures {
		end := s.at + int64(len(s.magic))
		if int64(len(head)) < end || string(head[s.at:end]) != s.magic {
			continue
		}
		if s.size == 0 || int64(len(head)) < s.label+int64(s.size) {
			return s.kind
		}
		if label := text(head[s.label : s.label+int64(s.size)]); label != "" {
			return fmt.Sprintf("%s %q", s.kind, label)
		}
		return s.kind
	}
	return ""
}

// text returns a label without its padding; "" when it is no text.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	s := strings.TrimSpace(string(b))
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return s
}

// gpt returns the partitions of a GUID partition table (UEFI 2.10, §5.3).
func gpt(disk io.ReaderAt, head []byte, sector int64) (out []string) {
	if int64(len(head)) < sector+92 || string(head[sector:sector+8]) != "EFI PART" {
		return nil
	}
	h := head[sector:]
	first, count, each := binary.LittleEndian.Uint64(h[72:]), binary.LittleEndian.Uint32(h[80:]), binary.LittleEndian.Uint32(h[84:])
	if each < 128 || each > 4096 || count > 1024 || first > 1<<40 {
		return nil
	}
	table := read(disk, int64(first)*sector, int(count*each))
	for i := 0; i+int(each) <= len(table) && len(out) < maxPartition; i += int(each) {
		e := table[i : i+int(each)]
		from, to := binary.LittleEndian.Uint64(e[32:]), binary.LittleEndian.Uint64(e[40:])
		if len(bytes.Trim(e[:16], "\x00")) == 0 || from > to || to > 1<<50 {
			continue
		}
		units := make([]uint16, 36)
		for j := range units {
			units[j] = binary.LittleEndian.Uint16(e[56+2*j:])
		}
		name := text([]byte(string(utf16.Decode(units))))
		out = append(out, partition(disk, int64(from)*sector, int64(to-from+1)*sector, name))
	}
	return out
}

// mbr returns the partitions of a master boot record.
func mbr(disk io.ReaderAt, head []byte) (out []string) {
	if len(head) < 512 || head[510] != 0x55 || head[511] != 0xaa {
		return nil
	}
	for i := 446; i < 510; i += 16 {
		if kind := head[i+4]; kind != 0 && kind != 0xee {
			from, n := binary.LittleEndian.Uint32(head[i+8:]), binary.LittleEndian.Uint32(head[i+12:])
			out = append(out, partition(disk, int64(from)*512, int64(n)*512, ""))
		}
	}
	return out
}

// partition returns a partition for people.
func partition(disk io.ReaderAt, at, size int64, name string) string {
	parts := []string{amount(size)}
	if name != "" {
		parts = append([]string{name}, parts...)
	}
	if format := formatOf(read(disk, at, headSize)); format != "" {
		parts = append(parts, format)
	}
	return strings.Join(parts, " ")
}

// amount returns a size for people.
func amount(size int64) string {
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if size < 10_000 {
			return fmt.Sprintf("%d %s", size, unit)
		}
		size /= 1000
	}
	return fmt.Sprintf("%d TB", size)
}
