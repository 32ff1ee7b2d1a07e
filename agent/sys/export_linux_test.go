package sys

import "os"

// NewFileBlock opens a regular file as a block device.
func NewFileBlock(f *os.File) (Block, error) { return newFileBlock(f) }
