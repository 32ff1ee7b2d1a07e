// Package stub makes the smallest programs that a server can boot: they put one
// line on the console and wait. Media and images that carry no operating
// system are bootable with them, and say so to whoever watches the screen. It
// knows nothing of the formats that carry the programs.
package stub

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
)

// SectorSize is the size in bytes of a boot sector.
const SectorSize = 512

// tableOffset is where the partition table of a master boot record begins;
// code and text end before it.
const tableOffset = 440

// origin is where firmware loads a boot sector (and an El Torito image with
// load segment 0, which means 07C0h).
const origin = 0x7c00

// teletype is 16-bit code that prints the text behind it through INT 10h,
// function 0Eh, and halts. The address of the text is at offset 5.
var teletype = []byte{
	0x31, 0xc0, // xor ax, ax
	0x8e, 0xd8, // mov ds, ax
	0xbe, 0, 0, // mov si, text
	0xfc,       // cld
	0xac,       // next: lodsb
	0x08, 0xc0, // or al, al
	0x74, 0x09, // jz halt
	0xb4, 0x0e, // mov ah, 0eh
	0xbb, 0x07, 0x00, // mov bx, 7
	0xcd, 0x10, // int 10h
	0xeb, 0xf2, // jmp next
	0xf4,       // halt: hlt
	0xeb, 0xfd, // jmp halt
}

// BootSector is a boot sector that prints line, which is ASCII. Its partition
// table is empty.
func BootSector(line string) ([]byte, error) {
	text := line + "\r\n\x00"
	if len(teletype)+len(text) > tableOffset {
		return nil, fmt.Errorf("stub: line of %d bytes: a boot sector has room for %d", len(line), tableOffset-len(teletype)-3)
	}
	b := make([]byte, SectorSize)
	n := copy(b, teletype)
	binary.LittleEndian.PutUint16(b[5:], uint16(origin+n))
	copy(b[n:], text)
	b[510], b[511] = 0x55, 0xaa
	return b, nil
}

// printString is x86-64 code for UEFI: it calls ConOut->OutputString (UEFI
// 2.10, §12.4) with the text behind it and waits. The distance to the text is
// at offset 11, counted from offset 15.
var printString = []byte{
	0x48, 0x83, 0xec, 0x28, // sub rsp, 28h
	0x48, 0x8b, 0x4a, 0x40, // mov rcx, [rdx+40h]: SystemTable->ConOut
	0x48, 0x8d, 0x15, 0, 0, 0, 0, // lea rdx, [rip+text]
	0xff, 0x51, 0x08, // call [rcx+8]: OutputString
	0xf3, 0x90, // wait: pause
	0xeb, 0xfc, // jmp wait
}

// Layout of the PE file: one section, aligned in the file and in memory alike.
const (
	peOffset  = 0x40
	alignment = 0x200
	codeAt    = 0x200
)

// EFI is a UEFI application for x86-64 that prints line: a PE32+ file with one
// section (Microsoft PE format, UEFI 2.10 §2.1.1).
func EFI(line string) []byte {
	code := bytes.Clone(printString)
	text := (len(code) + 1) &^ 1
	binary.LittleEndian.PutUint32(code[11:], uint32(text-15))
	code = append(code, make([]byte, text-len(code))...)
	for _, u := range utf16.Encode([]rune(line + "\r\n\x00")) {
		code = binary.LittleEndian.AppendUint16(code, u)
	}
	size := uint32(len(code)+alignment-1) &^ (alignment - 1)

	le := binary.LittleEndian
	b := make([]byte, codeAt+size)
	copy(b, "MZ")
	le.PutUint32(b[0x3c:], peOffset)
	copy(b[peOffset:], "PE\x00\x00")
	coff := b[peOffset+4:]
	le.PutUint16(coff[0:], 0x8664) // machine: x86-64
	le.PutUint16(coff[2:], 1)      // sections
	le.PutUint16(coff[16:], 240)   // size of the optional header
	le.PutUint16(coff[18:], 0x022) // executable, large addresses
	opt := coff[20:]
	le.PutUint16(opt[0:], 0x20b) // PE32+
	le.PutUint32(opt[4:], size)  // size of the code
	le.PutUint32(opt[16:], codeAt)
	le.PutUint32(opt[20:], codeAt)
	le.PutUint32(opt[32:], alignment) // in memory
	le.PutUint32(opt[36:], alignment) // in the file
	le.PutUint32(opt[56:], codeAt+size)
	le.PutUint32(opt[60:], codeAt) // headers
	le.PutUint16(opt[68:], 10)     // subsystem: EFI application
	le.PutUint64(opt[72:], 0x10000)
	le.PutUint64(opt[80:], 0x1000)
	le.PutUint32(opt[108:], 16) // data directories, all empty: the code needs no relocation
	sec := opt[240:]
	copy(sec, ".text")
	le.PutUint32(sec[8:], size)
	le.PutUint32(sec[12:], codeAt)
	le.PutUint32(sec[16:], size)
	le.PutUint32(sec[20:], codeAt)
	le.PutUint32(sec[36:], 0x60000020) // code, execute, read
	copy(b[codeAt:], code)
	return b
}

// Line is the line that a program of this package prints; false when it is not
// one.
func Line(b []byte) (string, bool) {
	if at := bytes.Index(b, printString[:11]); at == codeAt && len(b) > at+15 {
		text := b[at+15:]
		off := int(binary.LittleEndian.Uint32(b[at+11:]))
		var units []uint16
		for i := off; i+1 < len(text) && off >= 0; i += 2 {
			u := binary.LittleEndian.Uint16(text[i:])
			if u == 0 {
				return strings.TrimRight(string(utf16.Decode(units)), "\r\n"), true
			}
			units = append(units, u)
		}
		return "", false
	}
	if len(b) < len(teletype) || !bytes.Equal(b[:5], teletype[:5]) || !bytes.Equal(b[7:len(teletype)], teletype[7:]) {
		return "", false
	}
	offset := int(binary.LittleEndian.Uint16(b[5:])) - origin
	if offset < 0 || offset > len(b) {
		return "", false
	}
	text, _, ended := bytes.Cut(b[offset:], []byte{0})
	return strings.TrimRight(string(text), "\r\n"), ended
}
