package sys

import (
	"fmt"
	"os"
)

// NewScratch creates an unnamed file in dir (the system's directory for temporary
// files if empty). The name is removed at once, so that the data is gone however
// the process ends.
func NewScratch(dir string) (Scratch, error) {
	f, err := os.CreateTemp(dir, "lab-agent-*")
	if err != nil {
		return nil, fmt.Errorf("sys: scratch file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("sys: scratch file: %w", err)
	}
	return scratchFile{f}, nil
}

// scratchFile hides the other methods of os.File: a reader of the scratch file
// must not find a Name to resolve paths against, such as an image's backing file.
type scratchFile struct{ file *os.File }

func (u scratchFile) ReadAt(p []byte, off int64) (int, error)  { return u.file.ReadAt(p, off) }
func (u scratchFile) WriteAt(p []byte, off int64) (int, error) { return u.file.WriteAt(p, off) }
func (u scratchFile) Close() error                             { return u.file.Close() }
