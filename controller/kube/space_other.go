//go:build !linux

package kube

// allocateAhead does nothing: only Linux gives a file blocks in advance.
func allocateAhead(string, int64) error { return nil }
