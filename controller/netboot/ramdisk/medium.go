package ramdisk

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/netboot"
)

// Files of the ISO in addition to the agent's configuration. isolinux reads names of the
// form 8.3 only.
const (
	isoKernel = "/boot/vmlinuz"
	isoInitrd = "/boot/initrd.img"
	isoConfig = "/boot/agent.img"
	isoUEFI   = "/boot/efi.img"
	isolinux  = "/isolinux/isolinux.bin"
	isoLoader = "/isolinux/ldlinux.c32"
	isoMenu   = "/isolinux/isolinux.cfg"
)

// menu is the configuration of isolinux: it boots the agent without a prompt.
var menu = `SERIAL 0 115200
DEFAULT agent
LABEL agent
  KERNEL ` + isoKernel + `
  INITRD ` + isoInitrd + "," + isoConfig + `
  APPEND ` + netboot.Cmdline + `
`

// medium builds the ISO for each kind of firmware that the packages have a loader for.
func medium(p *parts, initrd []byte) (iso []byte, boots []string, err error) {
	config := netboot.ConfigInitrd(netboot.Slot())
	m := netboot.Medium{Files: map[string][]byte{job.MediaConfigPath: netboot.Slot()}}
	slots := 1
	if bin, c32 := p.loaders["isolinux.bin"], p.loaders["ldlinux.c32"]; bin != nil && c32 != nil {
		for name, b := range map[string][]byte{
			isoKernel: p.kernel, isoInitrd: initrd, isoConfig: config, isolinux: bin, isoLoader: c32, isoMenu: []byte(menu),
		} {
			m.Files[name] = b
		}
		m.Legacy = isolinux
		slots++
		boots = append(boots, bootsISOLegacy)
	}
	if stub := p.loaders["linuxx64.efi.stub"]; stub != nil {
		app, err := unified(stub, p.kernel, append(config[:len(config):len(config)], initrd...), netboot.Cmdline)
		if err != nil {
			return nil, nil, err
		}
		if m.Files[isoUEFI], err = espImage(app); err != nil {
			return nil, nil, err
		}
		m.UEFI = isoUEFI
		slots++
		boots = append(boots, bootsISOUEFI)
	}
	if iso, err = m.Build(); err != nil {
		return nil, nil, err
	}
	if n := bytes.Count(iso, netboot.Slot()); n != slots {
		return nil, nil, fmt.Errorf("the ISO has %d slots for a configuration, want %d: a file is fragmented", n, slots)
	}
	return iso, boots, nil
}

var errDynamic = errors.New("is linked dynamically, or is not a program for Linux: build it with CGO_ENABLED=0")

// checkStatic returns an error for a program that needs a dynamic linker, which the initrd
// does not have.
func checkStatic(b []byte) error {
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return errDynamic
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errDynamic
		}
	}
	return nil
}
