// Package inventory finds out what hardware a machine has, from the files in
// which Linux and udev describe it, and from what its switches tell of
// themselves. It reads nothing else, so that an emulated server is parsed by the
// very code that parses a real one; what the findings mean is the controller's
// business.
package inventory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys"
)

// Collect reads the inventory. What a machine does not tell stays empty: the
// only errors are a system without /sys or /proc and the end of ctx.
func Collect(ctx context.Context, s sys.System) (job.Hardware, error) {
	r := reader{fs: s.FS()}
	for _, dir := range []string{"sys", "proc"} {
		if _, err := fs.Stat(r.fs, dir); err != nil {
			return job.Hardware{}, fmt.Errorf("inventory: %w", err)
		}
	}
	const dmi = "sys/class/dmi/id/"
	h := job.Hardware{
		Hostname: s.Hostname(),
		System: job.System{
			Manufacturer: r.value(dmi + "sys_vendor"),
			Product:      r.value(dmi + "product_name"),
			Serial:       r.value(dmi + "product_serial"),
			UUID:         r.value(dmi + "product_uuid"),
		},
		BIOS: job.BIOS{
			Vendor:  r.value(dmi + "bios_vendor"),
			Version: r.value(dmi + "bios_version"),
			Date:    r.value(dmi + "bios_date"),
		},
		CPU:    r.cpu(s.Arch()),
		RAMMiB: r.ramMiB(),
		NICs:   []job.NIC{},
		Disks:  []job.Disk{},
	}
	for _, name := range r.names("sys/class/net") {
		if err := ctx.Err(); err != nil {
			return job.Hardware{}, fmt.Errorf("inventory: %w", err)
		}
		h.NICs = append(h.NICs, r.nics(name, s.Addresses(name))...)
	}
	links := r.byPath()
	for _, name := range r.diskNames() {
		if err := ctx.Err(); err != nil {
			return job.Hardware{}, fmt.Errorf("inventory: %w", err)
		}
		if d, ok := r.disk(name, links); ok {
			h.Disks = append(h.Disks, d)
		}
	}
	return h, nil
}

// reader reads attributes. A file that is absent or cannot be read is an empty
// value: which attributes exist differs between drivers and kernels.
type reader struct{ fs fs.ReadLinkFS }

// value is the content of a small file without the padding around it.
func (r reader) value(name string) string { return strings.TrimSpace(r.text(name)) }

func (r reader) text(name string) string {
	b, err := fs.ReadFile(r.fs, name)
	if err != nil {
		return ""
	}
	return string(b)
}

func (r reader) exists(name string) bool {
	_, err := fs.Stat(r.fs, name)
	return !errors.Is(err, fs.ErrNotExist)
}

// names is the names in a directory.
func (r reader) names(dir string) []string {
	entries, err := fs.ReadDir(r.fs, dir)
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// readLink resolves one symbolic link to a path from the root; empty when name is
// no link.
func (r reader) readLink(name string) string {
	to, err := r.fs.ReadLink(name)
	if err != nil {
		return ""
	}
	if strings.HasPrefix(to, "/") {
		return strings.TrimPrefix(path.Clean(to), "/")
	}
	return path.Join(path.Dir(name), to)
}
