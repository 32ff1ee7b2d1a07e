package rootfs

import (
	"debug/elf"
	"encoding/binary"
)

// machines has the GOARCH of programs by the machine, the class and the byte order in their
// headers.
var machines = map[elf.Machine]map[[2]byte]string{
	elf.EM_386:       {{byte(elf.ELFCLASS32), byte(elf.ELFDATA2LSB)}: "386"},
	elf.EM_X86_64:    {{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)}: "amd64"},
	elf.EM_ARM:       {{byte(elf.ELFCLASS32), byte(elf.ELFDATA2LSB)}: "arm"},
	elf.EM_AARCH64:   {{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)}: "arm64"},
	elf.EM_LOONGARCH: {{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)}: "loong64"},
	elf.EM_PPC64:     {{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)}: "ppc64le", {byte(elf.ELFCLASS64), byte(elf.ELFDATA2MSB)}: "ppc64"},
	elf.EM_RISCV:     {{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)}: "riscv64"},
	elf.EM_S390:      {{byte(elf.ELFCLASS64), byte(elf.ELFDATA2MSB)}: "s390x"},
}

// architecture returns the GOARCH that a program runs on, or "".
func architecture(r Reader, name string) string {
	in, err := resolve(r, name)
	if err != nil {
		return ""
	}
	b, err := readStart(r, in, 20)
	if err != nil || len(b) < 20 || string(b[:4]) != elf.ELFMAG {
		return ""
	}
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(b[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	return machines[elf.Machine(order.Uint16(b[18:]))][[2]byte{b[elf.EI_CLASS], b[elf.EI_DATA]}]
}
