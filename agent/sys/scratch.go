package sys

import (
	"fmt"
	"os"
)

// NewScratch makes an unnamed file in dir (the system's directory for
// temporary files when empty). The name is removed at once, so that the bytes
// are gone however the process ends.
func NewScratch(dir string) (Scratch, error) {
	f, err := os.CreateTemp(dir, "lab-agent-*")
	if err != nil {
		return nil, fmt.Errorf("sys: scratch file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("sys: scratch file: %w", err)
	}
	return unnamed{f}, nil
}

// unnamed hides the rest of os.File: whoever reads the scratch file must not
// find a Name to resolve paths against (an image's backing file, say).
type unnamed struct{ file *os.File }

func (u unnamed) ReadAt(p []byte, off int64) (int, error)  { return u.file.ReadAt(p, off) }
func (u unnamed) WriteAt(p []byte, off int64) (int, error) { return u.file.WriteAt(p, off) }
func (u unnamed) Close() error                             { return u.file.Close() }
