//go:build !linux

package snapshot

import (
	"errors"
	"os"
)

// extents reports everything as data, which is correct everywhere but slow.
func extents(_ *os.File, size int64) ([]extent, error) {
	if size == 0 {
		return nil, nil
	}
	return []extent{{0, size}}, nil
}

func clone(_, _ *os.File) error { return errors.ErrUnsupported }
