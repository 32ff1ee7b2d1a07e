//go:build !linux

package loopdisk

import (
	"errors"
	"testing"
)

// Attach returns an error: loop devices are Linux'.
func Attach(testing.TB, int64, []byte) (name string, err error) { return "", errors.ErrUnsupported }
