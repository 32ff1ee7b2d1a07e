// Package ramdisk builds the image that real servers boot: a kernel, an initrd with the
// agent and drivers, an ISO that boots them on PC BIOS and UEFI, and network boot
// programs. The parts come from packages of a Debian distribution or from files. The
// image is the same for every server: netboot fills the configuration of a boot into its
// slots.
package ramdisk

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/controller/netboot"
)

// Config names the parts of an image. Files take precedence over packages.
type Config struct {
	Agent    string   // path of lab-agent, linked statically
	Packages []string // paths of .deb files; those without a needed file are ignored
	Kernel   string   // path; "" means the kernel of the packages
	Initrd   string   // path of an initrd that the kernel unpacks before ours; "" means none
}

// Made describes an image that Build has made.
type Made struct {
	Dir     string   `json:"dir"`
	Kernel  string   `json:"kernel"`  // version, or path of the file
	Drivers int      `json:"drivers"` // number of modules
	Boots   []string `json:"boots"`   // the supported ways to boot
}

// The ways to boot.
const (
	bootsISOLegacy = "ISO, PC BIOS"
	bootsISOUEFI   = "ISO, UEFI"
	bootsPXELegacy = "PXE, PC BIOS"
	bootsPXEUEFI   = "PXE, UEFI"
	bootsIPXE      = "iPXE"
)

// parts are the files that were found in packages.
type parts struct {
	version string
	kernel  []byte
	modules map[string]module
	loaders map[string][]byte // by the base name of the file
}

// loaders are the boot loaders, by file name, with the packages that contain them.
var loaders = map[string]string{
	"isolinux.bin": "isolinux", "ldlinux.c32": "syslinux-common", "linuxx64.efi.stub": "systemd-boot-efi",
	netboot.LegacyPXE: "ipxe", netboot.UEFIPXE: "ipxe",
}

// biosLoaders is the directory of syslinux-common with the files for PC BIOS. Files for
// other firmware have the same names.
const biosLoaders = "/modules/bios/"

// Build builds an image in a directory. It replaces an image only after it has built all of the
// new one, and no other file.
func Build(ctx context.Context, c Config, dir string) (Made, error) {
	if err := checkFolder(dir); err != nil {
		return Made{}, err
	}
	p, err := gather(ctx, c)
	if err != nil {
		return Made{}, err
	}
	agent, err := os.ReadFile(c.Agent)
	if err != nil {
		return Made{}, fmt.Errorf("agent: %w", err)
	}
	if err := checkStatic(agent); err != nil {
		return Made{}, fmt.Errorf("agent %s: %w", c.Agent, err)
	}
	made := Made{Dir: dir, Kernel: p.version, Boots: []string{bootsIPXE}}
	plain, drivers, err := initrd(agent, p.modules)
	if err != nil {
		return Made{}, err
	}
	made.Drivers = drivers
	packed, err := compress(plain)
	if err != nil {
		return Made{}, err
	}
	if c.Initrd != "" {
		before, err := os.ReadFile(c.Initrd)
		if err != nil {
			return Made{}, fmt.Errorf("initrd: %w", err)
		}
		packed = append(pad(before), packed...)
	}
	iso, boots, err := medium(p, packed)
	if err != nil {
		return Made{}, err
	}
	made.Boots = append(made.Boots, boots...)
	out := map[string][]byte{netboot.KernelFile: p.kernel, netboot.InitrdFile: packed, netboot.ISOFile: iso}
	for name, way := range map[string]string{netboot.LegacyPXE: bootsPXELegacy, netboot.UEFIPXE: bootsPXEUEFI} {
		if b := p.loaders[name]; b != nil {
			out[name] = b
			made.Boots = append(made.Boots, way)
		}
	}
	slices.Sort(made.Boots)
	return made, write(dir, out)
}

// gather reads packages and files.
func gather(ctx context.Context, c Config) (*parts, error) {
	p := &parts{modules: map[string]module{}, loaders: map[string][]byte{}}
	for _, name := range c.Packages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := readDeb(name, p.take); err != nil {
			return nil, err
		}
	}
	if c.Kernel != "" {
		b, err := os.ReadFile(c.Kernel)
		if err != nil {
			return nil, fmt.Errorf("kernel: %w", err)
		}
		p.kernel, p.version = b, c.Kernel
	}
	if p.kernel == nil {
		return nil, errors.New("there is no kernel: add a package linux-image-…, or name a file")
	}
	return p, nil
}

// take stores a file of a package if it is a kernel, a module or a boot loader.
func (p *parts) take(name string, r io.Reader) error {
	version, isKernel := strings.CutPrefix(name, "/boot/vmlinuz-")
	_, inModules, isModule := strings.Cut(name, "/lib/modules/")
	base := path.Base(name)
	_, isLoader := loaders[base]
	switch {
	case isKernel && p.kernel != nil:
		return fmt.Errorf("a second kernel: there is %s already", p.version)
	case isKernel:
		p.version = version
		return read(name, r, func(b []byte) error { p.kernel = b; return nil })
	case isModule && strings.Contains(base, ".ko"):
		_, place, _ := strings.Cut(inModules, "/kernel/")
		for ext := range unpackers {
			place = strings.TrimSuffix(place, ext)
		}
		return read(name, r, func(b []byte) error {
			id, m, err := parseModule(place, b)
			p.modules[id] = m
			return err
		})
	case isLoader && (base != "ldlinux.c32" || strings.Contains(name, biosLoaders)):
		return read(name, r, func(b []byte) error { p.loaders[base] = b; return nil })
	}
	return nil
}

func read(name string, r io.Reader, keep func([]byte) error) error {
	r, err := unpack(name, r)
	if err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(r, maxFile))
	if err != nil {
		return err
	}
	return keep(b)
}

// compress compresses with gzip, which every kernel supports.
func compress(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return pad(out.Bytes()), nil
}

// pad appends zeros to a multiple of 4 bytes, so that another archive can follow.
func pad(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// write writes the files to a directory. It replaces none before all are complete.
func write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	parts, err := os.MkdirTemp(dir, "image-*.part")
	if err != nil {
		return err
	}
	defer os.RemoveAll(parts)
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(parts, name), b, 0o644); err != nil { //nolint:gosec // holds no secret
			return err
		}
	}
	for name := range files {
		if err := os.Rename(filepath.Join(parts, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// checkFolder returns an error when a directory has a file of an image's name, and no whole image.
func checkFolder(dir string) error {
	if i, err := netboot.LoadImage(dir); err == nil {
		return i.Close()
	}
	for _, name := range []string{netboot.KernelFile, netboot.InitrdFile, netboot.ISOFile, netboot.LegacyPXE, netboot.UEFIPXE} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is there already, and %s has no whole image of the agent: name another directory", filepath.Join(dir, name), dir)
		}
	}
	return nil
}
