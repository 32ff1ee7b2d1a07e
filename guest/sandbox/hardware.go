package sandbox

import (
	"fmt"
	"io/fs"
	"sync"
)

// hardwareFile is a file below /sys, or one of the files of /proc that describe the hardware.
type hardwareFile struct {
	Name    string
	Link    string // target of a symbolic link
	Content []byte
}

// hardwareProc are the files of /proc that describe the hardware (proc(5)).
var hardwareProc = []string{"proc/cpuinfo", "proc/meminfo", cmdlineFile}

// maxHardware is how many bytes the files may have.
const maxHardware = 16 << 20

// readHardware reads the files that describe a server's hardware. What cannot be read is left out,
// as a driver's attribute that fails.
func readHardware(from fs.FS) (out []hardwareFile, err error) {
	size := 0
	add := func(name string, f hardwareFile) error {
		if size += len(name) + len(f.Content); size > maxHardware {
			return fmt.Errorf("the hardware has more than %d MiB of files", maxHardware>>20)
		}
		f.Name = name
		out = append(out, f)
		return nil
	}
	for _, name := range hardwareProc {
		if b, err := fs.ReadFile(from, name); err == nil {
			if err := add(name, hardwareFile{Content: b}); err != nil {
				return nil, err
			}
		}
	}
	err = fs.WalkDir(from, "sys", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || e.IsDir():
			return nil
		case e.Type() == fs.ModeSymlink:
			link, err := fs.ReadLink(from, name)
			if err != nil {
				return nil
			}
			return add(name, hardwareFile{Link: link})
		}
		b, err := fs.ReadFile(from, name)
		if err != nil {
			return nil
		}
		return add(name, hardwareFile{Content: b})
	})
	return out, err
}

// hardwareOf returns a function that reads the files of a system once.
func hardwareOf(c Config) func() ([]hardwareFile, error) {
	return sync.OnceValues(func() ([]hardwareFile, error) {
		if c.Hardware == nil {
			return nil, nil
		}
		return readHardware(c.Hardware())
	})
}
