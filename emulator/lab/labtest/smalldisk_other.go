//go:build !linux

package labtest

import "testing"

// OnSmallDisk skips the test: there are no small file systems on this system.
func OnSmallDisk(t *testing.T, _ int64, _ func(dir string)) {
	t.Helper()
	t.Skip("needs file systems of a process's own, which Linux has")
}

// Fill does nothing.
func Fill(testing.TB, string, int64) (empty func()) { return func() {} }
