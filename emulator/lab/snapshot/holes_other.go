//go:build !linux

package snapshot

import (
	"errors"
	"os"
)

// extents says that all is data: correct everywhere, if slow.
func extents(_ *os.File, size int64) ([]extent, error) {
	if size == 0 {
		return nil, nil
	}
	return []extent{{0, size}}, nil
}

func clone(_, _ *os.File) error { return errors.ErrUnsupported }
