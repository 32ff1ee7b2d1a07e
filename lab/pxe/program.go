package pxe

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/metalab-dev/metalab/controller/netboot/stub"
)

var (
	errNoProgram = errors.New("is no program that this firmware can start")
	errNotIPXE   = errors.New("is a program, and not iPXE")
	errNoKernel  = errors.New("is no kernel")
)

// startsIPXE checks that the firmware can start a program, and that the program is
// iPXE or the stub that Metalab serves in its place.
func startsIPXE(b []byte, legacy bool) error {
	switch {
	case legacy && !isNBP(b), !legacy && !isEFI(b):
		return errNoProgram
	case bytes.Contains(b, []byte("iPXE")):
		return nil
	}
	if line, ok := stub.Line(b); ok && strings.Contains(line, "network boot program") {
		return nil
	}
	return errNotIPXE
}

// isNBP reports whether b can be a network bootstrap program for BIOS: code without
// a header that is loaded at 7C00h and must fit below 640 KiB (PXE 2.1, §3.2).
func isNBP(b []byte) bool {
	const room = 640<<10 - 0x7c00
	return len(b) >= 2 && len(b) <= room && !bytes.HasPrefix(b, []byte("MZ")) && !bytes.HasPrefix(b, []byte("\x7fELF")) && len(bytes.Trim(b, "\x00")) > 0
}

// isEFI reports whether b is an EFI application for x86-64 whose entry point is
// within its code.
func isEFI(b []byte) bool {
	f, err := pe.NewFile(bytes.NewReader(b))
	if err != nil {
		return false
	}
	h, ok := f.OptionalHeader.(*pe.OptionalHeader64)
	if !ok || f.Machine != pe.IMAGE_FILE_MACHINE_AMD64 || h.Subsystem != pe.IMAGE_SUBSYSTEM_EFI_APPLICATION {
		return false
	}
	for _, s := range f.Sections {
		if s.Characteristics&pe.IMAGE_SCN_MEM_EXECUTE != 0 && h.AddressOfEntryPoint >= s.VirtualAddress && h.AddressOfEntryPoint-s.VirtualAddress < s.Size {
			return true
		}
	}
	return false
}

// isKernel reports whether b is a Linux kernel for x86 (Linux,
// Documentation/arch/x86/boot.rst) or an EFI application.
func isKernel(b []byte) bool {
	const flag, header = 0x1fe, 0x202
	linux := len(b) > header+4 && binary.LittleEndian.Uint16(b[flag:]) == 0xaa55 && string(b[header:][:4]) == "HdrS"
	return linux || isEFI(b)
}
