package inventory

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/agent/job"
)

// cpu reads /proc/cpuinfo, whose keys differ by architecture: flags are "flags" on
// x86, "Features" on ARM and "features" on s390x.
func (r reader) cpu(arch string) job.CPU {
	c := job.CPU{Arch: arch, Flags: []string{}}
	for line := range strings.Lines(r.text("proc/cpuinfo")) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch key {
		case "processor":
			c.Count++
		case "model name", "cpu", "Model", "machine":
			if c.Model == "" {
				c.Model = strings.Clone(value) // without Clone the string would keep the whole file in memory: a hundred KB on a large server
			}
		case "cpu MHz", "clock":
			if c.MHz == 0 {
				c.MHz, _ = strconv.ParseFloat(strings.TrimSuffix(value, "MHz"), 64)
			}
		case "flags", "Features", "features":
			if len(c.Flags) == 0 {
				c.Flags = append(c.Flags, strings.Fields(strings.Clone(value))...)
			}
		}
	}
	slices.Sort(c.Flags)
	// "cpu MHz" is the present frequency; the highest one describes the CPU, and
	// Ironic's agent prefers it, too.
	if khz, err := strconv.ParseFloat(r.value("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"), 64); err == nil && khz > 0 {
		c.MHz = khz / 1000
	}
	return c
}

// ramMiB returns the installed memory from the SMBIOS table or, without that, the
// usable memory, which is a little less.
func (r reader) ramMiB() int {
	if mib := installedMiB([]byte(r.text("sys/firmware/dmi/tables/DMI"))); mib > 0 {
		return mib
	}
	for line := range strings.Lines(r.text("proc/meminfo")) {
		value, ok := strings.CutPrefix(line, "MemTotal:")
		if !ok {
			continue
		}
		kib, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
		return kib / 1024
	}
	return 0
}

// installedMiB adds up the memory devices (type 17) of an SMBIOS table (DSP0134
// §6.1.2 and §7.18). A structure is a formatted part, with its length in the
// second byte, and strings up to two zero bytes.
func installedMiB(table []byte) int {
	const (
		memoryDevice = 17
		endOfTable   = 127
	)
	total := 0
	for len(table) >= 4 {
		kind, length := table[0], int(table[1])
		if kind == endOfTable || length < 4 || length > len(table) {
			break
		}
		if kind == memoryDevice && length >= 0x0e {
			size := binary.LittleEndian.Uint16(table[0x0c:])
			switch {
			case size == 0xffff: // unknown
			case size == 0x7fff && length >= 0x20:
				total += int(binary.LittleEndian.Uint32(table[0x1c:]) & 0x7fffffff)
			case size&0x8000 != 0: // in KiB
				total += int(size&0x7fff) / 1024
			default:
				total += int(size)
			}
		}
		end := length
		for end+1 < len(table) && (table[end] != 0 || table[end+1] != 0) {
			end++
		}
		table = table[min(end+2, len(table)):]
	}
	return total
}
