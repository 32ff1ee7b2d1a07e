package ramdisk

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/agent/boot"
	"github.com/metalab-dev/metalab/controller/netboot/cpio"
)

// wanted are the directories and files with drivers for disks and networks, relative to a
// kernel's module directory. The modules that these depend on are included from anywhere.
var wanted = []string{
	"drivers/ata", "drivers/block", "drivers/nvme", "drivers/scsi", "drivers/message", "drivers/md", "drivers/mmc", "drivers/target",
	"drivers/net/ethernet", "drivers/net/phy", "drivers/net/mdio", "drivers/net/virtio_net.ko", "drivers/net/vmxnet3", "drivers/net/hyperv",
	"drivers/net/usb", "drivers/usb/host", "drivers/usb/storage", "drivers/usb/core", "drivers/usb/common", "drivers/virtio", "drivers/xen", "drivers/hv",
	"drivers/char/hw_random", "drivers/hid/usbhid", "drivers/char/ipmi", "drivers/pci",
}

// module is a kernel module of a package.
type module struct {
	boot.Module
	place string // path in the kernel's module directory, like drivers/net/virtio_net.ko
	elf   []byte
}

// parseModule reads the aliases and dependencies in a module's .modinfo section, which
// holds zero-terminated strings of the form NAME=VALUE.
func parseModule(place string, b []byte) (name string, m module, err error) {
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return "", m, fmt.Errorf("%s: %w", place, err)
	}
	info := f.Section(".modinfo")
	if info == nil {
		return "", m, fmt.Errorf("%s: has no .modinfo", place)
	}
	text, err := info.Data()
	if err != nil {
		return "", m, fmt.Errorf("%s: %w", place, err)
	}
	m = module{place: place, elf: b}
	for line := range strings.SplitSeq(string(text), "\x00") {
		key, value, _ := strings.Cut(line, "=")
		switch key {
		case "alias":
			m.Aliases = append(m.Aliases, value)
		case "depends":
			m.Needs = append(m.Needs, names(strings.Split(value, ","))...)
		case "softdep":
			before, _, _ := strings.Cut(value, "post:")
			if _, before, ok := strings.Cut(before, "pre:"); ok {
				m.Needs = append(m.Needs, names(strings.Fields(before))...)
			}
		}
	}
	return boot.Name(strings.TrimSuffix(path.Base(place), ".ko")), m, nil
}

func names(words []string) []string {
	var out []string
	for _, w := range words {
		if w != "" {
			out = append(out, boot.Name(w))
		}
	}
	return out
}

// choose returns the index of the wanted modules and of their dependencies.
func choose(all map[string]module) boot.Index {
	index := boot.Index{}
	for name, m := range all {
		index[name] = m.Module
	}
	out := boot.Index{}
	for name, m := range all {
		if !slices.ContainsFunc(wanted, func(dir string) bool { return m.place == dir || strings.HasPrefix(m.place, dir+"/") }) {
			continue
		}
		for _, each := range index.Order(name) {
			out[each] = index[each]
		}
	}
	return out
}

// initrd returns a kernel's initrd with the agent as /init and the chosen modules, and the
// number of modules.
func initrd(agent []byte, modules map[string]module) ([]byte, int, error) {
	index := choose(modules)
	text, err := json.Marshal(index)
	if err != nil {
		return nil, 0, err
	}
	entries := []cpio.Entry{
		{Name: "init", Mode: cpio.File | 0o755, Content: agent},
		// Before devtmpfs is mounted, init can write to the console only through this node.
		{Name: "dev/console", Mode: cpio.Character | 0o600, Major: 5, Minor: 1},
		{Name: "dev/null", Mode: cpio.Character | 0o666, Major: 1, Minor: 3},
		{Name: "etc/ssl/certs", Mode: cpio.Directory | 0o755},
		{Name: boot.IndexPath, Mode: cpio.File | 0o644, Content: text},
	}
	for name := range index {
		entries = append(entries, cpio.Entry{Name: boot.ModuleDir + "/" + name + ".ko", Mode: cpio.File | 0o644, Content: modules[name].elf})
	}
	slices.SortFunc(entries[5:], func(a, b cpio.Entry) int { return strings.Compare(a.Name, b.Name) })
	return cpio.Append(nil, entries...), len(index), nil
}
