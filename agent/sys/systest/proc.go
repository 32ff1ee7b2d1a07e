package systest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"strings"
)

// renderProc writes /proc/cpuinfo and /proc/meminfo. It renders cpuinfo when it is
// read: that takes a kilobyte for each of possibly hundreds of CPUs.
func renderProc(t *tree, m Machine) {
	t.lazy("proc/cpuinfo", func() []byte {
		var b bytes.Buffer
		sockets := max(m.CPU.Sockets, 1)
		siblings := m.CPU.Threads / sockets
		cores := cmp.Or(m.CPU.Cores, siblings)
		for i := range m.CPU.Threads {
			if strings.HasPrefix(m.Arch, "aarch64") {
				fmt.Fprintf(&b, "processor\t: %d\nBogoMIPS\t: 50.00\nFeatures\t: %s\nCPU implementer\t: 0x41\n\n",
					i, strings.Join(m.CPU.Flags, " "))
				continue
			}
			fmt.Fprintf(&b, "processor\t: %d\nvendor_id\t: %s\nmodel name\t: %s\ncpu MHz\t\t: %.3f\n"+
				"physical id\t: %d\nsiblings\t: %d\ncore id\t\t: %d\ncpu cores\t: %d\nflags\t\t: %s\nbugs\t\t:\nbogomips\t: %.2f\npower management:\n\n",
				i, cmp.Or(m.CPU.Vendor, "GenuineIntel"), m.CPU.Model, m.CPU.MHz, i/max(cores, 1)%sockets, siblings, i%max(cores, 1), cores, strings.Join(m.CPU.Flags, " "), 2*m.CPU.MHz)
		}
		return b.Bytes()
	})
	// The kernel reports the usable memory: about a sixty-fourth less than is
	// installed (page structures, its own image).
	total := m.RAMMiB*1024 - m.RAMMiB*1024/64
	t.file("proc/meminfo", fmt.Sprintf("MemTotal:       %8d kB\nMemFree:        %8d kB\nMemAvailable:   %8d kB\n",
		total, total/10*9, total/10*9))
	const cpus = "sys/devices/system/cpu" // sysfs-devices-system-cpu
	for _, name := range []string{"possible", "present", "online"} {
		t.line(cpus+"/"+name, fmt.Sprintf("0-%d", max(m.CPU.Threads, 1)-1))
	}
	t.file("proc/cmdline", strings.TrimSpace("BOOT_IMAGE=/vmlinuz ro console=ttyS0 "+m.Cmdline)+"\n")
}

// renderDMI writes the files of the kernel's dmi driver: single values by name,
// and the SMBIOS table, the only place with the installed memory.
func renderDMI(t *tree, m Machine) {
	const id = "sys/devices/virtual/dmi/id"
	t.link("sys/class/dmi/id", id)
	for _, a := range []struct{ name, value string }{
		{"bios_date", m.BIOSDate}, {"bios_vendor", m.BIOSVendor}, {"bios_version", m.BIOSVersion},
		{"product_name", m.Product}, {"product_serial", m.Serial}, {"product_uuid", strings.ToLower(m.UUID)},
		{"sys_vendor", m.Vendor},
	} {
		t.line(id+"/"+a.name, a.value)
	}
	t.lazy("sys/firmware/dmi/tables/DMI", func() []byte { return memoryTable(m.RAMMiB) })
}

// dimmMiB is the size of the largest module in memoryTable.
const dimmMiB = 64 << 10

// memoryTable returns an SMBIOS table of memory devices (type 17, DSP0134 §7.18)
// and the end marker (type 127); one slot is empty.
func memoryTable(ramMiB int) []byte {
	var b []byte
	handle := uint16(0x1100)
	module := func(mib int) {
		s := make([]byte, 0x28)
		s[0], s[1] = 17, byte(len(s))
		binary.LittleEndian.PutUint16(s[2:], handle)
		switch {
		case mib < 0x7fff:
			binary.LittleEndian.PutUint16(s[0x0c:], uint16(mib))
		default: // the size is in the extended field
			binary.LittleEndian.PutUint16(s[0x0c:], 0x7fff)
			binary.LittleEndian.PutUint32(s[0x1c:], uint32(mib))
		}
		s[0x10] = 1 // device locator: first string
		b = append(b, s...)
		b = append(b, fmt.Sprintf("DIMM%d\x00\x00", handle-0x1100)...)
		handle++
	}
	for left := ramMiB; left > 0; left -= dimmMiB {
		module(min(left, dimmMiB))
	}
	module(0)
	return append(b, 127, 4, 0xff, 0xfe, 0, 0)
}
