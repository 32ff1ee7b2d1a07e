package sandbox

import (
	"fmt"
	"syscall"
)

// block counts for each file beside its bytes.
const block = 512

// full is the error for files that together exceed a limit.
func full(limit int64) error {
	return fmt.Errorf("more than %d MiB of files: %w", limit>>20, syscall.ENOSPC)
}

// room returns ENOSPC where nodes would make the files larger than their limit. old is the size of a
// file that one of them replaces, and all that of all files. Nodes that are no larger than what they
// replace always have room.
func (s *System) room(nodes Tree, old func(name string) int64, all func() (int64, error)) error {
	growth := int64(0)
	for name, n := range nodes {
		growth += int64(len(n.Content)) + block - old(name)
	}
	if growth <= 0 {
		return nil
	}
	size, err := all()
	if err == nil && size+growth > s.c.Limits.Files {
		err = full(s.c.Limits.Files)
	}
	return err
}

func (t Tree) sizeOf(name string) int64 {
	n, ok := t[name]
	if !ok || n.Removed {
		return 0
	}
	return int64(len(n.Content)) + block
}

func (t Tree) size() (sum int64, err error) {
	for name := range t {
		sum += t.sizeOf(name)
	}
	return sum, nil
}
