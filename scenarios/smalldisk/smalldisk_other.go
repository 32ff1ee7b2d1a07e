//go:build !linux

package smalldisk

import "testing"

// Run fails the test: only Linux has mount namespaces.
func Run(t *testing.T, _ int64, _ func(dir string)) {
	t.Helper()
	t.Fatal("small file systems need Linux")
}

// Fill does nothing.
func Fill(testing.TB, string, int64) (empty func()) { return func() {} }
