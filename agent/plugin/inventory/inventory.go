// Package inventory finds the hardware of a machine, from the files of Linux and
// udev and from the LLDP frames of switches. It reads nothing else, so that the
// same code parses emulated and real servers. The controller interprets the
// result.
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

// Collect reads the inventory. Missing information stays empty: the only errors
// are a system without /sys or /proc, and the end of ctx.
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

// reader reads attributes. A missing or unreadable file is an empty value, because
// attributes differ between drivers and kernels.
type reader struct{ fs fs.ReadLinkFS }

// value returns the content of a small file without surrounding white space.
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

// names returns the names in a directory.
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

// readLink resolves one symbolic link to a path from the root; "" if name is no
// link.
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
