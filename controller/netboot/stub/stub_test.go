package stub

import (
	"bytes"
	"debug/pe"
	"strings"
	"testing"
)

func TestBootSectorPointsAtItsText(t *testing.T) {
	b, err := BootSector("hello")
	if err != nil {
		t.Fatalf("BootSector(hello): %v", err)
	}
	at := int(b[5]) | int(b[6])<<8
	if got := string(b[at-origin : at-origin+7]); got != "hello\r\n" {
		t.Errorf("text at %#x = %q, want hello and a line end", at, got)
	}
	if b[510] != 0x55 || b[511] != 0xaa || len(b) != SectorSize {
		t.Errorf("sector of %d bytes ends in % x, want 512 and 55 aa", len(b), b[510:])
	}
	if !bytes.Equal(b[446:510], make([]byte, 64)) {
		t.Errorf("partition table = % x, want it empty", b[446:510])
	}
}

func TestBootSectorRefusesALineThatDoesNotFit(t *testing.T) {
	if _, err := BootSector(strings.Repeat("x", 440)); err == nil {
		t.Fatal("BootSector(440 bytes) = nil error, want one that names the room")
	}
}

func TestEFIIsAPEFile(t *testing.T) {
	f, err := pe.NewFile(bytes.NewReader(EFI("hello")))
	if err != nil {
		t.Fatalf("pe.NewFile(EFI): %v", err)
	}
	h, ok := f.OptionalHeader.(*pe.OptionalHeader64)
	if !ok || h.Subsystem != pe.IMAGE_SUBSYSTEM_EFI_APPLICATION || f.Machine != pe.IMAGE_FILE_MACHINE_AMD64 {
		t.Fatalf("header %+v, machine %#x: want an EFI application for x86-64", f.OptionalHeader, f.Machine)
	}
	code, err := f.Section(".text").Data()
	if err != nil || h.AddressOfEntryPoint != f.Section(".text").VirtualAddress {
		t.Fatalf("entry %#x, .text %+v, %v", h.AddressOfEntryPoint, f.Section(".text"), err)
	}
	at := 15 + int(code[11]) // the displacement counts from the next instruction
	if got := code[at : at+4]; !bytes.Equal(got, []byte{'h', 0, 'e', 0}) {
		t.Errorf("text at %#x = % x, want UTF-16 of hello", at, got)
	}
}

func TestLineReturnsTheTextOfBothStubs(t *testing.T) {
	sector, err := BootSector("hello")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"boot sector": sector, "EFI": EFI("hello")} {
		if got, ok := Line(b); !ok || got != "hello" {
			t.Errorf("%s: Line = %q, %v, want hello", name, got, ok)
		}
		for n := range len(b) {
			Line(b[:n]) // does not panic
		}
	}
	if got, ok := Line([]byte("hello")); ok {
		t.Errorf("Line(hello) = %q, want nothing", got)
	}
}
