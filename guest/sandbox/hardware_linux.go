package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// mountSys mounts /sys with the server's hardware, or empty without any: the machine's own would
// disclose its devices and take orders for them.
func (p *first) mountSys(at string) error {
	const flags, options = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, "mode=755,size=32m"
	if err := tmpfs(at, 0, options); err != nil {
		return err
	}
	for _, f := range p.setup.Hardware {
		if slices.Contains(hardwareProc, f.Name) {
			continue
		}
		file := filepath.Join(filepath.Dir(at), f.Name)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		switch {
		case err != nil:
		case f.Link != "":
			err = os.Symlink(f.Link, file)
		default:
			err = os.WriteFile(file, f.Content, 0o444)
		}
		if err != nil {
			return fmt.Errorf("hardware: %w", err)
		}
	}
	if err := unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_RDONLY|flags, options); err != nil {
		return fmt.Errorf("hardware: %w", err)
	}
	return nil
}

// mountHardwareProc covers the files of /proc that describe the machine's hardware. The area is a
// directory that no command sees.
func (p *first) mountHardwareProc(proc, area string) error {
	for _, f := range p.setup.Hardware {
		if !slices.Contains(hardwareProc, f.Name) || f.Name == cmdlineFile && fileExists(filepath.Join(p.setup.Dir, cmdlineName)) {
			continue
		}
		from := filepath.Join(area, filepath.Base(f.Name))
		if err := os.WriteFile(from, f.Content, 0o444); err != nil {
			return fmt.Errorf("hardware: %w", err)
		}
		err := bind(from, filepath.Join(proc, filepath.Base(f.Name)), unix.MS_RDONLY)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
