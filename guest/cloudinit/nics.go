package cloudinit

import (
	"io/fs"
	"path"
	"strings"
)

// NICs returns the names that the kernel has for a system's NICs, by their MAC addresses in lower
// case, from its /sys (sysfs, "ABI/testing/sysfs-class-net"). Interfaces without a device, such as
// loopback and VLANs, are none, nor is one without an address.
func NICs(system fs.FS) map[string]string {
	const dir = "sys/class/net"
	out := map[string]string{}
	entries, err := fs.ReadDir(system, dir)
	if err != nil {
		return out
	}
	for _, e := range entries {
		if _, err := fs.Stat(system, path.Join(dir, e.Name(), "device")); err != nil {
			continue
		}
		b, err := fs.ReadFile(system, path.Join(dir, e.Name(), "address"))
		mac := strings.ToLower(strings.TrimSpace(string(b)))
		if err == nil && strings.Trim(mac, "0:") != "" && out[mac] == "" {
			out[mac] = e.Name()
		}
	}
	return out
}
