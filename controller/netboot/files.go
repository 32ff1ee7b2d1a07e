package netboot

import (
	"bytes"
	"fmt"
	"io"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/netboot/cpio"
)

// Names of the files that are made for each boot.
const (
	scriptFile = "boot.ipxe"
	configFile = "agent.cpio" // a second initrd
)

// served is a file that is served over HTTP.
type served struct {
	kind    string // media type
	content func(*Server, inband.Boot) (io.ReadSeeker, error)
}

// files are all of them, by the name that follows a boot in the path.
var files = map[string]served{
	ISOFile: {"application/x-iso9660-image", func(s *Server, b inband.Boot) (io.ReadSeeker, error) {
		if isSeed(b) {
			return nil, errNoFile
		}
		config, err := slotOf(s.cfg.Media(b))
		if err != nil {
			return nil, err
		}
		return s.image.iso.filled(config), nil
	}},
	scriptFile: {"text/plain", func(s *Server, b inband.Boot) (io.ReadSeeker, error) {
		return bytes.NewReader(s.script(b)), nil
	}},
	KernelFile: {"application/octet-stream", fixed(KernelFile)},
	InitrdFile: {"application/octet-stream", fixed(InitrdFile)},
	configFile: {"application/octet-stream", func(s *Server, b inband.Boot) (io.ReadSeeker, error) {
		if isSeed(b) {
			initrd, err := s.seedInitrd(b)
			return bytes.NewReader(initrd), err
		}
		config, err := slotOf(s.cfg.Media(b))
		if err != nil {
			return nil, err
		}
		return bytes.NewReader(ConfigInitrd(config)), nil
	}},
}

func fixed(name string) func(*Server, inband.Boot) (io.ReadSeeker, error) {
	return func(s *Server, _ inband.Boot) (io.ReadSeeker, error) {
		f := s.image.files[name]
		return io.NewSectionReader(f.r, 0, f.size), nil
	}
}

// ConfigInitrd returns an initrd with nothing but an agent's configuration. The kernel
// unpacks it in addition to the initrd with the agent.
func ConfigInitrd(config []byte) []byte {
	return cpio.Append(nil, cpio.Entry{Name: job.MediaConfigPath, Mode: cpio.File | 0o600, Content: config})
}

// consoles of the kernel's command line: the screen and the serial port.
const consoles = "console=tty0 console=ttyS0,115200"

// Cmdline is the kernel's command line, by which the agent finds its configuration.
const Cmdline = consoles + " metalab.config=" + job.MediaConfigPath

// script returns the script that iPXE runs. Kernels that read their initrds through UEFI
// need the names of the initrds; others get them from iPXE as one concatenated archive.
// BOOTIF names the NIC that the server boots from.
func (s *Server) script(b inband.Boot) []byte {
	cmdline := Cmdline
	if isSeed(b) {
		cmdline = seedCmdline
	}
	return fmt.Appendf(nil, `#!ipxe
kernel %[1]s initrd=%[4]s initrd=%[5]s %[6]s BOOTIF=01-${netX/mac:hexhyp}
initrd --name %[4]s %[2]s
initrd --name %[5]s %[3]s
boot
`, s.url(b, KernelFile), s.url(b, InitrdFile), s.url(b, configFile), InitrdFile, configFile, cmdline)
}
