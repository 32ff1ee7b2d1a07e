//go:build !linux

package space

import (
	"errors"
	"os"
)

// free is not known on this system.
func free(string) (int64, error) { return 0, errors.ErrUnsupported }

// allocate is not supported on this system.
func allocate(*os.File, int64) error { return errors.ErrUnsupported }
