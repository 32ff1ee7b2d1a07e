package sandbox_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/metalab-dev/metalab/guest/sandbox"
)

// Commands see the hardware of the server, which they cannot change, and none of the machine's.
func TestCommandsSeeTheHardwareOfTheServer(t *testing.T) {
	needNamespaces(t)
	read := 0
	s, _ := booted(t, func(c *sandbox.Config) {
		c.Hardware = func() fs.FS {
			read++
			return fstest.MapFS{
				"proc/cpuinfo": {Data: []byte("processor\t: 0\n")},
				"proc/meminfo": {Data: []byte("MemTotal: 263882790 kB\n")},
				"proc/version": {Data: []byte("of no account\n")},
				"sys/devices/virtual/dmi/id/product_name": {Data: []byte("PowerEdge R650\n")},
				"sys/class/dmi/id":                        {Data: []byte("../../devices/virtual/dmi/id"), Mode: fs.ModeSymlink},
			}
		}
	})
	const look = "cat /proc/cpuinfo /proc/meminfo /sys/class/dmi/id/product_name; ls /sys"
	const want = "processor\t: 0\nMemTotal: 263882790 kB\nPowerEdge R650\nclass\ndevices\n"
	for range 2 {
		if got, _ := run(t, s, look); got != want {
			t.Errorf("a command sees %q, want %q", got, want)
		}
	}
	for _, line := range []string{"echo x > /sys/class/dmi/id/product_name", "echo x > /proc/meminfo", "touch /sys/x", "chmod 600 /proc/cpuinfo", "rm -r /sys/class", "grep -q none /proc/version"} {
		if out, code := run(t, s, line+" 2>&1"); code == 0 {
			t.Errorf("%s: code 0, %q", line, out)
		}
	}
	if read != 1 {
		t.Errorf("the hardware was read %d times in a boot, want once", read)
	}
}

// Without hardware nothing is below /sys.
func TestSysIsEmptyWithoutHardware(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t)
	if got, code := run(t, s, "ls /sys; touch /sys/x 2>/dev/null || echo refused"); got != "refused\n" {
		t.Errorf("ls /sys = code %d, %q", code, got)
	}
}
