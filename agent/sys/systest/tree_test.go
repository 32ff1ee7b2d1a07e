package systest

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"testing/fstest"
)

func TestTree(t *testing.T) {
	tr := newTree()
	tr.line("sys/devices/pci0000:00/ata1/block/sda/size", "8")
	tr.link("sys/block/sda", "sys/devices/pci0000:00/ata1/block/sda")
	tr.link("sys/devices/pci0000:00/ata1/block/sda/device", "sys/devices/pci0000:00/ata1")
	tr.lazy("proc/cpuinfo", func() []byte { return []byte("processor\t: 0\n") })
	if err := fstest.TestFS(tr, "sys/block/sda", "proc/cpuinfo"); err != nil {
		t.Error(err)
	}

	tr.broken("sys/carrier", syscall.EINVAL)
	tr.add("sys/loop", &node{link: "../sys/loop"})
	tr.add("sys/absolute", &node{link: "/proc"})
	for name, want := range map[string]error{
		"sys/block/sda/device/block/sda/size": nil,
		"sys/absolute/cpuinfo":                nil,
		"sys/block/sdb/size":                  fs.ErrNotExist,
		"proc/cpuinfo/x":                      fs.ErrNotExist,
		"sys/loop":                            fs.ErrNotExist,
		"sys/carrier":                         syscall.EINVAL,
		"/proc/cpuinfo":                       fs.ErrInvalid,
		"sys/../proc/cpuinfo":                 fs.ErrInvalid,
	} {
		if _, err := fs.ReadFile(tr, name); !errors.Is(err, want) {
			t.Errorf("ReadFile(%s) error = %v, want %v", name, err, want)
		}
	}
}
